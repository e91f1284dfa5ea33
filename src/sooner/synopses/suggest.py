"""Which synopses a list of past questions asks for (PASS §2.4.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sooner.errors import CannotAnswer, ParseError
from sooner.synopses.question import question

# More columns cut space into too many boxes: the others stay in the samples.
_MOST_OVER = 5


@dataclass(frozen=True)
class Suggestion:
    """A synopsis worth having: its arguments, and how many of the questions it serves."""

    table: str
    measures: tuple[str, ...]
    over: tuple[str, ...]
    keep: tuple[str, ...]
    questions: int


def suggest(texts: Iterable[str], most: int = 3) -> list[Suggestion]:
    """Trees for a workload, the most useful first.

    Every set of columns that questions go by is a candidate; the one that serves most of what is left
    is taken, ``most`` times for each table. A set serves questions on some of its columns too. Questions
    that no synopsis can answer are passed over.

    >>> suggest(["SELECT SUM(x) FROM t WHERE a > 1", "SELECT AVG(x) FROM t WHERE a < 9 AND b = 2",
    ...          "SELECT COUNT(*) FROM t WHERE a = 4"], most=1)
    [Suggestion(table='t', measures=('x',), over=('a', 'b'), keep=(), questions=3)]
    """
    asked: Counter[tuple[str, frozenset[str], frozenset[str]]] = Counter()
    for text in texts:
        try:
            found = question(text)
        except (CannotAnswer, ParseError):
            continue
        if found.columns:
            asked[found.table.lower(), found.columns, found.measures] += 1
    return [
        one
        for table in sorted({table for table, _, _ in asked})
        for one in _of_table(table, asked, most)
    ]


def _of_table(
    table: str, asked: Counter[tuple[str, frozenset[str], frozenset[str]]], most: int
) -> list[Suggestion]:
    left = {key: number for key, number in asked.items() if key[0] == table}
    found: list[Suggestion] = []
    while left and len(found) < most:
        sets = {columns for _, columns, _ in left}
        # Of sets that serve as many questions the smallest: fewer columns, finer boxes.
        best = max(sets, key=lambda one: (_served(one, left), -len(one), sorted(one)))
        mine = {key: number for key, number in left.items() if key[1] <= best}
        use: Counter[str] = Counter()
        for (_, columns, _), number in mine.items():
            use.update(dict.fromkeys(columns, number))
        ordered = [name for name, _ in sorted(use.items(), key=lambda one: (-one[1], one[0]))]
        measures = sorted({name for _, _, names in mine for name in names})
        found.append(
            Suggestion(
                table,
                tuple(measures),
                tuple(ordered[:_MOST_OVER]),
                tuple(ordered[_MOST_OVER:]),
                sum(mine.values()),
            )
        )
        left = {key: number for key, number in left.items() if key not in mine}
    return sorted(found, key=lambda one: -one.questions)


def _served(
    columns: frozenset[str], left: dict[tuple[str, frozenset[str], frozenset[str]], int]
) -> int:
    return sum(number for (_, wanted, _), number in left.items() if wanted <= columns)
