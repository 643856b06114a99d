"""What every family of vectors is made of: named keys, instants, signed objects, cases."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from maia.encoding import Sexp, encode, format_advanced, parse_advanced
from maia.principals import (
    Authorisation,
    Body,
    KeySigner,
    Kind,
    Naming,
    Period,
    Principal,
    PublicKey,
    Subject,
    unsafe_sign_certificate,
)

Case = dict[str, Any]
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
AT = "2026-06-01T12:00:00Z"


def signer(name: str) -> KeySigner:
    """Give the key pair with this name."""
    return KeySigner(hashlib.sha256(f"maia vector key {name}".encode()).digest())


def key(name: str) -> PublicKey:
    """Give the public key with this name."""
    return signer(name).public_key


def instant(text: str) -> datetime:
    """Read `2026-06-01T12:00:00Z`."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def period(start: str | None = None, end: str | None = None) -> Period:
    """Give a period from two texts."""
    return Period(None if start is None else instant(start), None if end is None else instant(end))


def tag(text: str) -> Sexp:
    """Read a tag's expression."""
    return parse_advanced(text)


def right(
    issuer: str, subject: str | Subject, text: str = "(ftp)", *, delegate: bool = False, **fields: object
) -> Authorisation:
    """Give the body of an authorisation; a subject that is a text is the key with that name."""
    whom = key(subject) if isinstance(subject, str) else subject
    return Authorisation(issuer=key(issuer), subject=whom, delegate=delegate, tag=tag(text), **fields)  # type: ignore[arg-type]


def naming(issuer: str, name: str, subject: str | Principal, **fields: object) -> Naming:
    """Give the body of a name certificate."""
    whom = key(subject) if isinstance(subject, str) else subject
    return Naming(issuer=key(issuer), name=name, subject=whom, **fields)  # type: ignore[arg-type]


def signed(body: Body, by: str | None = None) -> bytes:
    """Sign a body, by its issuer unless another key is named."""
    names = (by,) if by else ("owner", "alice", "bob", "carol", "dave", "eve")
    chosen = next(signer(name) for name in names if by or key(name).key_id == body.issuer_id)
    return unsafe_sign_certificate(body, chosen)


def signed_certificate(body: Sexp, by: str, *, kind: Kind = Kind.CERTIFICATE, version: Sexp = b"1") -> bytes:
    """Sign any expression as a certificate, for shapes that no constructor makes."""
    mark = signer(by).sign(kind, encode(body))
    return encode((b"signed", version, body, (b"signature", key(by).to_sexp(), mark)))


def signed_statement(body: Sexp, by: str, *, kind: Kind = Kind.STATEMENT) -> bytes:
    """Sign any expression as a statement, for shapes that no constructor makes."""
    mark = signer(by).sign(kind, encode(body))
    return encode((b"signed", body, (b"signature", key(by).to_sexp(), mark)))


def case(
    says: str, operation: str, given: dict[str, Any], expected: dict[str, Any], *, must_fail: bool | None = None
) -> Case:
    """Make a case; it must fail when an error is expected, or when the caller says so."""
    fails = "error" in expected if must_fail is None else must_fail
    return {"says": says, "operation": operation, "input": given, "must_fail": fails, "expected": expected}


def number(family: str, cases: Iterable[Case]) -> list[Case]:
    """Give each case its id."""
    return [{"id": f"{family}-{place:04d}", **item} for place, item in enumerate(cases, 1)]


def certificate_id(raw: bytes) -> str:
    """Hash the unsigned body inside a certificate, found by the fixed frame around it."""
    tail = len(b"(9:signature(10:public-key(7:ed2551932:") + 32 + len(b"))64:") + 64 + len(b"))")
    return hashlib.sha256(raw[len(b"(6:signed1:1") : -tail]).hexdigest()


def advanced(expression: Sexp) -> str:
    """Write an expression for people."""
    return format_advanced(expression)
