"""Plans and states that read relations under other names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sooner.algebra import Relation, Scan
from sooner.algebra.traversal import transform_up
from sooner.progressive.parts import State


@dataclass
class Renaming:
    """What relations and their columns are called from now on, and which place a streamed scan has."""

    tables: dict[str, str] = field(default_factory=dict)
    columns: dict[str, Mapping[str, str]] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)

    def table(self, name: str) -> str:
        """What a relation is called from now on."""
        return self.tables.get(name, name)

    def plan(self, plan: Relation) -> Relation:
        """A plan over the relations as they are called from now on."""
        return transform_up(plan, lambda node: self._scan(node) if isinstance(node, Scan) else node)

    def _scan(self, scan: Scan) -> Scan:
        name = self.table(scan.table)
        names = self.columns.get(scan.table, {})
        sources = tuple(names.get(source, source) for source in scan.sources)
        same = name == scan.table and sources == scan.sources
        return scan if same else Scan(name, sources, scan.columns)

    def state(self, state: State) -> State:
        """A state over the relations as they are called from now on."""
        late, aggregate = state.late, state.aggregate
        return replace(
            state,
            delta=self.plan(state.delta),
            counted=self.places.get(state.counted, state.counted),
            aggregate=aggregate and aggregate.with_children(self.plan(aggregate.child)),
            carried=state.carried and self.plan(state.carried),
            gates=tuple(replace(gate, top=self.plan(gate.top)) for gate in state.gates),
            pairs=state.pairs and self.state(state.pairs),
            beside=state.beside and self.table(state.beside),
            late=late and replace(late, static=self.table(late.static)),
        )
