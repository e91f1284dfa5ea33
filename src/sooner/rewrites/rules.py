"""The rules, in the order in which they are applied."""

from __future__ import annotations

from sooner.rewrites.factor_disjunctions import factor_disjunctions
from sooner.rewrites.factor_unions import factor_unions
from sooner.rewrites.order_joins import order_joins
from sooner.rewrites.outer_to_inner import outer_to_inner
from sooner.rewrites.prune_columns import prune_columns
from sooner.rewrites.push_down_filters import push_down_filters
from sooner.rewrites.reduce_groups import reduce_groups
from sooner.rewrites.rule import Rule

RULES: tuple[Rule, ...] = (
    # Before the filters move: a condition shared by all parts of an OR can then move with them.
    Rule("factor_disjunctions", factor_disjunctions),
    # Before the filters move: a filter that turns an outer join inner still stands right above it.
    Rule("outer_to_inner", outer_to_inner),
    Rule("push_down_filters", push_down_filters),
    # After the filters have become join conditions: they say which inputs belong together.
    Rule("order_joins", order_joins),
    # After the filters have moved to the tables: they say which groups are asked for.
    Rule("reduce_groups", reduce_groups),
    # After the filters have moved: only those that differ between branches still keep them apart. Before
    # the columns go: what is shared is then written alike in all branches.
    Rule("factor_unions", factor_unions),
    # Last: the others need columns that are then no longer there.
    Rule("prune_columns", prune_columns),
)
