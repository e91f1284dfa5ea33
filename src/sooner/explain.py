"""What will happen and why, in plain words, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sooner.algebra.relation import Opaque, Relation
from sooner.algebra.text import plan_text
from sooner.analysis import TableInfo, estimate, lineage_blocks, lineage_text, primary_key
from sooner.prepare import Prepared
from sooner.progressive.describe import describe
from sooner.progressive.parts import CannotStream
from sooner.progressive.streams import choose_stream
from sooner.storage import Table


def explain_text(prepared: Prepared, tables: Sequence[Table], companions: int = 0) -> str:
    """The explanation of a prepared query over its tables; ``companions`` would share its reading."""
    sections = [
        _method(prepared),
        _section("With progress()", _progress(prepared, tables)),
        *([_section("With get()", [_shared(companions)])] if companions else []),
        _section("Reads", [_table(table) for table in tables] or ["no registered table"]),
        _section("Gives", [f"{column.name}: {column.type}" for column in prepared.columns]),
    ]
    if not isinstance(prepared.plan, Opaque):
        known = table_infos(tables)
        plan = plan_text(prepared.plan, lambda node: _note(node, known))
        sections.append(_section("Plan", plan.splitlines()))
        blocks = lineage_text(lineage_blocks(prepared.plan))
        sections.append(_section("Lineage blocks", blocks.splitlines()))
        sections.append(_section("Rewritten by", _steps(prepared)))
    return "\n\n".join(sections)


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *(f"  {line}" for line in lines)])


def _method(prepared: Prepared) -> str:
    if isinstance(prepared.plan, Opaque):
        return (
            "Exact, in one step. The text goes to Spark as it is written, because of "
            f"{prepared.plan.reason}."
        )
    return "Exact, in one step, through Sooner's own plan."


def _progress(prepared: Prepared, tables: Sequence[Table]) -> list[str]:
    known = {table.name.lower(): table for table in tables}
    try:
        stream = choose_stream(prepared.plan, known, table_infos(tables), None)
    except CannotStream as obstacle:
        return [f"Exact, in one step: {obstacle}."]
    lines = describe(stream)
    if stream.why_at_once is not None:
        lines.append(stream.why_at_once)
    return lines


def _shared(companions: int) -> str:
    others = "1 other Frame" if companions == 1 else f"{companions} other Frames"
    return f"Blocks are read once, for this and {others} made from the same one."


def _table(table: Table) -> str:
    rows = "rows not counted" if table.facts.rows is None else f"{table.facts.rows:,} rows"
    scrambles = [
        f"scrambled by {', '.join(scramble.by)} into {scramble.blocks} blocks"
        for scramble in table.scrambles
    ]
    missing = ["rows may be missing: answers come with their range"] if table.missing else []
    return "; ".join([f"{table.name} version {table.version}: {rows}", *scrambles, *missing])


def table_infos(tables: Iterable[Table]) -> dict[str, TableInfo]:
    """What analysis is told about tables, by their names in lower case."""
    return {
        table.name.lower(): TableInfo(
            key=table.key,
            scrambles=tuple(scramble.by for scramble in table.scrambles),
            facts=table.facts,
        )
        for table in tables
    }


def _note(node: Relation, tables: Mapping[str, TableInfo]) -> str:
    """The expected rows of a node, and the columns that tell them apart."""
    rows = f"about {estimate(node, tables).rows:,.0f} rows"
    key = primary_key(node, tables)
    if key is None:
        return rows
    return f"{rows}, one for each {', '.join(sorted(key))}" if key else "at most one row"


def _steps(prepared: Prepared) -> list[str]:
    return [
        f"{step.rule} ({step.seconds * 1000:.1f} ms)" + ("" if step.changed else ", nothing to do")
        for step in prepared.steps
    ]
