"""Whole decisions: chains, thresholds, roots, validity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from builders import AT, Case, advanced, case, certificate_id, key, naming, period, right, signed

from maia.principals import KeyHash, Name, ObjectHash, OnlineTest, Principal, TestKind, Threshold

ABOUT = "Does this evidence prove this right, now? The owner is the only root unless a case says otherwise."
READ = "(ftp read)"
GONE = period(None, "2026-06-01T11:59:59Z")
SOON = period("2026-06-01T12:00:01Z", None)


def cases() -> list[Case]:
    """List the cases."""
    return [*allowed(), *denied()]


def allowed() -> list[Case]:
    """List what is proven; every certificate that is shown is part of the proof, unless ``extra``."""
    threshold = Threshold(2, (key("alice"), key("bob"), key("carol")))
    to_threshold = right("owner", threshold, delegate=True)
    shares = [right("alice", "dave"), right("bob", "dave")]
    names = [naming("owner", "staff", "alice"), right("owner", Name(key("owner"), ("staff",)))]
    nested = Threshold(2, (key("alice"), Threshold(2, (key("bob"), key("carol")))))
    three = [right(one, "dave") for one in ("alice", "bob", "carol")]
    exactly = period("2026-06-01T12:00:00Z", "2026-06-01T12:00:00Z")
    by_hash = right("owner", KeyHash(key("alice").key_id), delegate=True)
    return [
        _yes("the root itself needs no certificate", [], "owner"),
        _yes("one certificate", [right("owner", "alice")], "alice"),
        _yes(
            "a chain of three, out of order",
            [
                right("bob", "carol"),
                right("owner", "alice", delegate=True),
                right("alice", "bob", delegate=True),
            ],
            "carol",
        ),
        _yes(
            "each link narrows, and the request is in all",
            [
                right("owner", "alice", "(ftp (* set read write))", delegate=True),
                right("alice", "bob", "(ftp (* prefix re))"),
            ],
            "bob",
        ),
        _yes("a hash as subject meets the key as issuer", [by_hash, right("alice", "bob")], "bob"),
        _yes("a subject named by a group", names, "alice"),
        _yes("two of three, each with a path to the principal", [to_threshold, *shares], "dave"),
        _yes("a member of a threshold that is the principal", [to_threshold, right("bob", "alice")], "alice"),
        _yes("a nested threshold", [right("owner", nested, delegate=True), *three], "dave"),
        _yes("the only instant of a period", [right("owner", "alice", period=exactly)], "alice"),
        _yes(
            "what is superfluous does no harm",
            [right("owner", "alice")],
            "alice",
            extra=[right("eve", "alice"), right("owner", "bob", period=GONE)],
        ),
        _yes(
            "a loop on the way",
            [right("owner", "alice", delegate=True), right("alice", "bob")],
            "bob",
            extra=[right("bob", "alice", delegate=True)],
        ),
        _yes("a threshold as root", shares, "dave", root=threshold),
    ]


def denied() -> list[Case]:
    """List what is not proven, with the reason and the stage that failed."""
    threshold = Threshold(2, (key("alice"), key("bob"), key("carol")))
    twice = Threshold(2, (key("alice"), KeyHash(key("alice").key_id), Name(key("owner"), ("staff",))))
    passing = right("owner", "alice", delegate=True)
    forged = signed(right("owner", "eve"), by="eve")
    flipped = bytearray(signed(right("owner", "alice")))
    flipped[-10] ^= 1
    test = OnlineTest(TestKind.CRL, key("carol"))
    no = _no
    return [
        no("nothing is shown", [], "alice", "NO_EVIDENCE", "evidence"),
        no("what is shown cannot be read", [b"(6:signed)"], "alice", "CERT_SHAPE", "evidence"),
        no(
            "the first link forbids delegation",
            [right("owner", "alice"), right("alice", "bob")],
            "bob",
            "DELEGATION_FORBIDDEN",
            "reduction",
        ),
        no("a link is missing", [passing, right("bob", "carol")], "carol", "BROKEN_CHAIN", "reduction"),
        no("the chain starts at somebody else", [right("eve", "alice")], "alice", "WRONG_ROOT", "root"),
        no("nobody names the principal", [right("owner", "alice")], "bob", "NO_EVIDENCE", "reduction"),
        no(
            "a link does not include the request",
            [passing, right("alice", "bob", "(ftp write)")],
            "bob",
            "NOT_PERMITTED",
            "request",
        ),
        no("expired a second ago", [right("owner", "alice", period=GONE)], "alice", "EXPIRED", "validity"),
        no("valid in a second", [right("owner", "alice", period=SOON)], "alice", "NOT_YET_VALID", "validity"),
        no(
            "one expired link denies the whole chain",
            [right("owner", "alice", delegate=True, period=GONE), right("alice", "bob")],
            "bob",
            "EXPIRED",
            "validity",
        ),
        no("a forged certificate of the owner", [forged], "eve", "WRONG_SIGNER", "signatures"),
        no("a flipped bit in the signature", [bytes(flipped)], "alice", "BAD_SIGNATURE", "signatures"),
        no("a test without a statement", [right("owner", "alice", tests=(test,))], "alice", "NO_STATEMENT", "tests"),
        no(
            "one of two members",
            [right("owner", threshold, delegate=True), right("alice", "dave")],
            "dave",
            "THRESHOLD_NOT_MET",
            "reduction",
        ),
        no(
            "one key as itself, by its hash and by a name is one member",
            [right("owner", twice, delegate=True), naming("owner", "staff", "alice"), right("alice", "dave")],
            "dave",
            "THRESHOLD_NOT_MET",
            "reduction",
        ),
        no(
            "a threshold that may not pass the right on",
            [right("owner", threshold), right("alice", "dave"), right("bob", "dave")],
            "dave",
            "DELEGATION_FORBIDDEN",
            "reduction",
        ),
        no(
            "a name that stands for nobody",
            [right("owner", Name(key("owner"), ("staff",)))],
            "alice",
            "NAME_UNRESOLVED",
            "names",
        ),
        no(
            "a name defined by somebody else",
            [right("owner", Name(key("owner"), ("staff",))), naming("eve", "staff", "eve")],
            "eve",
            "NAME_UNRESOLVED",
            "names",
        ),
        no(
            "an object cannot act",
            [right("owner", ObjectHash(key("alice").key_id), delegate=True)],
            "alice",
            "NO_EVIDENCE",
            "reduction",
        ),
        no(
            "a loop that no root reaches",
            [right("alice", "bob", delegate=True), right("bob", "alice", delegate=True)],
            "bob",
            "WRONG_ROOT",
            "root",
        ),
    ]


def _given(evidence: Sequence[Any], principal: str, root: Principal | None) -> dict[str, Any]:
    raws = [item if isinstance(item, bytes) else signed(item) for item in evidence]
    return {
        "roots": [advanced((root or key("owner")).to_sexp())],
        "certificates_hex": [raw.hex() for raw in raws],
        "statements_hex": [],
        "principal_hex": key(principal).raw.hex(),
        "request": READ,
        "at": AT,
    }


def _yes(
    says: str, bodies: Sequence[Any], who: str, *, extra: Sequence[Any] = (), root: Principal | None = None
) -> Case:
    expected = {"allowed": True, "certificate_ids_hex": sorted(certificate_id(signed(body)) for body in bodies)}
    return case(says, "authority.decide", _given([*extra, *bodies], who, root), expected)


def _no(says: str, evidence: Sequence[Any], who: str, reason: str, stage: str) -> Case:
    expected = {"allowed": False, "reason": reason, "stage": stage}
    return case(says, "authority.decide", _given(evidence, who, None), expected, must_fail=True)
