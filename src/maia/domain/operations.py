"""Reads, publications and deliveries in the audit: the intent before the first row, the result whatever happens.

Rules kept here:

- nothing is read, published or delivered that has no intent in the audit, durable before the first row is handed out:
  who, by which proven key, what, by which certificates, which attributes, by which filter, by which plan;
- every operation ends with a result: how many events, or the code of what ended it. What is killed has none, and the
  next one that begins says so (``UNFINISHED``);
- who advertises, subscribes, or ends either is told, with the key that was proven and the chains by which it may;
- who acts under a client's name and does not prove its key is told, with the name and the file or agent by which it was
  tried; of a key or a passphrase nothing is;
- no value is told, not even one that a filter names: of a filter it says attributes and operators, and the plan's
  digest names the whole.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from maia.domain.possession import ProvenClient
from maia.encoding import Sexp, encode
from maia.errors import DeniedError, MaiaError, VerificationError
from maia.events import EventType, TypeId, TypeName
from maia.filters import TypedFilter
from maia.home import Home, now
from maia.kernel import Clause, DeliverPlan, PublishPlan, Subscription
from maia.log import FAILED, OK, STOPPED, Audit, AuditRow, CheckedAudit, Checkpoint, chain_hash, check_audit
from maia.principals import PublicKey

_log = logging.getLogger(__name__)
_HEAD = "audit-head"
_NOT_TRIED = ("PASSPHRASE_MISSING", "PASSPHRASE_TEXT")
"""The caller gave nobody to ask for the passphrase, so that nothing was tried."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An intent that is in the audit, and ends with a result.

    Attributes:
        audit: Where.
        number: The number of the intent.
        intent: Who wanted what.
    """

    audit: Audit
    number: int
    intent: AuditRow

    def end(self, code: str, *, events: int = 0, rows: Sequence[AuditRow] = (), part: int | None = None) -> None:
        """Say what became of it, or of a part of it."""
        self.audit.end(self.number, result_row(self.intent, code, events=events), rows=rows, part=part)

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Say by which code it ended, when it does not end well."""
        try:
            yield
        except BaseException as error:
            try:
                self.end(code_of(error))
            except MaiaError as second:
                _log.warning("warning: [%s] the result of operation %d is not in the audit", second.code, self.number)
            raise


def result_row(like: AuditRow, code: str, *, events: int) -> AuditRow:
    """Say what became of what somebody wanted."""
    return AuditRow(
        at=now(), kind="result", principal=like.principal, type_id=like.type_id, source=like.source,
        subject=like.subject, code=code, events=events,
    )  # fmt: skip


def audit_of(home: Home) -> Audit:
    """Give the audit of a home."""
    return Audit(home.audit_path, home.path / _HEAD, home.broker)


def check_home_audit(home: Home, *, at: datetime, checkpoints: Sequence[Checkpoint] = ()) -> CheckedAudit:
    """Check the audit of a home, see `check_audit`."""
    key = home.key(home.config.broker)
    return check_audit(home.audit_path, home.path / _HEAD, key, at=at, checkpoints=checkpoints)


def code_of(error: BaseException) -> str:
    """Name what ended an operation."""
    if isinstance(error, MaiaError):
        return error.code
    if isinstance(error, GeneratorExit):
        return STOPPED
    return "INTERRUPTED" if isinstance(error, KeyboardInterrupt) else FAILED


@contextmanager
def refusals(
    home: Home, client: ProvenClient, name: TypeName | str, *, at: datetime, tell: bool = True
) -> Iterator[None]:
    """Put into the audit that a client was refused what it asked for; the refusal stands even where that fails.

    Args:
        home: Whose audit.
        client: Who asked.
        name: Of what: a type, or what people call something else.
        at: Now.
        tell: Whether the audit is told at all.
    """
    with refusals_of_key(home, client.key, client.name, name, at=at, tell=tell):
        yield


@contextmanager
def refusals_of_key(
    home: Home, key: PublicKey, subject: str, name: TypeName | str, *, at: datetime, tell: bool = True
) -> Iterator[None]:
    """As `refusals`, where whoever asks has not proven the key yet, or did so elsewhere."""
    try:
        yield
    except (DeniedError, VerificationError) as error:
        if tell:
            type_id, source = ("", name) if isinstance(name, str) else (name.type_id.hex(), name.name)
            row = AuditRow(
                at=at, kind="refuse", principal=key.fingerprint, type_id=type_id, source=source, subject=subject,
                code=error.code, events=0, decision=error.decision,
            )  # fmt: skip
            _note_refusal(home, row)
        raise


@contextmanager
def unproven(home: Home, name: str, *, at: datetime, agent: Path | None = None) -> Iterator[None]:
    """Put into the audit that somebody acted under a client's name and did not prove its key.

    It tells the name, the key that should have been proven, the file or agent by which it was tried, and the code.

    Args:
        home: Whose client.
        name: As which client.
        at: Now.
        agent: The agent that should hold the key; the file of the private key without one.
    """
    try:
        yield
    except MaiaError as error:
        key = home.folder.keys.get(name)
        if key is not None and error.code not in _NOT_TRIED:
            tried = f"keys/{name}.key" if agent is None else str(agent)
            note_unproven(home, name, key.fingerprint, source=tried, code=error.code, at=at)
        raise


def note_unproven(home: Home, name: str, principal: str, *, source: str, code: str, at: datetime) -> None:
    """Put into the audit that a key was not proven; what cannot be told is a warning, and the refusal stands.

    Args:
        home: Whose audit.
        name: What the key is called here; empty when it is not known.
        principal: Its fingerprint.
        source: The file, the agent or the path of a service by which it was tried.
        code: Why it was refused.
        at: Now.
    """
    row = AuditRow(
        at=at, kind="refuse", principal=principal, type_id="", source=source, subject=name, code=code, events=0
    )
    _note_refusal(home, row)


def note_session(
    home: Home,
    kind: str,
    client: ProvenClient,
    type_id: TypeId | None,
    *,
    source: str,
    at: datetime,
    clauses: Iterable[Clause] = (),
    said: str = "",
    code: str = OK,
    decision: str = "",
) -> None:
    """Put into the audit that a client advertised or subscribed, or ended it, and by which chains it may.

    Args:
        home: Whose broker.
        kind: ``advertise``, ``unadvertise``, ``subscribe``, ``unsubscribe``; or ``notice``, of one of them.
        client: Whose key was proven.
        type_id: The type, where it is known.
        source: The type by name, the publication that was the first, or the name of the subscription.
        at: Now.
        clauses: What its right is.
        said: Its filter, with a mark in place of each value.
        code: ``OK``, or the code of the notice.
        decision: How its right was decided.
    """
    held = tuple(clauses)
    row = AuditRow(
        at=at, kind=kind, principal=client.key.fingerprint, type_id="" if type_id is None else type_id.hex(),
        source=source, subject=client.name, code=code, events=0, clauses=_chains(held),
        certificates=_certificates(held), filter=said, decision=decision,
    )  # fmt: skip
    audit_of(home).note([row])


def _note_refusal(home: Home, row: AuditRow) -> None:
    try:
        audit_of(home).note([row])
    except MaiaError as second:
        _log.warning("warning: [%s] a refusal (%s) is not in the audit", second.code, row.code)


def intent_to_read(
    plan: DeliverPlan,
    client: ProvenClient,
    *,
    attributes: Sequence[str] | None,
    source: str,
    events: int,
    at: datetime,
) -> AuditRow:
    """Say what a client is going to read.

    Args:
        plan: With the client's one subscription.
        client: Whose key was proven.
        attributes: Which attributes it asked for; all of the version when there are none.
        source: Which part of the log.
        events: How many events that part holds.
        at: Now.
    """
    held = plan.subscriptions[0]
    clauses = [clause for clause in held.clauses if clause.counts]
    asked = [item for item in held.event_type.attributes if attributes is None or item.name in attributes]
    return AuditRow(
        at=at, kind="intent", principal=client.key.fingerprint, type_id=plan.type_id.hex(), source=source,
        subject=client.name, code="READ", events=events, clauses=_chains(clauses), certificates=_certificates(clauses),
        attributes=tuple(item.name for item in asked),
        closed=tuple(item.name for item in asked if not any(clause.opens(item.uid) for clause in clauses)),
        filter=without_values(held.filter, held.event_type), plan=deliver_digest([plan]), decision=held.decision,
    )  # fmt: skip


def intent_to_publish(plan: PublishPlan, client: str, *, at: datetime) -> AuditRow:
    """Say what a client, whose key was proven when the plan was made, is going to publish."""
    event_type, sealing = plan.event_type(), plan.sealing
    whole = (
        plan.publication.encode("utf-8", "surrogatepass"), hashlib.sha256(plan.definition).digest(),
        bytes(sealing.type_id), sealing.evidence, _said(plan.clauses), _said(plan.own or ()),
    )  # fmt: skip
    return AuditRow(
        at=at, kind="intent", principal=plan.principal, type_id=sealing.type_id.hex(), source=plan.publication,
        subject=client, code="PUBLISH", events=0, clauses=_chains(plan.clauses),
        certificates=_certificates(plan.clauses), attributes=tuple(item.name for item in event_type.attributes),
        closed=tuple(
            item.name for item in event_type.attributes if not any(clause.opens(item.uid) for clause in plan.clauses)
        ),
        plan=hashlib.sha256(encode(whole)).hexdigest(), decision=plan.decision,
    )  # fmt: skip


def deliver_digest(plans: Iterable[DeliverPlan]) -> str:
    """Name plans by what they say, the same wherever and whenever they are made from the same rights."""
    found = hashlib.sha256()
    for plan in sorted(plans, key=lambda item: item.type_id):
        found.update(
            encode((bytes(plan.type_id), *(bytes(part) for origin in sorted(plan.origins) for part in origin)))
        )
        for item in plan.subscriptions:
            found.update(encode(_subscription(item)))
    return found.hexdigest()


def without_values(filter_: TypedFilter, event_type: EventType) -> str:
    """Write a filter, over uids or names, with a mark in place of each value."""
    names = {str(item.uid): item.name for item in event_type.attributes}
    return ", ".join(
        f"{names.get(item.attribute, item.attribute)} {item.operator}{' ?' if item.values else ''}"
        for item in filter_.constraints
    )


def _subscription(item: Subscription) -> Sexp:
    name = item.event_type.name
    return (
        item.identity.encode("utf-8", "surrogatepass"), name.version.text.encode(),
        repr(item.filter).encode("utf-8", "surrogatepass"), _said(item.clauses),
    )  # fmt: skip


def _said(clauses: Iterable[Clause]) -> bytes:
    found = hashlib.sha256()
    for clause in clauses:
        found.update(clause.identity)
        for item in clause.chain:
            found.update(item)
    return found.digest()


def _chains(clauses: Iterable[Clause]) -> tuple[str, ...]:
    return tuple(sorted({chain_hash(clause.chain) for clause in clauses}))


def _certificates(clauses: Iterable[Clause]) -> tuple[str, ...]:
    return tuple(sorted({item.hex() for clause in clauses for item in clause.chain}))
