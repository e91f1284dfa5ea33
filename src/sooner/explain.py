"""What will happen and why, in plain words, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence

from sooner.algebra.relation import Opaque
from sooner.algebra.text import plan_text
from sooner.prepare import Prepared
from sooner.storage import Table


def explain_text(prepared: Prepared, tables: Sequence[Table]) -> str:
    """The explanation of a prepared query over its tables."""
    lines = [_method(prepared), "", "Reads:"]
    lines += [f"  {_table(table)}" for table in tables] or ["  no registered table"]
    lines += ["", "Gives:"]
    lines += [f"  {column.name}: {column.type}" for column in prepared.columns]
    lines += ["", "Plan:"]
    lines += [f"  {line}" for line in plan_text(prepared.plan).splitlines()]
    if prepared.steps:
        lines += ["", "Rewritten by:"]
        lines += [
            f"  {step.rule} ({step.seconds * 1000:.1f} ms)"
            + ("" if step.changed else ", nothing to do")
            for step in prepared.steps
        ]
    return "\n".join(lines)


def _method(prepared: Prepared) -> str:
    if isinstance(prepared.plan, Opaque):
        return (
            "Exact, in one step. The text goes to Spark as it is written, because of "
            f"{prepared.plan.reason}."
        )
    return "Exact, in one step, through Sooner's own plan."


def _table(table: Table) -> str:
    rows = "rows not counted" if table.facts.rows is None else f"{table.facts.rows:,} rows"
    scrambles = "; ".join(
        f"scrambled by {', '.join(scramble.by)} into {scramble.blocks} blocks"
        for scramble in table.scrambles
    )
    return f"{table.name} version {table.version}: {rows}" + (f"; {scrambles}" if scrambles else "")
