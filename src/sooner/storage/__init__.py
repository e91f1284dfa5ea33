"""What is stored where: tables, versions, files, scrambles and changes. Knows no Spark."""

from sooner.storage.catalog import Catalog
from sooner.storage.expand import expand
from sooner.storage.footers import arrow_schema, facts_of, read_footers, schema_text, survey
from sooner.storage.home import Home
from sooner.storage.records import Change, DataFile, HistoryEntry, Scramble, Source, Table
from sooner.storage.unchanged import check_unchanged, compare_schemas
from sooner.storage.vacuum import VacuumReport, vacuum

__all__ = [
    "Catalog",
    "Change",
    "DataFile",
    "HistoryEntry",
    "Home",
    "Scramble",
    "Source",
    "Table",
    "VacuumReport",
    "arrow_schema",
    "check_unchanged",
    "compare_schemas",
    "expand",
    "facts_of",
    "read_footers",
    "schema_text",
    "survey",
    "vacuum",
]
