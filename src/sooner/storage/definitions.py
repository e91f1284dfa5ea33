"""The catalog's SQL tables. Lists and facts are JSON text; paths are as Home.stored makes them."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

# 2: synopses; 3: what may be missing from a table; 4: views.
SCHEMA_VERSION = 4


class UtcTime(TypeDecorator[datetime]):
    """A moment in UTC, on databases that keep time zones and on those that do not."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Everything is stored in UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """SQLite gives back the moment without its zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = MetaData()

# SQLite numbers rows by itself only in a column that is exactly INTEGER.
_Id = BigInteger().with_variant(Integer, "sqlite")


def _id() -> Column[int]:
    return Column("id", _Id, primary_key=True)


def _owner(name: str, target: str, *, nullable: bool = False) -> Column[int]:
    reference = ForeignKey(f"{target}.id", ondelete="CASCADE")
    return Column(name, _Id, reference, nullable=nullable, index=True)


meta = Table(
    "sooner_meta",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

tables = Table(
    "sooner_tables",
    metadata,
    _id(),
    Column("name", String(128), nullable=False),
    # Names compare as in Spark: letter case aside.
    Column("folded", String(128), nullable=False, unique=True),
    Column("columns", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("source_format", String(16), nullable=False),
    Column("source_location", Text, nullable=False),
    Column("source_options", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    # An id is never given twice: readers recognise a replaced table by it.
    sqlite_autoincrement=True,
)

versions = Table(
    "sooner_versions",
    metadata,
    Column("table_id", _Id, ForeignKey("sooner_tables.id", ondelete="CASCADE"), primary_key=True),
    Column("version", BigInteger, primary_key=True),
    Column("committed_at", UtcTime, nullable=False),
    Column("what", String(16), nullable=False),
    Column("inserted", BigInteger),
    Column("deleted", BigInteger),
    Column("facts", Text, nullable=False),
)

scrambles = Table(
    "sooner_scrambles",
    metadata,
    _id(),
    _owner("table_id", "sooner_tables"),
    Column("by", Text, nullable=False),
    Column("types", Text, nullable=False),
    Column("salt", BigInteger, nullable=False),
    Column("blocks", Integer, nullable=False),
    Column("replicates", Integer, nullable=False),
    Column("base_version", BigInteger, nullable=False),
    Column("directory", Text, nullable=False),
    sqlite_autoincrement=True,
)

changes = Table(
    "sooner_changes",
    metadata,
    _id(),
    _owner("table_id", "sooner_tables"),
    Column("version", BigInteger, nullable=False),
    Column("kind", String(16), nullable=False),
    # Null for the plain layout.
    _owner("scramble_id", "sooner_scrambles", nullable=True),
    Column("directory", Text, nullable=False),
    UniqueConstraint("table_id", "version", "kind", "scramble_id"),
)

# Thousands of files share one schema: its text is kept once a table.
file_schemas = Table(
    "sooner_file_schemas",
    metadata,
    _id(),
    _owner("table_id", "sooner_tables"),
    Column("text", Text, nullable=False),
)

files = Table(
    "sooner_files",
    metadata,
    _id(),
    _owner("table_id", "sooner_tables"),
    # Both null: a base file of the table.
    _owner("scramble_id", "sooner_scrambles", nullable=True),
    _owner("change_id", "sooner_changes", nullable=True),
    Column("path", Text, nullable=False),
    Column("rows", BigInteger),
    Column("bytes", BigInteger, nullable=False),
    Column("modified_ns", BigInteger),
    Column("row_groups", Text, nullable=False),
    Column("block", Integer),
    Column("schema_id", _Id, ForeignKey("sooner_file_schemas.id")),
)

synopses = Table(
    "sooner_synopses",
    metadata,
    _id(),
    _owner("table_id", "sooner_tables"),
    Column("name", String(128), nullable=False),
    Column("folded", String(128), nullable=False, unique=True),
    # The version of the table that it summarizes.
    Column("version", BigInteger, nullable=False),
    Column("definition", Text, nullable=False),
    Column("directory", Text, nullable=False),
    sqlite_autoincrement=True,
)

# What may be missing from a table, as a file of constraints says it.
missing = Table(
    "sooner_missing",
    metadata,
    Column("table_id", _Id, ForeignKey("sooner_tables.id", ondelete="CASCADE"), primary_key=True),
    Column("text", Text, nullable=False),
)

# A view's rows are a table's; here is what it is made from and how far it has come.
views = Table(
    "sooner_views",
    metadata,
    _id(),
    # Not removed with the table: a view that is made again has a new one.
    Column("table_id", _Id, ForeignKey("sooner_tables.id"), nullable=False, unique=True),
    Column("definition", Text, nullable=False),
    # The versions of the tables that its rows reflect.
    Column("reflects", Text, nullable=False),
    # What a sample of it would have in place of its own rows, and the versions that reflects.
    Column("cleaned", Text),
    Column("directory", Text),
    sqlite_autoincrement=True,
)

refreshes = Table(
    "sooner_refreshes",
    metadata,
    _id(),
    _owner("view_id", "sooner_views"),
    Column("at", UtcTime, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("why", Text, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("inserted", BigInteger),
    Column("deleted", BigInteger),
)

# Directories that vacuum leaves alone for a while: being written, or dropped a moment ago and
# perhaps still being read.
pending = Table(
    "sooner_pending",
    metadata,
    Column("directory", String(512), primary_key=True),
    Column("purpose", String(16), nullable=False),
    Column("since", UtcTime, nullable=False),
    Index("sooner_pending_since", "since"),
)
