"""Types as Spark's SQL writes them."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from sooner.sql import quote


def type_text(type_: DataType) -> str:
    """A type in Spark's SQL: as ``simpleString``, with names of fields that are no plain words quoted.

    >>> from pyspark.sql.types import DateType
    >>> type_text(ArrayType(StructType().add("a b", DateType()).add("c", DateType())))
    'array<struct<`a b`:date,c:date>>'
    """
    match type_:
        case StructType():
            fields = (f"{_field(one.name)}:{type_text(one.dataType)}" for one in type_.fields)
            return f"struct<{','.join(fields)}>"
        case ArrayType():
            return f"array<{type_text(type_.elementType)}>"
        case MapType():
            return f"map<{type_text(type_.keyType)},{type_text(type_.valueType)}>"
    return type_.simpleString()


def _field(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else quote(name)
