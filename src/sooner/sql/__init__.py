"""SQL text to algebra, and algebra to Spark SQL."""

from sooner.sql.front_end import Verbatim, plan_query, plan_tree
from sooner.sql.parse import parse, refuse_statement, statement_text, table_names
from sooner.sql.render import Hint, quote, render
from sooner.sql.untranslatable import Untranslatable

__all__ = [
    "Hint",
    "Untranslatable",
    "Verbatim",
    "parse",
    "plan_query",
    "plan_tree",
    "quote",
    "refuse_statement",
    "render",
    "statement_text",
    "table_names",
]
