"""Other ways to a range for missing rows (Predicate-Constraints, §4.6.1), given as much as the constraints.

All of them see the missing rows themselves, or a summary of them: it is what they remember that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.99
# So many rows are made up and stand for all: more take long and tell no more.
_MADE_UP = 50_000


@dataclass(frozen=True)
class Rows:
    """Missing rows: the columns that questions go by, and the measure."""

    over: np.ndarray
    measure: np.ndarray

    def inside(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return ((self.over >= low) & (self.over <= high)).all(axis=1)


Range = tuple[float, float]
# From the ends of a question, and whether it is a SUM or a COUNT, to a range.
Rival = Callable[[np.ndarray, np.ndarray, bool], Range]


def sampled(
    rows: Rows,
    size: int,
    parametric: bool,
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
    noise: float = 0.0,
) -> Rival:
    """A uniform sample: the normal approximation, or Hoeffding's bound with the range of the sample.

    With ``noise`` that range is remembered wrongly.
    """
    chosen = rng.choice(len(rows.measure), min(size, len(rows.measure)), replace=False)
    sample = Rows(rows.over[chosen], rows.measure[chosen])
    wrong = float(np.diff(rng.normal(0, noise, 2))[0])
    return _stratified([(len(rows.measure), sample)], parametric, confidence, wrong)


def stratified(
    rows: Rows, parts: Sequence[np.ndarray], each: int, parametric: bool, rng: np.random.Generator
) -> Rival:
    """The same of each part of the constraints."""
    strata = []
    for part in parts:
        chosen = rng.choice(part, min(each, len(part)), replace=False)
        strata.append((len(part), Rows(rows.over[chosen], rows.measure[chosen])))
    return _stratified(strata, parametric)


def _stratified(
    strata: Sequence[tuple[int, Rows]],
    parametric: bool,
    confidence: float = CONFIDENCE,
    wrong: float = 0.0,
) -> Rival:
    number = np.array([count for count, _ in strata], float)
    size = np.array([len(sample.measure) for _, sample in strata], float)
    starts = np.concatenate([[0], np.cumsum(size)[:-1]]).astype(int)
    over = np.concatenate([sample.over for _, sample in strata])
    measure = np.concatenate([sample.measure for _, sample in strata])
    everything = Rows(over, measure)
    z = stats.norm.ppf(0.5 + confidence / 2)

    def ask(low: np.ndarray, high: np.ndarray, is_sum: bool) -> Range:
        inside = everything.inside(low, high)
        values = np.where(inside, measure if is_sum else 1.0, 0.0)
        mean = np.add.reduceat(values, starts) / size
        if parametric:
            square = np.add.reduceat(values**2, starts) / size
            variance = np.maximum(square - mean**2, 0) / size
            half = z * float(np.sqrt((number**2 * variance).sum()))
        else:
            spread = np.maximum.reduceat(values, starts) - np.minimum.reduceat(values, starts)
            # One row alone tells nothing of how far apart values are: then all sampled rows do.
            spread = np.where(size < 2, np.ptp(values), spread)
            spread = np.maximum(spread + wrong, 0)
            share = (number * spread) ** 2 / size
            half = float(np.sqrt(share.sum() * np.log(2 / (1 - confidence)) / 2))
        middle = float(number @ mean)
        return middle - half, middle + half

    return ask


def histogram(rows: Rows, buckets: int) -> Rival:
    """Equally wide buckets of every column: how many rows can be inside, and the largest values there are."""
    columns = [np.histogram(one, buckets) for one in rows.over.T]
    counts, edges = np.histogram(rows.measure, buckets)
    largest = np.concatenate([[0.0], np.cumsum(counts[::-1])])
    worth = np.concatenate([[0.0], np.cumsum((counts * np.maximum(edges[1:], 0))[::-1])])

    def ask(low: np.ndarray, high: np.ndarray, is_sum: bool) -> Range:
        inside = [
            held[(ends[1:] >= first) & (ends[:-1] <= last)].sum()
            for (held, ends), first, last in zip(columns, low, high, strict=True)
        ]
        most = float(min(inside))
        least = float(np.minimum(rows.measure, 0).sum()) if is_sum else 0.0
        return least, float(np.interp(most, largest, worth)) if is_sum else most

    return ask


def mixture(rows: Rows, components: int, runs: int, rng: np.random.Generator) -> Rival:
    """A mixture of Gaussians fitted to the rows, from which they are made up again some times."""
    data = np.column_stack([rows.over, rows.measure]).astype(float)
    shift, scale = data.mean(axis=0), data.std(axis=0) + 1e-12
    fitted = data[rng.choice(len(data), min(len(data), 20_000), replace=False)]
    weights, means, spreads = _fit((fitted - shift) / scale, components, rng)
    made = []
    size = min(len(data), _MADE_UP)
    for _ in range(runs):
        each = rng.multinomial(size, weights)
        pieces = [
            rng.multivariate_normal(mean, spread, n)
            for n, mean, spread in zip(each, means, spreads, strict=True)
        ]
        again = np.concatenate(pieces) * scale + shift
        made.append(Rows(again[:, :-1], again[:, -1]))

    def ask(low: np.ndarray, high: np.ndarray, is_sum: bool) -> Range:
        found = []
        for one in made:
            inside = one.inside(low, high)
            found.append(float(one.measure[inside].sum()) if is_sum else float(inside.sum()))
        return min(found) * len(data) / size, max(found) * len(data) / size

    return ask


def _fit(
    data: np.ndarray, components: int, rng: np.random.Generator, steps: int = 30
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expectation and maximization, from random rows on."""
    width = data.shape[1]
    means = data[rng.choice(len(data), components, replace=False)]
    spreads = np.array([np.eye(width)] * components)
    weights = np.full(components, 1 / components)
    for _ in range(steps):
        densities = np.column_stack(
            [
                np.log(weight + 1e-300)
                + stats.multivariate_normal.logpdf(data, mean, spread, allow_singular=True)
                for weight, mean, spread in zip(weights, means, spreads, strict=True)
            ]
        )
        densities -= densities.max(axis=1, keepdims=True)
        belongs = np.exp(densities)
        belongs /= belongs.sum(axis=1, keepdims=True)
        number = belongs.sum(axis=0) + 1e-9
        weights = number / number.sum()
        means = belongs.T @ data / number[:, None]
        for n in range(components):
            off = data - means[n]
            spreads[n] = (belongs[:, n, None] * off).T @ off / number[n] + 1e-4 * np.eye(width)
    return weights, means, spreads
