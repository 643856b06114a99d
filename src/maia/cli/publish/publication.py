"""One publication from the command line: looked at before Spark starts, run, and added up over stretches of input."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from maia.authority import Action
from maia.cli.read.clients import denial, open_client
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import note
from maia.domain import (
    ROW_MALFORMED,
    Client,
    Domain,
    Published,
    TypeOrTopic,
    audit_malformed,
    nothing_published,
    published_before,
    show_type,
)
from maia.errors import MalformedError, RowsRefusedError, UsageError
from maia.events import TOPIC, EventType, parse_offset

if TYPE_CHECKING:
    from datetime import datetime

    from maia.cli.show.progress import Watch
    from maia.spark import Malformed

_MAX_NAME = 200


@dataclass(slots=True)
class Total:
    """What became of the rows of all stretches, and how many commits they made."""

    done: Published
    commits: int = 0

    def add(self, done: Published) -> None:
        """Take one stretch in."""
        self.done += done
        self.commits += done.commit is not None

    def exit_code(self) -> ExitCode:
        """Say that it failed when rows came and none of them went out: denied, unless they were all malformed."""
        if self.done.events or not self.done.refused:
            return ExitCode.DONE
        return ExitCode.FAILED if {code for code, _ in self.done.refused} == {ROW_MALFORMED} else ExitCode.DENIED


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """What is published, as whom, under which name."""

    domain: Domain
    client: Client
    source: str
    kind: str
    event_type: EventType
    type: str
    name: str
    named: bool
    strict: bool
    advertise: str | None = None
    naive_timestamps: str | None = None

    def parts(self) -> Iterator[tuple[str, list[bytes] | None]]:
        """Give the publication itself, or a name and the lines of each stretch of standard input."""
        if self.source != "-":
            yield self.name, None
            return
        from maia.cli.read.lines import stretches

        for number, lines in enumerate(stretches(by_time=not self.named)):
            yield self.name if number == 0 else f"{self.name}-{number}", lines

    def octets(self) -> int | None:
        """Tell how large the input is; of standard input nobody knows."""
        path = Path(self.source)
        return path.stat().st_size if self.source != "-" and path.is_file() else None

    def known(self, name: str) -> Published | None:
        """Tell what became of it when it was published before; nothing when it was not."""
        commit = self.domain.lanes.find(name)
        return None if commit is None else published_before(commit)

    def run(self, name: str, lines: list[bytes] | None, watch: Watch) -> Published:
        """Publish, and say what became of every row.

        Raises:
            DeniedError: With ``--strict``, rows are refused; or the client lost its right.
            MalformedError: With ``--strict``, rows are malformed: ``ROW_MALFORMED``.
            MaiaError: The input is malformed as a whole.
        """
        from maia.spark import progress_of, read_file, read_lines, spark_errors, start_spark

        begun, client = self.domain.clock(), self.client.name
        spark = start_spark(octets=self.octets())
        watch.say(f"publishing {self.type}")
        watch.follow(lambda: progress_of(spark))
        with spark_errors(), denial(self.domain, client=client, action=Action.PUBLISH, type_text=self.type):
            if lines is None:
                rows = read_file(spark, Path(self.source), self.kind, self.event_type, naive=self.naive_timestamps)
            else:
                rows = read_lines(spark, lines, self.event_type, naive=self.naive_timestamps)
            if self.strict and (broken := rows.count_malformed()).rows:
                raise self._malformed(name, broken, at=begun)
            try:
                done = self.client.publish(
                    rows.frame, self.type, publication=name, advertise=self.advertise, strict=self.strict,
                    naive_timestamps=self.naive_timestamps,
                )  # fmt: skip
            except RowsRefusedError as error:  # counted and shown like any others, unless any was too many
                if self.strict:
                    raise
                done = error.published
            malformed = None if self.strict else rows.malformed
        if not isinstance(done, Published):
            raise UsageError("a file is no stream", code="NO_ROWS")
        if malformed is None or not malformed.rows:
            return done
        if malformed.advice is not None:
            note(malformed.advice)
        return self._audit(done, malformed, at=begun)

    def _malformed(self, name: str, found: Malformed, *, at: datetime) -> MalformedError:
        """Put rows into the audit that were too many for ``--strict``, and make the error that says so."""
        nothing = self._audit(Published(publication=name, commit=None, events=0), found, at=at)
        advice = "" if found.advice is None else f"; {found.advice}"
        return MalformedError(f"{nothing_published(nothing).message}{advice}", code="ROW_MALFORMED")

    def _audit(self, done: Published, found: Malformed, *, at: datetime) -> Published:
        return audit_malformed(self.domain.home, done, found.rows, self.client.proven, self.event_type, at=at)


def prepare(
    folder: Path,
    source: str,
    asked: TypeOrTopic,
    *,
    client: str,
    kind: str | None,
    publication: str | None,
    strict: bool,
    advertise: str | None,
    naive_timestamps: str | None,
    passphrase_file: Path | None,
) -> Outgoing:
    """Look at everything that can be refused before Spark starts: the input, the type, and the client's right.

    Raises:
        DeniedError: The client may not publish the type.
        MaiaError: Something is unknown or malformed.
    """
    from maia.spark import guess_format, read_header

    found = guess_format(source, kind)
    if publication is not None and (not publication.isprintable() or not 0 < len(publication) <= _MAX_NAME):
        raise UsageError(
            "a publication's name is one line of at most 200 printable characters", code="PUBLICATION_NAME"
        )
    if naive_timestamps is not None:
        parse_offset(naive_timestamps)
    domain, writer = open_client(folder, client, passphrase_file)
    name = asked.published(domain)
    type_ = show_type(domain.home, name)
    chosen = publication or secrets.token_hex(16)
    with denial(domain, client=client, action=Action.PUBLISH, type_text=type_):
        plan = domain.publish_plan(name, client=writer.proven, publication=chosen, advertise=advertise)
        event_type = plan.event_type()
    if found == "csv":
        missing = {item.name for item in event_type.attributes} - set(read_header(Path(source), event_type))
        missing -= {TOPIC} if event_type.options.topic else set()
        if missing:
            note(f"no column for {', '.join(f'`{item}`' for item in sorted(missing))}: null in every event")
    return Outgoing(
        domain=domain, client=writer, source=source, kind=found, event_type=event_type, type=type_, name=chosen,
        named=publication is not None, strict=strict, advertise=advertise, naive_timestamps=naive_timestamps,
    )  # fmt: skip
