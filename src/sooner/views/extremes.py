"""What the minimum or maximum of a stale view would be if the view were fresh (Stale View Cleaning, §12.1.1).

The bootstrap fails here: no draw from a sample goes beyond it. So there is a value without an interval, and
a bound on how much of the view lies beyond that value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sooner.statistics.arrays import Floats

# The rows nearest to the extreme, whose differences are looked at: a fiftieth of them, but not fewer.
_NEAREST, _FEWEST = 0.02, 30


@dataclass(frozen=True)
class Extreme:
    """A value, and at most which share of the rows lie beyond it; ``None`` where that is not known."""

    value: float | None
    probability: float | None


def extreme_estimate(
    function: Literal["min", "max"], stale: float | None, dirty: Floats, clean: Floats
) -> Extreme:
    """The fresh extreme. ``stale`` is that of the whole stale view, not given if it had no rows.

    ``dirty`` and ``clean`` are what the sampled keys had before and have after, not a number where a key has
    no row that counts. The paper adds the largest difference of any row to the stale maximum (the smallest
    to the minimum). It is kept to what can be so:

    - Differences count of the rows nearest to the extreme only. A row that grows from 1 to 900 does not
      make one of 1000 into 1899; with all rows the error was twice as large, and mostly upwards.
    - What the clean sample has is there: no maximum is smaller.
    - If the row of the stale extreme is sampled itself, what became of it is known, and correcting it by
      another row's difference is not. Then, and if no row is in both samples, the clean sample's extreme
      is all there is to say; of a whole sample it is exact.

    The probability is Cantelli's, var/(var + ε²) for values further than ε from the mean, with the sample's
    mean and variance. It is that of one row, drawn at random. The paper takes it for that of any such row
    in the view, but for this it would have to be multiplied by the rows not sampled.

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
    number = int(both.sum())
    if not number:
        # With nothing sampled nothing is seen to have changed.
        return largest if len(seen) or not np.isnan(before).all() else stale
    before, differences = before[both], differences[both]
    farthest = max(0, number - max(_FEWEST, int(_NEAREST * number)))
    near = before >= np.partition(before, farthest)[farthest]
    corrected = stale + float(differences[near].max())
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
    return None if np.isnan(share) else share
