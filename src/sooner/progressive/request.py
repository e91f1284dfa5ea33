"""What the user asked of a progressive query."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from numbers import Real

from sooner.errors import InvalidArgument


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    batches: int | None = None
    confidence: float = 0.95
    seed: int = 0
    error: float | None = None
    within: float | None = None
    slack: float = 2.0
    stream: Collection[str] | None = None

    def __post_init__(self) -> None:
        if self.batches is not None and not (_is_whole(self.batches) and self.batches >= 1):
            raise InvalidArgument(f"batches must be a whole number from 1, not {self.batches!r}.")
        if not (_is_whole(self.seed) and self.seed >= 0):
            raise InvalidArgument(f"seed must be a whole number from 0, not {self.seed!r}.")
        if not (_is_number(self.confidence) and 0 < self.confidence < 1):
            raise InvalidArgument(f"confidence must be between 0 and 1, not {self.confidence!r}.")
        if self.error is not None and not (_is_number(self.error) and self.error > 0):
            raise InvalidArgument(f"error must be above 0, as 0.01 for 1%, not {self.error!r}.")
        if self.within is not None and not (_is_number(self.within) and self.within > 0):
            raise InvalidArgument(f"within must be above 0 seconds, not {self.within!r}.")
        if not (_is_number(self.slack) and self.slack >= 0):
            raise InvalidArgument(f"slack must be a number from 0, not {self.slack!r}.")

    def require_reads(self, tables: Collection[str]) -> None:
        """Refuse to stream a table that the query does not read."""
        for name in self.stream or ():
            if name.lower() not in {table.lower() for table in tables}:
                raise InvalidArgument(f"stream= names {name!r}, which the query does not read.")


def _is_number(number: object) -> bool:
    return isinstance(number, Real) and not isinstance(number, bool)


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
