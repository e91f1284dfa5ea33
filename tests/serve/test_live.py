"""The live view and its lines, on made-up answers; and the sentence that ends the demo."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa
import pytest
from rich.console import Console

from sooner.answer import Answer, Bounds, Status, Uncertainty
from sooner.serve.demo import comparison
from sooner.serve.live import Glance, Watched, watch


def estimate(share: float, half: float | None, rows: int = 2) -> Answer:
    """Each value is 100, give or take ``half``."""
    values = pa.chunked_array([[100.0] * rows])
    low = pa.chunked_array([pa.array([None if half is None else 100 - half] * rows, pa.float64())])
    high = pa.chunked_array([pa.array([None if half is None else 100 + half] * rows, pa.float64())])
    status = (Status.UNKNOWN if half is None else Status.ESTIMATE,) * rows
    return Answer(
        pa.table({"total": values}),
        "progressive",
        confidence=0.95,
        progress=share,
        final=False,
        uncertain={"total": Uncertainty(Bounds(low, high), status)},
    )


EXACT = Answer(pa.table({"total": [101.0, 99.0]}), "progressive")


class Clock:
    """Half a second passes between two looks."""

    def __init__(self) -> None:
        self.now = -0.5

    def __call__(self) -> float:
        self.now += 0.5
        return self.now


class Source:
    """Answers that note whether they were closed; an exception among them is raised."""

    def __init__(self, *items: Answer | BaseException) -> None:
        self.closed = False
        self.answers = self._run(items)

    def _run(self, items: tuple[Answer | BaseException, ...]) -> Iterator[Answer]:
        try:
            for item in items:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            self.closed = True


def pipe() -> Console:
    return Console(file=io.StringIO(), width=100)


def terminal(width: int = 100, height: int = 30) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, force_interactive=True, width=width, height=height
    )


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_on_a_pipe_every_answer_is_a_line() -> None:
    console = pipe()
    answers = iter([estimate(0.008, None), estimate(0.25, 20.0), estimate(0.5, 0.7, 1), EXACT])
    watched = watch(answers, console, Clock())
    assert text_of(console).splitlines() == [
        "  0.8% read ·    0.5 s · widest unknown · 2 rows",
        " 25.0% read ·    1.0 s · widest ± 20% · 2 rows",
        " 50.0% read ·    1.5 s · widest ± 0.7% · 1 row",
        "100.0% read ·    2.0 s · exact · 2 rows",
    ]
    assert watched.last is EXACT and not watched.interrupted
    assert [glance.error for glance in watched.glances] == [
        None,
        pytest.approx(0.2),
        pytest.approx(0.007),
        0.0,
    ]


def test_a_line_is_out_before_the_next_answer_is_computed() -> None:
    console = pipe()

    def answers() -> Iterator[Answer]:
        yield estimate(0.25, 20.0)
        assert "25.0%" in text_of(console)
        yield EXACT

    watch(answers(), console)


def test_in_a_terminal_the_table_and_how_far_the_widest_interval_has_shrunk() -> None:
    console = terminal()
    watch(iter([estimate(0.1, None), estimate(0.25, 20.0), estimate(0.5, 5.0), EXACT]), console)
    shown = text_of(console)
    assert "on the way to the first answer" in shown
    assert "some rows or cells unknown" in shown and "100 ?" in shown
    assert "widest interval ± 5%, ± 20% when first known: 4.0× narrower" in shown
    assert "100 ± 5" in shown and "50%" in shown and "95% intervals" in shown


@pytest.mark.parametrize("width", [100, 10])  # in ten columns a cell takes several lines
def test_a_terminal_is_not_filled_beyond_its_height(width: int) -> None:
    console = terminal(width, height=16)
    watch(iter([estimate(0.25, 20.0, rows=20)]), console)
    # The display is drawn several times; between two of them the cursor goes back up.
    heights = [part.count("\n") + 1 for part in text_of(console).split("\x1b[2K")]
    assert 8 < max(heights) <= 16
    assert "20 rows" in text_of(console)


@pytest.mark.parametrize("console", [pipe(), terminal()], ids=["pipe", "terminal"])
def test_interrupt_keeps_the_last_answer_and_closes(console: Console) -> None:
    last = estimate(0.5, 5.0)
    source = Source(estimate(0.25, 20.0), last, KeyboardInterrupt(), EXACT)
    watched = watch(source.answers, console)
    assert watched.interrupted and watched.last is last and source.closed


def test_interrupt_while_showing_closes_what_is_still_running(monkeypatch) -> None:
    source = Source(estimate(0.25, 20.0), EXACT)
    console = pipe()

    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(console, "print", interrupted)
    watched = watch(source.answers, console)
    assert watched.interrupted and not watched.last.final and source.closed


def test_interrupt_before_the_first_answer_is_raised() -> None:
    source = Source(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        watch(source.answers, terminal())
    assert source.closed


def test_an_error_is_raised_and_closes() -> None:
    source = Source(estimate(0.25, 20.0), ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        watch(source.answers, terminal())
    assert source.closed


def watched(last: Answer, *glances: tuple[float, float | None]) -> Watched:
    return Watched(last, tuple(Glance(*glance) for glance in glances))


def test_comparison_names_the_first_and_the_close_estimate() -> None:
    seen = watched(EXACT, (0.6, 0.031), (1.9, 0.009), (9.2, 0.0))
    assert comparison(seen, 8.8) == (
        "First estimate 15× sooner than Spark's exact answer (0.6 s, ± 3.1%); "
        "within 1% 4.6× sooner than it (1.9 s); exact in 9.2 s here, 8.8 s in plain Spark."
    )


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (watched(EXACT, (1.2, 0.0)), "The data is small"),
        (
            watched(EXACT, (1.0, None), (9.0, 0.0)),
            "(1.0 s, some rows or cells unknown); no estimate came",
        ),
        (watched(EXACT, (8.7, 0.5), (9.0, 0.0)), "First estimate about as soon as Spark's"),
        (watched(EXACT, (12.0, 0.5), (19.0, 0.0)), "First estimate later than Spark's"),
        (watched(estimate(0.5, 5.0), (1.0, 0.05)), "stopped after 1.0 s; exact in 8.8 s in plain"),
    ],
)
def test_comparison_is_honest(seen: Watched, says: str) -> None:
    assert says in comparison(seen, 8.8)
