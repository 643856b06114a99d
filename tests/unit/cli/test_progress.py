"""The bar on a terminal: rows and their rate, as Spark tells them or as this process takes them."""

from __future__ import annotations

import io
import threading

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import TextColumn

from maia.cli.show.progress import Watch
from maia.spark import Progress


class Drawn(io.StringIO):
    """What was drawn so far; tells when a text is there."""

    def __init__(self, text: str) -> None:
        """Wait for a text."""
        super().__init__()
        self.text, self.seen, self.all = text, threading.Event(), ""

    def write(self, text: str) -> int:
        """Keep what is drawn."""
        self.all += text
        if self.text in self.all:
            self.seen.set()
        return super().write(text)


def watch_on(drawn: Drawn) -> tuple[Bar, Watch]:
    """Give a watch whose bar is drawn where the test looks."""
    bar = Bar(TextColumn("{task.description}"), console=Console(file=drawn, force_terminal=True, width=100))
    return bar, Watch(bar, bar.add_task("reading", total=None), "reading")


def test_rows_that_are_taken_are_shown_with_their_rate() -> None:
    """Spark says nothing of a read whose rows come one by one; what was taken is known here."""
    drawn = Drawn("reading: 3 rows, ")
    bar, watch = watch_on(drawn)
    with bar:
        watch.follow(Progress)
        assert list(watch.counting(iter("abc"))) == ["a", "b", "c"]
        assert drawn.seen.wait(30)
        watch.ended.set()
    assert "/s" in drawn.all


def test_rows_of_stages_that_ended_stay_counted() -> None:
    """A second stage begins at nothing; the bar goes on from where the first one was."""
    drawn = Drawn("reading: 1,500 rows, ")
    bar, watch = watch_on(drawn)
    told = iter([Progress(1, 2, 1000)])
    with bar:
        watch.follow(lambda: next(told, Progress(1, 2, 500)))
        assert drawn.seen.wait(30)
        watch.ended.set()


def test_without_a_terminal_nothing_is_drawn_and_rows_pass() -> None:
    """In a pipe there is no bar; rows go through as they are."""
    watch = Watch()
    watch.follow(Progress)
    assert watch.thread is None
    assert list(watch.counting(iter("ab"))) == ["a", "b"]
