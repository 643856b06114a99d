"""Verifiers: grants, denials and their reasons, caches, limits."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from maia.authority import (
    CertificatePool,
    Decision,
    Grant,
    Request,
    Root,
    SignatureCache,
    Stage,
    Verifier,
    VerifierLimits,
    ask,
    parse_tag,
)
from maia.encoding import Sexp
from maia.errors import ChainError, SignatureError, UsageError
from maia.principals import Name, ObjectHash, Period, TestKind, Threshold, parse_certificate
from maia.testing import People, at, book, grant, listing, naming, online

P = People("root", "a", "b", "c", "d", "smith", "jones", "lister")
ROOT, A, B, C, SMITH = (P[name].public_key for name in ("root", "a", "b", "c", "smith"))
READ: Sexp = (b"read",)
NOW = at(1000)


def verifier(**options: object) -> Verifier:
    """Trust the root."""
    return Verifier([Root(subject=ROOT)], **options)


def decide(*evidence: object, asked: Sexp = READ, **options: object) -> Decision:
    """Decide for Smith."""
    return verifier(**options).decide(ask(asked), principal=SMITH, evidence=evidence, at=NOW)


def forged(certificate: object) -> bytes:
    """Spoil a signature."""
    raw = certificate.raw
    return raw[:-3] + bytes((raw[-3] ^ 1,)) + raw[-2:]


def test_a_grant_says_what_was_proven():
    """Who, what, when, until when, on which conditions, and from which certificates."""
    first = grant(
        P.root, P.a, "(* set (read) (write))", delegate=True, valid=(0, 5000), conditions=["x"],
        tests=[online(TestKind.CRL, P.lister)],
    )  # fmt: skip
    last = grant(P.a, P.smith, READ, delegate=True, valid=(500, None), conditions=["y", "x"])
    known = book(listing(TestKind.CRL, P.lister, valid=(0, 2000)))
    granted = verifier(statements=known).verify(ask(READ), principal=SMITH, evidence=[last, first], at=NOW)
    assert (granted.principal, granted.at, granted.until) == (SMITH.key_id, NOW, at(2000))
    assert granted.period == Period(at(500), at(5000))
    assert granted.conditions == ("x", "y")
    assert granted.certificates == (first, last)
    assert granted.may_delegate is True
    assert granted.tag == parse_tag(READ)
    assert [granted.holds_at(at(when)) for when in (999, 1000, 1999, 2000)] == [False, True, True, False]


@pytest.mark.parametrize(
    "subject, delegate, expected",
    [
        (SMITH, True, True),
        (SMITH, False, False),
        (Threshold(1, (SMITH, A)), True, True),
        (Threshold(1, (SMITH, A)), False, False),
        (Name(ROOT, ("n",)), False, False),
    ],
    ids=["key", "key, not", "threshold", "threshold, not", "name, not"],
)
def test_a_grant_says_whether_it_may_be_passed_on(subject: object, delegate: bool, expected: bool):
    """Also when the principal holds its right as a member of a threshold or of a group."""
    decision = decide(grant(P.root, subject, READ, delegate=delegate), naming(P.root, "n", P.smith))
    assert decision.grant.may_delegate is expected


def test_the_owner_needs_no_certificate():
    """A root has its own right, and passes it on if the configuration says so."""
    for delegate in (True, False):
        trusting = Verifier([Root(subject=SMITH, delegate=delegate)])
        granted = trusting.verify(ask(READ), principal=SMITH, evidence=(), at=NOW)
        assert (granted.certificates, granted.may_delegate) == ((), delegate)


def test_roots_have_periods_and_tags():
    """A configured root counts in its time and for its rights only."""
    for root, allowed in (
        (Root(subject=ROOT, period=Period(at(0), at(999))), False),
        (Root(subject=ROOT, period=Period(at(0), at(1000))), True),
        (Root(subject=ROOT, tag=parse_tag((b"write",))), False),
    ):
        trusting = Verifier([root])
        decision = trusting.decide(ask(READ), principal=SMITH, evidence=[grant(P.root, P.smith, READ)], at=NOW)
        assert decision.allowed is allowed


DENIALS: dict[str, tuple[list[object], str, Stage, str]] = {
    "nothing": ([], "NO_EVIDENCE", Stage.EVIDENCE, "no readable certificate"),
    "only junk": ([b"junk"], "SEXP_NOT_CANONICAL", Stage.EVIDENCE, "no readable certificate"),
    "about others": ([grant(P.root, P.jones, READ)], "NO_EVIDENCE", Stage.REDUCTION, SMITH.fingerprint),
    "another root": ([grant(P.a, P.smith, READ)], "WRONG_ROOT", Stage.ROOT, A.fingerprint),
    "a gap": (
        [grant(P.root, P.a, READ, delegate=True), grant(P.b, P.smith, READ)], "BROKEN_CHAIN", Stage.REDUCTION,
        ROOT.fingerprint,
    ),
    "too narrow": ([grant(P.root, P.smith, (b"write",))], "NOT_PERMITTED", Stage.REQUEST, "(read)"),
    "not delegable": (
        [grant(P.root, P.a, READ), grant(P.a, P.smith, READ)], "DELEGATION_FORBIDDEN", Stage.REDUCTION,
        ROOT.fingerprint,
    ),
    "expired": ([grant(P.root, P.smith, READ, valid=(0, 999))], "EXPIRED", Stage.VALIDITY, "1970-01-01T00:16:39"),
    "not yet": ([grant(P.root, P.smith, READ, valid=(1001, None))], "NOT_YET_VALID", Stage.VALIDITY, "not valid yet"),
    "forged": ([forged(grant(P.root, P.smith, READ))], "BAD_SIGNATURE", Stage.SIGNATURES, ROOT.fingerprint),
    "unchecked": (
        [grant(P.root, P.smith, READ, tests=[online(TestKind.CRL, P.lister)])], "NO_STATEMENT", Stage.TESTS, "crl",
    ),
    "a name of nobody": ([grant(P.root, Name(ROOT, ("n",)), READ)], "NAME_UNRESOLVED", Stage.NAMES, "n"),
    "a name of others": (
        [grant(P.root, Name(ROOT, ("n",)), READ), naming(P.root, "n", P.a)], "NO_EVIDENCE", Stage.REDUCTION,
        SMITH.fingerprint,
    ),
    "a threshold": (
        [grant(P.root, Threshold(2, (A, B, C)), READ, delegate=True), grant(P.a, P.smith, READ)], "THRESHOLD_NOT_MET",
        Stage.REDUCTION, "2 of 3 needed, 1 present",
    ),
    "a threshold of thresholds": (
        [
            grant(P.root, Threshold(2, (A, Threshold(2, (B, C)))), READ, delegate=True), grant(P.a, P.smith, READ),
            grant(P.b, P.smith, READ),
        ],
        "THRESHOLD_NOT_MET", Stage.REDUCTION, "2 of 2 needed, 1 present",
    ),
    "a threshold that nobody serves": (
        [grant(P.root, Threshold(2, (A, B)), READ, delegate=True), grant(P.c, P.smith, READ)], "BROKEN_CHAIN",
        Stage.REDUCTION, SMITH.fingerprint,
    ),
    "a threshold for something else": (
        [grant(P.root, Threshold(2, (A, B)), (b"write",), delegate=True), grant(P.a, P.smith, READ)], "BROKEN_CHAIN",
        Stage.REDUCTION, SMITH.fingerprint,
    ),
    "an object": ([grant(P.root, ObjectHash(bytes(32)), READ)], "NO_EVIDENCE", Stage.REDUCTION, SMITH.fingerprint),
    "a condition is no obstacle here, but delegation is": (
        [grant(P.root, P.a, READ, conditions=["x"]), grant(P.a, P.smith, READ)], "DELEGATION_FORBIDDEN",
        Stage.REDUCTION, ROOT.fingerprint,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DENIALS.values(), ids=DENIALS.keys())
def test_a_denial_names_its_stage_and_the_nearest_missing_link(case: tuple[list[object], str, Stage, str]):
    """A code for machines, a stage for the trace, and words for people."""
    evidence, code, stage, words = case
    denial = decide(*evidence)
    assert (denial.allowed, denial.reason, denial.stage) == (False, code, stage)
    assert words in denial.error.message
    with pytest.raises(type(denial.error)) as caught:
        verifier().verify(ask(READ), principal=SMITH, evidence=evidence, at=NOW)
    assert caught.value.code == code


def test_without_roots_nothing_is_proven():
    """A verifier that trusts nobody grants nothing, and says where the chain starts."""
    decision = Verifier().decide(ask(READ), principal=SMITH, evidence=[grant(P.root, P.smith, READ)], at=NOW)
    assert decision.reason == "WRONG_ROOT"


def test_a_root_that_may_not_delegate_passes_nothing_on():
    """The configuration has the last word."""
    closed = Verifier([Root(subject=ROOT, delegate=False)])
    assert not closed.decide(ask(READ), principal=SMITH, evidence=[grant(P.root, P.smith, READ)], at=NOW)


def test_links_that_each_permit_part_of_a_request_may_leave_nothing():
    """For an open request each link admits something, and together they admit nothing."""
    request = Request(wanted=parse_tag((b"x",)))
    chain = [grant(P.root, P.a, "(x (* prefix a))", delegate=True), grant(P.a, P.smith, "(x (* prefix b))")]
    denial = verifier().decide(request, principal=SMITH, evidence=chain, at=NOW)
    assert (denial.reason, denial.stage) == ("EMPTY_AUTHORITY", Stage.REQUEST)
    assert "(x)" in denial.error.message


def test_a_forged_link_does_not_hide_a_good_one():
    """When the proof that was found rests on a forgery, another is looked for."""
    good = [grant(P.root, P.a, READ, delegate=True), grant(P.a, P.smith, READ)]
    for n in range(8):
        bad = forged(grant(P.root, P.smith, READ, valid=(n, None)))
        assert decide(bad, *good)
        assert decide(bad).reason == "BAD_SIGNATURE"
    name = [grant(P.root, Name(ROOT, ("n",)), READ), forged(naming(P.root, "n", P.smith))]
    assert decide(*name).reason == "BAD_SIGNATURE"
    assert decide(*name, naming(P.root, "n", P.smith))


def test_clauses_rest_on_good_certificates_only():
    """Forged links and names give no clause; the others do, each with its own time."""
    tests = [online(TestKind.CRL, P.lister)]
    known = book(listing(TestKind.CRL, P.lister, valid=(0, 2000)))
    evidence = [
        grant(P.root, P.smith, (b"a",), tests=tests),
        forged(grant(P.root, P.smith, (b"b",))),
        grant(P.root, Name(ROOT, ("n",)), (b"c",)),
        naming(P.root, "n", P.smith, valid=(0, 1500)),
        grant(P.root, Name(ROOT, ("m",)), (b"d",)),
        forged(naming(P.root, "m", P.smith)),
        grant(P.root, P.smith, (b"a",), tests=tests, valid=(None, 99_999)),
    ]
    found = verifier(statements=known).clauses(
        Request(wanted=parse_tag((b"*",))), principal=SMITH, evidence=evidence, at=NOW
    )
    assert {(clause.tag.to_sexp(), clause.until, clause.period.not_after) for clause in found} == {
        ((b"a",), at(2000), None),
        ((b"a",), at(2000), at(99_999)),
        ((b"c",), None, at(1500)),
    }


def test_clauses_are_bounded():
    """More chains than allowed are cut to as many as are, in turns; fewer clauses only close cells."""
    evidence = [grant(P.root, P.smith, (b"%d" % n,)) for n in range(5)]
    request = Request(wanted=parse_tag((b"*",)))
    assert (
        len(verifier(limits=VerifierLimits(max_clauses=5)).clauses(request, principal=SMITH, evidence=evidence, at=NOW))
        == 5
    )
    few = verifier(limits=VerifierLimits(max_clauses=4)).clauses(request, principal=SMITH, evidence=evidence, at=NOW)
    assert len(few) == 4


def few(steps: int) -> VerifierLimits:
    """Allow a decision these steps, however much evidence there is."""
    return VerifierLimits(max_steps=steps, octets_per_step=1 << 30)


def test_a_search_is_bounded_and_so_is_its_explanation():
    """Too many links to look at: a limit; when only the explanation takes too long, that is said."""
    wide = [grant(P.root, P.smith, READ, valid=(None, 99_000 + n)) for n in range(30)]
    assert decide(*wide, limits=few(10)).reason == "LIMIT_EXCEEDED"
    other = [grant(P.root, People(f"x{n}", seed="wide")[f"x{n}"], (b"write",)) for n in range(30)]
    relaxed = [
        grant(P.root, P.a, READ), grant(P.a, P.b, READ, delegate=True),
        *(grant(P.b, P.smith, READ, valid=(None, 99_000 + n)) for n in range(30)),
    ]  # fmt: skip
    assert decide(*other, limits=few(250)).reason == "NO_EVIDENCE"
    assert decide(*relaxed, limits=few(50)).reason == "LIMIT_EXCEEDED"
    assert decide(*relaxed).reason == "DELEGATION_FORBIDDEN"


def test_an_explanation_that_takes_too_long_is_a_denial_as_well():
    """Expired names cost the decision nothing, and whatever they cost its explanation, the answer is no."""
    limits = few(10)
    expired = [naming(P.root, "n", People(f"x{n}", seed="wide")[f"x{n}"], valid=(0, 1)) for n in range(30)]
    denial = decide(grant(P.root, Name(ROOT, ("n",)), READ), *expired, limits=limits)
    assert not denial
    assert denial.reason in {"LIMIT_EXCEEDED", "NAME_UNRESOLVED"}


def test_a_chain_has_a_longest_length():
    """One link more than allowed is not followed."""
    signers = [P.root, *(People(f"s{n}", seed="long")[f"s{n}"] for n in range(9)), P.smith]
    chain = [grant(signers[n], signers[n + 1], READ, delegate=True) for n in range(10)]
    assert decide(*chain, limits=VerifierLimits(max_chain_length=10))
    assert not decide(*chain, limits=VerifierLimits(max_chain_length=9))


def test_the_longest_chain_that_is_allowed_is_decided_explained_and_summed_up():
    """256 links fit the interpreter's stack, in decisions, clauses and denials."""
    signers = [P.root, *(People(f"s{n}", seed="longest")[f"s{n}"] for n in range(255)), P.smith]
    chain = [grant(signers[n], signers[n + 1], READ, delegate=True) for n in range(256)]
    pool = CertificatePool(chain)
    granted = verifier().verify(ask(READ), principal=SMITH, evidence=pool, at=NOW)
    assert len(granted.certificates) == 256
    request = Request(wanted=parse_tag((b"*",)))
    assert len(verifier().clauses(request, principal=SMITH, evidence=pool, at=NOW)) == 1
    assert verifier().decide(ask((b"write",)), principal=SMITH, evidence=pool, at=NOW).reason == "NOT_PERMITTED"


def test_a_grant_is_made_by_a_verifier_only():
    """Neither by hand nor by copying."""
    granted = verifier().verify(ask(READ), principal=SMITH, evidence=[grant(P.root, P.smith, READ)], at=NOW)
    with pytest.raises((ValueError, TypeError)):
        replace(granted, principal=A.key_id)
    fields = [getattr(granted, name) for name in Grant.__dataclass_fields__ if not name.startswith("_")]
    with pytest.raises(UsageError):
        Grant(*fields, object())


def test_what_a_verifier_trusts_cannot_be_changed_under_its_cache():
    """Roots, limits and statements are fixed when it is made."""
    one = verifier()
    for name, value in (("roots", ()), ("limits", VerifierLimits()), ("statements", book())):
        with pytest.raises(AttributeError):
            setattr(one, name, value)
    assert one.roots == (Root(subject=ROOT),)


def test_memory_is_bounded():
    """Old signatures, grants and pools make room; answers stay right."""
    one = verifier(limits=VerifierLimits(max_memory=2))
    evidence = [[grant(P.root, P.smith, (b"%d" % n,))] for n in range(1030)]
    for n, certificates in enumerate(evidence):
        assert one.decide(ask((b"%d" % n,)), principal=SMITH, evidence=certificates, at=NOW)
    assert len(one.signatures) == 2
    assert [item.certificate_id for item in one.signatures] == [
        certificates[0].certificate_id for certificates in evidence[-2:]
    ]
    assert len(one._grants) == 2
    assert len(one._pools) == 1024
    assert one.decide(ask((b"0",)), principal=SMITH, evidence=evidence[0], at=NOW)


def test_a_cache_of_signatures_holds_good_ones_only():
    """What failed is tried again, and fails again."""
    cache = SignatureCache(10)
    good = grant(P.root, P.smith, READ)
    for _ in range(2):
        assert cache.verify(parse_certificate(good.raw)) == good
        with pytest.raises(SignatureError):
            cache.verify(parse_certificate(forged(good)))
    assert (len(cache), cache.verifications) == (1, 3)


def test_time_comes_in_aware():
    """An instant without a zone is the caller's mistake."""
    with pytest.raises(UsageError):
        verifier().decide(ask(READ), principal=SMITH, evidence=(), at=datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(UsageError):
        verifier().clauses(ask(READ), principal=SMITH, evidence=(), at=datetime(2026, 1, 1))  # noqa: DTZ001


def test_growing_a_pool_changes_its_answers():
    """A pool may be added to; what was remembered about it before does not stand in the way."""
    pool = CertificatePool([grant(P.root, P.a, READ, delegate=True)])
    one = verifier()
    assert not one.decide(ask(READ), principal=SMITH, evidence=pool, at=NOW)
    pool.add(grant(P.a, P.smith, READ))
    assert one.decide(ask(READ), principal=SMITH, evidence=pool, at=NOW)


def test_a_decision_stands_for_its_answer():
    """True when allowed; a denial carries an error and no grant."""
    yes, no = decide(grant(P.root, P.smith, READ)), decide()
    assert (bool(yes), yes.reason, yes.error, yes.stage) == (True, None, None, None)
    assert (bool(no), no.grant) == (False, None)
    assert isinstance(no.error, ChainError)
