"""Sooner: analytical SQL answered before all the data has been looked at, honestly, then exactly."""

from sooner.answer import Answer, Bounds, Status
from sooner.database import Database, connect
from sooner.errors import (
    CannotAnswer,
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
    SynopsisExists,
    TableExists,
    UnknownColumn,
    UnknownSynopsis,
    UnknownTable,
    UnknownView,
    WriteConflict,
)
from sooner.frame import Frame
from sooner.missing.check import Checked, check
from sooner.missing.constraint import Constraint
from sooner.missing.suggest import suggest
from sooner.synopses import Synopses, Synopsis
from sooner.view import View
from sooner.views.schedule import Schedule, after, every

__all__ = [
    "Answer",
    "Bounds",
    "CannotAnswer",
    "CatalogError",
    "Checked",
    "Constraint",
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
    "Schedule",
    "SchemaChanged",
    "SoonerError",
    "SourceChanged",
    "Status",
    "Synopses",
    "Synopsis",
    "SynopsisExists",
    "TableExists",
    "UnknownColumn",
    "UnknownSynopsis",
    "UnknownTable",
    "UnknownView",
    "View",
    "WriteConflict",
    "after",
    "check",
    "connect",
    "every",
    "suggest",
]
