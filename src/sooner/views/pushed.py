"""How far sampling got in the plans of a cleaned sample: which tables, and by which of their columns."""

from __future__ import annotations

from sooner.engine.key_hashes import key_hashes
from sooner.views.deltas import CHANGED, NEW, OLD
from sooner.views.sampling import Sampled


class Pushed:
    """Where sampling got to in some plans."""

    def __init__(self) -> None:
        self.parts: list[Sampled] = []

    def ways(self, name: str) -> list[tuple[str, ...]]:
        """By which columns of its own a table is sampled, each time that it is."""
        return [by for part in self.parts for table, by in part.by if base_name(table) == name]

    def whole(self) -> Sampled:
        """All of them together, tables by their own names."""
        tables = [base_name(name) for part in self.parts for name in part.tables]
        blocked = [why for part in self.parts for why in part.blocked]
        plan = self.parts[0].plan
        return Sampled(plan, tuple(dict.fromkeys(tables)), tuple(dict.fromkeys(blocked)))


def base_name(name: str) -> str:
    """The name of a table without which state of it is meant."""
    for kind in (OLD, NEW, CHANGED):
        name = name.removeprefix(kind)
    return name


def null_hash(salt: int) -> int:
    """The hash, as it is stored, of rows without a value."""
    return int(key_hashes(salt, [])[0]) - 2**63
