"""What a synopsis is compared with: uniform and stratified samples, and AQP++ (PASS §2.5.1).

All take questions as spans of one column's numbers and give SUM, COUNT or AVG with a 99% half-width.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
WIDE = 2.576


@dataclass(frozen=True)
class Sample:
    """Sampled rows in order of their code, each standing for ``weight`` rows of its stratum."""

    codes: Ints
    values: Floats
    stratum: Ints
    rows: Floats
    kept: Floats

    def estimate(self, low: int, high: int, what: str) -> tuple[float, float]:
        """The estimate and the half-width of its interval."""
        inside = (self.codes >= low) & (self.codes <= high)
        number = len(self.rows)
        counts = np.bincount(self.stratum[inside], minlength=number).astype(np.float64)
        sums = np.bincount(self.stratum[inside], self.values[inside], number)
        squares = np.bincount(self.stratum[inside], np.square(self.values[inside]), number)
        return combine(self.rows, self.kept, counts, sums, squares, what, 0.0, 0.0)


def combine(
    rows: Floats,
    kept: Floats,
    counts: Floats,
    sums: Floats,
    squares: Floats,
    what: str,
    known_sum: float,
    known_count: float,
) -> tuple[float, float]:
    """Stratified estimates (§2.2.2) beside what is known exactly."""
    kept = np.maximum(kept, 1.0)
    total = known_sum + float((rows * sums / kept).sum())
    number = known_count + float((rows * counts / kept).sum())
    if what == "sum":
        of, of_squares, value, over = sums, squares, total, 1.0
    elif what == "count":
        of, of_squares, value, over = counts, counts, number, 1.0
    else:
        value = total / number if number else np.nan
        of = sums - value * counts
        of_squares = squares - 2 * value * sums + value * value * counts
        over = max(number, 1.0)
    variance = np.maximum(of_squares - np.square(of) / kept, 0.0) / np.maximum(kept - 1, 1.0)
    error = np.square(rows) * (1 - np.minimum(1.0, kept / rows)) * variance / kept
    return value, WIDE * float(np.sqrt(error.sum())) / over


def uniform(codes: Ints, values: Floats, kept: int, seed: int) -> Sample:
    """US: so many rows of all."""
    chosen = np.sort(np.random.default_rng(seed).choice(len(codes), kept, replace=False))
    return Sample(
        codes[chosen],
        values[chosen],
        np.zeros(kept, np.int64),
        np.array([float(len(codes))]),
        np.array([float(kept)]),
    )


def stratified(codes: Ints, values: Floats, kept: int, strata: int, seed: int) -> Sample:
    """ST: equally many rows of strata of equal depth. The codes are sorted."""
    rng = np.random.default_rng(seed)
    edges = np.linspace(0, len(codes), strata + 1).astype(np.int64)
    each = kept // strata
    chosen = [
        np.sort(rng.choice(np.arange(low, high), min(each, high - low), replace=False))
        for low, high in pairwise(edges)
    ]
    places = np.concatenate(chosen)
    return Sample(
        codes[places],
        values[places],
        np.repeat(np.arange(strata), [len(one) for one in chosen]),
        np.diff(edges).astype(np.float64),
        np.array([len(one) for one in chosen], np.float64),
    )


@dataclass(frozen=True)
class AqpPlusPlus:
    """Exact aggregates of partitions, and one uniform sample for what they do not cover."""

    sample: Sample
    boundaries: Ints
    sums: Floats
    counts: Floats

    @staticmethod
    def of(codes: Ints, values: Floats, boundaries: Ints, kept: int, seed: int) -> AqpPlusPlus:
        """Partitions by the upper codes of all but the last; the codes are sorted."""
        part = np.searchsorted(boundaries, codes)
        size = len(boundaries) + 1
        return AqpPlusPlus(
            uniform(codes, values, kept, seed),
            boundaries,
            np.bincount(part, values, size),
            np.bincount(part, minlength=size).astype(np.float64),
        )

    def estimate(self, low: int, high: int, what: str) -> tuple[float, float]:
        """What is covered exactly, and the gap at both ends from the sample of all."""
        lower = np.append(np.iinfo(np.int64).min, self.boundaries + 1)
        upper = np.append(self.boundaries, np.iinfo(np.int64).max)
        covered = (lower >= low) & (upper <= high)
        codes, values = self.sample.codes, self.sample.values
        inside = (codes >= low) & (codes <= high)
        inside &= ~covered[np.searchsorted(self.boundaries, codes)]
        chosen = values[inside]
        return combine(
            self.sample.rows,
            self.sample.kept,
            np.array([float(inside.sum())]),
            np.array([float(chosen.sum())]),
            np.array([float(np.square(chosen).sum())]),
            what,
            float(self.sums[covered].sum()),
            float(self.counts[covered].sum()),
        )
