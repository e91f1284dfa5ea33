"""TPC-H: data, keys, scrambles and the 22 queries, for the demo, the tests and the benchmarks."""

from sooner.tpch.generate import generate
from sooner.tpch.load import SCRAMBLES, TABLES, query, register, scramble

__all__ = ["SCRAMBLES", "TABLES", "generate", "query", "register", "scramble"]
