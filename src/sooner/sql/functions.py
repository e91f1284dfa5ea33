"""The scalars that sqlglot carries to Spark and back without changing their meaning.

Anything else goes to Spark verbatim: of Spark's own function examples a dozen change silently on the
way through sqlglot. ``EXAMPLES`` holds one SQL text for every allowed class; a test runs each through
Spark before and after the round trip. To allow one more function, add it here with its example.
"""

from __future__ import annotations

from sqlglot import exp

from sooner.algebra.scalar import Scalar
from sooner.sql.untranslatable import Untranslatable

# Tokens and wrappers that carry no meaning of their own.
_STRUCTURE: tuple[type[exp.Expr], ...] = (
    exp.Anonymous,  # functions of the user's; see user_functions
    exp.AnonymousAggFunc,
    exp.Column,
    exp.DataType,
    exp.DataTypeParam,
    exp.Distinct,
    exp.Exists,  # becomes a join, or is refused there
    exp.Identifier,
    exp.Literal,
    exp.Paren,
    exp.Star,
    exp.Tuple,
    exp.Var,
    exp.Where,
)

# One example per class, over the columns i (int), b (bigint), d (decimal), f (double), s (string),
# t (date), ts (timestamp) and o (boolean).
EXAMPLES: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Add: ("i + b", "d + 1", "t + INTERVAL '3' MONTH", "ts + INTERVAL '1' HOUR"),
    exp.Sub: ("i - f", "DATE '1998-12-01' - INTERVAL '90' DAY", "d - 0.5"),
    exp.Mul: ("d * (1 - d)", "i * 2.5"),
    exp.Div: ("i / 2", "d / 3", "f / 2"),
    exp.IntDiv: ("i DIV 2",),
    exp.Mod: ("i % 3", "mod(b, 4)"),
    exp.Neg: ("-i", "-d"),
    exp.EQ: ("i = 1", "s = 'b'"),
    exp.NEQ: ("i <> 1", "i != 2"),
    exp.LT: ("i < 2",),
    exp.LTE: ("d <= 2.5",),
    exp.GT: ("t > DATE '2020-01-02'", "t > '2020-01-02'"),
    exp.GTE: ("f >= 1e0",),
    exp.NullSafeEQ: ("i <=> NULL", "s <=> 'a'"),
    exp.And: ("i > 1 AND o",),
    exp.Or: ("i > 1 OR o",),
    exp.Not: ("NOT o", "i NOT IN (1, 2)", "i IS NOT NULL"),
    exp.Is: ("i IS NULL", "o IS TRUE", "o IS NOT FALSE"),
    exp.Null: ("coalesce(NULL, i)",),
    exp.Boolean: ("o = TRUE",),
    exp.Between: ("i BETWEEN 1 AND 2", "d NOT BETWEEN 1 AND 2"),
    exp.In: ("i IN (1, 3)", "s IN ('a', NULL)"),
    exp.Like: ("s LIKE 'a%'", "s NOT LIKE 'a%'", "s LIKE '%_x%'", r"s LIKE '\\_a%'"),
    exp.ILike: ("s ILIKE 'A%'",),
    exp.Case: ("CASE WHEN i > 1 THEN 'x' ELSE s END", "CASE i WHEN 1 THEN 2.0 END"),
    exp.If: ("if(i > 1, i, b)",),
    exp.Cast: ("DATE '2020-01-01'", "TIMESTAMP '2020-01-01 10:00:00'", "date('2020-01-01')"),
    exp.TryCast: (  # sqlglot's class for CAST as well; it keeps the two apart
        "TRY_CAST(s AS INT)",
        "CAST('12' AS INT)",
        "CAST(i AS DECIMAL(12,3))",
        "CAST(d AS DECIMAL)",
        "CAST(d AS DOUBLE)",
        "CAST(d AS FLOAT)",
        "CAST(f AS BIGINT)",
        "CAST(i AS SMALLINT)",
        "CAST(i AS TINYINT)",
        "CAST(i AS STRING)",
        "CAST(i AS BOOLEAN)",
        "CAST(ts AS DATE)",
        "CAST(t AS TIMESTAMP)",
    ),
    exp.Coalesce: ("coalesce(i, 7)", "ifnull(s, 'z')", "nvl(d, 0)"),
    exp.Nullif: ("nullif(i, 1)",),
    exp.Interval: ("t - INTERVAL '1' YEAR", "t + INTERVAL 2 DAY"),
    exp.Extract: ("extract(YEAR FROM t)", "extract(MONTH FROM ts)"),
    exp.TsOrDsToDate: ("year(t)",),
    exp.Year: ("year(t)", "year(ts)"),
    exp.Month: ("month(t)",),
    exp.Quarter: ("quarter(t)",),
    exp.DayOfMonth: ("dayofmonth(t)",),
    exp.Substring: ("substring(s, 1, 1)", "substring(s FROM 1 FOR 2)", "substr(s, 2)"),
    exp.Lower: ("lower(s)",),
    exp.Upper: ("upper(s)",),
    exp.Length: ("length(s)",),
    exp.Trim: ("trim(s)",),
    exp.Concat: ("concat(s, 'x', i)",),
    exp.DPipe: ("s || 'x' || i",),
    exp.Abs: ("abs(-d)",),
    exp.Round: ("round(d, 1)", "round(f)"),
    exp.Floor: ("floor(d)", "floor(f)"),
    exp.Ceil: ("ceil(d)", "ceil(f)"),
    exp.Sqrt: ("sqrt(b)",),
    exp.Exp: ("exp(f)",),
    exp.Ln: ("ln(b)",),
    exp.Pow: ("power(f, 2)", "pow(i, 2)"),
    exp.Greatest: ("greatest(i, 2)",),
    exp.Least: ("least(i, b)",),
    exp.Sum: ("sum(i)", "sum(d)", "sum(DISTINCT i)"),
    exp.Avg: ("avg(i)", "avg(d)", "avg(f)"),
    exp.Min: ("min(s)", "min(t)"),
    exp.Max: ("max(d)",),
    exp.Count: ("count(*)", "count(1)", "count(i)", "count(DISTINCT i, s)", "count(i, s)"),
    exp.CountIf: ("count_if(i > 1)",),
    exp.Median: ("median(i)", "median(d)", "median(f)", "median(DISTINCT i)"),
    exp.Quantile: ("percentile(i, 0.25)", "percentile(d, 1)", "percentile(DISTINCT f, 0.9)"),
    exp.ApproxQuantile: (
        "percentile_approx(i, 0.5)",
        "approx_percentile(d, 0.9)",
        "approx_percentile(f, 0.1, 100)",
        "percentile_approx(t, 0.5)",
    ),
    exp.Stddev: ("stddev(i)",),
    exp.StddevSamp: ("stddev_samp(d)",),
    exp.StddevPop: ("stddev_pop(f)",),
    exp.Variance: ("variance(f)", "var_samp(i)"),
    exp.VariancePop: ("var_pop(d)",),
    exp.Filter: ("sum(i) FILTER (WHERE o)", "count(*) FILTER (WHERE i > 1)"),
}

# sqlglot wraps the argument of these in a conversion that it leaves out again when it writes SQL.
_DATE_PARTS = (exp.Year, exp.Month, exp.DayOfMonth)

_ALLOWED = frozenset(_STRUCTURE) | frozenset(EXAMPLES)

_TYPES = frozenset(
    {
        exp.DType.BIGINT,
        exp.DType.BOOLEAN,
        exp.DType.DATE,
        exp.DType.DECIMAL,
        exp.DType.DOUBLE,
        exp.DType.FLOAT,
        exp.DType.INT,
        exp.DType.SMALLINT,
        exp.DType.TEXT,
        exp.DType.TIMESTAMP,
        exp.DType.TIMESTAMPTZ,  # what Spark calls TIMESTAMP
        exp.DType.TINYINT,
    }
)

# What these aggregates give for no rows at all; every other allowed one gives NULL.
ZERO_FOR_NO_ROWS: tuple[type[exp.AggFunc], ...] = (exp.Count, exp.CountIf)


def require_allowed(scalar: Scalar) -> None:
    """Refuse a scalar with any part that is not on the list."""
    for node in scalar.walk(prune=lambda n: isinstance(n, exp.Query)):
        if type(node) not in _ALLOWED and not isinstance(node, exp.Query):
            raise Untranslatable(_describe(node))
        if isinstance(node, exp.Star) and not _is_counted(node):
            raise Untranslatable("* among the arguments of a function")
        if isinstance(node, exp.DataType) and node.this not in _TYPES:
            raise Untranslatable(f"the type {node.sql('spark')}")
        if isinstance(node, exp.Interval) and node.args.get("unit") is None:
            raise Untranslatable("an interval without a unit")  # it may be a column called interval
        if isinstance(node, exp.TsOrDsToDate) and not isinstance(node.parent, _DATE_PARTS):
            raise Untranslatable("the function to_date")


def _is_counted(star: exp.Star) -> bool:
    """Whether it is that of ``count(*)``; anywhere else it means the columns that there are."""
    call = star.parent
    return isinstance(call, exp.Count) and call.this is star and not call.expressions


def _describe(node: exp.Expr) -> str:
    if isinstance(node, exp.Window):
        return "window functions"
    if isinstance(node, exp.WithinGroup):
        return "WITHIN GROUP"
    if isinstance(node, exp.Anonymous):
        return f"the function {node.name.lower()}"
    if isinstance(node, exp.Func):
        return f"the function {node.sql_name().lower()}"
    return f"the expression {node.sql('spark')}"
