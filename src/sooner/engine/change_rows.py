"""The rows that came to a table and went from it between two of its versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sooner.engine.failures import plain_errors
from sooner.engine.merged_rows import forget, held
from sooner.engine.paths import literal
from sooner.engine.rows import ddl
from sooner.errors import SchemaChanged
from sooner.sql import quote
from sooner.storage.layout import BLOCK, VERSION
from sooner.storage.records import Scramble, Table


@dataclass(frozen=True)
class Blocks:
    """Some blocks of a scramble: all rows whose key has certain hashes, and few others."""

    scramble: Scramble
    numbers: tuple[int, ...]

    @property
    def sql(self) -> str:
        """Whether a row is in one of them."""
        first, last = self.numbers[0], self.numbers[-1]
        if last - first + 1 == len(self.numbers):
            return f"{BLOCK} BETWEEN {first} AND {last}"
        return f"{BLOCK} IN ({', '.join(str(number) for number in self.numbers)})"


_SIGNS = {"insert": 1, "delete": -1}
_TOTAL = "__total"


def change_rows(
    spark: SparkSession, old: Table, new: Table, sign: str, blocks: Blocks | None = None
) -> DataFrame:
    """Rows with a last column ``sign``, 1 for those that came and -1 for those that went.

    A row that came and went again in between is there twice, once with each sign. With ``blocks`` only
    those of a scramble are read.
    """
    if old.id != new.id:
        raise SchemaChanged(f"{new.name!r} was registered anew: nobody knows what changed.")
    names = [quote(column.name) for column in new.columns]
    found: DataFrame | None = None
    layout = None if blocks is None else blocks.scramble.id
    extra = [(VERSION, "bigint"), *([] if blocks is None else [(BLOCK, "int")])]
    since = [one for one in new.changes_of(layout) if one.version > old.version and one.files]
    for kind, value in _SIGNS.items():
        # One reading of a kind, however many changes there were: a thousand would be a thousand to plan.
        places = [literal(one.directory) for one in since if one.kind == kind]
        if places:
            rows = spark.read.schema(ddl(new.columns, extra)).parquet(*places)
            if blocks is not None:
                rows = rows.where(blocks.sql)
            signed = rows.selectExpr(*names, f"{value} AS {quote(sign)}")
            found = signed if found is None else found.unionAll(signed)
    return spark.createDataFrame([], ddl(new.columns, ((sign, "int"),))) if found is None else found


@dataclass(frozen=True)
class Net:
    """What is left of changes if only some columns are looked at, held until it is forgotten."""

    rows: DataFrame
    count: int
    only_came: bool


@contextmanager
def net(rows: DataFrame, columns: Sequence[str], sign: str, few: bool) -> Iterator[Net]:
    """Changes of some columns, without rows that went and came back the same in them."""
    if few:  # one task does sooner than Spark has shuffled them
        rows = rows.coalesce(1)
    names = [quote(name) for name in columns]
    total = F.expr(f"sum({quote(sign)})").alias(_TOTAL)
    summed = rows.groupBy(*names).agg(total).where(f"{_TOTAL} <> 0")
    each = f"explode(array_repeat(CAST(sign({_TOTAL}) AS INT), CAST(abs({_TOTAL}) AS INT)))"
    with plain_errors():
        left = held(summed.selectExpr(*names, f"{each} AS {quote(sign)}"), now=False)
        try:
            ((count, least),) = left.selectExpr("count(*)", f"min({quote(sign)})").collect()
            yield Net(left, count, not count or least > 0)
        finally:
            forget(left)


@contextmanager
def readable(spark: SparkSession, frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """Frames as views of these names, for plans that scan them, until the block ends."""
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    try:
        yield
    finally:
        for name in frames:
            spark.catalog.dropTempView(name)
