"""One Spark for the whole run, a fresh Database for each test, TPC-H data made once and kept."""

from __future__ import annotations

import atexit
import gc
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Database


gc.disable()  # until the tests are collected
# A slow moment of the machine is no fault of an example.
hypothesis_settings.register_profile(
    "sooner",
    max_examples=int(os.environ.get("SOONER_EXAMPLES", "50")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
hypothesis_settings.load_profile("sooner")


def pytest_configure(config: pytest.Config) -> None:
    # Registered first, so called last: to take down what a worker made would be half a second more.
    if hasattr(config, "workerinput"):
        atexit.register(os._exit, 0)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Not to import a file whose every test `-m` leaves out is a quarter of `make test-unit`."""
    if collection_path.suffix != ".py":
        return None
    mark = re.search(
        r"^pytestmark = pytest\.mark\.(\w+)$", collection_path.read_text(), re.MULTILINE
    )
    return True if mark and f"not {mark[1]}" in config.option.markexpr else None


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    # The longest first, so that no worker waits for another at the end.
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not getattr(item.obj, "is_hypothesis_test", False))


def pytest_collection_finish() -> None:
    # What imports and collection made stays until the end: looking through it again and again is waste.
    gc.freeze()
    gc.set_threshold(50_000)  # plans are trees of many small objects that soon go by themselves
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    # DuckDB complains of what is left at the end. Of a worker nobody sees that, and it takes a second.
    if not hasattr(session.config, "workerinput"):
        gc.unfreeze()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of the run: small, quiet and without a page."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    place = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("sooner tests")
        .config("spark.driver.memory", "4g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(place / "warehouse"))
        .config("spark.local.dir", str(place / "local"))
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def small_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """The run's Spark, set for many queries over ten rows: compiling one takes longer than running it."""
    settings = {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    before = {key: spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield spark
    for key, value in before.items():
        spark.conf.set(key, str(value))


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Iterator[Database]:
    """An empty Database with a home of its own, on the run's Spark."""
    import sooner

    with sooner.connect(tmp_path / "home", spark=spark, progress=False) as opened:
        yield opened


@pytest.fixture(scope="session")
def tpch(pytestconfig: pytest.Config) -> Path:
    """A directory with a folder of Parquet files for each TPC-H table; kept between runs."""
    from sooner.tpch import generate

    cache = pytestconfig.cache
    assert cache is not None, "TPC-H data is kept in pytest's cache"
    return generate(cache.mkdir("tpch") / "scale-0.1", scale=0.1, progress=False)


@pytest.fixture
def tpch_database(database: Database, tpch: Path) -> Database:
    """A Database with the eight TPC-H tables."""
    from sooner.tpch import register

    register(database, tpch)
    return database
