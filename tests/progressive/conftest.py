"""TPC-H at a tenth of scale 1, scrambled by every key the queries need: made once for the package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Database


@pytest.fixture(scope="session")
def scrambled(
    spark: SparkSession, tpch: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    import sooner
    from sooner.tpch import register, scramble

    home = tmp_path_factory.mktemp("scrambled") / "home"
    with sooner.connect(home, spark=spark, progress=False) as opened:
        register(opened, tpch)
        scramble(opened, blocks=16, more=True)
        yield opened
