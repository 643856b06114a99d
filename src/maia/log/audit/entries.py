"""The entries of an audit's journal: one line of JSON each, chained by digest and signed by the domain's broker.

    {"at":…,"entry":"intent","n":17,"previous":<digest of 16>,"rows":[…],"v":1,…,"sig":<signature>}

The digest of an entry is the SHA-256 of its line without the signature. What is signed is
``(audit-head "1" <n> <digest>)``: every entry is a head over all that came before it.

Rule kept here: a line counts only in the one form in which this module writes it, so what is read is what was signed.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from maia.encoding import encode
from maia.errors import EncodingError, SignatureError, UnavailableError
from maia.log.audit.rows import UNFINISHED, AuditRow
from maia.principals import Kind, PublicKey, Signer, verify_signature

ENTRY_FORMAT = 2
"""The newest format of entries: those that hold a decision. Others are of format 1, as before."""
MAX_LINE = 16 << 20
"""The octets of a line at most."""
ENTRY_KINDS = ("begin", "intent", "rows", "result", "note")
NO_ENTRY = "0" * 64
"""Stands for the entry before the first."""
_LISTS = ("clauses", "certificates", "attributes", "closed")
_ROW = tuple(item.name for item in fields(AuditRow) if item.name != "operation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An entry before it has its number.

    Attributes:
        kind: One of `ENTRY_KINDS`.
        at: When.
        rows: What it tells.
        operation: The number of the intent that it belongs to; of an intent, none yet.
        part: Which part of the operation ended; none ends all of it.
        parts: Of an intent, how many parts will report.
        process: Of an intent, the process without which it cannot go on, see `processes`.
        earlier: Of the first entry, how many files of the former audit there are, and their digest.
    """

    kind: str
    at: datetime
    rows: tuple[AuditRow, ...] = ()
    operation: int | None = None
    part: int | None = None
    parts: int = 1
    process: str = ""
    earlier: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """An entry with its place in the chain."""

    number: int
    previous: str
    draft: Draft
    digest: str
    signature: bytes
    line: bytes

    def rows(self) -> tuple[AuditRow, ...]:
        """Give its rows, each with its operation."""
        operation = self.number if self.draft.kind == "intent" else self.draft.operation
        return tuple(replace(row, operation=operation) for row in self.draft.rows)

    def check(self, key: PublicKey) -> bool:
        """Tell whether a key signed it."""
        return is_head(self.number, self.digest, self.signature, key)


def make_entry(draft: Draft, number: int, previous: str, signer: Signer) -> AuditEntry:
    """Number, chain and sign an entry.

    Raises:
        EncodingError: It could not be read back as it is: ``AUDIT_DAMAGED``. Nothing was written.
    """
    body = _body(draft, number, previous)
    digest = hashlib.sha256(body).hexdigest()
    signature = sign_head_of(number, digest, signer)
    line = _signed(body, signature)
    # INVARIANT: what is in the journal can be read; one entry that cannot hides all that it tells.
    if len(line) >= MAX_LINE:
        raise EncodingError("an entry of the audit is too long", code="AUDIT_DAMAGED")
    parse_entry(line)
    return AuditEntry(number=number, previous=previous, draft=draft, digest=digest, signature=signature, line=line)


def parse_entry(line: bytes) -> AuditEntry:
    """Read a line, without its end.

    Raises:
        EncodingError: It is no entry: ``AUDIT_DAMAGED``.
        UnavailableError: A newer Maia wrote it: ``FORMAT_NEWER``.
    """
    try:
        value = json.loads(line)
        version = value["v"]
        if type(version) is int and version > ENTRY_FORMAT:
            raise UnavailableError(
                f"an entry of the audit is of format {version}, and this Maia knows {ENTRY_FORMAT}: use the newer one",
                code="FORMAT_NEWER",
            )
        signature = b64decode(value.pop("sig"), validate=True)
        draft, number, previous = _draft(value), int(value["n"]), str(value["previous"])
        body = _body(draft, number, previous)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise EncodingError("a line of the audit is no entry", code="AUDIT_DAMAGED") from error
    if line != _signed(body, signature) or draft.kind not in ENTRY_KINDS:
        raise EncodingError("a line of the audit is no entry", code="AUDIT_DAMAGED")
    digest = hashlib.sha256(body).hexdigest()
    return AuditEntry(number=number, previous=previous, draft=draft, digest=digest, signature=signature, line=line)


def rows_of_body(body: bytes) -> tuple[int, tuple[AuditRow, ...]]:
    """Read an entry without its signature, as a proof shows it: its number, and its rows.

    Raises:
        EncodingError: It is none: ``AUDIT_DAMAGED``.
        UnavailableError: A newer Maia wrote it: ``FORMAT_NEWER``.
    """
    entry = parse_entry(_signed(body, b""))
    return entry.number, entry.rows()


def sign_head_of(number: int, digest: str, signer: Signer) -> bytes:
    """Sign that the entry of a number, and with it all before it, is the one of this digest."""
    return signer.sign(Kind.AUDIT_HEAD, _head(number, digest))


def is_head(number: int, digest: str, signature: bytes, key: PublicKey) -> bool:
    """Tell whether a key signed a head."""
    return _is_signed(_head(number, digest), signature, key)


def sign_end_of(number: int, digest: str, signer: Signer) -> bytes:
    """Sign that the journal ends with an entry, for the home to remember.

    SECURITY: no entry holds such a signature, so whoever cuts the journal finds none for its new end.
    """
    return signer.sign(Kind.AUDIT_HEAD, _end(number, digest))


def is_end(number: int, digest: str, signature: bytes, key: PublicKey) -> bool:
    """Tell whether a key signed that the journal ended there."""
    return _is_signed(_end(number, digest), signature, key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """An intent that has no result yet: which parts have not reported, bit by bit, and what is known of it."""

    left: int
    process: str
    row: AuditRow


def track(waiting: dict[int, Open], entry: AuditEntry) -> None:
    """Take an entry into account: an intent opens an operation, the results of all its parts end it."""
    draft = entry.draft
    if draft.kind == "intent" and draft.rows:
        left = (1 << max(1, draft.parts)) - 1
        waiting[entry.number] = Open(left=left, process=draft.process, row=draft.rows[0])
    elif draft.kind == "result" and draft.operation in waiting:
        known = waiting[draft.operation]
        left = 0 if draft.part is None else known.left & ~(1 << draft.part)
        if left:
            waiting[draft.operation] = replace(known, left=left)
        else:
            del waiting[draft.operation]


def without_result(row: AuditRow, *, at: datetime, operation: int | None = None, code: str = UNFINISHED) -> AuditRow:
    """Say of an intent that it has no result."""
    return AuditRow(
        at=at, kind="result", principal=row.principal, type_id=row.type_id, source=row.source, subject=row.subject,
        code=code, events=0, operation=operation,
    )  # fmt: skip


def row_to_json(row: AuditRow) -> dict[str, Any]:
    """Write a row; what is empty is left out."""
    found: dict[str, Any] = {name: getattr(row, name) for name in _ROW}
    found["at"] = _instant(row.at)
    return {name: list(value) if name in _LISTS else value for name, value in found.items() if value not in ((), "")}


def row_from_json(value: dict[str, Any]) -> AuditRow:
    """Read a row."""
    texts = dict.fromkeys(("principal", "type_id", "source", "subject", "code", "kind"), "")
    lists = {name: tuple(map(str, value[name])) for name in _LISTS if name in value}
    return AuditRow(**{**texts, **value, **lists, "at": _read_instant(value["at"])})


def _body(draft: Draft, number: int, previous: str) -> bytes:
    value: dict[str, Any] = {
        "v": _format(draft), "n": number, "previous": previous, "entry": draft.kind, "at": _instant(draft.at),
        "rows": [row_to_json(row) for row in draft.rows],
    }  # fmt: skip
    if draft.operation is not None:
        value["of"] = draft.operation
    if draft.part is not None:
        value["part"] = draft.part
    if draft.kind == "intent":
        value |= {"parts": draft.parts, "process": draft.process}
    if draft.earlier is not None:
        value["earlier"] = list(draft.earlier)
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def _format(draft: Draft) -> int:
    """Tell the format of an entry: a former Maia reads what it knows, and says of the rest that it is newer."""
    return ENTRY_FORMAT if any(row.decision for row in draft.rows) else 1


def _draft(value: dict[str, Any]) -> Draft:
    earlier = value.get("earlier")
    return Draft(
        kind=value["entry"], at=_read_instant(value["at"]),
        rows=tuple(row_from_json(row) for row in value["rows"]), operation=value.get("of"), part=value.get("part"),
        parts=value.get("parts", 1), process=value.get("process", ""),
        earlier=None if earlier is None else (int(earlier[0]), str(earlier[1])),
    )  # fmt: skip


def _signed(body: bytes, signature: bytes) -> bytes:
    return body[:-1] + b',"sig":"' + b64encode(signature) + b'"}'


def _head(number: int, digest: str) -> bytes:
    return encode((b"audit-head", b"1", b"%d" % number, bytes.fromhex(digest)))


def _end(number: int, digest: str) -> bytes:
    return encode((b"audit-end", b"1", b"%d" % number, bytes.fromhex(digest)))


def _is_signed(content: bytes, signature: bytes, key: PublicKey) -> bool:
    try:
        verify_signature(Kind.AUDIT_HEAD, content, signature, key)
    except (SignatureError, ValueError):
        return False
    return True


def _read_instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")
