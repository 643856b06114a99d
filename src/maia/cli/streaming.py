"""What the commands that use Spark share: the session, its progress on a terminal, and its errors as Maia's.

Rules kept here: nothing but data reaches standard output; bars appear on a terminal only; what Spark itself says on
standard error is shown with `-v` alone; an error that Maia raised inside Spark leaves as that error, and any other as
one line without values of events.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import maia.errors
from maia.errors import DeniedError, MaiaError, NotFoundError, UnavailableError, VerificationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.progress import Progress

    from maia.home import Home

_log = logging.getLogger(__name__)
_RAISED = re.compile(r"^\s*(?:maia\.errors\.)(\w+): \[([A-Z][A-Z0-9_]*)\] (.*)$", re.MULTILINE)
_EVERY = 0.2
_LITTLE = 32 << 20
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def start_spark(*, octets: int | None = None) -> SparkSession:
    """Start a session, or take the one that runs; what the Java machine prints is shown with `-v` only.

    Args:
        octets: How much there is to work on, when it is known. Little work gets a Java machine that starts sooner and
            would be slower in the long run.

    Raises:
        UnavailableError: There is no Java, or Spark does not start.
    """
    from maia.spark import session

    conf = {"spark_driver_extraJavaOptions": _QUICK} if octets is not None and octets < _LITTLE else {}
    if _log.isEnabledFor(logging.DEBUG):
        return session(**conf)
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())  # the bridge to Java logs what is reported anyway
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device
            os.dup2(nowhere.fileno(), 2)
        with spark_errors():
            return session(spark_log_level="OFF", **conf)
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def spark_errors() -> Iterator[None]:
    """Let errors leave as what they are: Maia's own by class and code, Spark's as ``SPARK_FAILED``."""
    try:
        yield
    except _spark_kinds() as error:
        raise unwrap(str(error)) from error


def _spark_kinds() -> tuple[type[Exception], ...]:
    """List what Spark raises: its own errors, and those of its bridge to Java, which comes with it."""
    from pyspark.errors import PySparkException

    bridge: type[Exception] = importlib.import_module("py4j.protocol").Py4JError
    return (PySparkException, bridge)


def unwrap(text: str) -> MaiaError:
    r"""Find the error that Maia raised in what Spark says about it.

    >>> unwrap("Traceback\nmaia.errors.ChainError: [NOT_PERMITTED] no `x`\n SQLSTATE: 38000")
    ChainError('no `x`')
    """
    found = _RAISED.findall(text)
    if not found:
        first = text.strip().splitlines()[0] if text.strip() else "no reason given"
        condition = re.match(r"\[([A-Z][A-Z0-9_.]*)\]", first)
        return UnavailableError(
            f"Spark failed: {condition[1] if condition else first[:200]}; `maia -v` shows more", code="SPARK_FAILED"
        )
    name, code, message = found[-1]
    kind = getattr(maia.errors, name, MaiaError)
    made = kind(message.strip(), code=code)
    return made if isinstance(made, MaiaError) else MaiaError(message, code=code)


@contextmanager
def denial(home: Home, *, principal: str, action: str, type_text: str) -> Iterator[None]:
    """Turn a right that is not proven into a denial (exit code 3), with known keys named and a way to learn more."""
    from maia.cli.show.output import note
    from maia.home import Folder

    try:
        yield
    except (VerificationError, DeniedError) as error:
        note(f"`maia explain --as {principal} --type {type_text} --action {action}` shows what there is")
        raise DeniedError(Folder(home.path).decorate(error.message), code=error.code) from error


def check_client(home: Home, name: str) -> None:
    """Find a client's key by its name.

    Raises:
        NotFoundError: This home knows no key of this name.
    """
    from maia.home import Folder

    if name not in Folder(home.path).keys:
        raise NotFoundError(f"no key `{name}` in this home", code="NO_SUCH_KEY")


def find_type(home: Home, text: str, version: str | None) -> tuple[str, str, str]:
    """Find a type by NAME, NAME@VERSION or OWNER/NAME@VERSION: its name, its version, and how `--type` writes it.

    Raises:
        NotFoundError: This home knows no such type.
        UsageError: Several fit.
    """
    from maia.domain import find_type as find
    from maia.domain import show_type

    found = find(home, text, version)
    return found.name, found.version.text, show_type(home, found)


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Turn Ctrl-C into an event while something waits, so that it never breaks a conversation with Java in the middle.

    Raises:
        KeyboardInterrupt: At the end, when it was pressed.
    """
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    before = signal.signal(signal.SIGINT, lambda *_: pressed.set())
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed.is_set():
        raise KeyboardInterrupt


@dataclass(slots=True)
class Watch:
    """Shows how far Spark is, on a terminal; silent elsewhere."""

    bar: Progress | None = None
    task: int = 0
    ended: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def follow(self, spark: SparkSession) -> None:
        """Show the tasks of whatever runs."""
        if self.bar is not None:
            self.thread = threading.Thread(target=self._poll, args=(spark,), daemon=True)
            self.thread.start()

    def say(self, text: str) -> None:
        """Show another text."""
        if self.bar is not None:
            self.bar.update(self.task, description=text)  # type: ignore[arg-type]

    def _poll(self, spark: SparkSession) -> None:
        while not self.ended.wait(_EVERY):
            with suppress(*_spark_kinds(), OSError):
                tracker = spark.sparkContext.statusTracker()
                infos = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
                done = sum(info.numCompletedTasks for info in infos if info is not None)
                total = sum(info.numTasks for info in infos if info is not None)
                if self.bar is not None and total:
                    self.bar.update(self.task, completed=done, total=total)  # type: ignore[arg-type]


@contextmanager
def watching(text: str) -> Iterator[Watch]:
    """Show a bar on standard error while something runs, when that is a terminal and nobody asked for quiet."""
    if not sys.stderr.isatty() or not _log.isEnabledFor(logging.INFO):
        yield Watch()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    # A stream of its own: standard error is turned away while Java starts.
    with open(os.dup(2), "w", encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(file=stream, force_terminal=True), transient=True) as bar:
            watch = Watch(bar, bar.add_task(text, total=None))
            try:
                yield watch
            finally:
                watch.ended.set()
                if watch.thread is not None:
                    watch.thread.join(timeout=5)
