"""TPC-H: data, keys, scrambles and the 22 queries, for the demo, the tests and the benchmarks."""

from sooner.tpch.generate import generate
from sooner.tpch.load import QUERIES, SCRAMBLES, TABLES, query, register, scramble

__all__ = ["QUERIES", "SCRAMBLES", "TABLES", "generate", "query", "register", "scramble"]
