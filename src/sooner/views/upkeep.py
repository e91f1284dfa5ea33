"""A view and its tables: whether it is stale, which rows it would lose and gain, and bringing these in."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias

from sooner.algebra import Opaque, Relation, Scan, walk
from sooner.algebra.scalar import to_sql
from sooner.analysis.facts import TableInfo
from sooner.analysis.types import is_plain
from sooner.engine import binding
from sooner.engine.change_rows import Blocks, Net, change_rows, net
from sooner.engine.lowering import lower
from sooner.engine.rows import stored_rows
from sooner.engine.session import is_ansi, zone_name
from sooner.engine.view_rows import (
    is_small,
    rows_at,
    sample_changes,
    stepped,
    without_rows,
)
from sooner.errors import NotSupported
from sooner.sql import quote
from sooner.storage.catalog import Catalog
from sooner.storage.records import Change, Table
from sooner.storage.views import (
    Cleaned,
    Reflects,
    StoredView,
    reflecting,
)
from sooner.views.cost import cost
from sooner.views.definition import Definition
from sooner.views.deltas import CHANGED, NEW, NOTHING, OLD, SIGN, CannotMaintain, Known, as_it_is
from sooner.views.form import Form
from sooner.views.maintenance import VIEW, Push, Step, everything, maintenance
from sooner.views.pushed import Pushed, base_name, null_hash
from sooner.views.sampling import Sampled, sampled
from sooner.views.unit import HASH, Portion, Unit
from sooner.views.zoned import is_zoned

How: TypeAlias = Literal["auto", "incremental", "recompute"]


@dataclass(frozen=True)
class Choice:
    """How a view will be brought up to date, and why so."""

    incremental: bool
    why: str
    possible: bool = False


class Upkeep:
    """A view as it is stored, with its tables as they are now."""

    def __init__(
        self,
        spark: Any,
        catalog: Catalog,
        stored: StoredView,
        definition: Definition,
        form: Form,
        now: Sequence[Table],
        below: Mapping[str, Upkeep] | None = None,
    ) -> None:
        self.spark = spark
        self.catalog = catalog
        self.stored = stored
        self.definition = definition
        self.form = form
        self.now = {table.name.lower(): table for table in now}
        # The views among its tables that are stale themselves.
        self.below = {name: one for name, one in (below or {}).items() if one.is_stale}

    @property
    def as_stored(self) -> Upkeep:
        """The same over views that it is made from as they are stored, be they stale or not.

        What is committed must rest on what is: changes that a lower view has not brought in yet would come
        once more when it has.
        """
        now = list(self.now.values())
        return Upkeep(self.spark, self.catalog, self.stored, self.definition, self.form, now)

    @property
    def table(self) -> Table:
        """The view's own rows."""
        return self.stored.table

    @cached_property
    def is_stale(self) -> bool:
        """Whether a table has changed since the view's rows were made."""
        return bool(self.below) or reflecting(list(self.now.values())) != self.stored.reflects

    @cached_property
    def reflects(self) -> dict[str, Any]:
        """The versions of all that a fresh answer rests on, tables of stale views included."""
        found = dict(reflecting(list(self.now.values())))
        for one in self.below.values():
            found |= one.reflects
        return found

    @cached_property
    def anew(self) -> list[str]:
        """Tables of which nobody knows what changed: they were registered anew."""
        reflected = self.stored.reflects
        return [
            table.name
            for name, table in self.now.items()
            if name not in reflected or reflected[name].id != table.id
        ]

    @cached_property
    def before(self) -> dict[str, Table]:
        """The tables at the versions that the view's rows reflect."""
        known = self.stored.reflects
        return {
            name: self.catalog.table(name, known[name].version)
            for name, table in self.now.items()
            if name in known and known[name].id == table.id
        }

    @cached_property
    def changed(self) -> int | None:
        """Rows of its tables that have come and gone; ``None`` if nobody knows."""
        if self.anew:
            return None
        counts = [self.changed_rows(name) for name in self.now]
        return sum(counts) if not self.below else None

    def changed_rows(self, name: str) -> int:
        """Rows of a table that have come and gone."""
        return sum(change.rows or 0 for change in self._changes(name))

    def _changes(self, name: str) -> list[Change]:
        since = self.before[name].version
        return [one for one in self.now[name].changes_of(None) if one.version > since]

    def _share_changed(self, name: str) -> float:
        rows = self.now[name].facts.rows
        return 1.0 if rows is None else min(2.0, self.changed_rows(name) / max(1, rows))

    @property
    def unit(self) -> Unit | None:
        """What the view is sampled by, if it is."""
        return self.definition.unit

    @cached_property
    def choice(self) -> Choice:
        """Whether changes will be brought in, or the view made again."""
        why = self.form.why_whole
        if why is not None:
            return Choice(False, f"made again, because {why}")
        if self.form.key is None:
            return Choice(False, "made again, because nothing tells its rows apart")
        if self.anew:
            return Choice(False, f"made again, because {', '.join(self.anew)} was registered anew")
        if self._is_of_another_zone:
            return Choice(
                False, f"made again, because its times are those of {self.definition.zone}"
            )
        for below in self.below.values():
            if not below.can_merge:
                return Choice(False, f"made again, because {below.table.name} is")
        own = [one.name for one in self.table.stored if one.name != HASH]
        if own != list(self.form.plan.names) or set(self.form.key) != set(self.table.key):
            return Choice(False, "made again, because its columns are kept in another way by now")
        try:
            steps = self._steps(everything)
        except CannotMaintain as obstacle:
            return Choice(False, f"made again, because {obstacle}")
        infos = self._infos()
        shares = {f"{CHANGED}{name}": self._share_changed(name) for name in self.now}
        changes = cost([(step.name, step.plan) for step in steps], infos, shares)
        # The view as it was made last says best how many rows it will have.
        rows = self.table.facts.rows
        again = cost([("", as_it_is(self.form.plan))], infos, {}, written=rows)
        work = f"about {changes / 1e6:,.0f} MB are read and moved, against {again / 1e6:,.0f} MB"
        if changes > again:
            return Choice(False, f"made again, because that is less work: {work}", possible=True)
        return Choice(True, f"changes brought in: {work} to make it again")

    @property
    def _is_of_another_zone(self) -> bool:
        """Whether its rows may rest on another time zone than the session's, where days are others."""
        made = self.definition.zone
        if made in ("", zone_name(self.spark)):
            return False
        tables = [self.table.stored, *(table.columns for table in self.now.values())]
        return is_zoned(self.definition.text, [one.type for some in tables for one in some])

    def _steps(self, push: Push, nets: Mapping[str, Net] | None = None) -> list[Step]:
        stored = tuple(one for one in self.table.stored if one.name != HASH)
        names = self.unit.columns if self.unit is not None and push is not everything else ()
        known = NOTHING if nets is None else self._known(nets)
        ansi = is_ansi(self.spark)
        return maintenance(self.form, stored, names, push, known, ansi)

    def _infos(self) -> dict[str, TableInfo]:
        found = {VIEW: TableInfo(self.table.key, facts=self.table.facts)}
        for name, new in self.now.items():
            old = self.before[name]
            found[f"{OLD}{name}"] = TableInfo(old.key, facts=old.facts)
            found[f"{NEW}{name}"] = TableInfo(new.key, facts=new.facts)
            found[f"{CHANGED}{name}"] = TableInfo(new.key, facts=new.facts)
        return found

    @contextmanager
    def signed(self, part: Portion | None = None) -> Iterator[Any]:
        """The rows that the view loses and gains, of all of it or of a portion of its hashes."""
        push, found = (everything, Pushed()) if part is None else self._pushing(part)
        with ExitStack() as stack:
            nets = self._nets(stack) if part is None else {}
            steps = self._steps(push, nets)
            blocks = {} if part is None else self._blocks(found, steps, part)
            scans = _scans(steps)
            frames = {f"{CHANGED}{name}": one.rows for name, one in nets.items()}
            frames |= self._frames({one.table for one in scans} - set(frames), blocks, stack)
            if any(one.table == VIEW for one in scans):
                rows = stored_rows(self.spark, self.table)
                where = None if part is None else part.stored
                frames[VIEW] = rows if where is None else rows.where(to_sql(where))
            # Of a table that is only totalled no plan reads the changes.
            changed = {f"{CHANGED}{name}": name for name in self.now}
            small = [one for one in frames if one in changed and self._is_small(changed[one], nets)]
            plans = [(step.name, step.plan) for step in steps]
            yield stack.enter_context(stepped(self.spark, plans, frames, small))

    def _nets(self, stack: ExitStack) -> dict[str, Net]:
        """Changes without those of columns that the view does not read, of tables that meet larger ones.

        If nothing is left of them, the larger one need not be read.
        """
        nets = {}
        largest = max(table.facts.rows or 0 for table in self.now.values())
        read: dict[str, set[str]] = {}
        for scan in _scans(self._steps(everything)):
            if scan.table.startswith(CHANGED):
                name = scan.table.removeprefix(CHANGED)
                read.setdefault(name, set()).update(scan.sources)
        for name, columns in read.items():
            old, new = self.before[name], self.now[name]
            if name in self.below or new.facts.rows == largest or not self._loses_rows(name):
                continue
            some = [one for one in new.columns if one.name in columns]
            if 0 < len(some) < len(new.columns) and all(is_plain(one.type) for one in some):
                rows = change_rows(self.spark, old, new, SIGN)
                few = is_small(self.changed_rows(name), len(some))
                nets[name] = stack.enter_context(net(rows, [one.name for one in some], SIGN, few))
        return nets

    def _loses_rows(self, name: str) -> bool:
        return any(change.kind == "delete" for change in self._changes(name))

    def _known(self, nets: Mapping[str, Net]) -> Known:
        """What changes are known to be before they are looked at."""
        only_came = {
            name
            for name in self.now
            if name not in self.below
            and (nets[name].only_came if name in nets else not self._loses_rows(name))
        }
        rows = {name: table.facts.rows or 0 for name, table in self.now.items()}
        return Known(frozenset(only_came), rows)

    def _is_small(self, name: str, nets: Mapping[str, Net]) -> bool:
        rows = nets[name].count if name in nets else self.changed_rows(name)
        return name not in self.below and is_small(rows, len(self.now[name].columns))

    def _frames(
        self, used: Collection[str], blocks: Mapping[str, Blocks], stack: ExitStack
    ) -> dict[str, Any]:
        """The tables that plans read, as they were, as they are, and what changed."""
        frames: dict[str, Any] = {}
        for name in self.now:
            new, below, some = self.now[name], self.below.get(name), blocks.get(name)
            wanted = {kind for kind in (OLD, NEW, CHANGED) if f"{kind}{name}" in used}
            if NEW in wanted:
                frames[f"{NEW}{name}"] = (
                    rows_at(self.spark, new, some)
                    if below is None
                    else stack.enter_context(below.fresh())
                )
            # A table that was registered anew is not known as it was: nothing asks for it then.
            if OLD in wanted:
                frames[f"{OLD}{name}"] = rows_at(self.spark, self.before[name], some)
            if CHANGED in wanted:
                rows = change_rows(self.spark, self.before[name], new, SIGN, some)
                if below is not None:
                    rows = rows.unionByName(stack.enter_context(below.shown()))
                frames[f"{CHANGED}{name}"] = rows
        return frames

    @contextmanager
    def shown(self) -> Iterator[Any]:
        """The rows that the view loses and gains, with the columns that queries see."""
        with self.signed() as rows:
            yield rows.select(*(quote(one.name) for one in self.table.columns), SIGN)

    @contextmanager
    def fresh(self, *, anew: bool = False) -> Iterator[Any]:
        """The rows that the view would have if it were brought up to date, as queries see them.

        With ``anew`` they are made of its tables as they are, whatever is the less work.
        """
        names = [quote(one.name) for one in self.table.columns]
        cleaned = self.cleaned
        if anew:
            signed: Any = None
        elif cleaned is not None and cleaned.ratio >= 1:
            signed = nullcontext(self.changes_in(cleaned.directory))
        elif self.choice.incremental:
            signed = self.signed()
        else:
            signed = None
        if signed is None:
            with self.whole() as rows:
                yield rows.select(*names)
            return
        with signed as rows:
            gone, came = rows.where(f"{SIGN} < 0"), rows.where(f"{SIGN} > 0")
            left = without_rows(stored_rows(self.spark, self.table), gone, self.table.key)
            yield left.select(*names).unionAll(came.select(*names))

    @contextmanager
    def whole(self) -> Iterator[Any]:
        """The view's rows made of its tables as they are."""
        with ExitStack() as stack:
            if self.below:
                plan = as_it_is(self.form.plan)
                used = {node.table for node in walk(plan) if isinstance(node, Scan)}
                if any(isinstance(node, Opaque) for node in walk(plan)):
                    used |= {f"{NEW}{name}" for name in self.now}
                frames = self._frames(used, {}, stack)
                stand_ins = {name.removeprefix(NEW): rows for name, rows in frames.items()}
                steps = [("", plan)]
                yield stack.enter_context(stepped(self.spark, steps, frames, stand_ins=stand_ins))
                return
            with binding.lock:
                for table in self.now.values():
                    binding.bind(self.spark, self.catalog, table)
                rows = lower(self.spark, self.form.plan)
            yield rows

    def _pushing(self, part: Portion) -> tuple[Push, Pushed]:
        unit = self.unit
        assert unit is not None
        found = Pushed()

        def push(plan: Relation, names: Sequence[str]) -> Relation:
            one = sampled(plan, names, partial(unit.picks, part))
            found.parts.append(one)
            return one.plan

        return push, found

    def _blocks(self, found: Pushed, steps: Sequence[Step], part: Portion) -> dict[str, Blocks]:
        """Tables of which only some blocks of a scramble are read: wherever they are, it is by its key."""
        unit = self.unit
        # A scramble spreads rows without a value over all blocks.
        if unit is None or len(unit.columns) > 1 or part.holds(null_hash(unit.salt)):
            return {}
        blocks = {}
        for name, new in self.now.items():
            ways = found.ways(name)
            read = [scan for scan in _scans(steps) if base_name(scan.table) == name]
            if name in self.below or not ways or len(ways) < len(read) or len(set(ways)) > 1:
                continue
            scramble = new.scramble_by(ways[0])
            same = scramble is not None and scramble.salt == unit.salt
            if same and scramble in self.before[name].scrambles:
                blocks[name] = Blocks(scramble, part.blocks(scramble.blocks))
        return blocks

    def described(self) -> tuple[Sampled, list[str]]:
        """How far sampling goes down in the plan of a cleaned sample, and which tables are read by blocks."""
        part = Portion(high=self.definition.sample or 1.0)
        push, found = self._pushing(part)
        steps = self._steps(push, {})
        blocks = self._blocks(found, steps, part)
        return found.whole(), [self.now[name].name for name in blocks]

    @property
    def can_merge(self) -> bool:
        """Whether changes can be brought in, be it the less work or not."""
        return self.choice.incremental or self.choice.possible

    def chosen(self, how: How) -> Choice:
        """How to bring it up to date, if the user has a say in it."""
        choice = self.choice
        if how == "recompute" and self.can_merge:
            return Choice(False, "made again, as asked")
        if how == "incremental" and not choice.incremental:
            if not choice.possible:
                raise NotSupported(
                    f"The view {self.table.name!r} has to be {choice.why}. Use refresh() as it is."
                )
            return Choice(True, "changes brought in, as asked")
        return choice

    @property
    def cleaned(self) -> Cleaned | None:
        """The cleaned sample, if there is one of just these versions."""
        found = self.stored.cleaned
        if found is None or found.version != self.table.version:
            return None
        same = found.ratio == self.definition.sample and found.reflects == self.reflects
        return found if same else None

    def due(self, kind: Literal["refresh", "clean"], refreshed: datetime, now: datetime) -> bool:
        """Whether a refresh or a cleaning is due by its schedule; ``refreshed`` is the last refresh."""
        schedule = self.definition.refresh if kind == "refresh" else self.definition.clean
        if schedule is None or not self.is_stale:
            return False
        last, changed = refreshed, self.changed
        if kind == "clean":
            if self.unit is None or self.cleaned is not None:
                return False
            before = self.stored.cleaned
            if before is not None and before.version == self.table.version:
                last = datetime.fromisoformat(before.at)
                changed = self._changed_since(before.reflects)
        return schedule.is_due((now - last).total_seconds(), changed)

    def _changed_since(self, reflects: Reflects) -> int | None:
        if self.below or any(name not in reflects for name in self.now):
            return None
        return sum(
            change.rows or 0
            for name, table in self.now.items()
            for change in table.changes_of(None)
            if change.version > reflects[name].version
        )

    def changes_in(self, directory: str) -> Any:
        """What a cleaned sample loses and gains."""
        return sample_changes(self.spark, self.table, directory, SIGN)


def _scans(steps: Sequence[Step]) -> list[Scan]:
    return [node for step in steps for node in walk(step.plan) if isinstance(node, Scan)]
