"""Constraints from history (Corr-PC, §4.6.1): parts along the columns that the measure goes with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from sooner.algebra.schema import Column, Schema
from sooner.errors import InvalidArgument, NotSupported, UnknownColumn, nearest
from sooner.missing.constraint import Constraint
from sooner.missing.leaves import leaf_constraints
from sooner.missing.parts import Parts, Tree, correlated_columns
from sooner.missing.space import written
from sooner.sql import quote
from sooner.synopses.axes import Axis
from sooner.synopses.synopsis import Synopsis

if TYPE_CHECKING:
    from sooner.frame import Frame

# So many rows tell where to cut; the numbers of each part are then taken from all of them.
_SAMPLE = 200_000


def suggest(
    history: Frame | Synopsis,
    measure: str | None = None,
    over: str | Sequence[str] | None = None,
    count: int = 200,
) -> list[Constraint]:
    """Constraints that rows like those of ``history`` fulfil: where they are, what values, how many at most.

    Without ``over`` the columns are taken that the measure goes with most. Of a synopsis each leaf is one
    constraint, and nothing is read.
    """
    if isinstance(history, Synopsis):
        if measure is not None or over is not None:
            raise InvalidArgument("A synopsis has its measures and columns: give nothing but it.")
        return leaf_constraints(history.summary)
    if measure is None:
        raise InvalidArgument("measure= names the column that will be aggregated.")
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidArgument(f"count= takes a number of constraints, not {count!r}.")
    columns = {one.name.lower(): one for one in history.columns}
    over = [over] if isinstance(over, str) else over
    for name in (measure, *(over or ())):
        if str(name).lower() not in columns:
            raise UnknownColumn(f"There is no column {name!r}.{nearest(name, columns)}")
    measured = columns[measure.lower()]
    if Axis(measured.name, str(measured.type)).kind not in ("whole", "decimal", "floating"):
        raise InvalidArgument(f"{measure} is of type {measured.type}: measures are numbers.")
    given = [columns[name.lower()] for name in over or ()]
    rows = _sampled(history, measured, given or _usable(history.columns, measured))
    axes = {name: _axis(columns[name.lower()], rows) for name in rows.column_names[1:]}
    values = rows.column(0).cast(pa.float64()).to_numpy()
    codes = {name: axis.codes(rows.column(name)) for name, axis in axes.items()}
    chosen = [one.name for one in given] or correlated_columns(codes, values)
    if not chosen:
        raise InvalidArgument(f"No column goes with {measure}. Name some in over=[…].")
    parts = Parts({name: codes[name] for name in chosen}, values, count)
    return _counted(history, measured.name, parts.tree, {name: axes[name] for name in chosen})


def _usable(schema: Schema, measure: Column) -> list[Column]:
    """Columns that conditions can go by."""
    found = []
    for one in schema:
        try:
            if one.name != measure.name and one.type and Axis(one.name, one.type).kind:
                found.append(one)
        except NotSupported:
            continue
    return found


def _sampled(history: Frame, measure: Column, columns: Sequence[Column]) -> pa.Table:
    """Some of the rows in which nothing is null, chosen by what they hold."""
    names = [quote(one.name) for one in (measure, *columns)]
    there = " AND ".join(f"{name} IS NOT NULL" for name in names)
    full = history.filter(there)
    number = full.agg(["count(*) AS n"]).exact().to_arrow().column("n")[0].as_py()
    if not number:
        raise InvalidArgument("There is no row in which the measure and all columns have a value.")
    share = min(1.0, _SAMPLE / number)
    if share < 1:
        full = full.filter(f"pmod(xxhash64({', '.join(names)}), 1000000) < {int(share * 1e6)}")
    return full.select(*names).exact().to_arrow()


def _axis(column: Column, rows: pa.Table) -> Axis:
    axis = Axis(column.name, str(column.type))
    if axis.kind != "text":
        return axis
    return axis.with_words(set(rows.column(column.name).unique().to_pylist()))


def _counted(
    history: Frame, measure: str, tree: Tree, axes: Mapping[str, Axis]
) -> list[Constraint]:
    """The parts with the values and the number of all rows, those with nulls apart."""
    null = " OR ".join(f"{quote(name)} IS NULL" for name in (measure, *axes))
    part = f"CASE WHEN {null} THEN -1 ELSE {_number(tree, axes)} END AS part"
    bounded = [measure, *axes]
    ends = [
        f"{end}({quote(name)}) AS {end}_{n}"
        for n, name in enumerate(bounded)
        for end in ("min", "max")
    ]
    numbered = history.select(part, *(quote(name) for name in bounded))
    found = numbered.agg(["count(*) AS n", *ends], by="part").exact().to_arrow().to_pylist()
    there = [f"{quote(name)} IS NOT NULL" for name in bounded]
    conditions = dict(_conditions(tree, axes, there))
    made = []
    for row in sorted(found, key=lambda row: int(row["part"])):
        if row["part"] >= 0:
            values = {name: (row[f"min_{n}"], row[f"max_{n}"]) for n, name in enumerate(bounded)}
            made.append(Constraint(conditions[row["part"]], values, (0, row["n"])))
        else:
            made += _with_nulls(history, measure, list(axes))
    return made


def _with_nulls(history: Frame, measure: str, columns: Sequence[str]) -> list[Constraint]:
    """Rows in which something is null: those without the measure, and those without a column."""
    of = quote(measure)
    gone = " OR ".join(f"{quote(name)} IS NULL" for name in columns)
    items = [
        f"count_if({of} IS NULL) AS without",
        f"count_if({of} IS NOT NULL AND ({gone})) AS n",
        f"min({of}) FILTER (WHERE {gone}) AS low",
        f"max({of}) FILTER (WHERE {gone}) AS high",
    ]
    (row,) = history.agg(items).exact().to_arrow().to_pylist()
    made = []
    if row["without"]:
        made.append(Constraint(f"{of} IS NULL", {}, (0, row["without"])))
    if row["n"]:
        ends = {measure: (row["low"], row["high"])}
        made.append(Constraint(f"{of} IS NOT NULL AND ({gone})", ends, (0, row["n"])))
    return made


def _number(tree: Tree, axes: Mapping[str, Axis]) -> str:
    """The number of a row's part, in SQL."""
    if isinstance(tree, int):
        return str(tree)
    below, above = _number(tree.below, axes), _number(tree.above, axes)
    return f"CASE WHEN {_below(axes[tree.column], tree.at)} THEN {below} ELSE {above} END"


def _conditions(tree: Tree, axes: Mapping[str, Axis], path: list[str]) -> Iterator[tuple[int, str]]:
    if isinstance(tree, int):
        yield tree, " AND ".join(path)
        return
    cut = _below(axes[tree.column], tree.at)
    yield from _conditions(tree.below, axes, [*path, cut])
    yield from _conditions(tree.above, axes, [*path, cut.replace(" < ", " >= ", 1)])


def _below(axis: Axis, at: int) -> str:
    return f"{quote(axis.name)} < {written(axis, at)}"
