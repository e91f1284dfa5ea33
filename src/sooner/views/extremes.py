"""What the minimum or maximum of a stale view would be if the view were fresh (Stale View Cleaning, §12.1.1).

The bootstrap fails here: no draw from a sample goes beyond it. So there is a value without an interval, and
a bound on how much of the view lies beyond that value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sooner.statistics.arrays import Floats


@dataclass(frozen=True)
class Extreme:
    """A value, and how likely a row lies beyond it at most; ``None`` where that is not known."""

    value: float | None
    probability: float | None


def extreme_estimate(
    function: Literal["min", "max"], stale: float | None, dirty: Floats, clean: Floats
) -> Extreme:
    """The fresh extreme. ``stale`` is that of the whole stale view, not given if it had no rows.

    ``dirty`` and ``clean`` are what the sampled keys had before and have after, not a number where a key has
    no row that counts. The paper adds the largest difference of any row to the stale maximum (the smallest
    to the minimum). That is kept to what can be:

    - What the clean sample has is there: no maximum is smaller.
    - If the row of the stale extreme is sampled itself, what became of it is known, and another row's
      difference has nothing to do with it. The clean sample's extreme is then off by half as much; of a
      whole sample it is exact. Only where many rows are close to the extreme and grow by much, it is too
      small. If no row is in both samples it is all there is to say.

    That a small row's growth is added to the largest row is not mended: with the differences of large rows
    only, estimates were as often further off as closer.

    The probability is Cantelli's, var/(var + ε²) for what is ε or more beyond the mean, with the sample's
    mean and variance, and not less than 1/(n + 1) of n rows: so few say no more, however they vary. It is
    that of one row, drawn at random. The paper takes it for that of any such row in the view, but for this
    it would have to be multiplied by the number of rows that were not sampled.

    >>> before, after = np.array([10.0, 70.0, 80.0, 90.0]), np.array([10.0, 70.0, 85.0, np.nan])
    >>> extreme_estimate("max", 100.0, before, after).value
    105.0
    >>> extreme_estimate("max", 90.0, before, after).value
    85.0
    """
    sign = 1.0 if function == "max" else -1.0
    before, after = sign * dirty, sign * clean
    found = _largest(None if stale is None else sign * stale, before, after)
    if found is None:
        return Extreme(None, None)
    return Extreme(sign * found + 0.0, _beyond(found, after[~np.isnan(after)]))


def _largest(stale: float | None, before: Floats, after: Floats) -> float | None:
    seen = after[~np.isnan(after)]
    largest = float(seen.max()) if len(seen) else None
    if stale is None or (before >= stale).any():
        return largest
    with np.errstate(invalid="ignore"):
        differences = after - before
    both = ~np.isnan(differences)
    if not both.any():
        # With nothing sampled nothing is seen to have changed.
        return largest if len(seen) or not np.isnan(before).all() else stale
    corrected = stale + float(differences[both].max())
    return corrected if largest is None else max(corrected, largest)


def _beyond(value: float, seen: Floats) -> float | None:
    """Cantelli's bound on P(X ≥ value); rows that are all alike say nothing of how others vary."""
    if len(seen) < 2:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = float(seen.std(ddof=1))
        if not deviation > 0.0:
            return None
        distance = (value - float(seen.mean())) / deviation
        share = 1.0 / (1.0 + distance * distance)
    return None if np.isnan(share) else max(share, 1.0 / (len(seen) + 1))
