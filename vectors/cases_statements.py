"""Validity statements: CRLs, revalidations, one-time answers, and the book that keeps them."""

from __future__ import annotations

from typing import Any

from builders import Case, advanced, case, instant, key, signed_statement, signer

from maia.authority import ListStatement, OneTimeAnswer, unsafe_sign_statement
from maia.encoding import Sexp
from maia.principals import CertificateId, KeyHash, Kind, TestKind

ABOUT = "Signed statements about certificates, and which of them counts when."
ONE, TWO = (CertificateId(bytes([octet]) * 32) for octet in (1, 2))


def at(minute: int) -> str:
    """Give an instant some minutes past noon."""
    return f"2026-06-01T{12 + minute // 60:02d}:{minute % 60:02d}:00Z"


def listing(
    kind: TestKind,
    sequence: int,
    *ids: CertificateId,
    start: int | None = None,
    end: int | None = None,
    by: str = "carol",
    only_revokes: bool = False,
) -> bytes:
    """Sign a list, timed when it has a start."""
    body = ListStatement(
        kind=kind, signer=key(by), sequence=sequence, certificates=frozenset(ids),
        starts=None if start is None else instant(at(start)), ends=None if end is None else instant(at(end)),
        only_revokes=only_revokes,
    )  # fmt: skip
    return unsafe_sign_statement(body, signer(by))


def cases() -> list[Case]:
    """List the cases."""
    return [*statements(), *books(), *only_revoking()]


def statements() -> list[Case]:
    """List single statements."""
    crl = ListStatement(kind=TestKind.CRL, signer=key("carol"), sequence=7, certificates=frozenset({ONE, TWO}))
    timed = ListStatement(
        kind=TestKind.REVALIDATION, signer=KeyHash(key("carol").key_id), sequence=0, certificates=frozenset(),
        starts=instant(at(0)), ends=instant(at(60)),
    )  # fmt: skip
    answer = OneTimeAnswer(
        signer=key("carol"),
        nonce=bytes(range(16)),
        verifier="broker-1",
        certificates=frozenset({ONE}),
        request=bytes(32),
    )
    flipped = bytearray(unsafe_sign_statement(crl, signer("carol")))
    flipped[-10] ^= 1
    return [
        *(
            case(
                says,
                "statement.verify",
                {"statement_hex": unsafe_sign_statement(body, signer("carol")).hex()},
                {"body": advanced(body.to_sexp())},
            )
            for says, body in (("a plain CRL", crl), ("a timed revalidation", timed), ("a one-time answer", answer))
        ),
        *(
            case(says, "statement.verify", {"statement_hex": signed_statement(shape, "carol").hex()}, {"error": code})
            for says, shape, code in shapes()
        ),
        case("a flipped bit", "statement.verify", {"statement_hex": bytes(flipped).hex()}, {"error": "BAD_SIGNATURE"}),
        case(
            "signed by another key than it names",
            "statement.verify",
            {"statement_hex": unsafe_sign_statement(crl, signer("eve")).hex()},
            {"error": "WRONG_SIGNER"},
        ),
        case(
            "signed as a certificate",
            "statement.verify",
            {"statement_hex": signed_statement(crl.to_sexp(), "carol", kind=Kind.CERTIFICATE).hex()},
            {"error": "BAD_SIGNATURE"},
        ),
    ]


def shapes() -> list[tuple[str, Sexp, str]]:
    """List bodies that are no statements."""
    version, kind, who = (b"version", b"1"), (b"kind", b"crl"), (b"signer", key("carol").to_sexp())
    sequence, ids = (b"sequence", b"7"), (b"certificates", ONE)
    interval = (b"in-force", b"2026-06-01_12:00:00", b"2026-06-01_13:00:00")
    backwards = (interval[0], interval[2], interval[1])

    def of(*fields: Sexp) -> Sexp:
        return (b"statement", *fields)

    return [
        ("a statement of an unknown version", of((b"version", b"2"), kind, who, sequence, ids), "STATEMENT_VERSION"),
        ("an unknown kind", of(version, (b"kind", b"ocsp"), who, sequence, ids), "UNKNOWN_FIELD"),
        ("no list of certificates", of(version, kind, who, sequence), "STATEMENT_SHAPE"),
        ("an unknown field", of(version, kind, who, sequence, (b"note", b"x"), ids), "UNKNOWN_FIELD"),
        ("a sequence with a leading zero", of(version, kind, who, (b"sequence", b"07"), ids), "STATEMENT_SEQUENCE"),
        ("a negative sequence", of(version, kind, who, (b"sequence", b"-1"), ids), "STATEMENT_SEQUENCE"),
        ("an interval that is empty", of(version, kind, who, sequence, backwards, ids), "STATEMENT_INTERVAL"),
        (
            "a revalidation without an interval",
            of(version, (b"kind", b"revalidation"), who, sequence, ids),
            "STATEMENT_INTERVAL",
        ),
        ("ids out of order", of(version, kind, who, sequence, (b"certificates", TWO, ONE)), "STATEMENT_IDS"),
        ("an id twice", of(version, kind, who, sequence, (b"certificates", ONE, ONE)), "STATEMENT_IDS"),
        ("half an id", of(version, kind, who, sequence, (b"certificates", ONE[:16])), "STATEMENT_IDS"),
        (
            "a one-time answer without a nonce",
            of(version, (b"kind", b"one-time"), who, (b"verifier", b"v"), ids),
            "UNKNOWN_FIELD",
        ),
    ]


def accept(raw: bytes, outcome: str = "accepted") -> dict[str, Any]:
    """Offer a statement to the book."""
    return {"accept_hex": raw.hex(), "outcome": outcome}


def check(
    kind: TestKind, minute: int, outcome: str, certificate: CertificateId = ONE, by: str = "carol"
) -> dict[str, Any]:
    """Ask the book about a certificate."""
    return {
        "check": kind.value, "signer_hex": key(by).raw.hex(), "certificate_id_hex": certificate.hex(), "at": at(minute),
        "outcome": outcome,
    }  # fmt: skip


def books() -> list[Case]:
    """List histories; the outcome of each step stands in the expected result."""
    crl, good = TestKind.CRL, TestKind.REVALIDATION
    hour = listing(crl, 1, start=0, end=60)
    histories: list[tuple[str, bool, list[dict[str, Any]]]] = [
        ("a plain CRL that does not list it", False, [accept(listing(crl, 7)), check(crl, 0, "good")]),
        (
            "an early successor counts from its start",
            False,
            [
                accept(hour),
                accept(listing(crl, 2, ONE, start=60, end=120)),
                check(crl, 59, "good"),
                check(crl, 60, "REVOKED"),
            ],
        ),
        ("the same list again changes nothing", False, [accept(hour), accept(hour), check(crl, 30, "good")]),
        (
            "a list for the far future blocks nothing before it",
            False,
            [
                accept(listing(crl, 1, start=600, end=660)),
                accept(listing(crl, 5, start=0, end=60)),
                check(crl, 0, "good"),
            ],
        ),
        (
            "a revalidation that lists it",
            False,
            [accept(listing(good, 1, ONE, start=0, end=60)), check(good, 0, "good")],
        ),
        ("no statement denies", True, [check(crl, 0, "NO_STATEMENT")]),
        ("a plain CRL that lists it", True, [accept(listing(crl, 7, ONE)), check(crl, 0, "REVOKED")]),
        (
            "an older plain CRL is refused",
            True,
            [accept(listing(crl, 7, ONE)), accept(listing(crl, 6), "STATEMENT_ROLLBACK"), check(crl, 0, "REVOKED")],
        ),
        (
            "a timed list ends before its end",
            True,
            [accept(hour), check(crl, 59, "good"), check(crl, 60, "NO_STATEMENT")],
        ),
        (
            "a list does not count before its start",
            True,
            [accept(listing(crl, 1, start=5, end=60)), check(crl, 4, "NO_STATEMENT")],
        ),
        (
            "lists may not overlap",
            True,
            [
                accept(hour),
                accept(listing(crl, 2, ONE, start=50, end=110), "STATEMENT_OVERLAP"),
                check(crl, 55, "good"),
            ],
        ),
        (
            "a later list needs a higher sequence",
            True,
            [
                accept(listing(crl, 5, start=0, end=60)),
                accept(listing(crl, 5, start=60, end=120), "STATEMENT_ROLLBACK"),
            ],
        ),
        (
            "a gap between lists denies",
            True,
            [accept(hour), accept(listing(crl, 2, start=61, end=120)), check(crl, 60, "NO_STATEMENT")],
        ),
        (
            "a plain CRL does not outlive timed ones",
            True,
            [accept(listing(crl, 9)), accept(hour), check(crl, 60, "NO_STATEMENT")],
        ),
        (
            "a list of another key is no answer",
            True,
            [accept(listing(crl, 1, start=0, end=60, by="eve")), check(crl, 0, "NO_STATEMENT")],
        ),
        (
            "a revalidation that does not list it",
            True,
            [accept(listing(good, 1, TWO, start=0, end=60)), check(good, 0, "REVOKED")],
        ),
        ("a CRL is no answer to a demand for a revalidation", True, [accept(hour), check(good, 0, "NO_STATEMENT")]),
    ]
    return told(histories)


def only_revoking() -> list[Case]:
    """List what a plain CRL says that stands beside timed ones: it takes away, and confirms nothing."""
    crl = TestKind.CRL
    body = ListStatement(
        kind=crl, signer=key("carol"), sequence=8, certificates=frozenset({ONE}), only_revokes=True, since=(0,)
    )
    timed: Sexp = (
        b"statement", (b"version", b"1"), (b"kind", b"crl"), (b"signer", key("carol").to_sexp()), (b"sequence", b"8"),
        (b"in-force", b"2026-06-01_12:00:00", b"2026-06-01_13:00:00"), (b"only-revokes",), (b"certificates", ONE),
    )  # fmt: skip
    said = listing(crl, 8, ONE, only_revokes=True)
    return [
        case(
            "a plain CRL that only revokes",
            "statement.verify",
            {"statement_hex": unsafe_sign_statement(body, signer("carol")).hex()},
            {"body": advanced(body.to_sexp())},
        ),
        case(
            "a timed list that only revokes",
            "statement.verify",
            {"statement_hex": signed_statement(timed, "carol").hex()},
            {"error": "UNKNOWN_FIELD"},
        ),
        *told(
            [
                (
                    "a list that only revokes confirms nothing by itself",
                    True,
                    [accept(said), check(crl, 0, "NO_STATEMENT", TWO), check(crl, 0, "NO_STATEMENT")],
                ),
                (
                    "beside a timed list it takes away what it names, and no more",
                    True,
                    [
                        accept(said),
                        accept(listing(crl, 7, start=0, end=60)),
                        check(crl, 30, "good", TWO),
                        check(crl, 30, "REVOKED"),
                        check(crl, 60, "NO_STATEMENT", TWO),
                    ],
                ),
            ]
        ),
    ]


def told(histories: list[tuple[str, bool, list[dict[str, Any]]]]) -> list[Case]:
    """Make a case of each history."""
    out = []
    for says, fails, steps in histories:
        outcomes = [step.pop("outcome") for step in steps]
        out.append(case(says, "statement.book", {"steps": steps}, {"outcomes": outcomes}, must_fail=fails))
    return out
