"""What a synopsis was asked to be: the knobs of PASS §2.4.5 under plain names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from sooner.errors import InvalidArgument, nearest
from sooner.synopses.axes import Axis
from sooner.synopses.measures import Measure

Focus: TypeAlias = Literal["sum", "count", "avg"]
Partitioning: TypeAlias = Literal["fast", "equal", "climbing", "search", "exact"]
Allocation: TypeAlias = Literal["proportional", "equal", "neyman"]


@dataclass(frozen=True)
class Knobs:
    """How a synopsis is built.

    ``leaves``: how many boxes at most. ``sample``: the share of rows that is stored. ``effective``: rows
    read for a question that cuts two leaves, instead. ``focus``: the aggregate whose worst error is made
    small. ``delta``: the smallest share of rows that a question is expected to ask for. ``optimizer``: rows
    that the partitioning is computed from.
    """

    leaves: int = 64
    sample: float | None = None
    effective: int | None = None
    focus: Focus = "sum"
    partitioning: Partitioning = "fast"
    allocation: Allocation = "proportional"
    delta: float = 0.01
    optimizer: int = 4096
    seed: int = 0

    def __post_init__(self) -> None:
        _whole("leaves", self.leaves, 1)
        _whole("optimizer", self.optimizer, 2)
        if self.sample is not None and self.effective is not None:
            raise InvalidArgument(
                "Give sample= (stored) or effective= (read for a question), not both."
            )
        if self.sample is not None and not (_is_number(self.sample) and 0 < self.sample <= 1):
            raise InvalidArgument(f"sample={self.sample!r}: give a share above 0 and at most 1.")
        if self.effective is not None:
            _whole("effective", self.effective, 2)
        if not (_is_number(self.delta) and 0 < self.delta < 1):
            raise InvalidArgument(f"delta={self.delta!r}: give a share between 0 and 1.")
        for name, value, allowed in (
            ("focus", self.focus, get_args(Focus)),
            ("partitioning", self.partitioning, get_args(Partitioning)),
            ("allocation", self.allocation, get_args(Allocation)),
        ):
            if value not in allowed:
                raise InvalidArgument(f"{name}={value!r}: use one of {', '.join(allowed)}.")

    def stored(self, rows: int) -> int:
        """How many rows of a table are stored."""
        if self.effective is not None:
            # A span cuts two leaves at most: each has half of what may be read.
            return min(rows, self.effective * self.leaves // 2)
        return min(rows, max(2, round((self.sample or 0.005) * rows)))

    def as_dict(self) -> dict[str, Any]:
        """The knobs as plain values."""
        return asdict(self)


def knobs_of(given: Mapping[str, Any]) -> Knobs:
    """Knobs by name. Raises :class:`InvalidArgument` for one that there is not."""
    known = [one.name for one in fields(Knobs)]
    for name in given:
        if name not in known:
            raise InvalidArgument(f"A synopsis has no knob {name!r}.{nearest(name, known)}")
    return Knobs(**given)


@dataclass(frozen=True)
class Definition:
    """A synopsis by name: of which table at which version, which measures, over and beside which columns."""

    name: str
    table: str
    version: int
    measures: tuple[Measure, ...]
    over: tuple[Axis, ...]
    keep: tuple[Axis, ...]
    knobs: Knobs

    @property
    def axes(self) -> dict[str, Axis]:
        """All columns that conditions can go by, by lower-case name."""
        return {one.name.lower(): one for one in (*self.over, *self.keep)}

    def measure(self, name: str) -> Measure | None:
        """The measure of this name, letter case aside."""
        return next((one for one in self.measures if one.name.lower() == name.lower()), None)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgument(f"{name}={value!r}: give a whole number from {least} on.")
