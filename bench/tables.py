"""The tables that benchmarks query, and the queries by name."""

from __future__ import annotations

import sys

import pyarrow.parquet as pq
from report import ROOT

import sooner
from sooner import tpch


def prepared_tpch(
    database: sooner.Database, scale: float, scrambled: bool, more: bool = True
) -> dict[str, str]:
    """The TPC-H tables, and the queries by name; without ``more`` only scrambled by order key."""
    if not database.tables():
        data = tpch.generate(ROOT / ".demo" / f"scale-{scale:g}" / "tpch", scale)
        tpch.register(database, data)
    if scrambled:
        tpch.scramble(database, more=more)
    return {f"Q{number}": tpch.query(number) for number in tpch.QUERIES}


def prepared_sessions(database: sooner.Database, rows: int, scrambled: bool) -> dict[str, str]:
    """The video sessions, sorted by day if they are not scrambled, and their queries by name."""
    sys.path.append(str(ROOT / "tests" / "differential"))
    import sessions

    sessions.register_functions(database.spark)
    if not database.tables():
        file = ROOT / ".demo" / f"sessions-{rows}.parquet"
        if not file.exists():  # another home may have it registered
            table = sessions.make_sessions(rows).sort_by("day")
            pq.write_table(table, file, row_group_size=max(1, rows // 100))
        database.register("sessions", file, key="session_id")
        if scrambled:
            database.scramble("sessions", "session_id", blocks=128)
    return dict(sessions.QUERIES)
