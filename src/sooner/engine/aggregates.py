"""Aggregates that are functions of the user's, in Spark.

Spark's names of functions belong to a session, which several Databases may share: what is registered
is known here for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from sooner.engine.failures import plain_errors
from sooner.errors import InvalidArgument
from sooner.sql import is_function_name

Function = Callable[[Any], Any]

_registered: WeakKeyDictionary[SparkSession, dict[str, Function]] = WeakKeyDictionary()


def register(spark: SparkSession, name: str, function: Function, type_: str) -> None:
    """Make a function of a pandas Series known to Spark as an aggregate."""
    if not callable(function):
        raise InvalidArgument("db.aggregate() takes a function of a pandas Series.")
    if not isinstance(name, str) or not is_function_name(name) or _is_sparks(spark, name):
        raise InvalidArgument(
            f"{name!r} cannot be the name of an aggregate: it must be one word, of letters, digits and "
            "underscores, that is not a function of Spark's already."
        )
    call = _over_arrow(name, function, type_)
    with plain_errors():
        # PySpark's own annotations know of arrow_udf only over single rows.
        spark.udf.register(name, arrow_udf(call, type_))  # type: ignore[call-overload]
    _registered.setdefault(spark, {})[name.lower()] = function


def functions(spark: SparkSession) -> Mapping[str, Function]:
    """The registered functions of a session, by their names in lower case."""
    return dict(_registered.get(spark, {}))


def _is_sparks(spark: SparkSession, name: str) -> bool:
    return bool(spark.sql(f"SHOW SYSTEM FUNCTIONS LIKE '{name}'").take(1))


def _arrow_type(type_: str) -> pa.DataType:
    try:
        if not isinstance(type_, str):
            raise TypeError
        return to_arrow_type(DataType.fromDDL(type_))
    except (PySparkException, TypeError, AttributeError) as error:
        raise InvalidArgument(f"{type_!r} is not a type of Spark's: write 'double'.") from error


def _over_arrow(name: str, function: Function, type_: str) -> Callable[[pa.Array], Any]:
    """The function as Spark calls it: nulls left out, as SQL's aggregates do, and the type checked."""
    kind = _arrow_type(type_)

    def over_arrow(values: pa.Array) -> Any:
        present = values.drop_null()
        if not len(present):
            return None
        try:
            return pa.array([function(present.to_pandas())], kind)[0].as_py()
        except Exception as error:
            raise RuntimeError(f"aggregate {name}: {type(error).__name__}: {error}") from error

    # Spark reads from the annotations that it is an aggregate.
    over_arrow.__annotations__ = {"values": pa.Array, "return": float}
    return over_arrow
