"""SQL text to algebra, and algebra to Spark SQL."""

from sooner.sql.front_end import Verbatim, plan_query, plan_tree
from sooner.sql.parse import parse, refuse_statement, statement_text, table_names
from sooner.sql.quotes import without_doubled_quotes
from sooner.sql.render import Hint, quote, render, sort_keys
from sooner.sql.untranslatable import Untranslatable
from sooner.sql.user_functions import is_function_name, unknown_functions, with_aggregates

__all__ = [
    "Hint",
    "Untranslatable",
    "Verbatim",
    "is_function_name",
    "parse",
    "plan_query",
    "plan_tree",
    "quote",
    "refuse_statement",
    "render",
    "sort_keys",
    "statement_text",
    "table_names",
    "unknown_functions",
    "with_aggregates",
    "without_doubled_quotes",
]
