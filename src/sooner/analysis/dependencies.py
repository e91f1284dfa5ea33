"""Functional dependencies: which columns fix which others, and the row itself.

``X determines Y`` means: two rows that agree on X agree on Y. Agreeing is what GROUP BY does: a
null agrees with a null. The row has an attribute of its own, so that "X is a key" is one more
dependency, true of bags as well as of sets. Attributes that a projection drops stay as hidden ones:
whatever followed from them still follows, without projecting dependencies, which is exponential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from sooner.analysis.conditions import Constant, Implied

Attribute: TypeAlias = int
Attributes: TypeAlias = frozenset[int]


@dataclass(frozen=True, slots=True)
class Rule:
    """Rows that agree on ``given`` agree on ``fixed``."""

    given: Attributes
    fixed: Attributes


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What is known of the rows of a relation.

    ``columns`` are the attributes of the output, by name and in order; ``row`` is the row's own.
    ``values`` lists all values of an attribute where they are known (then it is never null).
    ``merged`` says which attribute is ``coalesce(a, b)``, for the keys of a full join.
    """

    columns: Mapping[str, Attribute]
    row: Attribute
    rules: tuple[Rule, ...] = ()
    never_null: Attributes = frozenset()
    values: Mapping[Attribute, frozenset[Constant]] = field(default_factory=dict)
    merged: Mapping[Attributes, Attribute] = field(default_factory=dict)

    def closure(self, attributes: Iterable[Attribute]) -> Attributes:
        """All attributes that these determine (Armstrong's axioms, by repetition)."""
        known = set(attributes)
        waiting = list(self.rules)
        while True:
            later = []
            for rule in waiting:
                if rule.given <= known:
                    known |= rule.fixed
                else:
                    later.append(rule)
            if len(later) == len(waiting):
                return frozenset(known)
            waiting = later

    def determined_by(self, names: Iterable[str]) -> frozenset[str]:
        """The columns whose values these columns fix, themselves included."""
        known = self.closure(self.attributes(names))
        return frozenset(name for name, attribute in self.columns.items() if attribute in known)

    def is_key(self, names: Iterable[str]) -> bool:
        """Whether no two rows agree on these columns."""
        return self.row in self.closure(self.attributes(names))

    def smallest(self, names: Iterable[str]) -> frozenset[str]:
        """Few of these columns that fix as much as all of them; the earlier ones by preference."""
        return self._fewest(list(names), self.attributes(names))

    def key(self) -> frozenset[str] | None:
        """A key from which no column can be left out; ``None`` if the rows have none."""
        if not self.is_key(self.columns):
            return None
        return self._fewest(list(self.columns), frozenset({self.row}))

    def _fewest(self, names: list[str], wanted: Attributes) -> frozenset[str]:
        # The fewest of all is NP-hard to find. Dropping from the back keeps the columns that come
        # first; dropping from the front sometimes finds a shorter key behind a long one.
        def shed(order: Iterable[str]) -> list[str]:
            kept = list(names)
            for name in order:
                rest = [other for other in kept if other != name]
                if wanted <= self.closure(self.attributes(rest)):
                    kept = rest
            return kept

        late, early = shed(reversed(names)), shed(names)
        return frozenset(early if len(early) < len(late) else late)

    def attributes(self, names: Iterable[str]) -> Attributes:
        """The attributes of some columns."""
        return frozenset(self.columns[name] for name in names)

    def with_rules(self, *rules: Rule) -> Dependencies:
        """The same with more rules."""
        return replace(self, rules=self.rules + rules)

    def assuming(self, facts: Implied) -> Dependencies:
        """The rows for which some condition is true, given what it says about them."""
        rules = list(self.rules)
        for a, b in facts.equal:
            one, other = self.attributes([a]), self.attributes([b])
            rules += [Rule(one, other), Rule(other, one)]
        if facts.constant:
            rules.append(Rule(frozenset(), self.attributes(facts.constant)))
        values = dict(self.values)
        for name, found in facts.values.items():
            attribute = self.columns[name]
            values[attribute] = values[attribute] & found if attribute in values else found
        never_null = self.never_null | self.attributes(facts.never_null)
        return replace(self, rules=tuple(rules), never_null=never_null, values=values)

    def padded(self, unless: Attributes) -> Dependencies:
        """This side of an outer join, with rows of nulls added where the other side has no partner.

        A rule can break only between a real row and a row of nulls, that is where a real row has
        nulls in all of ``given``. It holds where one of those is never null, and among rows that
        agree on ``unless``, attributes of the other side that say whether there is a partner.
        """
        rules: list[Rule] = []
        for rule in self.rules:
            kept = bool(rule.given & self.never_null)
            rules.append(rule if kept else Rule(rule.given | unless, rule.fixed))
        return replace(self, rules=tuple(rules), never_null=frozenset(), values={})

    def beside(self, other: Dependencies, row: Attribute) -> Dependencies:
        """Pairs of rows, one of each side."""
        both = frozenset({self.row, other.row})
        return Dependencies(
            {**self.columns, **other.columns},
            row,
            (*self.rules, *other.rules, Rule(both, frozenset({row})), Rule(frozenset({row}), both)),
            self.never_null | other.never_null | {row},
            {**self.values, **other.values},
            {**self.merged, **other.merged},
        )

    def grouped(self, keys: Iterable[str], row: Attribute) -> Dependencies:
        """One row per combination of the keys: only what they determine is one value per row."""
        names = list(keys)
        given = self.attributes(names)
        kept = self.closure(given)
        rules = [rule for rule in self.rules if rule.given <= kept]
        rules += [Rule(given, frozenset({row})), Rule(frozenset({row}), kept)]
        return Dependencies(
            {name: self.columns[name] for name in names},
            row,
            tuple(rules),
            (self.never_null & kept) | {row},
            {attribute: found for attribute, found in self.values.items() if attribute in kept},
            {pair: one for pair, one in self.merged.items() if one in kept and pair <= kept},
        )

    def apart_from(self, other: Dependencies, fresh: Callable[[], Attribute]) -> Dependencies:
        """The same with attributes of its own: one node used twice reads two independent rows."""
        if not self._all_attributes() & other._all_attributes():
            return self
        new = {attribute: fresh() for attribute in sorted(self._all_attributes())}

        def renamed(attributes: Attributes) -> Attributes:
            return frozenset(new[attribute] for attribute in attributes)

        return Dependencies(
            {name: new[attribute] for name, attribute in self.columns.items()},
            new[self.row],
            tuple(Rule(renamed(rule.given), renamed(rule.fixed)) for rule in self.rules),
            renamed(self.never_null),
            {new[attribute]: found for attribute, found in self.values.items()},
            {renamed(pair): new[one] for pair, one in self.merged.items()},
        )

    def _all_attributes(self) -> Attributes:
        parts = [rule.given | rule.fixed for rule in self.rules]
        parts += [*self.merged, frozenset(self.merged.values()), frozenset(self.values)]
        return frozenset({self.row, *self.columns.values(), *self.never_null}).union(*parts)
