"""Nested aggregates (iOLAP, App. B eq. 4): sums pushed below a condition on an open value.

``sum(f)`` over rows that pass ``B < C``, where C is still open, needs of them only the sums of f for each
B: rows that agree on what the condition looks at pass or fail together, and wait as one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sooner.algebra import Aggregate, Item, Relation
from sooner.progressive.gates import UNDECIDED, Gate
from sooner.storage.layout import REPLICATE


def shared_fate(keys: Sequence[str], gates: Sequence[Gate]) -> tuple[str, ...]:
    """The columns on which rows agree that count for the same group and pass together."""
    return (*keys, REPLICATE, *(name for gate in gates for name in gate.columns))


def presummed(
    delta: Relation, keys: Sequence[str], gates: Sequence[Gate], partials: Sequence[Item]
) -> Aggregate:
    """The partial sums of a batch: of a decided row the columns of the gates are blank."""
    return Aggregate(delta, (*shared_fate(keys, gates), UNDECIDED), tuple(partials))
