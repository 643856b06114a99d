"""Certificates: shapes, fields, and the two types."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from maia.encoding import Hinted, Sexp, encode
from maia.errors import EncodingError, MalformedError, SignatureError, UsageError
from maia.principals import (
    ALWAYS,
    Authorisation,
    Certificate,
    KeyHash,
    Kind,
    Name,
    Naming,
    ObjectHash,
    OnlineTest,
    Period,
    TestKind,
    Threshold,
    UnverifiedCertificate,
    issue,
    parse_certificate,
    unsafe_seal_certificate,
    unsafe_sign_certificate,
    verify_certificate,
)
from maia.testing import People, at, grant, naming, online

PEOPLE = People("a", "b", "c")
A, B, C = (PEOPLE[name].public_key for name in "abc")
READ: Sexp = (b"read",)
FULL = Authorisation(
    issuer=A, subject=B, delegate=True, tag=READ, period=Period(at(0), at(100)),
    tests=(OnlineTest(TestKind.CRL, C, ("https://x.example",)), OnlineTest(TestKind.ONE_TIME, KeyHash(C.key_id))),
    conditions=("hour < 18", "on_duty"), renew="https://renew.example",
)  # fmt: skip
BODIES = {
    "full": FULL,
    "plain": Authorisation(issuer=A, subject=B, delegate=False, tag=READ),
    "issued by hash": Authorisation(issuer=KeyHash(A.key_id), subject=B, delegate=False, tag=READ),
    "no start": replace(FULL, period=Period(None, at(100))),
    "no end": replace(FULL, period=Period(at(0), None)),
    "only tests": replace(FULL, period=ALWAYS),
    "name": Naming(issuer=A, name="brokers", subject=Name(B, ("x", "y"))),
    "name with validity": Naming(issuer=A, name="b", subject=B, period=FULL.period, tests=FULL.tests),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_reads_back(body: object):
    """What is issued is what is read, and it verifies."""
    certificate = issue(body, PEOPLE.a)
    read = parse_certificate(certificate.raw)
    assert read.body == body == certificate.body
    assert read.body_bytes == encode(body.to_sexp())
    assert verify_certificate(read) == certificate


def sealed(*fields: Sexp) -> bytes:
    """Sign any list of fields as a certificate of A."""
    body = (b"cert", *fields)
    return unsafe_seal_certificate(body, A, PEOPLE.a.sign(Kind.CERTIFICATE, encode(body)))


ISSUER, SUBJECT, TAG = (b"issuer", A.to_sexp()), (b"subject", B.to_sexp()), (b"tag", READ)
SOON, LATE = (b"not-before", b"2026-01-01_00:00:00"), (b"not-after", b"2027-01-01_00:00:00")
TEST: Sexp = (b"online", b"crl", C.to_sexp())
NAMED = (b"issuer", (b"name", A.to_sexp(), b"n"))
REFUSED: dict[str, tuple[Sexp, ...]] = {
    "CERT_SHAPE: nothing": (),
    "CERT_SHAPE: no subject": (ISSUER, TAG),
    "CERT_SHAPE: subject first": (SUBJECT, ISSUER, TAG),
    "CERT_ISSUER: a threshold issues": ((b"issuer", Threshold(1, (A,)).to_sexp()), SUBJECT, TAG),
    "CERT_ISSUER: two names": ((b"issuer", (b"name", A.to_sexp(), b"n", b"m")), SUBJECT),
    "CERT_NO_TAG: nothing said": (ISSUER, SUBJECT),
    "CERT_NO_TAG: two tags in one": (ISSUER, SUBJECT, (b"tag", READ, READ)),
    "UNKNOWN_FIELD: two tags": (ISSUER, SUBJECT, TAG, TAG),
    "CERT_NO_TAG: propagate with a value": (ISSUER, SUBJECT, (b"propagate", b"1"), TAG),
    "UNKNOWN_FIELD: propagate behind": (ISSUER, SUBJECT, TAG, (b"propagate",)),
    "EXPECTED_STRING: a condition that is a list": (ISSUER, SUBJECT, TAG, (b"condition", (b"x",))),
    "NOT_UTF8: a condition that is no text": (ISSUER, SUBJECT, TAG, (b"condition", b"\xff")),
    "TOO_MANY_CONDITIONS: 17": (ISSUER, SUBJECT, TAG, *((b"condition", b"x"),) * 17),
    "UNKNOWN_FIELD: an empty validity": (ISSUER, SUBJECT, TAG, (b"valid",)),
    "UNKNOWN_FIELD: ends in the wrong order": (ISSUER, SUBJECT, TAG, (b"valid", LATE, SOON)),
    "UNKNOWN_FIELD: an end twice": (ISSUER, SUBJECT, TAG, (b"valid", SOON, SOON)),
    "PERIOD_EMPTY: over before it starts": (
        ISSUER, SUBJECT, TAG, (b"valid", (b"not-before", LATE[1]), (b"not-after", SOON[1])),
    ),
    "TOO_MANY_TESTS: 9": (ISSUER, SUBJECT, TAG, (b"valid", *(TEST,) * 9)),
    "TOO_MANY_URIS: 9": (ISSUER, SUBJECT, TAG, (b"valid", (*TEST, *(b"u",) * 9))),
    "UNKNOWN_FIELD: a test of another kind": (ISSUER, SUBJECT, TAG, (b"valid", (b"online", b"ocsp", C.to_sexp()))),
    "UNKNOWN_FIELD: a test that is no test": (ISSUER, SUBJECT, TAG, (b"valid", (b"offline",))),
    "PRINCIPAL_SHAPE: a test by a name": (
        ISSUER, SUBJECT, TAG, (b"valid", (b"online", b"crl", Name(C, ("x",)).to_sexp())),
    ),
    "INSTANT: no instant": (ISSUER, SUBJECT, TAG, (b"valid", (b"not-before", b"yesterday"))),
    "UNKNOWN_FIELD: renew twice": (ISSUER, SUBJECT, TAG, (b"renew", b"u"), (b"renew", b"u")),
    "NAME_SUBJECT: a name of a threshold": (NAMED, (b"subject", Threshold(1, (A,)).to_sexp())),
    "NAME_SUBJECT: a name of an object": (NAMED, (b"subject", ObjectHash(bytes(32)).to_sexp())),
    "UNKNOWN_FIELD: a name with a tag": (NAMED, SUBJECT, TAG),
    "PRINCIPAL_SHAPE: nobody issues": ((b"issuer", b"Self"), SUBJECT, TAG),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_fields_are_strict(case: str):
    """Order, number and kind of the fields are fixed; every fault has its code."""
    with pytest.raises(MalformedError) as caught:
        parse_certificate(sealed(*REFUSED[case]))
    assert caught.value.code == case.split(":", maxsplit=1)[0]


ENVELOPES: dict[str, tuple[Sexp, str]] = {
    "an unsigned body": (FULL.to_sexp(), "CERT_SHAPE"),
    "no version": ((b"signed", FULL.to_sexp(), (b"signature", A.to_sexp(), bytes(64))), "CERT_SHAPE"),
    "another version": ((b"signed", b"2", FULL.to_sexp(), (b"signature", A.to_sexp(), bytes(64))), "CERT_VERSION"),
    "two signatures": (
        (b"signed", b"1", FULL.to_sexp(), *((b"signature", A.to_sexp(), bytes(64)),) * 2), "CERT_SHAPE",
    ),
    "a short signature": ((b"signed", b"1", FULL.to_sexp(), (b"signature", A.to_sexp(), bytes(63))), "CERT_SHAPE"),
    "a signature that is a list": ((b"signed", b"1", FULL.to_sexp(), (b"signature", A.to_sexp(), ())), "CERT_SHAPE"),
    "a hinted signature": (
        (b"signed", b"1", FULL.to_sexp(), (b"signature", A.to_sexp(), Hinted(b"x", bytes(64)))), "CERT_SHAPE",
    ),
    "a key by its hash": (
        (b"signed", b"1", FULL.to_sexp(), (b"signature", KeyHash(A.key_id).to_sexp(), bytes(64))), "CERT_SHAPE",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ENVELOPES.values(), ids=ENVELOPES.keys())
def test_the_envelope_is_strict(case: tuple[Sexp, str]):
    """One version, one body, one signature with its key."""
    expression, code = case
    with pytest.raises(EncodingError) as caught:
        parse_certificate(encode(expression))
    assert caught.value.code == code


def test_only_the_issuer_signs():
    """Another key is refused when issuing, and its signature when verifying."""
    with pytest.raises(UsageError, match="WRONG_SIGNER"):
        issue(FULL, PEOPLE.b)
    with pytest.raises(SignatureError, match="WRONG_SIGNER"):
        verify_certificate(parse_certificate(unsafe_sign_certificate(FULL, PEOPLE.b)))


def test_neither_form_can_be_made_by_hand():
    """A body cannot be put under another's signature, not even by copying a good certificate."""
    certificate = grant(PEOPLE.a, PEOPLE.b, READ)
    read = parse_certificate(certificate.raw)
    wide = replace(certificate.body, tag=(b"*",))
    with pytest.raises(UsageError):
        Certificate(wide, certificate.raw, certificate.certificate_id, object())
    with pytest.raises(UsageError):
        UnverifiedCertificate(wide, A, read.signature, read.raw, read.certificate_id, object())
    for made in (certificate, read):
        with pytest.raises((ValueError, TypeError)):
            replace(made, body=wide)


def test_a_certificate_travels_as_bytes_and_is_verified_on_arrival():
    """Unpickling verifies; altered bytes do not arrive."""
    certificate = naming(PEOPLE.a, "n", PEOPLE.b)
    assert pickle.loads(pickle.dumps(certificate)) == certificate  # noqa: S301 - our own bytes
    rebuild, (raw,) = certificate.__reduce__()
    with pytest.raises(SignatureError):
        rebuild(raw[:-3] + bytes((raw[-3] ^ 1,)) + raw[-2:])


def test_bodies_are_bounded_when_they_are_made():
    """Too many conditions, a name of a threshold, too many addresses: refused before signing."""
    with pytest.raises(UsageError):
        replace(FULL, conditions=("x",) * 17)
    with pytest.raises(EncodingError, match="NAME_SUBJECT"):
        Naming(issuer=A, name="n", subject=Threshold(1, (A, B)))
    with pytest.raises(EncodingError, match="TOO_MANY_URIS"):
        online(TestKind.CRL, A, *("u",) * 9)


@pytest.mark.parametrize("field", ["condition", "renew", "uri"])
def test_text_that_is_no_utf8_is_not_signed(field: str):
    """A lone surrogate is refused before it is signed, as an error of Maia."""
    bad = "\ud800"
    body = {
        "condition": replace(FULL, conditions=(bad,)),
        "renew": replace(FULL, renew=bad),
        "uri": replace(FULL, tests=(OnlineTest(TestKind.CRL, C, (bad,)),)),
    }[field]
    with pytest.raises(EncodingError, match="NOT_UTF8"):
        issue(body, PEOPLE.a)
