"""Answers as they come: a live table in a terminal, a line for each answer anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table as RichTable
from rich.text import Text

from sooner.answer import Answer
from sooner.display import ROWS_SHOWN, rich_table, rows_text

_REFRESHES_PER_SECOND = 5
_BAR_WIDTH = 40


@dataclass(frozen=True)
class Glance:
    """What is kept of every answer: when it came, and its widest interval."""

    seconds: float
    error: float | None


@dataclass(frozen=True)
class Watched:
    """What a person saw: the last answer, a glance at each, and whether they stopped it."""

    last: Answer
    glances: tuple[Glance, ...]
    interrupted: bool = False


@dataclass
class _View:
    """The state of the display; rich draws it again and again while the next answer is computed."""

    clock: Callable[[], float]
    start: float
    answer: Answer | None = None
    glances: list[Glance] = field(default_factory=list)

    def add(self, answer: Answer) -> Glance:
        glance = Glance(self.clock() - self.start, answer.relative_error)
        # In this order: the drawing thread may look between the two, and an answer needs its glance.
        self.glances.append(glance)
        self.answer = answer
        return glance

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        seconds = self.clock() - self.start
        answer = self.answer
        status = RichTable.grid(padding=(0, 1))
        if answer is None:
            bar = ProgressBar(total=1, pulse=True, width=_BAR_WIDTH)
            status.add_row(bar, Text("on the way to the first answer"), Text(f"{seconds:.1f} s"))
            yield status
            return
        bar = ProgressBar(total=1, completed=answer.progress, width=_BAR_WIDTH)
        status.add_row(bar, Text(f"{answer.progress:.0%}"), Text(f"{seconds:.1f} s"))
        head = Group(status, Text(shrunk(self.glances)), Text())
        # The last line is the cursor's.
        room = options.size.height - _height(head, console, options) - 1
        yield head
        yield _fitting(answer, room, console, options)


def _height(shown: Group, console: Console, options: ConsoleOptions) -> int:
    return len(console.render_lines(shown, options.update(height=None)))


def _fitting(answer: Answer, room: int, console: Console, options: ConsoleOptions) -> Group:
    """As many rows as the screen holds: what is taller could not be wiped away in the end."""
    caption = f"{rows_text(answer.table.num_rows)} · "
    if answer.final:
        caption += "exact"
    else:
        caption += f"{answer.confidence:.0%} intervals · Ctrl-C keeps this answer"
    caption = "\n".join([caption, *answer.remarks])
    margins = answer._margins()
    count = min(ROWS_SHOWN, answer.table.num_rows)
    while True:
        shown = rich_table(answer.table.slice(0, count), margins, caption)
        height = _height(shown, console, options)
        if height <= room or count <= 1:
            return shown
        count = max(1, min(count - 1, count * room // height))


def watch(
    answers: Iterator[Answer], console: Console, clock: Callable[[], float] = perf_counter
) -> Watched:
    """Show answers until they end or Ctrl-C stops them; nothing of the display stays in a terminal.

    Ctrl-C before the first answer is raised: there is nothing to keep.

    >>> import io, pyarrow as pa
    >>> out = io.StringIO()
    >>> watched = watch(iter([Answer(pa.table({"n": [3]}), "exact")]), Console(file=out), lambda: 0.0)
    >>> out.getvalue()
    '100.0% read ·    0.0 s · exact · 1 row\\n'
    >>> watched.last.final
    True
    """
    view = _View(clock, clock())
    if not console.is_interactive:
        return _follow(answers, view, lambda glance: _print_line(console, view.answer, glance))
    with Live(
        view, console=console, refresh_per_second=_REFRESHES_PER_SECOND, transient=True
    ) as live:
        return _follow(answers, view, lambda _: live.refresh())


def _follow(answers: Iterator[Answer], view: _View, seen: Callable[[Glance], None]) -> Watched:
    interrupted = False
    try:
        for answer in answers:
            seen(view.add(answer))
    except KeyboardInterrupt:
        if view.answer is None:
            raise
        interrupted = True
    finally:
        # Ctrl-C may have come between two answers; then Spark is still reading for the next.
        close = getattr(answers, "close", None)
        if close is not None:
            close()
    assert view.answer is not None, "a query has at least one answer"
    return Watched(view.answer, tuple(view.glances), interrupted and not view.answer.final)


def _print_line(console: Console, answer: Answer | None, glance: Glance) -> None:
    assert answer is not None
    off = "exact" if answer.final else f"widest {percent(glance.error)}"
    rows = rows_text(answer.table.num_rows)
    text = f"{answer.progress:6.1%} read · {glance.seconds:6.1f} s · {off} · {rows}"
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def percent(error: float | None) -> str:
    """Half an interval over its value, for people.

    >>> percent(0.176), percent(0.0314), percent(None), percent(float("inf"))
    ('± 18%', '± 3.1%', 'unknown', '± ∞')
    """
    if error is None:
        return "unknown"
    if error == float("inf"):
        return "± ∞"
    return f"± {error:,.0%}" if error >= 0.0995 else f"± {100 * error:.2g}%"


def shrunk(glances: list[Glance]) -> str:
    """The widest interval now, and what it was at first.

    >>> shrunk([Glance(0.5, 0.18), Glance(2.0, 0.03)])
    'widest interval ± 3%, ± 18% at first: 6.0× narrower'
    >>> shrunk([Glance(0.5, None)])
    'some rows or cells unknown'
    """
    now = glances[-1].error
    if now is None:
        return "some rows or cells unknown"
    known = [(place, one.error) for place, one in enumerate(glances) if one.error is not None]
    place, first = known[0]
    text = f"widest interval {percent(now)}"
    if len(known) == 1:
        return text
    text += f", {percent(first)} {'at first' if place == 0 else 'when first known'}"
    if 0 < now < first < float("inf"):
        text += f": {first / now:.1f}× narrower"
    return text
