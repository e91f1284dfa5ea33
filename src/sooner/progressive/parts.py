"""What a plan is cut into: states that batches add to, and parts of the plan with their role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sooner.algebra import Aggregate, Item, Project, Relation, Scan, SortKey, walk
from sooner.algebra.scalar import Scalar, column, columns_of
from sooner.analysis.deterministic import is_deterministic
from sooner.progressive.decomposed import Late
from sooner.progressive.gates import CannotGate, Gate
from sooner.progressive.samplers import Sampler
from sooner.storage.layout import REPLICATE


class CannotStream(Exception):
    """Why a plan cannot be answered in steps under a choice of streams."""


@dataclass(frozen=True)
class State:
    """What is kept of a delta between batches.

    With ``aggregate`` the groups of the delta are merged, else its rows are collected; of those only
    the first ``keep`` in the order ``by`` if given. ``counted`` is the place of the scan whose rows
    scale the sums; ``carried`` is the delta with the replicate of every row, where sums are estimated.
    Only rows that pass its ``gates`` count; ``carried`` has the columns these need.
    ``pairs`` is the state of the distinct values where the aggregate counts them.
    With ``samplers`` some aggregates do not merge, and rows are kept for them (:mod:`sampled`); those
    that do merge are in the state ``beside``. Columns that come ``late`` are not in the aggregate.
    """

    name: str
    delta: Relation
    counted: int
    aggregate: Aggregate | None = None
    carried: Relation | None = None
    by: tuple[SortKey, ...] = ()
    keep: int | None = None
    expected_rows: float = 0.0
    gates: tuple[Gate, ...] = ()
    pairs: State | None = None
    samplers: tuple[Sampler, ...] = ()
    beside: str | None = None
    late: Late | None = None

    @property
    def is_special(self) -> bool:
        """Whether there is more to it than groups that merge or rows that add up."""
        return any((self.gates, self.samplers, self.pairs, self.beside, self.late))


@dataclass(frozen=True)
class Cut:
    """The states, the static parts by name, and the top, whose scans name both.

    ``commons`` are rows by name that are read in several places of every batch.
    """

    top: Relation
    states: tuple[State, ...]
    statics: Mapping[str, Relation]
    commons: Mapping[str, Relation] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """A subtree with its role; a delta also in a form that carries the replicate."""

    plan: Relation
    carried: Relation | None = None
    counted: int = -1
    is_static: bool = False
    expected_rows: float = 0.0
    gates: tuple[Gate, ...] = ()

    @property
    def hidden(self) -> tuple[str, ...]:
        """The columns of a delta that are there for its gates."""
        return tuple(name for gate in self.gates for name in gate.columns)

    @property
    def is_delta(self) -> bool:
        """Whether its rows come with their block."""
        return self.carried is not None

    @property
    def is_top(self) -> bool:
        """Whether it is computed anew for every answer."""
        return not self.is_static and not self.is_delta


def stream_name(place: int) -> str:
    """The name a streamed scan has in a delta."""
    return f"__stream_{place}"


def in_order(part: Part) -> Relation:
    """A delta with its replicate last: set operations go by position."""
    assert part.carried is not None
    return Project(
        part.carried, tuple(Item(name, column(name)) for name in (*part.plan.names, REPLICATE))
    )


def require_seen(part: Part, scalars: Sequence[Scalar]) -> None:
    """Above a gate the open values themselves are not to be had."""
    if part.gates:
        missing = {name for one in scalars for name in columns_of(one)} - part.plan.name_set
        if missing:
            raise CannotGate(f"{', '.join(sorted(missing))} is used above a condition on it")


def require_deterministic(*scalars: Scalar) -> None:
    """Refuse what would not be the same when it is read again."""
    for scalar in scalars:
        if not is_deterministic(scalar):
            raise CannotStream(f"{scalar.sql('spark')} may differ from one reading to the next")


def scans(plan: Relation) -> int:
    """How many scans a plan has."""
    return sum(isinstance(node, Scan) for node in walk(plan))
