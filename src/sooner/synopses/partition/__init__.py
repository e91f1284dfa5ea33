"""Where leaves begin and end: the algorithms of PASS and JanusAQP, and what they are compared with.

They see a sample of the rows only, and know no tables.
"""

from sooner.synopses.partition.allocate import Allocation, allocate
from sooner.synopses.partition.binary_search import binary_search
from sooner.synopses.partition.binary_tree import binary_tree
from sooner.synopses.partition.boundaries import boundaries_at, leaves_between
from sooner.synopses.partition.equal_depth import equal_depth
from sooner.synopses.partition.exact_program import exact_program
from sooner.synopses.partition.fast_program import fast_program
from sooner.synopses.partition.hill_climbing import hill_climbing
from sooner.synopses.partition.items import Focus, Items, items_of, smallest_query
from sooner.synopses.partition.kd_tree import KdTree, balanced_kd_tree, kd_tree
from sooner.synopses.partition.max_variance import (
    MaxVariance,
    exact_max_variance,
    fast_max_variance,
)
from sooner.synopses.partition.worst import worst_error, worst_interval

__all__ = [
    "Allocation",
    "Focus",
    "Items",
    "KdTree",
    "MaxVariance",
    "allocate",
    "balanced_kd_tree",
    "binary_search",
    "binary_tree",
    "boundaries_at",
    "equal_depth",
    "exact_max_variance",
    "exact_program",
    "fast_max_variance",
    "fast_program",
    "hill_climbing",
    "items_of",
    "kd_tree",
    "leaves_between",
    "smallest_query",
    "worst_error",
    "worst_interval",
]
