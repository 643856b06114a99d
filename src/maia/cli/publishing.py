"""One publication from the command line: what is asked, what runs, and what became of every row."""

from __future__ import annotations

import secrets
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from maia.cli.audit_rows import read_audit
from maia.cli.exits import ExitCode
from maia.cli.instants import now
from maia.cli.output import note
from maia.cli.rows_in import ROW_MALFORMED, guess_format, read_file, read_header, read_lines
from maia.cli.streaming import check_client, denial, find_type, spark_errors
from maia.errors import UsageError
from maia.events import EventType
from maia.pipeline import AuditRow, Commit, LogDirectory, write_audit
from maia.stores import Home, publish_plan

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

    home: Home
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
        return None if commit is None else _outcome(commit, self.name, Counter(), Counter(), repeated=True)

    def run(self, spark: SparkSession) -> Outcome:
        """Publish, and look up what became of every row.

        Raises:
            MaiaError: The input is malformed as a whole, or the client lost its right.
        """
        begun = now()
        version = self.event_type.name.version.text
        type_name = self.event_type.name.name
        with spark_errors(), denial(self.home, principal=self.client, action="publish", type_text=self.shown):
            if self.source == "-":
                rows = read_lines(spark, self.lines, self.event_type)
            else:
                rows = read_file(spark, Path(self.source), self.kind, self.event_type)
            self.home.publish(rows.frame, type_name, as_=self.client, version=version, publication=self.name)
            malformed = int(rows.counts.get["malformed"])
        if malformed:
            self._tell(malformed, begun)
        commit = self._commit()
        if commit is None:
            raise UsageError("the log does not show the publication", code="PUBLICATION_MISSING")
        refused, notices = self._codes(begun)
        return _outcome(commit, self.name, refused, notices)

    def _commit(self) -> Commit | None:
        log = LogDirectory(self.home.log_path)
        return log.find(self.name, origin=self.home.broker.public_key.key_id.hex())

    def _codes(self, begun: datetime) -> tuple[Counter[str], Counter[str]]:
        found: dict[str, Counter[str]] = {"refuse": Counter(), "notice": Counter()}
        for row in read_audit(self.home.path / "audit", since=begun, source=self.name):
            if row.kind in found:
                found[row.kind][row.code] += row.events
        return found["refuse"], found["notice"]

    def _tell(self, malformed: int, at: datetime) -> None:
        """Put the rows that never became events into the audit, beside those that were refused later."""
        row = AuditRow(
            at=at, kind="refuse", principal=self.home.key(self.client).fingerprint,
            type_id=self.event_type.type_id.hex(), source=self.name, subject=self.client, code=ROW_MALFORMED,
            events=malformed,
        )  # fmt: skip
        write_audit(self.home.path / "audit", [row])


def prepare(
    folder: Path,
    source: str,
    type_text: str,
    *,
    client: str,
    version: str | None,
    kind: str | None,
    publication: str | None,
) -> Publication:
    """Look at everything that can be refused before Spark starts: the input, the type, and the client's right.

    Raises:
        DeniedError: The client may not publish the type.
        MaiaError: Something is unknown or malformed.
    """
    home = Home.open(folder)
    found = guess_format(source, kind)
    if publication is not None and (not publication.isprintable() or not 0 < len(publication) <= _MAX_NAME):
        raise UsageError(
            "a publication's name is one line of at most 200 printable characters", code="PUBLICATION_NAME"
        )
    check_client(home, client)
    name, exact, shown = find_type(home, type_text, version)
    chosen = publication or secrets.token_hex(16)
    with denial(home, principal=client, action="publish", type_text=shown):
        plan = publish_plan(home, name, as_=client, version=exact, publication=chosen, at=now())
    event_type = plan.event_type()
    if found == "csv":
        missing = {item.name for item in event_type.attributes} - set(read_header(Path(source), event_type))
        if missing:
            note(f"no column for {', '.join(f'`{item}`' for item in sorted(missing))}: null in every event")
    return Publication(
        home=home, source=source, kind=found, event_type=event_type, shown=shown, client=client, name=chosen,
        named=publication is not None,
    )  # fmt: skip


def _outcome(
    commit: Commit, name: str, refused: Counter[str], notices: Counter[str], *, repeated: bool = False
) -> Outcome:
    """Take the counts of the commit; where the audit knows no codes, one stands for them."""
    if commit.refused and not refused:
        refused = Counter({"REFUSED": commit.refused})
    return Outcome(
        publication=name, events=commit.events, refused=refused, notices=notices, commits=1, repeated=repeated
    )
