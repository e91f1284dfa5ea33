"""SQL scalars over NumPy: arithmetic, comparisons, CASE, for all R + 1 versions of a row at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sqlglot import exp

from sooner.algebra.scalar import Scalar
from sooner.statistics.arrays import Floats


class NotNumeric(Exception):
    """A scalar that is left to Spark."""


_ARITHMETIC = {exp.Add: np.add, exp.Sub: np.subtract, exp.Mul: np.multiply}
_COMPARISONS = {
    exp.EQ: np.equal,
    exp.NEQ: np.not_equal,
    exp.LT: np.less,
    exp.LTE: np.less_equal,
    exp.GT: np.greater,
    exp.GTE: np.greater_equal,
}


def evaluate(scalar: Scalar, columns: Mapping[str, Floats]) -> Floats:
    """The value of a scalar; NaN is null, and so is what is unknown to three-valued logic.

    >>> import sqlglot
    >>> evaluate(sqlglot.parse_one("a / 4 + 1"), {"a": np.array([[2.0], [4.0]])}).ravel().tolist()
    [1.5, 2.0]
    """
    with np.errstate(all="ignore"):
        return _value(scalar, columns)


def _value(node: Scalar, columns: Mapping[str, Floats]) -> Floats:
    match node:
        case exp.Paren():
            return _value(node.this, columns)
        case exp.Column():
            if node.name not in columns:
                raise NotNumeric(node.name)
            return columns[node.name]
        case exp.Literal() if not node.is_string:
            return np.array([[float(node.this)]])
        case exp.Null():
            return np.array([[np.nan]])
        case exp.Boolean():
            return np.array([[float(bool(node.this))]])
        case exp.Neg():
            return -_value(node.this, columns)
        case exp.Div():
            above, below = _value(node.left, columns), _value(node.right, columns)
            return np.where(below == 0, np.nan, above / np.where(below == 0, 1.0, below))
        case exp.Add() | exp.Sub() | exp.Mul():
            left, right = _value(node.left, columns), _value(node.right, columns)
            return np.asarray(_ARITHMETIC[type(node)](left, right))
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            left, right = _value(node.left, columns), _value(node.right, columns)
            truth = _COMPARISONS[type(node)](left, right).astype(np.float64)
            return np.where(np.isnan(left) | np.isnan(right), np.nan, truth)
        case exp.And():
            left, right = _value(node.left, columns), _value(node.right, columns)
            false = (left == 0) | (right == 0)
            return np.where(false, 0.0, np.where(np.isnan(left) | np.isnan(right), np.nan, 1.0))
        case exp.Or():
            left, right = _value(node.left, columns), _value(node.right, columns)
            true = (left == 1) | (right == 1)
            return np.where(true, 1.0, np.where(np.isnan(left) | np.isnan(right), np.nan, 0.0))
        case exp.Not():
            return 1.0 - _value(node.this, columns)
        case exp.Between():
            low, high = node.args["low"], node.args["high"]
            both = exp.And(
                this=exp.GTE(this=node.this.copy(), expression=low.copy()),
                expression=exp.LTE(this=node.this.copy(), expression=high.copy()),
            )
            return _value(both, columns)
        case exp.Coalesce():
            found = _value(node.this, columns)
            for other in node.expressions:
                found = np.where(np.isnan(found), _value(other, columns), found)
            return found
        case exp.Nullif():
            found, other = _value(node.this, columns), _value(node.expression, columns)
            return np.where(found == other, np.nan, found)
        case exp.Case() if node.this is None:
            default = node.args.get("default")
            found = np.array([[np.nan]]) if default is None else _value(default, columns)
            for branch in reversed(node.args["ifs"]):
                chosen = _value(branch.this, columns) == 1
                found = np.where(chosen, _value(branch.args["true"], columns), found)
            return found
        case exp.Cast() if node.to.this in exp.DataType.REAL_TYPES:
            return _value(node.this, columns)
    raise NotNumeric(node.sql("spark"))
