"""A view in words: how it will be brought up to date, how far sampling goes, which estimator is likely."""

from __future__ import annotations

import re

from sooner.display import rows_text
from sooner.views.deltas import CHANGED, NEW, OLD
from sooner.views.upkeep import Upkeep

# Above this share of changed rows a sample alone is usually closer than a correction (Figure 6b: 32.5%).
_BREAK_EVEN = 0.325


def described(upkeep: Upkeep) -> str:
    """What is known of a view before anything is done with it."""
    table = upkeep.table
    key = ", ".join(name for name in table.key if not name.startswith("__"))
    rows = "rows not counted" if table.facts.rows is None else rows_text(table.facts.rows)
    kept = f", and {len(table.hidden)} columns for its upkeep" if table.hidden else ""
    each = f", one for each {key}" if key else ""
    sections = [
        _section(f"View {table.name}", [f"{rows}{each}; {len(table.columns)} columns{kept}"]),
        _section("State", _state(upkeep)),
        _section("With refresh()", [_sentence(upkeep.choice.why)]),
        _section("With answer()", _answering(upkeep)),
        *_schedules(upkeep),
    ]
    return "\n\n".join(sections)


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([f"{title}:", *(f"  {line}" for line in lines)])


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _schedules(upkeep: Upkeep) -> list[str]:
    wanted = {"refresh": upkeep.definition.refresh, "clean": upkeep.definition.clean}
    lines = [f"{what} {when}" for what, when in wanted.items() if when is not None]
    return [_section("With db.work() and db.keeping()", lines)] if lines else []


def _state(upkeep: Upkeep) -> list[str]:
    if not upkeep.is_stale:
        return ["Up to date."]
    lines = []
    for name, table in upkeep.now.items():
        known = upkeep.stored.reflects.get(name)
        if known is None or known.id != table.id:
            lines.append(f"{table.name} was registered anew")
        elif known.version != table.version:
            rows = upkeep.changed_rows(name)
            lines.append(
                f"{table.name}: version {known.version} to {table.version}, {rows_text(rows)} came or went"
            )
    lines += [f"{one.table.name} is a view and stale itself" for one in upkeep.below.values()]
    return [f"Stale. {lines[0]}", *lines[1:]]


def _answering(upkeep: Upkeep) -> list[str]:
    definition, unit = upkeep.definition, upkeep.unit
    if unit is None:
        return [f"Exactly, of the rows that the view would have: {definition.why_not}."]
    shown = [name for name in unit.columns if not name.startswith("__")]
    by = ", ".join(shown) or "its key, which it does not show"
    lines = [f"{100 * (definition.sample or 0):.3g}% of it is cleaned, by the hash of {by}."]
    if set(unit.columns) != set(upkeep.table.key):
        lines.append(
            "That is a part of its key: rows that share a value are drawn together, and intervals say so."
        )
    if not upkeep.anew:
        found, blocks = upkeep.described()
        reached = ", ".join(upkeep.now[name].name for name in found.tables if name in upkeep.now)
        lines.append(f"Only sampled rows are read of: {reached or 'no table'}.")
        if blocks:
            lines.append(
                f"By blocks of a scramble, without reading the others: {', '.join(blocks)}."
            )
        lines += [f"Stopped at {_plain(why)}." for why in found.blocked]
    for one in definition.outliers:
        how = (
            f"the {one.top} largest"
            if one.top
            else f"those {one.deviations:g} deviations above the mean"
        )
        lines.append(f"Never left to chance: {how} of {one.column} of {one.table}.")
    lines.append(_estimator(upkeep))
    return lines


def _plain(why: str) -> str:
    """A node of the plan without what is only of use inside: column lists and names of versions."""
    for prefix in (OLD, NEW, CHANGED):
        why = why.replace(prefix, "")
    return re.sub(r" \[[^\]]*\]", "", why)


def _estimator(upkeep: Upkeep) -> str:
    if not upkeep.is_stale:
        return "Nothing has changed: it is asked as it is."
    rows = sum(table.facts.rows or 0 for table in upkeep.now.values())
    if upkeep.changed is None or not rows:
        return "Corrected or anew: whichever varies less, measured for each question."
    share = upkeep.changed / rows
    likely = "the stale view corrected (CORR)" if share < _BREAK_EVEN else "the sample alone (AQP)"
    return (
        f"{share:.1%} of the rows of its tables have changed: {likely} is likely; it is measured for each "
        "question which varies less."
    )
