"""A column of quantiles of a sample, with the interval of Woodruff."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sooner.progressive.estimates import Varying
from sooner.statistics import Interval, Sample, quantile, quantile_interval


@dataclass(frozen=True)
class Woodruff(Varying):
    """Quantiles: without versions, since leaving replicates out does not give their error.

    ``places`` are the groups of the sample that the cells stand for; ``share`` is how much of what was
    read the sample still holds.
    """

    sample: Sample | None = None
    probability: float = 0.5
    share: float = 1.0
    places: npt.NDArray[np.int64] | None = None

    @staticmethod
    def of(sample: Sample, probability: float, share: float) -> Woodruff:
        """The quantile of every group of a sample."""
        groups, _ = sample.shape
        values = quantile(sample, probability)
        values = np.where(np.isfinite(values), values, np.nan)
        return Woodruff(
            theta=values[None, :],
            contributions=np.zeros(sample.shape),
            sample=sample,
            probability=probability,
            share=share,
            places=np.arange(groups),
        )

    def take(self, places: npt.NDArray[np.int64]) -> Woodruff:
        """The cells at these places."""
        assert self.places is not None
        return replace(
            self,
            theta=self.theta[:, places],
            contributions=self.contributions[places],
            places=self.places[places],
        )

    def interval(self, progress: float, confidence: float) -> Interval:
        """The interval of each cell."""
        assert self.sample is not None
        found = quantile_interval(
            self.sample, self.probability, progress * self.share, confidence, self.fewest
        )
        low, high = (
            np.where(np.isfinite(end), end, np.nan)[self.places] for end in (found.low, found.high)
        )
        return Interval(low, high)
