"""Pure mathematics, no Spark: replicates, moments, bootstrap, growth, distinct counts, intervals."""

from sooner.statistics.bootstrap import percentile_interval, poisson_weights
from sooner.statistics.distinct import (
    count_distinct,
    distinct_interval,
    frequency_variation,
    leave_one_out_distinct,
    maybe_skewed,
)
from sooner.statistics.growth import growth, shared_growth
from sooner.statistics.intervals import Interval, cut, interval, simultaneous, student_interval
from sooner.statistics.moments import (
    Moments,
    deviations,
    leave_one_out_moments,
    leave_one_out_variance,
    many_groups_error,
    many_groups_ratio,
    merge_moments,
    reduce_moments,
)
from sooner.statistics.quantiles import Sample, quantile, quantile_interval, sample_of
from sooner.statistics.replicates import (
    Effective,
    all_but_one,
    effective_replicates,
    jackknife_error,
    leave_one_out,
    scale_up,
)

__all__ = [
    "Effective",
    "Interval",
    "Moments",
    "Sample",
    "all_but_one",
    "count_distinct",
    "cut",
    "deviations",
    "distinct_interval",
    "effective_replicates",
    "frequency_variation",
    "growth",
    "interval",
    "jackknife_error",
    "leave_one_out",
    "leave_one_out_distinct",
    "leave_one_out_moments",
    "leave_one_out_variance",
    "many_groups_error",
    "many_groups_ratio",
    "maybe_skewed",
    "merge_moments",
    "percentile_interval",
    "poisson_weights",
    "quantile",
    "quantile_interval",
    "reduce_moments",
    "sample_of",
    "scale_up",
    "shared_growth",
    "simultaneous",
    "student_interval",
]
