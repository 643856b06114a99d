"""One publication from the command line: what is asked, what runs, and what became of every row."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import maia
from maia.cli.read.instants import now
from maia.cli.rows_in import ROW_MALFORMED, guess_format, read_file, read_header, read_lines
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import note
from maia.cli.streaming import check_client, denial, find_type, spark_errors
from maia.domain import Client, Domain, Published, published_before
from maia.errors import UsageError
from maia.events import EventType
from maia.log import AuditRow, Commit, write_audit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of the rows: published, refused by code, changed by code; over so many commits."""

    publication: str
    events: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    notices: Counter[str] = field(default_factory=Counter)
    commits: int = 0
    repeated: bool = False

    def plus(self, other: Outcome) -> Outcome:
        """Add up two parts."""
        return replace(
            self,
            events=self.events + other.events,
            refused=self.refused + other.refused,
            notices=self.notices + other.notices,
            commits=self.commits + other.commits,
            repeated=self.repeated or other.repeated,
        )

    def exit_code(self) -> ExitCode:
        """Say that it failed when rows came and none of them went out: denied, unless they were all malformed."""
        if self.events or not self.refused:
            return ExitCode.DONE
        return ExitCode.FAILED if set(self.refused) == {ROW_MALFORMED} else ExitCode.DENIED

    def to_json(self) -> dict[str, object]:
        """Write it for machines."""
        return {
            "publication": self.publication, "events": self.events, "refused": dict(self.refused),
            "notices": dict(self.notices), "commits": self.commits, "repeated": self.repeated,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What is published, as whom, under which name."""

    domain: Domain
    writer: Client
    source: str
    kind: str
    event_type: EventType
    shown: str
    client: str
    name: str
    named: bool
    lines: tuple[bytes, ...] = ()

    def part(self, number: int, lines: list[bytes]) -> Publication:
        """Make the publication of one stretch of standard input."""
        return replace(self, name=self.name if number == 0 else f"{self.name}-{number}", lines=tuple(lines))

    def octets(self) -> int | None:
        """Tell how large the input is; of standard input nobody knows."""
        path = Path(self.source)
        return path.stat().st_size if self.source != "-" and path.is_file() else None

    def known(self) -> Outcome | None:
        """Tell what became of it when it was published before; nothing when it was not."""
        if not self.named:
            return None
        commit = self._commit()
        return None if commit is None else _outcome(published_before(commit))

    def run(self, spark: SparkSession) -> Outcome:
        """Publish, and look up what became of every row.

        Raises:
            MaiaError: The input is malformed as a whole, or the client lost its right.
        """
        begun = now()
        with spark_errors(), denial(self.domain.home, principal=self.client, action="publish", type_text=self.shown):
            if self.source == "-":
                rows = read_lines(spark, self.lines, self.event_type)
            else:
                rows = read_file(spark, Path(self.source), self.kind, self.event_type)
            done = self.writer.publish(rows.frame, self.shown, publication=self.name)
            malformed = int(rows.counts.get["malformed"])
        if not isinstance(done, Published):
            raise UsageError("a file is no stream", code="NO_ROWS")
        if malformed:
            self._tell(malformed, begun)
        made = _outcome(done)
        return replace(made, refused=made.refused + Counter({ROW_MALFORMED: malformed} if malformed else {}))

    def _commit(self) -> Commit | None:
        return self.domain.log.find(self.name, origin=self.domain.home.broker.public_key.key_id.hex())

    def _tell(self, malformed: int, at: datetime) -> None:
        """Put the rows that never became events into the audit, beside those that were refused later."""
        row = AuditRow(
            at=at, kind="refuse", principal=self.writer.key.fingerprint,
            type_id=self.event_type.type_id.hex(), source=self.name, subject=self.client, code=ROW_MALFORMED,
            events=malformed,
        )  # fmt: skip
        write_audit(self.domain.home.audit_path, [row])


def prepare(
    folder: Path,
    source: str,
    type_text: str,
    *,
    client: str,
    version: str | None,
    kind: str | None,
    publication: str | None,
    passphrase: Callable[[], str] | None = None,
) -> Publication:
    """Look at everything that can be refused before Spark starts: the input, the type, and the client's right.

    Raises:
        DeniedError: The client may not publish the type.
        MaiaError: Something is unknown or malformed.
    """
    domain = maia.open(folder)
    home = domain.home
    found = guess_format(source, kind)
    if publication is not None and (not publication.isprintable() or not 0 < len(publication) <= _MAX_NAME):
        raise UsageError(
            "a publication's name is one line of at most 200 printable characters", code="PUBLICATION_NAME"
        )
    check_client(home, client)
    writer = domain.client(client, passphrase=passphrase)
    name, exact, shown = find_type(home, type_text, version)
    chosen = publication or secrets.token_hex(16)
    with denial(home, principal=client, action="publish", type_text=shown):
        plan = domain.publish_plan(name, client=client, version=exact, publication=chosen)
    event_type = plan.event_type()
    if found == "csv":
        missing = {item.name for item in event_type.attributes} - set(read_header(Path(source), event_type))
        if missing:
            note(f"no column for {', '.join(f'`{item}`' for item in sorted(missing))}: null in every event")
    return Publication(
        domain=domain, writer=writer, source=source, kind=found, event_type=event_type, shown=shown, client=client, name=chosen,
        named=publication is not None,
    )  # fmt: skip


def _outcome(done: Published) -> Outcome:
    refused: Counter[str] = Counter()
    for (code, column), count in done.refused.items():
        refused[f"{code} in `{column}`" if column else code] += count
    notices = Counter({"VALUE_FORCED": done.forced, "VALUE_NULLED": done.nulled})
    return Outcome(
        publication=done.publication, events=done.events, refused=refused, notices=+notices, commits=1,
        repeated=done.repeated,
    )  # fmt: skip
