"""Is an answer that stopped at error=1% within 1% in all its cells at least 95% of the time?

Replayed from the partial results of every block, as in coverage.py: each seed reads on, batch by batch, until
the widest interval of all cells at once is within 1%. What does not stop before the end is exact.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

import numpy as np
from coverage import CONFIDENCE, Replay, fixed
from report import ROOT, record
from scipy import stats
from tables import prepared_sessions, prepared_tpch

import sooner
from sooner.progressive.answers import widest
from sooner.progressive.batches import batches
from sooner.progressive.estimates import Rows, Varying
from sooner.progressive.gates import CannotGate
from sooner.progressive.parts import CannotStream
from sooner.statistics.evaluate import NotNumeric
from sooner.statistics.places import places

ERROR = 0.01


@dataclass
class Stops:
    """Of the runs of one query: how many stopped early, after which share, and how many kept the word."""

    kept: int = 0
    shares: list[float] = field(default_factory=list)


def is_within(rows: Rows, truth: Rows) -> bool:
    """Whether all groups are there and all cells within the error."""
    if rows.count != truth.count:
        return False
    known, found = fixed(truth), fixed(rows)
    at = np.zeros(rows.count, np.int64)
    if known.num_columns:
        at = places(known, found.select(known.column_names))
    for name, column in rows.columns.items():
        right = truth.columns[name]
        if isinstance(column, Varying) and isinstance(right, Varying):
            exact = right.theta[0, at]
            if (np.abs(column.theta[0] - exact) > ERROR * np.abs(exact) * (1 + 1e-9)).any():
                return False
    return True


def stops(replay: Replay, seeds: int) -> Stops:
    found = Stops()
    for seed in range(seeds):
        read: list[int] = []
        for batch in batches(len(replay.blocks), seed):
            read += batch
            if len(read) == len(replay.blocks):
                break
            blocks = np.array(read)
            rows = replay.at(blocks)
            worst = widest(rows, replay.share(blocks), CONFIDENCE)
            if worst is not None and worst <= ERROR:
                found.kept += is_within(rows, replay.truth)
                found.shares.append(replay.share(blocks))
                break
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--sessions", type=int, help="so many video sessions instead of TPC-H")
    parser.add_argument("--queries", nargs="*", help="as Q1 or C3")
    options = parser.parse_args()
    what = f"sessions-{options.sessions}" if options.sessions else f"scale-{options.scale:g}"
    table = {}
    with sooner.connect(ROOT / ".demo" / what / "progressive", progress=False) as database:
        if options.sessions:
            texts = prepared_sessions(database, options.sessions, True)
        else:
            texts = prepared_tpch(database, options.scale, True)
        for name in options.queries or texts:
            try:
                found = stops(Replay(database, texts[name]), options.seeds)
            except (CannotStream, CannotGate, NotNumeric) as reason:
                print(f"{name}: no intervals ({reason})", flush=True)
                continue
            early = len(found.shares)
            table[name] = {"early": early, "kept": found.kept}
            share = float(np.median(found.shares)) if early else 1.0
            print(f"{name}: {early} stopped, after {share:.0%}; {found.kept} kept", flush=True)
    early, kept = (sum(one[key] for one in table.values()) for key in ("early", "kept"))
    # As for coverage, corrected for the number of queries.
    level = 0.05 / max(1, len(table))
    broken = [
        name
        for name, one in table.items()
        if one["early"]
        and stats.binomtest(one["kept"], one["early"], 0.95, alternative="less").pvalue < level
    ]
    record(
        f"stops-{what}",
        f"answers stopped at error=1% that are within it in all cells, {what}, {options.seeds} seeds",
        "≥ 95%",
        f"{kept / max(1, early):.1%} of {early} (queries below: {', '.join(broken) or 'none'})",
        table,
    )


if __name__ == "__main__":
    main()
