"""A view and its tables: whether it is stale, which rows it would lose and gain, and bringing these in."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from time import perf_counter
from typing import Any, Literal, TypeAlias

from sooner.algebra import Relation, Scan, walk
from sooner.algebra.scalar import to_sql
from sooner.analysis.facts import TableInfo
from sooner.engine import binding
from sooner.engine.change_rows import Blocks, change_rows
from sooner.engine.lowering import lower
from sooner.engine.rows import stored_rows
from sooner.engine.view_rows import (
    is_small,
    outlier_hashes,
    rows_at,
    sample_changes,
    stepped,
    view_schema,
    without_rows,
    write_changes,
    written_changes,
)
from sooner.engine.writing import reservation
from sooner.errors import NotSupported
from sooner.storage.catalog import Catalog
from sooner.storage.footers import facts_of
from sooner.storage.records import Table
from sooner.storage.views import (
    Cleaned,
    Reflects,
    Refreshed,
    StoredView,
    record_cleaned,
    record_refresh,
    reflecting,
)
from sooner.views.cost import cost
from sooner.views.definition import Definition, as_text
from sooner.views.deltas import CHANGED, NEW, OLD, SIGN, CannotMaintain, as_it_is
from sooner.views.form import Form
from sooner.views.made import Made
from sooner.views.maintenance import VIEW, Push, Step, everything, maintenance
from sooner.views.outliers import MOST_OUTLIERS, outlier_way, with_outliers
from sooner.views.pushed import Pushed, base_name, null_hash
from sooner.views.sampling import Sampled, sampled
from sooner.views.unit import HASH, Portion, Unit, unit_of

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
        self._spark = spark
        self._catalog = catalog
        self.stored = stored
        self.definition = definition
        self.form = form
        self.now = {table.name.lower(): table for table in now}
        # The views among its tables that are stale themselves.
        self.below = {name: one for name, one in (below or {}).items() if one.is_stale}

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
        return {
            name: self._catalog.table(name, self.stored.reflects[name].version) for name in self.now
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
        old, new = self.before[name], self.now[name]
        rows = [c.rows or 0 for c in new.changes_of(None) if c.version > old.version]
        return sum(rows)

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
        again = cost([("", as_it_is(self.form.plan))], infos, {})
        work = f"about {changes / 1e6:,.0f} MB pass by, against {again / 1e6:,.0f} MB"
        if changes > again:
            return Choice(False, f"made again, because that is less work: {work}", possible=True)
        return Choice(True, f"changes brought in: {work} to make it again")

    def _steps(self, push: Push) -> list[Step]:
        stored = tuple(one for one in self.table.stored if one.name != HASH)
        names = self.unit.columns if self.unit is not None and push is not everything else ()
        return maintenance(self.form, stored, names, push)

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
        steps = self._steps(push)
        blocks = {} if part is None else self._blocks(found, steps, part)
        used = {node.table for step in steps for node in walk(step.plan) if isinstance(node, Scan)}
        with ExitStack() as stack:
            frames = self._frames(used, blocks, stack)
            if VIEW in used:
                rows = stored_rows(self._spark, self.table)
                where = None if part is None else part.stored
                frames[VIEW] = rows if where is None else rows.where(to_sql(where))
            small = [name for name in frames if name.startswith(CHANGED) and self._is_small(name)]
            plans = [(step.name, step.plan) for step in steps]
            yield stack.enter_context(stepped(self._spark, plans, frames, small))

    def _is_small(self, name: str) -> bool:
        of = name.removeprefix(CHANGED)
        columns = len(self.now[of].columns)
        return of not in self.below and is_small(self.changed_rows(of), columns)

    def _frames(
        self, used: Collection[str], blocks: Mapping[str, Blocks], stack: ExitStack
    ) -> dict[str, Any]:
        """The tables that plans read, as they were, as they are, and what changed."""
        frames: dict[str, Any] = {}
        for name in self.now:
            old, new, some = self.before[name], self.now[name], blocks.get(name)
            wanted = {kind for kind in (OLD, NEW, CHANGED) if f"{kind}{name}" in used}
            if OLD in wanted:
                frames[f"{OLD}{name}"] = rows_at(self._spark, old, some)
            if name not in self.below:
                if NEW in wanted:
                    frames[f"{NEW}{name}"] = rows_at(self._spark, new, some)
                if CHANGED in wanted:
                    frames[f"{CHANGED}{name}"] = change_rows(self._spark, old, new, SIGN, some)
                continue
            below = self.below[name]
            if CHANGED in wanted:
                changes = stack.enter_context(below.shown())
                known = change_rows(self._spark, old, new, SIGN)
                frames[f"{CHANGED}{name}"] = known.unionByName(changes)
            if NEW in wanted:
                frames[f"{NEW}{name}"] = stack.enter_context(below.fresh())
        return frames

    @contextmanager
    def shown(self) -> Iterator[Any]:
        """The rows that the view loses and gains, with the columns that queries see."""
        with self.signed() as rows:
            yield rows.select(*(one.name for one in self.table.columns), SIGN)

    @contextmanager
    def fresh(self) -> Iterator[Any]:
        """The rows that the view would have if it were brought up to date, as queries see them."""
        names = [one.name for one in self.table.columns]
        if not self.choice.incremental:
            with self._whole() as rows:
                yield rows.select(*names)
            return
        with self.signed() as rows:
            gone, came = rows.where(f"{SIGN} < 0"), rows.where(f"{SIGN} > 0")
            left = without_rows(stored_rows(self._spark, self.table), gone, self.table.key)
            yield left.select(*names).unionAll(came.select(*names))

    @contextmanager
    def _whole(self) -> Iterator[Any]:
        """The view's rows made of its tables as they are."""
        with ExitStack() as stack:
            if self.below:
                plan = as_it_is(self.form.plan)
                used = {node.table for node in walk(plan) if isinstance(node, Scan)}
                frames = self._frames(used, {}, stack)
                yield stack.enter_context(stepped(self._spark, [("", plan)], frames))
                return
            with binding.lock:
                for table in self.now.values():
                    binding.bind(self._spark, str(self._catalog.home.path), table)
                rows = lower(self._spark, self.form.plan)
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
            read = [
                node
                for step in steps
                for node in walk(step.plan)
                if isinstance(node, Scan) and base_name(node.table) == name
            ]
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
        steps = self._steps(push)
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

    def refresh(self, how: How = "auto") -> Refreshed:
        """Bring the view up to date."""
        choice = self.chosen(how)
        return self._brought_in(choice) if choice.incremental else self._made_again(choice)

    def _brought_in(self, choice: Choice) -> Refreshed:
        start = perf_counter()
        with reservation(self._catalog, self.table) as reserved:
            directory = reserved.directory("refresh")
            self.write(directory)
            return self.commit(directory, choice, start, reserved)

    def write(self, directory: str, part: Portion | None = None) -> None:
        """Add what the view loses and gains, or a portion of it, to a directory."""
        with self.signed(part) as rows:
            write_changes(self.table, rows, SIGN, self._hash_sql, HASH, directory)

    @property
    def _hash_sql(self) -> str | None:
        return None if self.unit is None else self.unit.sql

    def commit(self, directory: str, choice: Choice, start: float, reserved: Any) -> Refreshed:
        """Make what was written to a directory part of the view."""
        changes = written_changes(self.table, directory)
        counts = {change.kind: change.rows or 0 for change in changes}
        came, went = counts.get("insert", 0), counts.get("delete", 0)
        done = Refreshed("incremental", choice.why, perf_counter() - start, came, went)
        note = partial(self._note, done=done, text=self._text())
        if not changes:
            reserved.give_up()
            with self._catalog.database.writing() as connection:
                note(connection, self.table)
            return done
        added = [
            file.path for change in changes if change.kind == "insert" for file in change.files
        ]
        facts = facts_of(added) if added else None
        self._catalog.commit_change(self.table, changes, facts, reserved.directories, also=note)
        return done

    def _text(self) -> str:
        """The definition, its outliers those of the tables as they are."""
        return as_text(with_outliers(self._spark, self.definition, self.form, self.now))

    def _note(self, connection: Any, table: Table, done: Refreshed, text: str) -> None:
        now = reflecting(list(self.now.values()))
        record_refresh(connection, table, self.stored, text, now, done)

    def _retyped(self, rows: Any) -> Definition:
        """The definition for rows whose types may be others by now."""
        unit = self.definition.unit
        if unit is None:
            return self.definition
        types = {one.name: str(one.type) for one in view_schema(rows, 0)[0]}
        if self.form.key is None or any(name not in types for name in unit.columns):
            again = None
        else:
            again = unit_of(unit.columns, types, unit.salt)
        if again is not None:
            return replace(self.definition, unit=again)
        why = "nothing tells its rows apart any more"
        return replace(
            self.definition, unit=None, sample=None, outliers=(), certain=(), why_not=why
        )

    def _made_again(self, choice: Choice) -> Refreshed:
        start = perf_counter()
        with self._whole() as rows, reservation(self._catalog, None) as reserved:
            definition = self._retyped(rows)
            made = Made(rows, self.form, definition.unit, reserved.directory("view"))
            text = as_text(with_outliers(self._spark, definition, self.form, self.now))
            done = Refreshed(
                "recomputed", choice.why, perf_counter() - start, made.rows, self.table.facts.rows
            )
            made.commit(
                self._catalog,
                self.table.name,
                reserved,
                partial(self._note, done=done, text=text),
                True,
            )
        return done

    def clean(self) -> Cleaned:
        """Clean a sample of the view, and keep it for questions to come."""
        ratio = self.definition.sample
        assert ratio is not None, "a view that is sampled has a share"
        certain = self.outliers_now()
        with reservation(self._catalog, self.table) as reserved:
            directory = reserved.directory("clean")
            parts = [Portion(high=ratio)]
            if certain and ratio < 1:
                parts.append(Portion(low=ratio, only=certain))
            for part in parts:
                self.write(directory, part)
            counts = {one.kind: one.rows or 0 for one in written_changes(self.table, directory)}
            cleaned = Cleaned(
                self.reflects,
                ratio,
                directory,
                counts.get("delete", 0),
                counts.get("insert", 0),
                self.table.version,
                certain,
                datetime.now(UTC).isoformat(),
            )
            record_cleaned(self._catalog, self.stored, cleaned, reserved.directories)
        return cleaned

    def try_cleaning(self, share: float) -> float:
        """How long it takes to clean so much of the view; nothing is kept."""
        start = perf_counter()
        with reservation(self._catalog, self.table) as reserved:
            self.write(reserved.directory("clean"), Portion(high=share))
            reserved.give_up()
        return perf_counter() - start

    def outliers_now(self) -> tuple[int, ...]:
        """The hashes of outliers: those there were, and those among the rows that have changed since."""
        found = set(self.definition.certain)
        for one in self.definition.outliers:
            name = one.table.lower()
            way = outlier_way(self.form, self.definition.unit, name)
            if one.threshold is None or way is None:
                continue
            old, new = self.before[name], self.now[name]
            rows = change_rows(self._spark, old, new, SIGN)
            room = MOST_OUTLIERS - len(found)
            found |= set(outlier_hashes(rows, one.column, one.threshold, way, max(0, room)))
        return tuple(sorted(found))

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
        return sample_changes(self._spark, self.table, directory, SIGN)
