"""Deciding again what the audit says was decided: offline, from what decided then, by the planner that decides now.

Rules kept here:

- nothing is decided here: the files that a record names are laid out in a folder of their own, and the planner of that
  home is asked what it was asked then, at the instant of then;
- a record counts only when the broker signed it, and what it names only when its digest is the one that is named;
- an answer that is another one than was recorded *differs*, and is never passed over;
- what cannot be decided again says why: it was recorded before decisions were, it asked somebody outside of the home,
  or it rests on the values of a filter, which no audit holds. Whoever shows the filter has it decided by that.
"""

from __future__ import annotations

import hmac
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from maia.authority import Action, StatementBook, parse_statement, verify_statement
from maia.domain.agreement_files import POLICY_FOLDER
from maia.domain.decisions import (
    PROVIDERS,
    STATEMENT_ORDER,
    RecordedDecision,
    filter_digest,
    parse_decision,
    said_clauses,
)
from maia.domain.label_files import FrameLabels
from maia.errors import DeniedError, MaiaError, NotFoundError, UncheckedError, VerificationError
from maia.events import EventType, TypeName
from maia.home import PRIVATE_FILE, Home, StatementFile, make_folder, read_file, write_file
from maia.kernel import Clause
from maia.log import (
    OK,
    AuditRow,
    chain_hash,
    check_inclusion,
    parse_proof,
    read_head,
    read_state,
    rows_of_body,
    walk_entries,
)
from maia.principals import PublicKey

if TYPE_CHECKING:
    from maia.domain.domain import Domain

SAME, DIFFERS, CANNOT = "same", "differs", "cannot"
_NOT_RECORDED, _OUTSIDE, _FILTER = "REPLAY_NOT_RECORDED", "REPLAY_OUTSIDE", "REPLAY_FILTER"
BY_NATURE = frozenset({_NOT_RECORDED, _OUTSIDE, _FILTER})
"""Codes of what cannot be decided again although nothing is wrong with the audit."""
_DECIDED = ("READ", "PUBLISH")
_MOST_OPEN = 8
_MAX_PROOF = 32 << 20
_NOTHING = AuditRow(
    at=datetime.fromtimestamp(0, UTC), kind="", principal="", type_id="", source="", subject="", code="", events=0
)
"""Stands for an entry that tells nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedDecision:
    """What became of a decision that was made again.

    Attributes:
        entry: The number of its entry in the audit.
        row: What the audit says.
        outcome: ``same``, ``differs`` or ``cannot``.
        code: Why not: ``REPLAY_DIFFERS``, or why it cannot be.
        why: The same for people.
        decision: What was recorded, when it could be read.
    """

    entry: int
    row: AuditRow
    outcome: str
    code: str = OK
    why: str = ""
    decision: RecordedDecision | None = None

    def to_json(self) -> dict[str, object]:
        """Describe it for machines."""
        found, row = self.decision, self.row
        return {
            "entry": self.entry, "at": row.at.isoformat(), "kind": row.kind, "principal": row.principal,
            "subject": row.subject, "recorded": row.code, "outcome": self.outcome, "reason": self.code, "why": self.why,
            "action": "" if found is None else found.action, "answer": "" if found is None else found.code,
            "rights": "" if found is None else found.rights, "state": "" if found is None else found.state,
            "epoch": 0 if found is None else found.epoch, "engine": "" if found is None else found.engine,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of decisions that were made again."""

    decisions: tuple[ReplayedDecision, ...]

    def count(self, outcome: str) -> int:
        """Count those of an outcome."""
        return sum(item.outcome == outcome for item in self.decisions)

    @property
    def differing(self) -> tuple[ReplayedDecision, ...]:
        """Those whose answer is another one now."""
        return tuple(item for item in self.decisions if item.outcome == DIFFERS)

    @property
    def broken(self) -> tuple[ReplayedDecision, ...]:
        """Those that cannot be made again since something of the audit is missing or changed."""
        return tuple(item for item in self.decisions if item.outcome == CANNOT and item.code not in BY_NATURE)

    @property
    def complete(self) -> bool:
        """Whether every one gave the same answer."""
        return self.count(SAME) == len(self.decisions)


def replay_audit(
    home: Home, entries: Iterable[int] | None = None, *, since: datetime | None = None, where: str | None = None
) -> Replayed:
    """Decide again what the audit of a home says was decided; nothing is written there.

    Args:
        home: Whose audit.
        entries: The numbers of entries; all that hold decisions by default.
        since: Only what is from this instant on.
        where: A filter that somebody gave then; decisions that rest on one are made again with it, where it is it.

    Raises:
        NotFoundError: There is no such entry, or it holds no decision: ``NO_SUCH_ENTRY``, ``NO_DECISION``.
        VerificationError: An entry is not signed by the broker, or is missing: ``AUDIT_SIGNATURE``, ``AUDIT_GAP``.
    """
    return _replay_all(_journal(home), home.audit_path, entries, since=since, where=where, home=home)


def replay_export(
    folder: Path, key: PublicKey, entries: Iterable[int] | None = None, *, since: datetime | None = None
) -> Replayed:
    """Decide again what an export of somebody's audit says was decided; with the key of its broker alone.

    Args:
        folder: What `maia audit export --evidence` wrote.
        key: The key of the broker whose audit it is.
        entries: The numbers of entries; all that are there by default.
        since: Only what is from this instant on.

    Raises:
        NotFoundError: There is no such entry, or it holds no decision: ``NO_SUCH_ENTRY``, ``NO_DECISION``.
        VerificationError: A proof does not hold: ``AUDIT_NOT_INCLUDED``, ``CHECKPOINT_SIGNATURE``.
    """
    return _replay_all(_proofs(folder, key), folder, entries, since=since, where=None, home=None)


def decides(row: AuditRow) -> bool:
    """Tell whether a row is about a decision: one that was written down, or should have been."""
    return bool(row.decision) or (row.kind == "intent" and row.code in _DECIDED)


def _replay_all(
    records: Iterable[tuple[int, AuditRow]],
    audit: Path,
    entries: Iterable[int] | None,
    *,
    since: datetime | None,
    where: str | None,
    home: Home | None,
) -> Replayed:
    wanted = None if entries is None else frozenset(entries)
    found: list[ReplayedDecision] = []
    last = -1
    with tempfile.TemporaryDirectory(prefix="maia-replay-") as root:
        places = _Places(audit, Path(root))
        for number, row in records:
            last = max(last, number)
            asked = (wanted is None or number in wanted) and (since is None or row.at >= since)
            if asked and decides(row):
                found.append(_replay(home, places, number, row, where))
    missing = (wanted or frozenset()) - {item.entry for item in found}
    if missing and max(missing) > last:
        raise NotFoundError(f"the audit has no entry {max(missing)}", code="NO_SUCH_ENTRY")
    if missing:
        raise NotFoundError(f"entry {min(missing)} holds no decision that could be made again", code="NO_DECISION")
    return Replayed(tuple(found))


def _journal(home: Home) -> Iterator[tuple[int, AuditRow]]:
    key, last = home.key(home.config.broker), -1
    head = read_head(home.path / "audit-head", key)
    for entry in walk_entries(home.audit_path):
        # SECURITY: what somebody else wrote into the journal is no record, whatever it says.
        if not entry.check(key):
            raise VerificationError(
                f"entry {entry.number} of the audit is not signed by its broker", code="AUDIT_SIGNATURE"
            )
        if entry.number != last + 1:
            raise VerificationError(f"entry {last + 1} is missing from the audit", code="AUDIT_GAP")
        last = entry.number
        for row in entry.rows() or (_NOTHING,):
            yield entry.number, row
    if last >= 0 and (head is None or head.number > last):
        raise VerificationError(f"what follows entry {last} is missing from the audit", code="AUDIT_TRUNCATED")


def _proofs(folder: Path, key: PublicKey) -> Iterator[tuple[int, AuditRow]]:
    for path in sorted((folder / "proofs").glob("*.tlog-proof")):
        proof = check_inclusion(parse_proof(read_file(path, limit=_MAX_PROOF)), key)
        number, rows = rows_of_body(proof.entry)
        # SECURITY: by the tree, not by the name of the file.
        if number != proof.number:
            raise VerificationError("an entry stands at another place than it says", code="AUDIT_NOT_INCLUDED")
        for row in rows:
            yield number, row


def _replay(home: Home | None, places: _Places, number: int, row: AuditRow, where: str | None) -> ReplayedDecision:
    decision = None
    try:
        if not row.decision:
            raise UncheckedError("it was recorded by a Maia that wrote no decisions down", code=_NOT_RECORDED)
        decision = parse_decision(row.decision)
        if decision.outside:
            asked = " and ".join(decision.outside)
            raise UncheckedError(f"it asked for {asked} outside of this home, which nobody keeps", code=_OUTSIDE)
        why = _compare(decision, row, places.ask(decision, *_filter(home, decision, where)))
    except MaiaError as error:
        return ReplayedDecision(
            entry=number, row=row, outcome=CANNOT, code=error.code, why=error.message, decision=decision
        )
    if why:
        return ReplayedDecision(
            entry=number, row=row, outcome=DIFFERS, code="REPLAY_DIFFERS", why=why, decision=decision
        )
    return ReplayedDecision(entry=number, row=row, outcome=SAME, decision=decision)


def _filter(home: Home | None, decision: RecordedDecision, where: str | None) -> tuple[str | None, bool]:
    """Give the filter to decide by, if it is shown; else one that reads the same attributes. And which it is."""
    known = decision.filter
    if known is None:
        return None, True
    # SECURITY: only the home can tell, so that nobody finds out by trying what somebody asked for.
    digest = "" if home is None or where is None else filter_digest(home, known.salt, where)
    if hmac.compare_digest(digest, known.digest):
        return where, True
    if decision.action == "publish":  # what it announces bounds its rows
        raise _unshown("it rests on what the publisher announced")
    return ", ".join(f"{name} any" for name in known.reads), False


def _compare(decision: RecordedDecision, row: AuditRow, answer: ReplayAnswer) -> str:
    """Say in what two answers differ; nothing when they are the same."""
    if answer.code != decision.code:
        return f"it was {decision.code} by Maia {decision.engine}, and is {answer.code}"
    if row.kind == "refuse" and row.code != answer.code:
        return f"the audit says {row.code}, and it is {answer.code}"
    if answer.code != OK:
        return ""
    if said_clauses(answer.clauses, answer.own) != decision.rights:
        return f"the rights are others than those that Maia {decision.engine} found"
    held = [clause for clause in answer.clauses if clause.counts or row.code == "PUBLISH"]
    chains = {chain_hash(clause.chain) for clause in held}
    if row.kind == "deliver" and not set(row.clauses) <= chains:
        return "the audit names a chain that gives nothing"
    if row.kind == "intent":
        names = dict(answer.attributes)
        closed = {name for name in row.attributes if not any(one.opens(names.get(name, "")) for one in held)}
        certificates = {item.hex() for clause in held for item in clause.chain}
        if (set(row.clauses), set(row.certificates), set(row.closed)) != (chains, certificates, closed):
            return "the audit names other chains, certificates or closed attributes than decide"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayAnswer:
    """What a planner says: the code, and what it grants."""

    code: str
    clauses: tuple[Clause, ...] = ()
    own: tuple[Clause, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()


class _Places:
    """The homes in which decisions are made again, each laid out from a state; the last few stay open."""

    def __init__(self, audit: Path, root: Path) -> None:
        self._audit = audit
        self._root = root
        self._open: dict[str, Domain] = {}

    def ask(self, decision: RecordedDecision, filter_: str | None, shown: bool) -> ReplayAnswer:  # noqa: FBT001 - a pair
        """Ask the planner of the home that decided."""
        domain = self._open.get(decision.state)
        if domain is None:
            if len(self._open) >= _MOST_OPEN:
                shutil.rmtree(self._open.pop(next(iter(self._open))).path)
            domain = self._open[decision.state] = self._lay_out(decision.state)
        return _decide(domain, decision, filter_, shown=shown)

    def _lay_out(self, state: str) -> Domain:
        from maia.domain.domain import Domain  # noqa: PLC0415 - which has this among its methods

        files, place = read_state(self._audit, state), Path(tempfile.mkdtemp(dir=self._root))
        order = (files.pop(STATEMENT_ORDER, b"") or b"").decode("ascii").split()
        for name, data in files.items():
            if name.startswith("statements/") or name == PROVIDERS:
                continue
            path = place / name
            for folder in reversed(path.relative_to(place).parents[:-1]):
                make_folder(place / folder, mode=0o700)
            if data is None:
                path.symlink_to("nowhere")  # what could not be read then cannot be read now
            else:
                write_file(path, data, mode=PRIVATE_FILE)
        make_folder(place / POLICY_FOLDER, mode=0o700)
        home = Home.open(place)
        book = StatementBook(successions=home.statements.load().successions)
        for digest in order:
            raw = files.get(f"statements/{digest}")
            if raw is None:
                raise NotFoundError("a statement that decided is not here any more", code="EVIDENCE_MISSING")
            book.accept(verify_statement(parse_statement(raw)))
        StatementFile(home.statements.path).save(book)
        domain = Domain(home)
        domain.planner.records = None
        return domain


def _decide(domain: Domain, decision: RecordedDecision, filter_: str | None, *, shown: bool) -> ReplayAnswer:
    known, planner, at = domain.known(at=decision.at), domain.planner, decision.at
    name, key = _type(known.names, decision), PublicKey(bytes.fromhex(decision.key))
    try:
        if decision.action == "publish":
            made = planner.advertise(known, name, key, said=filter_, at=at)
            return ReplayAnswer(code=OK, clauses=made.clauses, own=made.own, attributes=_names(made.event_type))
        if filter_ and not shown:
            version = known.sessions.event_type(name.type_id, name.version.text, at=at)
            held = known.sessions.clauses(key, Action.SUBSCRIBE, version, known.pool, at=at)
            if any(clause.cells.bounds for clause in held):
                raise _unshown("it rests on the values of a filter, since a right has bounds")
        if decision.ground is not None:
            planner.grounds.recall(decision.holder, name.type_id, decision.ground)
        frame = decision.frame
        found = planner.subscription(
            known, name, key, holder=decision.holder, identity="replay", where=filter_ or "", at=at,
            proven=decision.proven,
            frames=None if frame is None else FrameLabels(policy=frame[0], tags=frozenset(frame[1])),
        )  # fmt: skip
    except (VerificationError, DeniedError) as error:
        if error.code == _FILTER:
            raise
        return ReplayAnswer(code=error.code)
    return ReplayAnswer(code=OK, clauses=found.clauses, attributes=_names(found.event_type))


def _type(names: Iterable[TypeName], decision: RecordedDecision) -> TypeName:
    for name in names:
        if (name.type_id.hex(), name.version.text) == (decision.type, decision.version):
            return name
    raise NotFoundError("the definition that decided is not among what is kept", code="EVIDENCE_MISSING")


def _names(event_type: EventType) -> tuple[tuple[str, str], ...]:
    return tuple((item.name, str(item.uid)) for item in event_type.attributes)


def _unshown(why: str) -> UncheckedError:
    return UncheckedError(f"{why}: show it with --where", code=_FILTER)
