"""Totals of a view's rows and of its samples, by group, in one Spark job: what estimates are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sooner.algebra import Relation
from sooner.engine.change_rows import readable
from sooner.engine.failures import plain_errors
from sooner.sql import quote, render

_CONSTANTS = "__view_constants"


@dataclass(frozen=True)
class Counted:
    """What is added up of each row, in SQL: 1 or 0 for whether it counts, and its value, or else 0.

    Of a ``spread`` it is the value less about the mean of its group, with its squares: of large values that
    differ little, squares would have no digits left for that.
    """

    passes: str
    value: str = "0.0D"
    spread: bool = False

    @property
    def totals(self) -> str:
        """The letters of its totals: a count, a sum, squares and, of a spread, fourth powers."""
        return "csqf" if self.spread else "csq"

    @property
    def brings(self) -> str:
        """The total that a draw must bring something to, or it says nothing of the value."""
        return "q" if self.spread else "c" if self.value == "0.0D" else "s"


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
    powers_of: Callable[[bool], Sequence[tuple[int, int, int]]],
    hash_: str,
    sign: str,
    frames: Mapping[str, DataFrame],
    constants: pa.Table | None = None,
) -> pa.Table:
    """A row for each group: its keys, and totals and powers of every value in every part.

    A total is called ``<part>_<place>_c`` (``s``, ``q``, ``f`` for sums, squares, fourth powers), a power
    ``<part>_<place>_210``, the number of draws that bring anything ``<part>_<place>_n``. Of a spread draws
    have ``k`` and ``a``, too: the rows that count and their fourth powers, whatever their sign. ``plain`` are
    aggregates of whole parts, and ``powers_of`` says which powers a spread needs and which all else.
    ``constants`` are numbers by group that values refer to, after its keys, which may have any names.
    """
    means = _means(keys, parts, counted)
    looked_up = ["__means"] if means else []
    if constants is not None:
        known = [_key(place) for place in range(len(keys))]
        named = constants.rename_columns([*known, *constants.column_names[len(keys) :]])
        looked_up.append(_CONSTANTS)
        frames = {**frames, _CONSTANTS: spark.createDataFrame(named)}
    outputs: list[str] = []
    texts = []
    for part in parts:
        match part.kind:
            case "whole":
                own = _totals(counted, "1.0D") | dict(plain)
            case "signed":
                own = _totals(counted, quote(sign))
            case _:
                own = _moments(counted, powers_of)
        outputs += [f"{part.name}_{name}" for name in own]
        texts.append((part, own))
    shown = [quote(key) for key in keys]
    unions = []
    for part, own in texts:
        source = render(part.rows)
        for table in looked_up:
            same = [f"r.{key} <=> m.{_key(place)}" for place, key in enumerate(shown)]
            on = " AND ".join(same) or "true"
            source = f"SELECT * FROM ({source}) r LEFT JOIN {table} m ON {on}"
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
    text = (
        f"{means}SELECT {together} FROM ({' UNION ALL '.join(f'({one})' for one in unions)}){group}"
    )
    with plain_errors(), readable(spark, frames):
        return spark.sql(text).toArrow()


def _key(place: int) -> str:
    """What a key is called where its own name might be another column's."""
    return f"__key{place}"


def _means(keys: Sequence[str], parts: Sequence[Part], counted: Sequence[Counted]) -> str:
    """The mean of each spread's values by group, over the rows of all parts, to be put before a query."""
    spreads = {place: one for place, one in enumerate(counted) if one.spread}
    if not spreads:
        return ""
    names = [_key(place) for place in range(len(keys))]
    columns = [f"{quote(key)} AS {name}" for key, name in zip(keys, names, strict=True)]
    for place, one in spreads.items():
        columns.append(f"CASE WHEN {one.passes} > 0 THEN {one.value} END AS __mean{place}")
    rows = [f"SELECT {', '.join(columns)} FROM ({render(part.rows)})" for part in parts]
    means = ", ".join([*names, *(f"avg(__mean{at}) AS __mean{at}" for at in spreads)])
    group = f" GROUP BY {', '.join(names)}" if names else ""
    return f"WITH __means AS (SELECT {means} FROM ({' UNION ALL '.join(rows)}){group}) "


def _added_up(place: int, one: Counted, sign: str) -> dict[str, str]:
    """Each total of a value, by its letter."""
    value = f"({one.value} - COALESCE(__mean{place}, 0.0D))" if one.spread else one.value
    return {
        letter: f"sum({' * '.join([sign, one.passes, *[value] * power])})"
        for letter, power in zip(one.totals, (0, 1, 2, 4), strict=False)
    }


def _totals(counted: Sequence[Counted], sign: str) -> dict[str, str]:
    return {
        f"{place}_{letter}": sql
        for place, one in enumerate(counted)
        for letter, sql in _added_up(place, one, sign).items()
    }


def _by_draw(
    source: str, keys: Sequence[str], counted: Sequence[Counted], hash_: str, sign: str
) -> str:
    columns = []
    for place, one in enumerate(counted):
        named = _added_up(place, one, quote(sign))
        if one.spread:
            whatever = _added_up(place, one, "1.0D")
            named |= {"k": whatever["c"], "a": whatever["f"]}
        columns += [f"{sql} AS __{letter}{place}" for letter, sql in named.items()]
    by = ", ".join([*(quote(key) for key in keys), quote(hash_)])
    return f"SELECT {', '.join([*(quote(key) for key in keys), *columns])} FROM ({source}) GROUP BY {by}"


def _moments(
    counted: Sequence[Counted], powers_of: Callable[[bool], Sequence[tuple[int, int, int]]]
) -> dict[str, str]:
    found = {}
    for place, one in enumerate(counted):
        for letter in one.totals + ("ka" if one.spread else ""):
            found[f"{place}_{letter}"] = f"sum(__{letter}{place})"
        found[f"{place}_n"] = f"CAST(count_if(__{one.brings}{place} <> 0) AS DOUBLE)"
        brought = [f"__{letter}{place}" for letter in "csq"]
        for power in powers_of(one.spread):
            factors = [each for each, n in zip(brought, power, strict=False) for _ in range(n)]
            found[f"{place}_{''.join(map(str, power))}"] = f"sum({'*'.join(factors)})"
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
        f"SELECT {one}, 0 AS __kind FROM ({old}) UNION ALL "
        f"SELECT {one}, CAST({quote(sign)} AS INT) AS __kind FROM ({changed})"
    )
    columns = []
    for name in values:
        was = f"max({quote(name)}) FILTER (WHERE __kind = 0)"
        is_ = f"max({quote(name)}) FILTER (WHERE __kind = 1)"
        gone = "count_if(__kind <> 0) > 0"
        columns += [f"{was} AS {quote(name + '_old')}"]
        columns += [f"CASE WHEN {gone} THEN {is_} ELSE {was} END AS {quote(name + '_new')}"]
    told = ", ".join([*names, *columns])
    text = f"SELECT {told} FROM ({kinds}) GROUP BY {', '.join(names)}"
    with plain_errors(), readable(spark, frames):
        return spark.sql(text).toArrow()


def put_right(
    whole: Relation,
    changed: Relation,
    identity: Sequence[str],
    sign: str,
) -> str:
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
    """Rows that a condition picks, and of rows that changed: number, sum, squares, fourth powers by draw.

    A last number are those that are in the sample for certain. The last column of the rows says which of
    them are known to be as they should.
    """

    rows: pa.Table
    counts: Mapping[str, tuple[float, float, float, float, float]]


def selected_rows(
    spark: SparkSession,
    whole: Relation,
    changed: Relation,
    identity: Sequence[str],
    hash_: str,
    sign: str,
    sampled: str,
    certain: str,
    order: str,
    frames: Mapping[str, DataFrame],
) -> Selected:
    """The rows that are picked of a view, those of them in place of which a sample has others put right.

    ``sampled`` says in SQL which hashes are in the sample, ``certain`` which of these are not by chance, and
    ``order`` by what rows are sorted, if at all.
    """
    shown = ", ".join(quote(one) for one in whole.names if one not in identity and one != hash_)
    rows = f"SELECT {shown}, {sampled} FROM ({put_right(whole, changed, identity, sign)})"
    rows += f" ORDER BY {order}" if order else ""
    by_row = ", ".join([quote(hash_), *(quote(one) for one in identity)])
    # A row of which only other columns changed comes and goes with the same values, compared as text.
    differing = (
        f"SELECT {by_row}, sum({quote(sign)}) AS {quote(sign)} FROM ({render(changed)}) "
        f"GROUP BY {by_row}, to_json(struct({shown})) HAVING sum({quote(sign)}) <> 0"
    )
    one_each = (
        f"SELECT {quote(hash_)} AS h, {certain} AS certain, count_if({quote(sign)} < 0) > 0 AS was, "
        f"count_if({quote(sign)} > 0) > 0 AS is_ FROM ({differing}) GROUP BY {by_row}"
    )
    kinds = {"updated": "was AND is_", "added": "is_ AND NOT was", "deleted": "was AND NOT is_"}
    by_draw = ", ".join(f"CAST(count_if({sql}) AS DOUBLE) AS {kind}" for kind, sql in kinds.items())
    powers = ("IF({0} > 0, 1.0D, 0.0D)", "{0}", "pow({0}, 2)", "pow({0}, 4)")
    sums = ", ".join(
        ", ".join(f"sum(IF(certain, 0.0D, {one.format(kind)}))" for one in powers)
        + f", sum(IF(certain, {kind}, 0.0D))"
        for kind in kinds
    )
    counts = f"SELECT {sums} FROM (SELECT {by_draw}, certain FROM ({one_each}) GROUP BY h, certain)"
    with plain_errors(), readable(spark, frames):
        table = spark.sql(rows).toArrow()
        (found,) = spark.sql(counts).collect()
    numbers = [float(value or 0.0) for value in found]
    return Selected(
        table,
        {kind: tuple(numbers[5 * at : 5 * at + 5]) for at, kind in enumerate(kinds)},  # type: ignore[misc]
    )
