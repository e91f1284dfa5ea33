"""Where rows may be missing that no constraint speaks of, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sooner.missing.groups import value_of
from sooner.missing.space import Space, literal
from sooner.missing.worlds import Split
from sooner.sql import quote
from sooner.synopses.axes import LEAST, MOST, NULL, Axis


def uncovered(worlds: Split, space: Space) -> list[str]:
    """Conditions under which no constraint holds, by column; what takes several columns is summed up."""
    found, left = [], worlds.outside
    for name in worlds.grid.starts:
        atoms = worlds.grid.whole_atoms(worlds.outside, name)
        ends = [worlds.grid.ends(name, atom) for atom in atoms]
        found += list(_texts(space.axis(name), ends))
        for atom in atoms:
            left &= ~worlds.grid.slab(name, atom)
    if not worlds.grid.starts or (left and not found):
        return ["any row" if not worlds.grid.starts else "combinations of " + _listed(worlds)]
    return [*found, *([f"combinations of {_listed(worlds)}"] if left else [])]


def _listed(worlds: Split) -> str:
    return " and ".join(worlds.grid.starts)


def _texts(axis: Axis, ends: Sequence[tuple[int, int]]) -> Iterator[str]:
    name = quote(axis.name).strip("`")
    joined: list[tuple[int, int]] = []
    for low, high in ends:
        if low == NULL:
            yield f"{name} IS NULL"
        elif joined and joined[-1][1] + 1 == low and axis.kind != "text":
            joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    if axis.kind == "text":
        named = [axis.words[(low - 1) // 2] for low, _ in joined if low % 2 and low > 0]
        yield from (f"{name} = {literal(word).sql('spark')}" for word in named)
        if len(named) < len(joined):
            yield f"other values of {name}"
        return
    for low, high in joined:
        first = None if low <= LEAST else literal(value_of(axis, low)).sql("spark")
        last = None if high >= MOST else literal(value_of(axis, high)).sql("spark")
        match first, last:
            case None, None:
                yield f"any {name}"
            case None, _:
                yield f"{name} <= {last}"
            case _, None:
                yield f"{name} >= {first}"
            case _:
                yield f"{name} = {first}" if low == high else f"{name} BETWEEN {first} AND {last}"
