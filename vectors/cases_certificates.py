"""Certificates: what is read, and what is refused."""

from __future__ import annotations

from builders import Case, advanced, case, certificate_id, key, naming, period, right, signed, signed_certificate

from maia.encoding import Sexp, encode
from maia.principals import Body, KeyHash, Kind, Name, ObjectHash, OnlineTest, TestKind, Threshold

ABOUT = "Authorisation (5-tuple) and name (4-tuple) certificates: fields in order, one signer, nothing unknown."


def cases() -> list[Case]:
    """List the cases."""
    return [
        *(_good(says, body) for says, body in good()),
        *(
            case(says, "certificate.verify", {"certificate_hex": raw.hex()}, {"error": code})
            for says, raw, code in bad()
        ),
    ]


def _good(says: str, body: Body) -> Case:
    raw = signed(body)
    expected = {"id_hex": certificate_id(raw), "body": advanced(body.to_sexp())}
    return case(says, "certificate.verify", {"certificate_hex": raw.hex()}, expected)


def good() -> list[tuple[str, Body]]:
    """List bodies that are certificates once signed."""
    test = OnlineTest(TestKind.CRL, key("carol"), ("https://example.org/crl",))
    by_hash = right("alice", "bob", "(ftp)")
    return [
        ("the shortest authorisation", right("alice", "bob", "(*)")),
        ("an authorisation that may be passed on", right("alice", "bob", "(ftp (* prefix /pub/))", delegate=True)),
        (
            "an issuer named by its hash",
            type(by_hash)(issuer=KeyHash(key("alice").key_id), subject=key("bob"), delegate=False, tag=by_hash.tag),
        ),
        ("a threshold as subject", right("alice", Threshold(2, (key("bob"), key("carol"), key("dave"))))),
        ("an object as subject", right("alice", ObjectHash(bytes(range(32))))),
        ("both ends of a period", right("alice", "bob", period=period("2026-01-01T00:00:00Z", "2026-12-31T23:59:59Z"))),
        (
            "a test, a condition and an address for renewal",
            right("alice", "bob", tests=(test,), conditions=("hour < 18",), renew="https://example.org/renew"),
        ),
        ("a name for a key", naming("alice", "brokers", "bob")),
        (
            "a name for a name, until an instant",
            naming(
                "alice", "brokers", Name(key("bob"), ("staff", "london")), period=period(None, "2026-12-31T00:00:00Z")
            ),
        ),
    ]


def fields(**other: Sexp | None) -> tuple[Sexp, ...]:
    """Give the fields of a plain body, with some put in, exchanged or (``None``) left out."""
    plain: dict[str, Sexp | None] = {
        "issuer": (b"issuer", key("alice").to_sexp()),
        "subject": (b"subject", key("bob").to_sexp()),
        "propagate": None,
        "tag": (b"tag", (b"ftp",)),
        "condition": None,
        "valid": None,
        "renew": None,
        "last": None,
    }
    return (b"cert", *(field for field in {**plain, **other}.values() if field is not None))


def bad() -> list[tuple[str, bytes, str]]:
    """List octets that are no valid certificate."""
    plain = signed(right("alice", "bob"))
    flipped = bytearray(plain)
    flipped[-10] ^= 1
    altered = bytearray(plain)
    altered[plain.index(b"3:ftp") + 2] ^= 1
    name: Sexp = (b"name", key("alice").to_sexp(), b"n")
    nameless: dict[str, Sexp | None] = {"issuer": (b"issuer", name), "tag": None}
    instants = (b"not-before", b"2026-06-02_00:00:00"), (b"not-after", b"2026-06-01_00:00:00")
    shapes: list[tuple[str, tuple[Sexp, ...], str]] = [
        ("no tag, which is no certificate rather than every right", fields(tag=None), "CERT_NO_TAG"),
        ("no issuer", fields(issuer=None), "CERT_SHAPE"),
        ("no subject", fields(subject=None), "CERT_SHAPE"),
        ("subject before issuer", fields(issuer=fields()[2], subject=fields()[1]), "CERT_SHAPE"),
        ("an unknown field at the end", fields(last=(b"note", b"x")), "UNKNOWN_FIELD"),
        ("an unknown field before the tag", fields(propagate=(b"note", b"x")), "CERT_NO_TAG"),
        ("propagate with an argument", fields(propagate=(b"propagate", b"1")), "CERT_NO_TAG"),
        ("two tags", fields(condition=(b"tag", (b"*",))), "UNKNOWN_FIELD"),
        ("an empty `valid`", fields(valid=(b"valid",)), "UNKNOWN_FIELD"),
        ("a period that ends before it starts", fields(valid=(b"valid", *instants)), "PERIOD_EMPTY"),
        ("the ends of a period in the wrong order", fields(valid=(b"valid", *reversed(instants))), "UNKNOWN_FIELD"),
        ("an instant on no calendar", fields(valid=(b"valid", (b"not-after", b"2026-02-30_00:00:00"))), "INSTANT"),
        ("an instant with a fraction", fields(valid=(b"valid", (b"not-after", b"2026-02-01_00:00:00.5"))), "INSTANT"),
        (
            "an on-line test of an unknown kind",
            fields(valid=(b"valid", (b"online", b"ocsp", key("carol").to_sexp()))),
            "UNKNOWN_FIELD",
        ),
        ("a condition that is not UTF-8", fields(condition=(b"condition", b"\xff")), "NOT_UTF8"),
        (
            "a threshold as issuer",
            fields(issuer=(b"issuer", (b"k-of-n", b"1", b"1", key("alice").to_sexp()))),
            "CERT_ISSUER",
        ),
        ("a name of two parts defined", fields(**{**nameless, "issuer": (b"issuer", (*name, b"m"))}), "CERT_ISSUER"),
        (
            "a name for a threshold",
            fields(**nameless, subject=(b"subject", (b"k-of-n", b"1", b"1", key("bob").to_sexp()))),
            "NAME_SUBJECT",
        ),
        (
            "a name for an object",
            fields(**nameless, subject=(b"subject", ObjectHash(bytes(32)).to_sexp())),
            "NAME_SUBJECT",
        ),
        ("a name certificate with a tag", fields(issuer=(b"issuer", name)), "UNKNOWN_FIELD"),
        (
            "a small-order key as subject",
            fields(subject=(b"subject", (b"public-key", (b"ed25519", bytes(32))))),
            "KEY_SMALL_ORDER",
        ),
    ]
    mark: Sexp = (b"signature", key("alice").to_sexp(), bytes(64))
    return [
        *((says, signed_certificate(shape, "alice"), code) for says, shape, code in shapes),
        ("a signature with one bit flipped", bytes(flipped), "BAD_SIGNATURE"),
        ("a body with one bit flipped", bytes(altered), "BAD_SIGNATURE"),
        ("signed by somebody else", signed(right("alice", "bob"), by="eve"), "WRONG_SIGNER"),
        ("signed as a statement", signed_certificate(fields(), "alice", kind=Kind.STATEMENT), "BAD_SIGNATURE"),
        ("a version to come", signed_certificate(fields(), "alice", version=b"2"), "CERT_VERSION"),
        ("a version with a leading zero", signed_certificate(fields(), "alice", version=b"01"), "CERT_VERSION"),
        ("no version", encode((b"signed", fields(), mark)), "CERT_SHAPE"),
        ("a body without a signature", encode(fields()), "CERT_SHAPE"),
        ("two signatures", encode((b"signed", b"1", fields(), mark, mark)), "CERT_SHAPE"),
        ("a signature of 63 octets", encode((b"signed", b"1", fields(), (*mark[:2], bytes(63)))), "CERT_SHAPE"),
        ("an octet after the certificate", plain + b"\0", "SEXP_NOT_CANONICAL"),
        ("a certificate in the advanced form", b"(signed (cert))", "SEXP_NOT_CANONICAL"),
    ]
