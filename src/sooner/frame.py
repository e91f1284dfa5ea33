"""Frame: a lazy query, closed under its own operations."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from sooner.algebra.relation import Map
from sooner.algebra.schema import Schema
from sooner.answer import Answer
from sooner.engine.sources import declared_schema
from sooner.errors import InvalidArgument, UnknownColumn, nearest
from sooner.explain import explain_text
from sooner.family import Family
from sooner.missing.constraint import Constraint
from sooner.prepare import Prepared
from sooner.progressive.request import Request
from sooner.progressive.shared import Answers

if TYPE_CHECKING:
    from sooner.database import Database

How = Literal["inner", "left", "right", "full", "semi", "anti", "cross"]
_HOW = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
    "cross": "CROSS JOIN",
}


class Frame:
    """A query that has been checked but not run. Every operation gives a new Frame.

    >>> import sooner
    >>> db = sooner.connect()                                             # doctest: +SKIP
    >>> big = db.table("lineitem").filter("l_quantity > 40")              # doctest: +SKIP
    >>> big.agg(["count(*) AS n"], by=["l_returnflag"]).exact().show()    # doctest: +SKIP
    """

    def __init__(
        self,
        database: Database,
        text: str,
        maps: Mapping[str, Map] | None = None,
        family: Family | None = None,
    ) -> None:
        self._database = database
        self.prepared: Prepared = database._prepare(text, maps or {})
        self._evolving: Answers | None = None
        self._latest: Answer | None = None
        self._family = family or Family(database)
        self._family.add(self)

    @property
    def columns(self) -> Schema:
        """Names and types of the answer, as Spark decides them."""
        return self.prepared.columns

    @property
    def text(self) -> str:
        """The query as SQL."""
        return self.prepared.text

    def exact(self) -> Answer:
        """The exact answer, in one step; with its range where rows of a table may be missing."""
        return self._database._incomplete.exact(self.prepared)

    def progress(
        self,
        *,
        batches: int | None = None,
        confidence: float = 0.95,
        seed: int = 0,
        error: float | None = None,
        within: float | None = None,
        slack: float = 2.0,
        stream: str | Sequence[str] | None = None,
        missing: Sequence[Constraint] | None = None,
    ) -> Iterator[Answer]:
        """Answers that refine, from a small part of the data to all of it; the last has ``final``.

        It ends early when every cell is within ``error`` (0.01 for 1%), or ``within`` seconds. With
        ``batches`` it always goes in steps, however small the data; ``stream`` names the tables to read
        in steps. ``missing`` says which rows may be missing: intervals then are those of all rows, and
        ``hard_bounds`` what is certain already. Leave the loop to stop.
        """
        wanted = None if stream is None else _many(stream)
        request = Request(batches, confidence, seed, error, within, slack, wanted)
        request.require_reads(self.prepared.tables)
        return self._database._answers(self.prepared, request, missing)

    def bounds(self, constraints: Sequence[Constraint], *, closed: bool = True) -> Answer:
        """The answer over the rows there are, with the range it can have whatever rows are missing.

        The constraints say what may be missing. With ``closed=False`` rows may also be missing where none
        of them says anything, and a range may have no end.
        """
        return self._database._incomplete.bounds(self.prepared, constraints, closed)

    def get(self) -> Answer:
        """The next answer of an evolving query: each call knows more, until it is final.

        Frames derived from one another share the reading: blocks that one of them has read are read for
        all. To be called from one thread. After an error the next call starts anew.
        """
        if self._evolving is None:
            self._family.evolve(self)
        assert self._evolving is not None, "the family gives it its answers"
        try:
            self._latest = next(self._evolving, self._latest)
        except BaseException:
            self._evolving = None
            raise
        assert self._latest is not None, "a query has at least one answer"
        if self._latest.final:
            self._evolving.close()
        return self._latest

    def close(self) -> None:
        """Let go of what :meth:`get` holds; the next call starts anew."""
        if self._evolving is not None:
            self._evolving.close()
        self._evolving = self._latest = None

    @property
    def is_final(self) -> bool:
        """Whether the last :meth:`get` was exact."""
        return self._latest is not None and self._latest.final

    def get_final(self) -> Answer:
        """The exact answer, at the end of the evolving query."""
        while not self.is_final:
            self.get()
        return self.get()

    def explain(self) -> str:
        """What will happen and why, before anything runs."""
        tables = self._database._tables(self.prepared.tables)
        return explain_text(self.prepared, tables, self._family.companions(self))

    def filter(self, condition: str) -> Frame:
        """The rows for which a SQL condition is true."""
        return self._over(f"SELECT * FROM {self._source()} WHERE {condition}")

    def select(self, *columns: str) -> Frame:
        """Columns or SQL expressions of each row: ``select("a", "b * 2 AS c")``."""
        return self._over(f"SELECT {_listed(columns, 'select')} FROM {self._source()}")

    def agg(self, aggregates: str | Sequence[str], by: str | Sequence[str] = ()) -> Frame:
        """Aggregates of all rows, or of each group: ``agg(["sum(x) AS total"], by=["k"])``."""
        keys = _many(by)
        selected = _listed((*keys, *_many(aggregates)), "agg")
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        return self._over(f"SELECT {selected} FROM {self._source()}{group}")

    def distinct(self) -> Frame:
        """Every row once."""
        return self._over(f"SELECT DISTINCT * FROM {self._source()}")

    def join(self, other: Frame, on: str | None = None, how: How = "inner") -> Frame:
        """Join with another Frame. In ``on``, ``l`` and ``r`` tell columns of the same name apart."""
        self._require_frame(other, "join")
        if how not in tuple(_HOW):
            raise InvalidArgument(f"how must be one of {', '.join(_HOW)}, not {how!r}.")
        if (on is None) != (how == "cross"):
            raise InvalidArgument("Give on='a = b', or how='cross' for all pairs of rows.")
        condition = "" if on is None else f" ON {on}"
        return Frame(
            self._database,
            f"SELECT * FROM {self._source('l')} {_HOW[how]} {other._source('r')}{condition}",
            {**self.prepared.maps, **other.prepared.maps},
            self._family,
        )

    def union(self, other: Frame) -> Frame:
        """The rows of both Frames, duplicates kept; columns go by position."""
        self._require_frame(other, "union")
        return Frame(
            self._database,
            f"SELECT * FROM {self._source()} UNION ALL SELECT * FROM {other._source()}",
            {**self.prepared.maps, **other.prepared.maps},
            self._family,
        )

    def sort(self, *by: str) -> Frame:
        """The rows in order: ``sort("total DESC", "name")``."""
        return self._over(f"SELECT * FROM {self._source()} ORDER BY {_listed(by, 'sort')}")

    def limit(self, count: int) -> Frame:
        """The first rows."""
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise InvalidArgument(f"limit() takes a number of rows, not {count!r}.")
        return self._over(f"SELECT * FROM {self._source()} LIMIT {count}")

    def map(
        self,
        function: Callable[[Any], Any],
        schema: str,
        by: str | Sequence[str] = (),
        format: Literal["pandas", "arrow"] = "pandas",
    ) -> Frame:
        """A function over parts of the rows: it takes and gives a pandas DataFrame (or Arrow table).

        ``schema`` declares what it gives, as ``"name type, …"``. With ``by``, all rows that agree on
        those columns come in one call; without, it sees the rows in arbitrary parts. With the key of a
        scramble among ``by``, or without ``by``, :meth:`progress` goes in steps.
        """
        if not callable(function):
            raise InvalidArgument("map() takes a function of a pandas DataFrame or an Arrow table.")
        if format not in ("pandas", "arrow"):
            raise InvalidArgument(f"format must be 'pandas' or 'arrow', not {format!r}.")
        child = self.prepared
        node = Map(
            child.written,
            function if format == "arrow" else _over_pandas(function),
            tuple(column.name for column in self.columns),
            declared_schema(schema),
            tuple(child.written.names[place] for place in self._places(_many(by))),
        )
        name = f"__sooner_map_{uuid.uuid4().hex}"
        maps = {**child.maps, name: node}
        return Frame(self._database, f"SELECT * FROM {name}", maps, self._family)

    def __repr__(self) -> str:
        columns = ", ".join(f"{column.name}: {column.type}" for column in self.columns)
        return f"Frame[{columns}]"

    def _places(self, names: Collection[str]) -> list[int]:
        known = [column.name.lower() for column in self.columns]
        for name in names:
            if name.lower() not in known:
                raise UnknownColumn(f"There is no column {name!r} here.{nearest(name, known)}")
        return [known.index(name.lower()) for name in names]

    def _require_frame(self, other: object, operation: str) -> None:
        if not isinstance(other, Frame):
            raise InvalidArgument(f"{operation}() takes another Frame, such as db.table('orders').")
        if other._database is not self._database:
            raise InvalidArgument(
                f"{operation}() takes a Frame of the same database. Register the other's tables here."
            )

    def _over(self, text: str) -> Frame:
        return Frame(self._database, text, self.prepared.maps, self._family)

    def _source(self, alias: str = "t") -> str:
        return f"(\n{self.text}\n) AS {alias}"


def _many(names: str | Sequence[str]) -> tuple[str, ...]:
    is_list = isinstance(names, Sequence) and all(isinstance(name, str) for name in names)
    if not is_list:
        raise InvalidArgument(f"Give SQL as text, or a list of texts, not {names!r}.")
    return (names,) if isinstance(names, str) else tuple(names)


def _listed(parts: Sequence[str], operation: str) -> str:
    if not parts or not all(isinstance(part, str) and part.strip() for part in parts):
        raise InvalidArgument(f"{operation}() takes at least one SQL expression, as text.")
    return ", ".join(parts)


def _over_pandas(function: Callable[[Any], Any]) -> Callable[[pa.Table], pa.Table]:
    def over_arrow(table: pa.Table) -> pa.Table:
        return pa.Table.from_pandas(function(table.to_pandas()), preserve_index=False)

    over_arrow.__name__ = getattr(function, "__name__", "function")
    over_arrow.__doc__ = inspect.getdoc(function)
    return over_arrow
