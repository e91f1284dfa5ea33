"""How groups grow as more is read: rows per group as a power of the progress (DeepOLA §3.5.1)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sooner.statistics.arrays import Floats


def _zero() -> Floats:
    return np.zeros(())


@dataclass(frozen=True, slots=True, eq=False)
class Growth:
    """A least-squares line through (log t, log mean rows), one point added at a time.

    Points may be arrays, with a value for each replicate left out: each gets a line of its own. The
    power rests on early batches too, for which 1 − t is too small a correction: an interval at half
    of the data covers 92%, not 95%.

    Only for what does grow as a power. The number of groups does not: it levels off, and a power fitted
    to a tenth of the rows gives 3.5 times the truth for groups of ten rows, with intervals that never
    hold it. What hash order gives (rows ∝ t, groups of the stream key ∝ t) needs no fit.

    >>> growth = Growth().add(0.1, 20.0).add(0.4, 40.0)
    >>> round(float(growth.power), 3), round(float(growth.scale(0.25)), 3)
    (0.5, 2.0)
    """

    points: Floats = field(default_factory=_zero)
    mean_progress: Floats = field(default_factory=_zero)
    mean_rows: Floats = field(default_factory=_zero)
    spread: Floats = field(default_factory=_zero)
    product: Floats = field(default_factory=_zero)

    def add(self, t: float | Floats, mean_rows: float | Floats) -> Growth:
        """The same with one more point; where it has no logarithm, it is passed over."""
        progress = np.asarray(t, dtype=np.float64)
        rows = np.asarray(mean_rows, dtype=np.float64)
        use = (progress > 0) & (rows > 0) & np.isfinite(rows)
        x, y = np.log(np.where(use, progress, 1.0)), np.log(np.where(use, rows, 1.0))
        points = self.points + use
        share = use / np.maximum(points, 1.0)
        off_x, off_y = x - self.mean_progress, y - self.mean_rows
        middle_x, middle_y = self.mean_progress + off_x * share, self.mean_rows + off_y * share
        return Growth(
            points,
            middle_x,
            middle_y,
            self.spread + use * off_x * (x - middle_x),
            self.product + use * off_x * (y - middle_y),
        )

    @property
    def power(self) -> Floats:
        """The w of rows ∝ t^w, not clamped; 1 (rows grow as what is read) until it can be fitted."""
        fits = (self.points >= 2) & (self.spread > 1e-12)
        return np.divide(self.product, self.spread, out=np.ones(fits.shape), where=fits)

    def scale(self, t: float | Floats) -> Floats:
        """What to multiply by to go from progress t to all: t^−w."""
        return np.asarray(np.power(np.asarray(t, dtype=np.float64), -self.power))
