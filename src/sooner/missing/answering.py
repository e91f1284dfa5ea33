"""Which way a query about missing rows is answered: one table, or a join."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo

import pyarrow as pa

from sooner.algebra import Relation, Scan, walk
from sooner.answer import Answer
from sooner.errors import NotSupported
from sooner.missing.asked import asked_of
from sooner.missing.bounds import Missing
from sooner.missing.constraint import Constraint
from sooner.missing.joined import joined_of
from sooner.missing.joins import Declared, MissingJoin


def missing_answer(
    plan: Relation,
    tables: Mapping[str, Declared],
    constraints: Sequence[Constraint],
    zone: tzinfo,
    contract: pa.Schema,
    run: Callable[[str], pa.Table],
    known: Callable[[], pa.Table],
    closed: bool,
) -> Answer:
    """What is known, and the range of all.

    ``tables`` come by lower-case name, ``contract`` is what the answer looks like, ``run`` answers SQL over
    the known rows and ``known`` is the query's answer over them.
    """
    if sum(isinstance(node, Scan) for node in walk(plan)) == 1:
        asked = asked_of(plan)
        schema = tables[asked.table.lower()].schema
        return Missing(asked, constraints, schema, contract, zone, closed).answer(run)
    if not closed:
        raise NotSupported("closed=False is for queries of one table.")
    return MissingJoin(joined_of(plan), constraints, tables, zone).answer(known, run)
