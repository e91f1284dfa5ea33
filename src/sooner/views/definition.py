"""What a user said a view is to be, and how the catalog keeps that: as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sooner.errors import InvalidArgument
from sooner.views.schedule import Schedule, schedule_from, schedule_to
from sooner.views.unit import Unit


@dataclass(frozen=True)
class Outliers:
    """A column of a table whose largest values are never left to chance (§6.1).

    Either the ``top`` rows, or all that are more than some ``deviations`` above the mean. ``threshold`` is
    what that came to when the view was last brought up to date.
    """

    table: str
    column: str
    top: int | None = None
    deviations: float | None = None
    threshold: float | None = None


@dataclass(frozen=True)
class Definition:
    """A view: its query, the share of it that is cleaned, what it is sampled by, and when work is due.

    Without a ``unit`` it is not sampled; ``why_not`` then says why.
    """

    text: str
    sample: float | None = None
    unit: Unit | None = None
    why_not: str | None = None
    outliers: tuple[Outliers, ...] = ()
    refresh: Schedule | None = None
    clean: Schedule | None = None
    # The hashes of outliers.
    certain: tuple[int, ...] = ()
    # Whether some values that it is sampled by had far more rows than others when it was made.
    uneven: bool = False
    # Of the session that made its rows: days begin at other moments elsewhere. Once it was not kept.
    zone: str = ""

    def __post_init__(self) -> None:
        if self.sample is not None and not 0 < self.sample <= 1:
            raise InvalidArgument(
                f"sample={self.sample}: give the share of rows, above 0 and up to 1, or None."
            )


def as_text(definition: Definition) -> str:
    """The definition as JSON."""
    unit = definition.unit
    found = {
        "text": definition.text,
        "sample": definition.sample,
        "unit": unit and {"columns": unit.columns, "types": unit.types, "salt": unit.salt},
        "why_not": definition.why_not,
        "outliers": [vars(one) for one in definition.outliers],
        "refresh": schedule_to(definition.refresh),
        "clean": schedule_to(definition.clean),
        "certain": definition.certain,
        "uneven": definition.uneven,
        "zone": definition.zone,
    }
    return json.dumps(found)


def from_text(text: str) -> Definition:
    """A definition that :func:`as_text` wrote."""
    found: Mapping[str, Any] = json.loads(text)
    unit, outliers = found["unit"], found["outliers"]
    return Definition(
        text=str(found["text"]),
        sample=_number(found["sample"]),
        unit=_unit(unit) if isinstance(unit, dict) else None,
        why_not=None if found["why_not"] is None else str(found["why_not"]),
        outliers=tuple(Outliers(**one) for one in outliers),
        refresh=schedule_from(found["refresh"]),
        clean=schedule_from(found["clean"]),
        certain=tuple(found["certain"]),
        uneven=bool(found.get("uneven")),
        zone=str(found.get("zone", "")),
    )


def _unit(found: Mapping[str, list[str]]) -> Unit:
    return Unit(tuple(found["columns"]), tuple(found["types"]), int(str(found["salt"])))


def _number(value: object) -> float | None:
    return None if value is None else float(str(value))


def share_within(budget: float, shares: tuple[float, float], times: Sequence[float]) -> float:
    """The share whose cleaning takes so long, if time grows evenly with it; between 0.1% and all.

    >>> share_within(5.0, (0.01, 0.05), [1.0, 1.4])
    0.41
    """
    small, large = shares
    each = max(1e-9, (times[1] - times[0]) / (large - small))
    fixed = max(0.0, times[0] - each * small)
    return round(min(1.0, max(0.001, (budget - fixed) / each)), 4)
