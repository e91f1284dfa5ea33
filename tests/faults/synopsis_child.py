"""A process of its own that makes a synopsis again and again until it is killed.

Run as ``python synopsis_child.py HOME LOG``: a line on disk for every one that was acknowledged.
"""

from __future__ import annotations

import sys

from kill_child import Log, small_spark

import sooner


def main(home: str, log_path: str) -> None:
    log = Log(log_path)
    database = sooner.connect(home, spark=small_spark(home), progress=False)
    log.write(ready=True)
    for seed in range(10**6):
        database.synopsis("s", "t", "v", "id", leaves=8, sample=0.2, seed=seed, replace=True)
        log.write(done=seed)


if __name__ == "__main__":
    main(*sys.argv[1:])
