"""Work on views that is due: done when asked, or side by side in the background for as long as a block lasts.

A refresh may take long, and a sample goes stale meanwhile: so both have a thread and a pool of Spark's own,
and Spark gives each its share (Stale View Cleaning §12.2.2).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

from sooner.engine.jobs import in_pool
from sooner.errors import SoonerError, UnknownView
from sooner.storage.views import stored_views
from sooner.view import View

if TYPE_CHECKING:
    from sooner.database import Database

Work: TypeAlias = Literal["refresh", "clean"]
_POLL_SECONDS = 1.0


class Keeper:
    """Keeps the views of a database as fresh as their schedules say.

    ``done`` lists what it did, ``failed`` what it could not do; a view that fails is tried again when it is
    next due.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stop = threading.Event()
        self.done: list[tuple[Work, str]] = []
        self.failed: list[tuple[Work, str, SoonerError]] = []

    def work(self, kind: Work) -> list[str]:
        """Do what is due now; the names of the views it was done for."""
        found = []
        for name in [one.table.name for one in stored_views(self._database._catalog)]:
            if self._stop.is_set():
                break
            try:
                view = View(self._database, name)
                if self._is_due(view, kind):
                    _DO[kind](view)
                    self.done.append((kind, name))
                    found.append(name)
            except UnknownView:  # dropped since
                continue
            except SoonerError as error:  # another view may still be worked on
                self.failed.append((kind, name, error))
        return found

    def _is_due(self, view: View, kind: Work) -> bool:
        refreshed = [one.at for one in view.history() if one.at is not None][-1]
        return view.is_due(kind, refreshed, datetime.now(UTC))

    def run(self, kind: Work) -> None:
        """Work until :meth:`stop`."""
        with in_pool(self._database.spark, f"sooner-{kind}"):
            while not self._stop.is_set():
                self.work(kind)
                self._stop.wait(_POLL_SECONDS)

    def stop(self) -> None:
        """Begin nothing more."""
        self._stop.set()


def _refresh(view: View) -> object:
    return view.refresh()


def _clean(view: View) -> object:
    return view.clean()


_DO: dict[Work, Callable[[View], object]] = {"refresh": _refresh, "clean": _clean}


@contextmanager
def keeping(database: Database) -> Iterator[Keeper]:
    """Refresh and clean in the background until the block ends; what has begun is brought to its end."""
    keeper = Keeper(database)
    kinds: tuple[Work, ...] = ("refresh", "clean")
    threads = [threading.Thread(target=keeper.run, args=(kind,), daemon=True) for kind in kinds]
    for thread in threads:
        thread.start()
    try:
        yield keeper
    finally:
        keeper.stop()
        for thread in threads:
            thread.join()
