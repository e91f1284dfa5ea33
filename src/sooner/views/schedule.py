"""When work on a view is due: every so often, or after so many changed rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sooner.errors import InvalidArgument

_TIME = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)\s*")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Schedule:
    """Due when ``seconds`` have passed, or ``rows`` of its tables have changed, since it was last done.

    >>> after(rows=10_000).is_due(elapsed=5.0, changed=10_000)
    True
    >>> every("1h").is_due(elapsed=59 * 60, changed=10**9)
    False
    """

    seconds: float | None = None
    rows: int | None = None

    def is_due(self, elapsed: float, changed: int | None) -> bool:
        """Whether it is due; without a change nothing is. A number nobody knows is taken as enough."""
        if changed == 0:
            return False
        late = self.seconds is not None and elapsed >= self.seconds
        return late or (self.rows is not None and (changed is None or changed >= self.rows))

    def __str__(self) -> str:
        if self.rows is not None:
            return f"after {self.rows:,} changed rows"
        assert self.seconds is not None
        for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
            if self.seconds >= size and self.seconds % size == 0:
                return f"every {self.seconds / size:g} {unit}"
        return f"every {self.seconds:g} s"


def every(time: str | float) -> Schedule:
    """Work that is due every so often: ``every("60s")``, ``every("1h")`` or a number of seconds.

    >>> str(every("90s")), str(every("2h"))
    ('every 90 s', 'every 2 h')
    """
    if isinstance(time, str):
        found = _TIME.fullmatch(time)
        if found is None:
            raise InvalidArgument(f'every({time!r}): give a time such as "60s", "5min" or "1h".')
        seconds = float(found[1]) * _SECONDS[found[2]]
    elif isinstance(time, int | float) and not isinstance(time, bool):
        seconds = float(time)
    else:
        raise InvalidArgument(f'every({time!r}): give a time such as "60s", "5min" or "1h".')
    if not 0 < seconds < float("inf"):
        raise InvalidArgument(f"every({time!r}): the time must be above zero.")
    return Schedule(seconds=seconds)


def after(*, rows: int) -> Schedule:
    """Work that is due after so many rows have changed: ``after(rows=10_000)``."""
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
        raise InvalidArgument(f"after(rows={rows!r}): give a number of rows, at least 1.")
    return Schedule(rows=rows)


def schedule_to(schedule: Schedule | None) -> dict[str, Any] | None:
    """A schedule as JSON holds it."""
    return None if schedule is None else {"seconds": schedule.seconds, "rows": schedule.rows}


def schedule_from(found: Any) -> Schedule | None:
    """A schedule that :func:`schedule_to` gave."""
    return None if found is None else Schedule(**found)
