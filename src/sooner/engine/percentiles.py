"""Exact percentiles of many rows of which it is known about where they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sooner.engine.change_rows import readable
from sooner.engine.failures import plain_errors
from sooner.sql import quote

_BOUNDS = "__percentile_bounds"


def percentiles(
    spark: SparkSession,
    keys: Sequence[str],
    rows: str,
    asked: Sequence[tuple[str, float]],
    bounds: pa.Table,
    frames: Mapping[str, DataFrame],
) -> pa.Table:
    """A row for each group of ``rows``: its keys, and for each value and share in ``asked`` the percentile.

    ``bounds`` has for some groups their keys, and of each value a low and a high end, which are values of
    rows. A value beyond them is taken for the end, so that a percentile between the ends is that of the
    values themselves, and one that is an end says nothing. Spark keeps all values that a percentile tells
    apart in a map: a minute for 15 million, and a few seconds for those near it.
    """
    # Names of our own, as a key may have any.
    names, others = ([f"{one}{place}" for place in range(len(keys))] for one in "kg")
    columns = [f"{quote(key)} AS {name}" for key, name in zip(keys, names, strict=True)]
    columns += [f"{sql} AS v{place}" for place, (sql, _) in enumerate(asked)]
    source = f"(SELECT {', '.join(columns)} FROM ({rows}))"
    values = [f"v{place}" for place in range(len(asked))]
    if bounds.num_rows:
        both = [(f"low{place}", f"high{place}") for place in range(len(asked))]
        known = bounds.rename_columns([*others, *(end for pair in both for end in pair)])
        frames = {**frames, _BOUNDS: spark.createDataFrame(known)}
        same = [f"{one} <=> {other}" for one, other in zip(names, others, strict=True)]
        source += f" LEFT JOIN {_BOUNDS} ON {' AND '.join(same) or 'true'}"
        values = [
            f"CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END"
            for value, (low, high) in zip(values, both, strict=True)
        ]
    found = [
        f"percentile({value}, {share!r}D) AS p{place}"
        for place, (value, (_, share)) in enumerate(zip(values, asked, strict=True))
    ]
    group = f" GROUP BY {', '.join(names)}" if names else ""
    with plain_errors(), readable(spark, frames):
        return spark.sql(f"SELECT {', '.join([*names, *found])} FROM {source}{group}").toArrow()
