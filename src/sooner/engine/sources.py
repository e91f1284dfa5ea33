"""What a user registers: the schema as Spark reads it, the files, and what their footers say."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sooner.algebra.schema import Column, Schema
from sooner.analysis.facts import TableFacts
from sooner.engine.failures import plain_errors
from sooner.engine.paths import literal
from sooner.engine.type_text import type_text
from sooner.errors import InvalidArgument, MissingFile, QueryFailed
from sooner.storage.expand import expand, is_remote
from sooner.storage.footers import survey
from sooner.storage.layout import RESERVED
from sooner.storage.records import DataFile, Format, Source
from sooner.storage.unchanged import compare_schemas

_CSV_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
# With enforceSchema Spark would read a file with its columns in another order as if in this one.
_CSV_OPTIONS = {"header": "true", "enforceSchema": "false"}
_TABS = (".tsv", ".tsv.gz")


@dataclass(frozen=True)
class Inspected:
    """A source that can be registered."""

    source: Source
    columns: Schema
    files: tuple[DataFile, ...] = ()
    facts: TableFacts = field(default_factory=TableFacts)


def inspect(
    spark: SparkSession,
    name: str,
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | DataFrame,
    format: str | None,
    schema: str | None,
    options: Mapping[str, str],
) -> Inspected:
    """Look at a source: paths or globs of Parquet or CSV files, a Spark view's name, or a DataFrame."""
    found = _inspect(spark, name, source, format, schema, options)
    for column in found.columns:
        if column.name.lower() in RESERVED:
            raise InvalidArgument(
                f"Sooner needs the column name {column.name!r} itself: rename it."
            )
    return found


def _inspect(
    spark: SparkSession,
    name: str,
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | DataFrame,
    format: str | None,
    schema: str | None,
    options: Mapping[str, str],
) -> Inspected:
    if isinstance(source, DataFrame):
        return _inspect_frame(source, {})
    parts = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(parts, Sequence) or not all(isinstance(p, str | os.PathLike) for p in parts):
        raise InvalidArgument(
            "Register paths (or globs) of files, the name of a Spark view, or a Spark DataFrame."
        )
    locations = tuple(os.fspath(part) for part in parts)
    if not locations:
        raise InvalidArgument("Say where the rows are: a path, a glob or the name of a Spark view.")
    chosen = format or _guess_format(spark, locations)
    if chosen == "view":
        return _inspect_view(spark, name, locations[0])
    if chosen == "csv":
        return _inspect_csv(spark, locations, schema, options)
    if chosen == "parquet":
        return _inspect_parquet(spark, locations, schema, options)
    raise InvalidArgument(f"format must be parquet, csv or view, not {chosen!r}.")


def declared_schema(text: str) -> Schema:
    """The columns of a schema that is written as ``name type, name type``."""
    try:
        assert isinstance(text, str)
        struct = StructType.fromDDL(text)
        assert isinstance(struct, StructType) and struct.fields
        return to_schema(struct)
    except (PySparkException, AssertionError) as error:
        raise InvalidArgument(
            f"schema={text!r} is not a list of columns: write it as 'name type, name type'."
        ) from error


def to_schema(struct: StructType) -> Schema:
    """Spark's schema as plain values."""
    return tuple(Column(field.name, type_text(field.dataType)) for field in struct.fields)


def _guess_format(spark: SparkSession, locations: tuple[str, ...]) -> Format:
    if all(location.lower().endswith(_CSV_SUFFIXES) for location in locations):
        return "csv"
    (first, *others) = locations
    is_name = not others and not os.path.exists(first) and not any(c in first for c in "/*?[")
    if is_name and first.replace(".", "").isidentifier() and spark.catalog.tableExists(first):
        return "view"
    return "parquet"


def _inspect_view(spark: SparkSession, name: str, view: str) -> Inspected:
    if not spark.catalog.tableExists(view):
        raise MissingFile(f"This Spark session has no view or table {view!r}.")
    if view.lower() == name.lower():
        # The registered table takes this name: keep the original under another.
        return _inspect_frame(spark.table(view), {"stands_for": view})
    return Inspected(Source("view", (view,)), to_schema(spark.table(view).schema))


def _inspect_frame(frame: DataFrame, options: Mapping[str, str]) -> Inspected:
    # A name of its own for each: other tables, homes and calls that fail must not touch it.
    view = f"__sooner_source_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(view)
    return Inspected(Source("view", (view,), options), to_schema(frame.schema))


def _inspect_parquet(
    spark: SparkSession, locations: tuple[str, ...], schema: str | None, options: Mapping[str, str]
) -> Inspected:
    reader = spark.read.options(**options)
    if any(is_remote(location) for location in locations):
        return _inspect_remote(reader.parquet(*locations), "parquet", locations, options)
    paths = expand(locations)
    files, facts = survey(paths)
    _require_one_schema(files)
    known = dict(options)
    # Directories such as year=2024 are columns: Spark needs to know where they begin.
    if len(locations) == 1 and os.path.isdir(locations[0]) and any("=" in p for p in paths):
        known.setdefault("basePath", os.path.abspath(locations[0]))
    with plain_errors():
        read = spark.read.options(**known)
        # One footer tells the columns, but only all directories tell the types of theirs.
        some = [literal(path) for path in (paths if "basePath" in known else paths[:1])]
        frame = read.schema(schema).parquet(*some) if schema else read.parquet(*some)
        columns = to_schema(frame.schema)
    absolute = tuple(os.path.abspath(location) for location in locations)
    return Inspected(Source("parquet", absolute, known), columns, files, facts)


def _require_one_schema(files: Sequence[DataFile]) -> None:
    first = files[0]
    for file in files[1:]:
        if file.schema != first.schema and file.schema and first.schema:
            differences = compare_schemas(first.schema, file.schema)
            raise InvalidArgument(
                f"{file.path} has other columns than {first.path}: {'; '.join(differences)}. "
                "Register files of one schema as one table."
            )


def _inspect_csv(
    spark: SparkSession, locations: tuple[str, ...], schema: str | None, options: Mapping[str, str]
) -> Inspected:
    tabs = all(location.lower().endswith(_TABS) for location in locations)
    known = {**_CSV_OPTIONS, **({"sep": "\t"} if tabs else {}), **options}
    if any(is_remote(location) for location in locations):
        frame = spark.read.options(**known).csv(list(locations), inferSchema=True)
        return _inspect_remote(frame, "csv", locations, known)
    paths = expand(locations, _CSV_SUFFIXES)
    with plain_errors():
        reader = spark.read.options(**known)
        read = [literal(path) for path in paths]
        frame = reader.schema(schema).csv(read) if schema else reader.csv(read, inferSchema=True)
        columns = to_schema(frame.schema)
        rows = frame.count()
        if "enforceSchema" not in options and not _fits_header(frame):
            if schema or len({spark.read.text(path).first() for path in read}) > 1:
                named = ", ".join(one.name for one in columns)
                raise InvalidArgument(
                    f"The columns {named} are called otherwise in the header of {paths[0]}, or of a file "
                    "beside it. If it is their place that counts, say options={'enforceSchema': 'true'}."
                )
            known["enforceSchema"] = "true"
    if not columns:
        raise InvalidArgument(f"{paths[0]} has no columns.")
    files = tuple(_plain_file(path) for path in paths)
    facts = TableFacts(rows=rows, bytes=sum(file.bytes for file in files))
    absolute = tuple(os.path.abspath(location) for location in locations)
    return Inspected(Source("csv", absolute, known), columns, files, facts)


def _fits_header(frame: DataFrame) -> bool:
    """Whether columns are called as in the header: not where it has a name twice, or none."""
    try:
        with plain_errors():
            frame.take(1)
    except QueryFailed as error:
        if "CSV header" not in str(error):
            raise
        return False
    return True


def _inspect_remote(
    frame: DataFrame, format: Format, locations: tuple[str, ...], options: Mapping[str, str]
) -> Inspected:
    files = tuple(DataFile(path, rows=None, bytes=0) for path in frame.inputFiles())
    return Inspected(Source(format, locations, dict(options)), to_schema(frame.schema), files)


def _plain_file(path: str) -> DataFile:
    status = os.stat(path)
    return DataFile(os.path.abspath(path), None, status.st_size, status.st_mtime_ns)
