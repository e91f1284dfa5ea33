"""What a user hands over, as the types of a table: nothing is stored as another value than it was."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from sooner.algebra.schema import Column
from sooner.engine.failures import NOT_EXACT
from sooner.engine.hashing import WHOLE_NUMBERS
from sooner.errors import InvalidArgument
from sooner.sql import quote
from sooner.storage.records import Table

_FRACTIONS = ("float", "double", "decimal")
# From here on floating numbers leave out whole numbers: which key was meant nobody can tell.
_LAST_EXACT = "9007199254740992D"


def assigned(table: Table, rows: DataFrame, columns: Sequence[Column]) -> list[str]:
    """Columns of rows cast to those of a table, in SQL.

    As Spark's INSERT casts them, but that a fraction is not cut off for a column of whole numbers, nor a time
    of day for one of dates. A key has to be what it is to the last digit.
    """
    given = {field.name.lower(): field.dataType.simpleString() for field in rows.schema}
    return [
        f"{_exactly(column, given[column.name.lower()], column.name in table.key)} AS {quote(column.name)}"
        for column in columns
    ]


def _exactly(column: Column, given: str, is_key: bool) -> str:
    name, wanted = quote(column.name), str(column.type)
    cast = f"CAST({name} AS {wanted})"
    if is_key and (given == "boolean") != (wanted == "boolean") and given not in ("void", "string"):
        raise InvalidArgument(f"The key {column.name} is of type {wanted}, not {given}.")
    if given == wanted or not _may_change(given, wanted, is_key):
        return cast
    same = f"CAST({cast} AS {given}) <=> {name}"
    if is_key and given in ("float", "double"):
        same += f" AND (abs({name}) < {_LAST_EXACT} OR {name} IS NULL)"
    told = (
        f"concat('{NOT_EXACT}', CAST({name} AS STRING), "
        f"' cannot be put into the column {_text(column.name)} of type {wanted} as it is.')"
    )
    return f"CASE WHEN {same} THEN {cast} ELSE CAST(raise_error({told}) AS {wanted}) END"


def _may_change(given: str, wanted: str, is_key: bool) -> bool:
    if given.startswith("timestamp"):
        return wanted == "date"
    if not given.startswith((*_FRACTIONS, *WHOLE_NUMBERS)):
        return False
    if is_key:
        return not (given in WHOLE_NUMBERS and (wanted in WHOLE_NUMBERS or wanted == "string"))
    # Too large a number for the type is an error of Spark's; others are rounded, as everybody expects.
    return given.startswith(_FRACTIONS) and wanted in WHOLE_NUMBERS


def _text(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")
