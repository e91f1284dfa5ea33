"""Sooner: analytical SQL answered before all the data has been looked at, honestly, then exactly."""

from sooner.answer import Answer, Bounds, Status
from sooner.database import Database, connect
from sooner.errors import (
    CatalogError,
    ConstraintViolation,
    InvalidArgument,
    InvalidQuery,
    MissingFile,
    NotSupported,
    ParseError,
    QueryCancelled,
    QueryFailed,
    SchemaChanged,
    SoonerError,
    SourceChanged,
    TableExists,
    UnknownColumn,
    UnknownTable,
    WriteConflict,
)
from sooner.frame import Frame

__all__ = [
    "Answer",
    "Bounds",
    "CatalogError",
    "ConstraintViolation",
    "Database",
    "Frame",
    "InvalidArgument",
    "InvalidQuery",
    "MissingFile",
    "NotSupported",
    "ParseError",
    "QueryCancelled",
    "QueryFailed",
    "SchemaChanged",
    "SoonerError",
    "SourceChanged",
    "Status",
    "TableExists",
    "UnknownColumn",
    "UnknownTable",
    "WriteConflict",
    "connect",
]
