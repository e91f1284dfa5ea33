"""A WHERE clause as spans of each column: a box, as far as a synopsis understands it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from functools import reduce
from operator import and_, or_

from sqlglot import exp

from sooner.errors import CannotAnswer, nearest
from sooner.synopses.axes import LEAST, MOST, Axis
from sooner.synopses.literals import position
from sooner.synopses.spans import NULLS, VALUES, Spans, spans_of

Box = Mapping[str, Spans]
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
}


@dataclass(frozen=True)
class Conditions:
    """Reads conditions over the columns a synopsis holds (by lower-case name)."""

    axes: Mapping[str, Axis]
    zone: tzinfo

    def box(self, condition: exp.Expr | None) -> dict[str, Spans]:
        """The spans of every column that is mentioned, all of which must hold."""
        if condition is None:
            return {}
        return self._read(condition, negated=False)

    def _read(self, node: exp.Expr, negated: bool) -> dict[str, Spans]:
        if isinstance(node, exp.Paren):
            return self._read(node.this, negated)
        if isinstance(node, exp.Not):
            return self._read(node.this, not negated)
        if isinstance(node, exp.And | exp.Or):
            sides = [self._read(side, negated) for side in (node.left, node.right)]
            if isinstance(node, exp.And) != negated:
                return _all(sides)
            return _any(sides, node)
        axis, spans = self.one(node, negated)
        return {axis.name: spans}

    def one(self, node: exp.Expr, negated: bool) -> tuple[Axis, Spans]:
        """A condition on one column."""
        if node.args.get("negate"):
            negated = not negated
        match node:
            case exp.Boolean():
                raise CannotAnswer(
                    "a synopsis takes conditions on columns, not plain TRUE or FALSE."
                )
            case exp.Column():
                axis = self._axis(node)
                if axis.kind == "boolean":
                    return axis, spans_of([(1, 1)]).without_null(negated)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return self._axis(node.this), VALUES if negated else NULLS
            case exp.Is() if isinstance(node.expression, exp.Not) and isinstance(
                node.expression.this, exp.Null
            ):
                return self._axis(node.this), NULLS if negated else VALUES
            case exp.Between() if not node.args.get("symmetric"):
                axis = self._axis(node.this)
                low = self._compared(axis, exp.GTE, node.args["low"])
                high = self._compared(axis, exp.LTE, node.args["high"])
                return axis, (low & high).without_null(negated)
            case exp.In() if node.expressions:
                axis = self._axis(node.this)
                points = [self._compared(axis, exp.EQ, one) for one in node.expressions]
                return axis, reduce(or_, points).without_null(negated)
            case exp.Like() if axis_prefix := self._prefix(node):
                axis, spans = axis_prefix
                return axis, spans.without_null(negated)
        if isinstance(node, _COMPARISONS):
            return self._comparison(node, negated)
        raise CannotAnswer(
            f"the condition {node.sql('spark')} is none of =, <>, <, <=, >, >=, BETWEEN, IN, "
            "LIKE 'start%' and IS NULL on one column."
        )

    def _comparison(self, node: exp.Expr, negated: bool) -> tuple[Axis, Spans]:
        kind: type[exp.Expr] = type(node)
        column, constant = node.args["this"], node.args["expression"]
        if not isinstance(column, exp.Column):
            column, constant, kind = constant, column, _MIRRORED.get(kind, kind)
        if not isinstance(column, exp.Column):
            raise CannotAnswer(f"{node.sql('spark')} does not compare a column with a constant.")
        axis = self._axis(column)
        if kind is exp.NullSafeEQ and isinstance(constant, exp.Null):
            return axis, VALUES if negated else NULLS
        spans = self._compared(axis, kind, constant)
        if kind is exp.NullSafeEQ:  # never null itself
            return axis, spans.without_null(True) | NULLS if negated else spans
        return axis, spans.without_null(negated)

    def _compared(self, axis: Axis, kind: type[exp.Expr], constant: exp.Expr) -> Spans:
        if isinstance(constant, exp.Null):
            raise CannotAnswer(f"{axis.name} is compared with NULL, which is never true.")
        place, there = position(constant, axis, self.zone)
        after = place + 1 if there else place
        match kind:
            case exp.LT:
                return spans_of([(LEAST, place - 1)])
            case exp.LTE:
                return spans_of([(LEAST, after - 1)])
            case exp.GT:
                return spans_of([(after, MOST)])
            case exp.GTE:
                return spans_of([(place, MOST)])
            case exp.NEQ:
                return spans_of([(place, place)] if there else []).without_null(True)
        return spans_of([(place, place)] if there else [])

    def _prefix(self, node: exp.Like) -> tuple[Axis, Spans] | None:
        """LIKE 'start%' on words: those from the first to the last that start so."""
        pattern = node.expression
        if not (isinstance(node.this, exp.Column) and isinstance(pattern, exp.Literal)):
            return None
        axis, text = self._axis(node.this), str(pattern.this)
        start = text.rstrip("%")
        if axis.kind != "text" or len(text) - len(start) != 1 or set(start) & set("%_\\"):
            return None
        first = axis.word_at(start)[0]
        last = next(
            (n for n in range(first, len(axis.words)) if not axis.words[n].startswith(start)),
            len(axis.words),
        )
        return axis, spans_of([(first, last - 1)])

    def _axis(self, column: exp.Expr) -> Axis:
        if not isinstance(column, exp.Column):
            raise CannotAnswer(f"{column.sql('spark')} is not a plain column.")
        found = self.axes.get(column.name.lower())
        if found is None:
            raise CannotAnswer(
                f"it does not hold the column {column.name!r}. Create one with it in over=[…], or in "
                f"keep=[…] to have it in the samples only.{nearest(column.name, self.axes)}"
            )
        return found


def _all(sides: list[dict[str, Spans]]) -> dict[str, Spans]:
    names = {name for side in sides for name in side}
    return {name: reduce(and_, (side[name] for side in sides if name in side)) for name in names}


def _any(sides: list[dict[str, Spans]], node: exp.Expr) -> dict[str, Spans]:
    if sides[0].keys() != sides[1].keys() or len(sides[0]) != 1:
        raise CannotAnswer(
            f"{node.sql('spark')} joins conditions on several columns by OR. Ask for each alone."
        )
    ((name, one),), ((_, other),) = sides[0].items(), sides[1].items()
    return {name: one | other}
