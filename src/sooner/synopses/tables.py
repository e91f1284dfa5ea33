"""Totals and samples as Arrow tables: the form in which they travel and are stored. No pickles."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sooner.synopses.axes import float_codes, floats_of
from sooner.synopses.measures import Measure
from sooner.synopses.samples import Samples
from sooner.synopses.totals import Ints, MeasureTotals, Totals

# Sums of 64-bit numbers, however many.
_WHOLE = pa.decimal128(38)


def totals_table(totals: Totals) -> pa.Table:
    """Totals with a row for each node or leaf."""
    columns: dict[str, pa.Array] = {"rows": pa.array(totals.rows)}
    for name in totals.low:
        columns[f"low:{name}"] = pa.array(totals.low[name])
        columns[f"high:{name}"] = pa.array(totals.high[name])
    for name, one in totals.measures.items():
        for part in ("count", "sum", "positive", "negative", "squares", "low", "high", "nan"):
            columns[f"{part} of {name}"] = _encoded(getattr(one, part))
    return pa.table(columns)


def totals_from(table: pa.Table, axes: list[str], measures: tuple[Measure, ...]) -> Totals:
    """Totals from such a table."""

    def ints(name: str) -> Ints:
        return np.asarray(table.column(name).to_numpy(), np.int64)

    def measure(one: Measure) -> MeasureTotals:
        def exact(part: str) -> npt.NDArray[Any]:
            column = table.column(f"{part} of {one.name}")
            if not one.is_whole:
                return np.asarray(column.to_numpy(), np.float64)
            empty = {"low": np.inf, "high": -np.inf}.get(part, 0)
            whole = [empty if value is None else int(value) for value in column.to_pylist()]
            return np.array([*whole, None], dtype=object)[:-1]

        return MeasureTotals(
            ints(f"count of {one.name}"),
            exact("sum"),
            exact("positive"),
            exact("negative"),
            np.asarray(table.column(f"squares of {one.name}").to_numpy(), np.float64),
            exact("low"),
            exact("high"),
            ints(f"nan of {one.name}"),
        )

    return Totals(
        ints("rows"),
        {name: ints(f"low:{name}") for name in axes},
        {name: ints(f"high:{name}") for name in axes},
        {one.name: measure(one) for one in measures},
    )


def _encoded(values: npt.NDArray[Any]) -> pa.Array:
    if values.dtype != object:
        return pa.array(values)
    # Ends of no value are infinite.
    whole = [None if isinstance(one, float) else int(one) for one in values]
    return pa.array(whole, _WHOLE)


def samples_table(samples: Samples) -> pa.Table:
    """Sampled rows as whole numbers, each as its difference from the middle of its leaf (PASS §2.3.4).

    Small numbers take little room. Floating ones go by their bits, so that nothing is rounded.
    """
    leaf = _leaf_of(samples.starts)
    columns: dict[str, pa.Array] = {"hash": pa.array(samples.hashes)}
    for name, codes in samples.axes.items():
        columns[f"at {name}"] = pa.array(_differences(codes, leaf, samples.starts))
    for name, values in samples.values.items():
        codes = values if values.dtype == np.int64 else float_codes(values)
        columns[f"value {name}"] = pa.array(
            _differences(codes, leaf, samples.starts), mask=~samples.there[name]
        )
    return pa.table(columns)


def middles(samples: Samples) -> pa.Table:
    """What the differences of :func:`samples_table` are from, and where the leaves begin."""
    columns: dict[str, pa.Array] = {"start": pa.array(samples.starts[:-1])}
    for name, codes in samples.axes.items():
        columns[f"at {name}"] = pa.array(_middle(codes, samples.starts))
    for name, values in samples.values.items():
        codes = values if values.dtype == np.int64 else float_codes(values)
        columns[f"value {name}"] = pa.array(_middle(codes, samples.starts))
    return pa.table(columns)


def samples_from(
    table: pa.Table, around: pa.Table, axes: list[str], measures: tuple[Measure, ...]
) -> Samples:
    """Samples from both tables."""
    starts = np.append(around.column("start").to_numpy(), table.num_rows).astype(np.int64)
    leaf = _leaf_of(starts)

    def codes(name: str) -> Ints:
        column = (
            table.column(name).fill_null(0) if table.column(name).null_count else table.column(name)
        )
        with np.errstate(over="ignore"):
            whole: Ints = column.to_numpy() + around.column(name).to_numpy()[leaf]
        return whole

    values: dict[str, npt.NDArray[Any]] = {}
    there = {}
    for one in measures:
        found = codes(f"value {one.name}")
        valid = np.asarray(table.column(f"value {one.name}").is_valid().to_numpy(), np.bool_)
        numbers = found if one.is_whole else floats_of(found)
        values[one.name] = numbers if valid.all() else np.where(valid, numbers, 0)
        there[one.name] = valid
    return Samples(
        starts,
        np.asarray(table.column("hash").to_numpy(), np.int64),
        {name: codes(f"at {name}") for name in axes},
        values,
        there,
    )


def _leaf_of(starts: Ints) -> Ints:
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def _differences(codes: Ints, leaf: Ints, starts: Ints) -> Ints:
    # Differences that do not fit wrap round, and back when they are added again.
    with np.errstate(over="ignore"):
        apart: Ints = codes - _middle(codes, starts)[leaf]
    return apart


def _middle(codes: Ints, starts: Ints) -> Ints:
    """A number in the middle of each leaf's; 0 for a leaf without any."""
    found = np.zeros(len(starts) - 1, np.int64)
    some = np.diff(starts) > 0
    if some.any():
        means = np.add.reduceat(codes.astype(np.float64), starts[:-1][some])
        rounded = means / np.diff(starts)[some]
        found[some] = np.clip(rounded, -(2.0**62), 2.0**62).astype(np.int64)
    return found
