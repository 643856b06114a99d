"""A pathology report of seven parts, and who may see which: labels that come from roles, and go with the data.

The home, its types, roles and rules are made with the commands that a person types. What each reader sees comes from
its reads; what may leave, from labelled frames; nothing of it is written down here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import maia
from maia.demo.typed import Organisation
from maia.demo.views import Cell, SceneView, refused
from maia.errors import MaiaError
from maia.labels import Label
from maia.spark import spark_errors, start_spark

if TYPE_CHECKING:
    from maia.domain import Client, Published
    from maia.spark import LabelledFrame

REPORT, ANSWER, COUNT = "uk.nhs.path_report", "uk.nhs.path_answer", "uk.nhs.code_count"
STUDY = 'study("bladder-7")'
STUDIED = f"{REPORT}.study.bladder-7"
PATTERSON, SMITH, BLADDER = "1234567768", "9876543210", "302512001"
PARTS = (
    "patient-ID", "patient-name", "hospital-ID", "lab-number", "sample-receipt-date", "path-report-text",
    "SNOMED-CT-codes",
)  # fmt: skip
_CASE = "CASE HISTORY: Large solid tumour with some papillary elements"
_FIRST = (PATTERSON, "Roger John Patterson", "RGT01", "A10/21367", "2010-02-04", _CASE, BLADDER)
REPORTS: Mapping[str, Sequence[tuple[str, ...]]] = {
    "reports": (
        _FIRST,
        (SMITH, "Jane Smith", "RGT01", "A10/21368", "2010-02-05", "No abnormality", "302513006"),
        (PATTERSON, "Roger John Patterson", "RGT01", "A10/21370", "2010-02-18", "Second resection", BLADDER),
    ),
    "later": ((PATTERSON, "Roger John Patterson", "RGT01", "A10/21399", "2010-03-09", "No tumour", "302513006"),),
}  # fmt: skip
"""What the laboratory writes; one number is one report."""
RULES = """\
treating-doctor(h, self, p)      <-  consultant(h, self)*, patient-of(self, p)*
treating-doctor(h, self, p)      <-  consultant(h, self)*, consultant-referral(d, self, p)*
clinical-researcher(s, self, p)  <-  study(s, self, p)*
treating-doctor(h, d, p), ?secure-terminal(d)  |-  clinical(p)
treating-doctor(h, d, p)         |-  identifiable(p)
clinical-researcher(s, r, p)     |-  clinical(p)
"""
RELEASE = f"""\
release {REPORT} to {STUDY}
  keep hospital-ID, SNOMED-CT-codes
  add  anonymised-ID = pseudonym(patient-ID, scope = study)
"""
_TYPES = f"""\
[types."{REPORT}"]
patient-ID = {{ S = ["identifiable(patient-ID)"] }}
patient-name = {{ S = ["identifiable(patient-ID)"] }}
lab-number = {{ I = ["pathlab"] }}
sample-receipt-date = {{ I = ["pathlab"] }}
path-report-text = {{ S = ["clinical(patient-ID)"], I = ["pathlab"] }}
SNOMED-CT-codes = {{ S = ["clinical(patient-ID)"], I = ["pathlab"] }}

[types."{ANSWER}"]
patient-ID = {{ S = ["identifiable(*)"] }}
lab-number = {{ I = ["pathlab"] }}
path-report-text = {{ S = ["clinical(*)"], I = ["pathlab"] }}
comments = {{ S = ["clinical(*)"] }}
vouched-comments = {{ S = ["clinical(*)"], I = ["pathlab"] }}
"""
_ROLES = """
[roles]
tags = ["clinical", "identifiable"]
sequences = ["clinical"]

[readers.registry]
S = ["clinical(*)", "identifiable(*)"]
I = ["pathlab"]

[readers.registrar]
S = ["clinical(*)", "identifiable(*)"]

[readers.monitor]
frames = ["clinical(*)"]

[components.counter]
does = "count"
declassify = ["clinical(*)"]
clients = ["monitor"]
"""
VIEWS = ("Ali", "Brown before", "Brown after", "Chen", "no role")
_PEOPLE: Mapping[str, tuple[str, ...]] = {
    "ali": ("consultant('RGT01', ali)", f"patient-of(ali, '{PATTERSON}')"),
    "brown": ("consultant('RGT02', brown)",),
    "chen": (f"study('bladder-7', chen, '{PATTERSON}')", f"study('bladder-7', chen, '{SMITH}')"),
    "nobody": (),
}
_OTHERS = ("lab", "monitor", "registry", "registrar")
Say = Callable[[str], None]


@dataclass(slots=True)
class PathologyFacts:
    """What happened, for people and for machines.

    Attributes:
        commands: What was typed.
        labels: For each part its tags, as the policy has them.
        matrix: For each part and view whether the first report shows it.
        linked: For each row that the study got, which person it is of, by letter; and the parts it got.
        vouched: The parts that a consumer accepts that wants the laboratory's word.
        outcomes: What was tried, and what came of it: a result, or the refusal with its code.
        revoked: For each report of Patterson's, who sees its text after Brown is revoked.
        sequence: The names of the clinical tag of Patterson's.
        home: The parts that Ali sees of the first report at home.
    """

    commands: list[str] = field(default_factory=list)
    labels: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    matrix: dict[str, dict[str, bool]] = field(default_factory=lambda: {part: {} for part in PARTS})
    linked: list[dict[str, str]] = field(default_factory=list)
    vouched: list[str] = field(default_factory=list)
    outcomes: dict[str, str | int] = field(default_factory=dict)
    revoked: dict[str, dict[str, bool]] = field(default_factory=dict)
    sequence: list[str] = field(default_factory=list)
    home: list[str] = field(default_factory=list)

    def views(self) -> list[SceneView]:
        """Show the matrix of parts and views, what left, and what a revocation closes."""
        rows = tuple(
            (part, *(", ".join(self.labels[part][kind]) or "-" for kind in ("S", "I")),
             *("yes" if self.matrix[part][view] else None for view in VIEWS), "yes" if part in self.home else None)
            for part in PARTS
        )  # fmt: skip
        shown = SceneView(
            title="one report, seven parts", columns=("part", "S", "I", *VIEWS, "Ali at home"), rows=rows, wide=True,
            remark="S: who must be kept out; I: who vouches; Brown is referred between his two columns",
        )  # fmt: skip
        names = tuple(self.linked[0])
        linked = SceneView(
            title="Dr Chen's study", columns=names, remark="one person, one anonymised id",
            rows=tuple(tuple(row[name] for name in names) for row in self.linked),
        )  # fmt: skip
        numbers = ("report", "Ali", "Brown")
        revoked = SceneView(
            title="texts of Patterson's reports, after Brown is revoked", columns=numbers, wide=True,
            remark=" until then, since then ".join(self.sequence),
            rows=tuple((number, *("yes" if found[who] else None for who in ("ali", "brown")))
                       for number, found in self.revoked.items()),
        )  # fmt: skip
        told: list[tuple[Cell, ...]] = [("accepted where `pathlab` must vouch", ", ".join(self.vouched))]
        told += self.outcomes.items()
        out = SceneView(title="what leaves", columns=("attempt", "outcome"), rows=tuple(told), wide=True)
        return [shown, linked, revoked, out]

    def to_json(self) -> dict[str, object]:
        """Give it for machines."""
        return {
            "commands": self.commands, "labels": self.labels, "matrix": self.matrix, "ali_at_home": self.home,
            "linked": self.linked, "vouched": self.vouched, "outcomes": self.outcomes, "revoked": self.revoked,
            "sequence": self.sequence,
        }  # fmt: skip


def play_pathology(folder: Path, *, say: Say) -> PathologyFacts:
    """Play the scenario in a folder.

    Args:
        folder: An empty folder; the home goes there.
        say: Tells the person at the terminal what is going on.
    """
    facts = PathologyFacts()
    trust = Organisation(folder, "trust", told=facts.commands, say=say)
    say("the trust makes a home, types, roles, labels and release rules")
    _found(trust, folder)
    say("starting Spark")
    start_spark(octets=0)
    ward = _Ward(folder, trust, facts)
    say("the laboratory publishes three reports")
    ward.publish("reports")
    ward.look("Ali", "ali")
    ward.look("Brown before", "brown")
    say("Miss Ali refers Mr Patterson to Dr Brown")
    referral = f"consultant-referral(ali, brown, '{PATTERSON}')"
    trust.do("role", "appoint", referral)
    trust.do("role", "activate", f"treating-doctor('RGT02', brown, '{PATTERSON}')", "--as", "brown")
    for view, who in (("Brown after", "brown"), ("Chen", "chen"), ("no role", "nobody")):
        ward.look(view, who)
    ward.share()
    ward.leave()
    say("the referral is withdrawn, and one more report comes in")
    _next_second()
    trust.do("role", "revoke", referral)
    ward.publish("later")
    ward.revoked()
    say("Miss Ali goes home")
    trust.do("role", "revoke", "secure-terminal(ali)")
    facts.home = [part for part, cell in ward.first("ali").items() if cell is not None]
    return facts


def _found(trust: Organisation, folder: Path) -> None:
    trust.do("domain", "init", str(trust.home), "--key", "--name", "trust")
    comments = ("patient-ID", "lab-number", "path-report-text", "comments", "vouched-comments")
    kinds = {REPORT: PARTS, ANSWER: comments, COUNT: ("hospital-ID",)}
    for name, parts in kinds.items():
        attributes = [f"{part}:string" for part in parts] + (["count:integer"] if name == COUNT else [])
        trust.do("type", "define", f"domain/{name}@1", *(word for one in attributes for word in ("--attribute", one)))
    trust.write("policy/trust.rules", RULES)
    trust.do("policy", "apply")
    for who, appointments in _PEOPLE.items():
        trust.join(who, *appointments)
    for who in _OTHERS:
        trust.do("key", "new", who, "--no-passphrase")
    trust.do("role", "activate", f"treating-doctor('RGT01', ali, '{PATTERSON}')", "--as", "ali")
    for patient in (PATTERSON, SMITH):
        trust.do("role", "activate", f"clinical-researcher('bladder-7', chen, '{patient}')", "--as", "chen")
    for who in ("ali", "brown"):
        trust.do("role", "observe", f"secure-terminal({who})")
    own = f'[sinks."{folder / "ali"}"]\nS = ["clinical({PATTERSON})"]\n'
    trust.write("policy/labels.toml", f"{_TYPES}{_ROLES}\n{own}")
    trust.write("policy/research.release", RELEASE)
    # Rights open every part to everybody who reads at all: what is closed, labels close.
    given = {
        REPORT: {"publish": ("broker", "lab"), "subscribe": (*_PEOPLE, *_OTHERS[1:])},
        ANSWER: {"publish": ("broker", "ali"), "subscribe": tuple(_PEOPLE)},
        COUNT: {"publish": ("broker", "monitor"), "subscribe": ("nobody",)},
    }
    for name, actions in given.items():
        for action, holders in actions.items():
            for who in holders:
                trust.do("grant", "--from", "domain", "--to", who, "--type", f"domain/{name}", "--action", action)


def _next_second() -> None:
    """Let the second end in which reports were published: the register counts whole ones."""
    now = int(time.time())
    while int(time.time()) == now:
        time.sleep(0.05)


@dataclass(slots=True)
class _Ward:
    """The readers, and what they try."""

    folder: Path
    trust: Organisation
    facts: PathologyFacts

    def client(self, who: str) -> Client:
        """Give somebody's client."""
        return maia.open(self.trust.home).client(who)

    def publish(self, name: str) -> None:
        """Let the laboratory publish a file."""
        file = self.folder / f"{name}.csv"
        file.write_text("\n".join(",".join(row) for row in (PARTS, *REPORTS[name])) + "\n", "utf-8")
        if name == "reports":
            said = self.trust.do("policy", "labels")["labels"]
            shown = {row["attribute"]: row for row in said if row["type"] == REPORT}
            none: dict[str, list[str]] = {"S": [], "I": []}
            self.facts.labels = {part: {kind: shown.get(part, none)[kind] for kind in none} for part in PARTS}
        self.trust.do("publish", str(file), "--type", REPORT, "--as", "lab")

    def reports(self, who: str) -> dict[str, dict[str, Any]]:
        """Read all reports as somebody, by their numbers."""
        with spark_errors():
            return {row["lab-number"]: row.asDict() for row in self.client(who).read(REPORT).collect()}

    def first(self, who: str) -> dict[str, Any]:
        """Read the first report as somebody."""
        return self.reports(who)[_FIRST[3]]

    def look(self, view: str, who: str) -> None:
        """Note which parts of the first report somebody sees."""
        for part, cell in self.first(who).items():
            self.facts.matrix[part][view] = cell is not None

    def share(self) -> None:
        """Release to the study, and let Chen link."""
        for verb in ("define", "apply"):
            self.trust.do("release", verb, "--type", REPORT, "--to", STUDY, "--as", "registrar")
        who = ("--from", "domain", "--to", "chen", "--type", f"domain/{STUDIED}", "--action", "subscribe")
        self.trust.do("grant", *who)
        with spark_errors():
            rows = [row.asDict() for row in self.client("chen").read(STUDIED).collect()]
        counted = sorted({str(row["anonymised-ID"]) for row in rows}, key=lambda one: (-_times(rows, one), one))
        letters = {one: chr(ord("A") + number) for number, one in enumerate(counted)}
        named = [row | {"anonymised-ID": f"person {letters[row['anonymised-ID']]}"} for row in rows]
        self.facts.linked = sorted(named, key=lambda row: str(row["anonymised-ID"]))

    def leave(self) -> None:
        """Try what may leave labelled frames, and what may not."""
        from pyspark.sql import functions as F  # noqa: N812 - Spark's custom; a session runs by now

        self.facts.vouched = list(self.client("registry").labelled(REPORT).columns)
        monitor = self.client("monitor").labelled(REPORT)
        bladder = monitor.where(f"`SNOMED-CT-codes` = '{BLADDER}'")
        self.attempt("the monitor shows codes", monitor.select("SNOMED-CT-codes").collect)
        self.attempt("the monitor shows its own count", bladder.groupBy().agg(n=F.count(F.lit(1))).collect)
        counted = bladder.through("counter", by=["hospital-ID"], reason="reports of the bladder code")
        self.attempt("the monitor publishes through the counter", lambda: _events(counted.publish(COUNT)))
        numbers = self.client("nobody").read(COUNT).collect()
        self.facts.outcomes["the number that left"] = sum(row["count"] for row in numbers)
        ali = self.client("ali").labelled(REPORT)
        remark = F.concat(F.substring("`path-report-text`", 15, 18), F.lit(": operate"))
        kept = ali.select("patient-ID", "lab-number", "path-report-text", remark.alias("comments"))
        self.facts.outcomes["Ali's comments carry"] = _shown(kept.labels["comments"])
        vouched = kept.withColumnRenamed("comments", "vouched-comments")
        self.attempt("Ali publishes them as the laboratory's word", lambda: vouched.publish(ANSWER))
        self.attempt("Ali publishes report and comments", lambda: _events(kept.publish(ANSWER)))
        self.attempt("Ali saves a text in her own folder", lambda: _write(ali, self.folder / "ali"))
        self.attempt("Ali saves a text anywhere else", lambda: _write(ali, self.folder / "out"))
        board = self.client("registrar").labelled(REPORT).select("hospital-ID", "path-report-text")
        mixed = board.join(board.withColumnRenamed("path-report-text", "other"), "hospital-ID")
        mixed = mixed.select(F.concat("`path-report-text`", "other").alias("path-report-text"))
        self.attempt("texts of two patients, to Ali's folder", lambda: _write(mixed, self.folder / "ali"))

    def attempt(self, what: str, leave: Callable[[], object]) -> None:
        """Note what came of an exit: how many, or the code of its refusal."""
        try:
            with spark_errors():
                found = leave()
        except MaiaError as error:
            self.facts.outcomes[what] = refused(error.code)
        else:
            self.facts.outcomes[what] = found if isinstance(found, int) else "done"

    def revoked(self) -> None:
        """Note who sees the texts of Patterson's reports now."""
        seen = {who: self.reports(who) for who in ("ali", "brown")}
        numbers = [row[3] for rows in REPORTS.values() for row in rows if row[0] == PATTERSON]
        for number in numbers:
            self.facts.revoked[number] = {
                who: found[number]["path-report-text"] is not None for who, found in seen.items()
            }
        found = self.trust.do("policy", "labels", "--tag", f"clinical({PATTERSON})")["sequence"]
        self.facts.sequence = [item["tag"] for item in found]


def _write(frame: LabelledFrame, folder: Path) -> None:
    frame.select("path-report-text").write(folder)


def _events(done: Published | None) -> int:
    return 0 if done is None else done.events


def _times(rows: list[dict[str, Any]], one: str) -> int:
    return sum(row["anonymised-ID"] == one for row in rows)


def _shown(label: Label) -> str:
    return f"S: {', '.join(sorted(label.secrecy)) or '-'}; I: {', '.join(sorted(label.integrity)) or '-'}"
