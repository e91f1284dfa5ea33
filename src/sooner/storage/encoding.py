"""Facts and other values as JSON text that reads back equal. Never pickles."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from sooner.analysis.facts import ColumnFacts, TableFacts
from sooner.errors import CatalogError

_READERS: dict[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "time": time.fromisoformat,
    "decimal": Decimal,
    "float": float,
    "bytes": lambda text: base64.b64decode(text, validate=True),
}


def storable(value: Any) -> bool:
    """Whether a value is of a kind that :func:`encode_value` writes and reads back equal."""
    kinds = (bool, int, float, str, bytes, date, time, Decimal)
    return value is None or isinstance(value, kinds)


def encode_value(value: Any) -> Any:
    """A value as JSON can hold it; what JSON does not know becomes ``{type: text}``.

    >>> encode_value(date(2024, 2, 29))
    {'date': '2024-02-29'}
    """
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(float(value))}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    # datetime first: it is a kind of date.
    if isinstance(value, datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, time):
        return {"time": value.isoformat()}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode("ascii")}
    raise CatalogError(f"The catalog cannot store a value of type {type(value).__name__}.")


def decode_value(stored: Any) -> Any:
    """The value that :func:`encode_value` was given.

    >>> decode_value({"decimal": "1.20"})
    Decimal('1.20')
    """
    if not isinstance(stored, dict):
        return stored
    if len(stored) == 1:
        ((tag, text),) = stored.items()
        if tag in _READERS:
            return _READERS[tag](text)
    raise CatalogError(f"The catalog holds a value that this Sooner cannot read: {stored!r}.")


def encode_facts(facts: TableFacts) -> str:
    """Facts as JSON text."""
    columns = {
        name: {
            "minimum": encode_value(column.minimum),
            "maximum": encode_value(column.maximum),
            "nulls": column.nulls,
            "distinct": column.distinct,
        }
        for name, column in facts.columns.items()
    }
    return json.dumps({"rows": facts.rows, "bytes": facts.bytes, "columns": columns})


def decode_facts(text: str) -> TableFacts:
    """The facts that :func:`encode_facts` was given."""
    stored = json.loads(text)
    columns = {
        name: ColumnFacts(
            minimum=decode_value(column["minimum"]),
            maximum=decode_value(column["maximum"]),
            nulls=column["nulls"],
            distinct=column["distinct"],
        )
        for name, column in stored["columns"].items()
    }
    return TableFacts(rows=stored["rows"], bytes=stored["bytes"], columns=columns)
