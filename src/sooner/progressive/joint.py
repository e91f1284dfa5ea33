"""One stream for several queries: blocks in step, static parts once, and states that serve all who need them.

A query keeps the stream it would have alone. It comes along where that goes through the same blocks, and
then reads the states that are there, made wider if need be; what has no like is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count

from sooner.algebra import Relation
from sooner.analysis import TableInfo, estimate
from sooner.progressive.commons import with_commons
from sooner.progressive.decomposed import Late
from sooner.progressive.hints import batch_infos
from sooner.progressive.parts import Cut, State, stream_name
from sooner.progressive.renaming import Renaming
from sooner.progressive.statics_once import serve
from sooner.progressive.streamed import ByScramble, Streamed
from sooner.progressive.streams import Stream
from sooner.progressive.unify import renamed_order, unify, with_items

# What nobody has asked for yet should not fill the driver.
_MOST_UNASKED_ROWS = 100_000


class CannotShare(Exception):
    """Why a query goes on its own."""


@dataclass(frozen=True)
class Joint:
    """What is read for all members, and each member's part in it, over the same names.

    ``stream`` has the top of the first member, who was there before the others.
    """

    stream: Stream
    parts: tuple[Stream, ...]

    @property
    def whole(self) -> Stream:
        """What is read for all; several members read rows that they have in common once."""
        if len(self.parts) == 1:
            return self.stream
        return replace(self.stream, cut=with_commons(self.stream.cut))

    @property
    def members(self) -> tuple[Stream, ...]:
        """The members' own streams; their states as wide as they have become."""
        wide = {state.name: state for state in self.stream.cut.states}

        def own(stream: Stream) -> Stream:
            states = tuple(wide[state.name] for state in stream.cut.states)
            return replace(stream, cut=replace(stream.cut, states=states))

        return tuple(own(stream) for stream in self.parts)

    def taking(self, stream: Stream) -> Joint:
        """With one more member, who may never be asked. Raises :class:`CannotShare`."""
        whole, own = _Joining(self.stream).join(stream)
        new = whole.cut.states[len(self.stream.cut.states) :]
        infos = batch_infos(whole, 1.0)
        if any(state.aggregate is None and state.keep is None for state in new):
            raise CannotShare("a list of rows is not read before it is asked for")
        if sum(_rows(state, infos) for state in new) > _MOST_UNASKED_ROWS:
            raise CannotShare("it keeps too much to be read before it is asked for")
        return Joint(whole, (*self.parts, own))

    def joined_late(self, stream: Stream) -> Joint:
        """With one more member after blocks were read. Raises :class:`CannotShare` if it needs more."""
        whole, own = _Joining(self.stream).join(stream)
        if (whole.scans, whole.cut) != (self.stream.scans, self.stream.cut):
            raise CannotShare("it needs more of the blocks that were read already than was kept")
        return Joint(whole, (*self.parts, own))


def alone(stream: Stream) -> Joint:
    """A query that others may join."""
    return Joint(stream, (stream,))


class _Joining:
    """One query on its way into the stream of others."""

    def __init__(self, stream: Stream) -> None:
        self._whole = stream
        self._scans = dict(stream.scans)
        self._shares = dict(stream.shares)
        self._statics = dict(stream.cut.statics)
        self._states = list(stream.cut.states)
        self._names = Renaming()

    def join(self, stream: Stream) -> tuple[Stream, Stream]:
        """All that is read then, and the query's own part. Raises :class:`CannotShare`."""
        places = self._names.places
        for place, way in stream.scans.items():
            places[place] = here = self._place(place, way)
            self._names.tables[stream_name(place)] = stream_name(here)
            share = stream.shares.get(place, 1.0)
            self._shares[here] = max(share, self._shares.get(here, 0.0))
        late = {state.late.static: state.late for state in stream.cut.states if state.late}
        for name, plan in stream.cut.statics.items():
            self._static(name, plan, late.get(name))
        mine = tuple(self._state(state) for state in stream.cut.states)
        first, infos = self._whole, {**stream.infos, **self._whole.infos}
        cut = Cut(first.cut.top, tuple(self._states), self._statics)
        whole = replace(first, scans=self._scans, cut=cut, infos=infos, shares=self._shares)
        scans = {here: self._scans[here] for here in places.values()}
        top = self._names.plan(stream.cut.top)
        return whole, replace(stream, scans=scans, cut=Cut(top, mine, self._statics), infos=infos)

    def _place(self, place: int, way: Streamed) -> int:
        """Where a streamed scan is here: at one that is read the same way, or at a new place."""
        if self._scans.get(place) == way:
            return place
        for here, other in self._scans.items():
            if other == way:
                return here
        first = next(iter(self._scans.values()))
        if not _in_step(first, way):
            raise CannotShare("it reads other blocks")
        if any(other.table.name == way.table.name for other in self._scans.values()):
            raise CannotShare("it reads the same table in another order")
        here = max(self._scans) + 1
        self._scans[here] = way
        return here

    def _static(self, name: str, plan: Relation, late: Late | None) -> None:
        """A static part at one that is kept, made wider if need be, or as a new one."""
        # What columns are looked up in is found by the name of the static part.
        if serve(
            self._statics,
            self._names,
            name,
            plan,
            lambda here: late is None or self._looks_up(late, here),
        ):
            return
        names = (f"__static_{number}" for number in count())
        here = next(name for name in names if name not in self._statics)
        self._statics[here] = plan
        self._names.tables[name] = here

    def _looks_up(self, late: Late, static: str) -> bool:
        return any(state.late == replace(late, static=static) for state in self._states)

    def _state(self, state: State) -> State:
        """A state at one that is kept, made wider if need be, or as a new one."""
        here = self._names.state(state)
        for number, other in enumerate(self._states):
            both = _same(other, here) or _wider(other, here)
            if both is not None:
                found, names = both
                self._states[number] = found
                self._names.tables[state.name] = found.name
                self._names.columns[state.name] = names
                return found
        new = replace(here, name=f"__state_{len(self._states)}")
        self._states.append(new)
        self._names.tables[state.name] = new.name
        return new


def _in_step(one: Streamed, other: Streamed) -> bool:
    """Whether a block of the one goes with the same block of the other."""
    if not isinstance(one, ByScramble) or not isinstance(other, ByScramble):
        return False
    a, b = one.scramble, other.scramble
    return (a.types, a.salt, a.blocks, a.replicates) == (b.types, b.salt, b.blocks, b.replicates)


def _same(ours: State, theirs: State) -> tuple[State, Mapping[str, str]] | None:
    """Our state, if theirs differs in nothing but the name."""
    if replace(theirs, name=ours.name, expected_rows=ours.expected_rows) != ours:
        return None
    return ours, {}


def _wider(ours: State, theirs: State) -> tuple[State, Mapping[str, str]] | None:
    """Our state with their columns too, if the rows are the same; and what theirs are called in it."""
    if ours.is_special or theirs.is_special or ours.counted != theirs.counted:
        return None
    delta = unify(ours.delta, theirs.delta)
    if delta is None or (ours.aggregate is None) != (theirs.aggregate is None):
        return None
    if ours.aggregate is None or theirs.aggregate is None:
        by = renamed_order(theirs.by, delta.names)
        # Rows are many: none gets columns that only others need.
        if delta.plan != ours.delta or (by, theirs.keep) != (ours.by, ours.keep):
            return None
        return ours, delta.names
    if {delta.names[key] for key in theirs.aggregate.keys} != set(ours.aggregate.keys):
        return None
    carried = ours.carried
    if ours.carried is not None and theirs.carried is not None:
        also = unify(ours.carried, theirs.carried)
        if also is None or any(also.names.get(old) != new for old, new in delta.names.items()):
            return None
        carried = also.plan
    elif ours.carried is not theirs.carried:
        return None
    used = {*ours.aggregate.names, *delta.plan.names}
    items, names = with_items(
        ours.aggregate.aggregates, theirs.aggregate.aggregates, delta.names, used
    )
    aggregate = replace(ours.aggregate, child=delta.plan, aggregates=items)
    keys = {key: delta.names[key] for key in theirs.aggregate.keys}
    wide = replace(ours, delta=delta.plan, carried=carried, aggregate=aggregate)
    return wide, {**keys, **names}


def _rows(state: State, infos: Mapping[str, TableInfo]) -> float:
    """About how many rows a state keeps."""
    if state.keep is not None:
        return state.keep
    groups = state.pairs.aggregate if state.pairs is not None else state.aggregate
    if groups is None or state.gates or state.samplers:
        return state.expected_rows
    return estimate(groups, infos).rows
