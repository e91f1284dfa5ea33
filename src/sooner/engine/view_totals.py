"""Totals of a view's rows and of its samples, by group, in one Spark job: what estimates are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sooner.algebra import Relation
from sooner.engine.change_rows import readable
from sooner.engine.failures import plain_errors
from sooner.sql import quote, render


@dataclass(frozen=True)
class Counted:
    """A value of each row that is added up, in SQL: 1 or 0 for whether it counts, and the value."""

    passes: str
    value: str


@dataclass(frozen=True)
class Part:
    """Rows of a view: all of it as they are, rows with a sign, or draws, with a sign and a hash each."""

    name: str
    rows: Relation
    kind: Literal["whole", "signed", "drawn"]


def view_totals(
    spark: SparkSession,
    keys: Sequence[str],
    parts: Sequence[Part],
    counted: Sequence[Counted],
    plain: Mapping[str, str],
    powers: Sequence[tuple[int, int]],
    hash_: str,
    sign: str,
    frames: Mapping[str, DataFrame],
) -> pa.Table:
    """A row for each group: its keys, and totals and powers of every value in every part.

    A total is called ``<part>_<place>_c`` (``s``, ``q`` for sums and squares), a power ``<part>_<place>_21``,
    the number of draws that bring anything ``<part>_<place>_n``. ``plain`` are aggregates of whole parts.
    """
    outputs: list[str] = []
    texts = []
    for part in parts:
        match part.kind:
            case "whole":
                own = _totals(counted, "1.0D") | dict(plain)
            case "signed":
                own = _totals(counted, quote(sign))
            case _:
                own = _moments(counted, powers)
        outputs += [f"{part.name}_{name}" for name in own]
        texts.append((part, own))
    shown = [quote(key) for key in keys]
    unions = []
    for part, own in texts:
        source = render(part.rows)
        if part.kind == "drawn":
            source = _by_draw(source, keys, counted, hash_, sign)
        named = {f"{part.name}_{name}": sql for name, sql in own.items()}
        columns = [
            f"{named[name]} AS {quote(name)}" if name in named else f"NULL AS {quote(name)}"
            for name in outputs
        ]
        group = f" GROUP BY {', '.join(shown)}" if shown else ""
        unions.append(f"SELECT {', '.join([*shown, *columns])} FROM ({source}){group}")
    together = ", ".join([*shown, *(f"max({quote(name)}) AS {quote(name)}" for name in outputs)])
    group = f" GROUP BY {', '.join(shown)}" if shown else ""
    text = f"SELECT {together} FROM ({' UNION ALL '.join(f'({one})' for one in unions)}){group}"
    with plain_errors(), readable(spark, frames):
        return spark.sql(text).toArrow()


def _totals(counted: Sequence[Counted], sign: str) -> dict[str, str]:
    found = {}
    for place, one in enumerate(counted):
        weight = f"{sign} * {one.passes}"
        found[f"{place}_c"] = f"sum({weight})"
        found[f"{place}_s"] = f"sum({weight} * {one.value})"
        found[f"{place}_q"] = f"sum({weight} * {one.value} * {one.value})"
    return found


def _by_draw(
    source: str, keys: Sequence[str], counted: Sequence[Counted], hash_: str, sign: str
) -> str:
    columns = []
    for place, one in enumerate(counted):
        signed = f"{quote(sign)} * {one.passes}"
        columns.append(f"sum({signed}) AS c{place}")
        columns.append(f"sum({signed} * {one.value}) AS s{place}")
        columns.append(f"sum({signed} * {one.value} * {one.value}) AS q{place}")
    by = ", ".join([*(quote(key) for key in keys), quote(hash_)])
    return f"SELECT {', '.join([*(quote(key) for key in keys), *columns])} FROM ({source}) GROUP BY {by}"


def _moments(counted: Sequence[Counted], powers: Sequence[tuple[int, int]]) -> dict[str, str]:
    found = {}
    for place in range(len(counted)):
        count, total = f"c{place}", f"s{place}"
        found[f"{place}_c"] = f"sum({count})"
        found[f"{place}_s"] = f"sum({total})"
        found[f"{place}_q"] = f"sum(q{place})"
        found[f"{place}_n"] = f"sum(CASE WHEN {count} <> 0 OR {total} <> 0 THEN 1.0D ELSE 0.0D END)"
        for a, b in powers:
            product = "*".join([count] * a + [total] * b)
            found[f"{place}_{a}{b}"] = f"sum({product})"
    return found


def aligned_values(
    spark: SparkSession,
    keys: Sequence[str],
    rows: Mapping[str, Relation],
    identity: Sequence[str],
    values: Mapping[str, str],
    sign: str,
    frames: Mapping[str, DataFrame],
) -> pa.Table:
    """Sampled rows before and after, side by side: of each value ``<name>_old`` and ``<name>_new``.

    ``rows`` are those of the sample as it was, and those that it loses and gains, with their ``sign``;
    ``identity`` are the columns that tell them apart, given after the keys. A row that is not there has
    nulls.
    """
    shown, same = [quote(key) for key in keys], [quote(one) for one in identity]
    old, changed = render(rows["old"]), render(rows["changed"])
    names = [*shown, *same]
    one = ", ".join([*names, *(f"{sql} AS {quote(name)}" for name, sql in values.items())])
    kinds = (
        f"SELECT {one}, 0 AS kind FROM ({old}) UNION ALL "
        f"SELECT {one}, CAST({quote(sign)} AS INT) AS kind FROM ({changed})"
    )
    columns = []
    for name in values:
        was = f"max({quote(name)}) FILTER (WHERE kind = 0)"
        is_ = f"max({quote(name)}) FILTER (WHERE kind = 1)"
        gone = "count_if(kind <> 0) > 0"
        columns += [f"{was} AS {quote(name + '_old')}"]
        columns += [f"CASE WHEN {gone} THEN {is_} ELSE {was} END AS {quote(name + '_new')}"]
    told = ", ".join([*names, *columns])
    text = f"SELECT {told} FROM ({kinds}) GROUP BY {', '.join(names)}"
    with plain_errors(), readable(spark, frames):
        return spark.sql(text).toArrow()


def put_right(whole: Relation, changed: Relation, identity: Sequence[str], sign: str) -> str:
    """Rows of a view without those that a sample lost, and those that it gained, in SQL."""
    shown = ", ".join(quote(name) for name in whole.names if name not in identity)
    same = " AND ".join(f"w.{quote(one)} <=> c.{quote(one)}" for one in identity) or "true"
    return (
        f"SELECT {shown} FROM ({render(whole)}) w LEFT ANTI JOIN "
        f"(SELECT * FROM ({render(changed)}) WHERE {quote(sign)} < 0) c ON {same} "
        f"UNION ALL SELECT {shown} FROM ({render(changed)}) WHERE {quote(sign)} > 0"
    )


@dataclass(frozen=True)
class Selected:
    """Rows that a condition picks, and of rows that changed: number, sum, squares, fourth powers by draw."""

    rows: pa.Table
    counts: Mapping[str, tuple[float, float, float, float]]


def selected_rows(
    spark: SparkSession,
    whole: Relation,
    changed: Relation,
    identity: Sequence[str],
    hash_: str,
    sign: str,
    frames: Mapping[str, DataFrame],
) -> Selected:
    """The rows that are picked of a view, those of them in place of which a sample has others put right."""
    rows = put_right(whole, changed, identity, sign)
    by_row = ", ".join([quote(hash_), *(quote(one) for one in identity)])
    one_each = (
        f"SELECT {quote(hash_)} AS h, count_if({quote(sign)} < 0) > 0 AS was, "
        f"count_if({quote(sign)} > 0) > 0 AS is_ FROM ({render(changed)}) GROUP BY {by_row}"
    )
    kinds = {"updated": "was AND is_", "added": "is_ AND NOT was", "deleted": "was AND NOT is_"}
    by_draw = ", ".join(f"CAST(count_if({sql}) AS DOUBLE) AS {kind}" for kind, sql in kinds.items())
    sums = ", ".join(
        f"sum(IF({kind} > 0, 1.0D, 0.0D)), sum({kind}), sum(pow({kind}, 2)), sum(pow({kind}, 4))"
        for kind in kinds
    )
    counts = f"SELECT {sums} FROM (SELECT {by_draw} FROM ({one_each}) GROUP BY h)"
    with plain_errors(), readable(spark, frames):
        table = spark.sql(rows).toArrow()
        (found,) = spark.sql(counts).collect()
    numbers = [float(value or 0.0) for value in found]
    return Selected(
        table,
        {kind: tuple(numbers[4 * at : 4 * at + 4]) for at, kind in enumerate(kinds)},  # type: ignore[misc]
    )
