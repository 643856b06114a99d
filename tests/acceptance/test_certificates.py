"""Rows 1.01 to 1.15: principals, certificates, reduction, names, groups, thresholds."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import pairwise

import pytest

from maia.authority import (
    Action,
    Constraint,
    Decision,
    Presentation,
    Request,
    Root,
    Stage,
    Verifier,
    ask,
    ask_type,
    decide_presentation,
    five_tuple,
    parse_tag,
    reduce_chain,
    reduce_pair,
    type_right,
)
from maia.encoding import Sexp, encode, parse_advanced, parse_canonical
from maia.errors import ChainError, ExpiredError, MaiaError, SignatureError
from maia.principals import (
    Authorisation,
    Certificate,
    KeyHash,
    Name,
    ObjectHash,
    Period,
    TestKind,
    Threshold,
    check_nonce_proof,
    issue,
    parse_certificate,
    prove_by_nonce,
    verify_certificate,
)
from maia.testing import People, at, book, grant, listing, naming, online

NOW = at("2026-06-01T09:00:00")
READ: Sexp = (b"read",)


def decide(
    owner: object, who: object, evidence: object, *, asked: Request | None = None, when: datetime = NOW, **known: object
) -> Decision:
    """Decide a request with one configured root."""
    verifier = Verifier([Root(subject=owner.public_key)], **known)
    return verifier.decide(asked or ask(READ), principal=who.public_key, evidence=evidence, at=when)


@pytest.mark.requirement("1.01")
def test_two_keys_of_one_person_are_two_principals():
    """A capability for Smith's first key is worth nothing to Smith's second."""
    people = People("owner", "smith_1", "smith_2")
    evidence = [grant(people.owner, people.smith_1, READ)]
    assert decide(people.owner, people.smith_1, evidence)
    assert not decide(people.owner, people.smith_2, evidence)


FIELDS = ("issuer", "subject", "propagate", "tag", "valid", "signature")


@pytest.mark.requirement("1.02")
@pytest.mark.parametrize("field", FIELDS)
def test_every_field_is_under_the_signature(field: str):
    """One octet changed in any field, or in the signature, is a bad signature (or no certificate any more)."""
    people = People("pito", "met")
    raw = grant(people.pito, people.met, "(ftp read)", delegate=True, valid=(1, 10**9)).raw
    spots = {
        "issuer": raw.index(people.pito.public_key.raw) + 5,
        "subject": raw.index(people.met.public_key.raw) + 5,
        "tag": raw.index(b"4:read") + 2,
        "valid": raw.index(b"19:1970") + 6,
        "signature": len(raw) - 10,
    }
    if field == "propagate":
        altered = raw.replace(b"(9:propagate)", b"")
    else:
        altered = bytearray(raw)
        altered[spots[field]] ^= 1
        altered = bytes(altered)
    with pytest.raises(SignatureError):
        verify_certificate(parse_certificate(altered))


@pytest.mark.requirement("1.03")
def test_a_key_and_its_hash_link_and_another_key_does_not():
    """C1 names Met by hash; Met signs as itself, or by hash; CCS is not Met."""
    people = People("pito", "met", "ccs", "smith")
    to_met = grant(people.pito, KeyHash(people.met.public_key.key_id), READ, delegate=True)
    to_smith = grant(people.met, people.smith, READ)
    by_hash = issue(replace(to_smith.body, issuer=KeyHash(people.met.public_key.key_id)), people.met)
    for link in (to_smith, by_hash):
        assert decide(people.pito, people.smith, [to_met, link])
        assert reduce_pair(five_tuple(to_met), five_tuple(link)).subject == people.smith.public_key.key_id
    by_ccs = grant(people.ccs, people.smith, READ)
    with pytest.raises(ChainError, match="BROKEN_CHAIN"):
        reduce_pair(five_tuple(to_met), five_tuple(by_ccs))
    assert decide(people.pito, people.smith, [to_met, by_ccs]).reason == "BROKEN_CHAIN"


@pytest.mark.requirement("1.03")
def test_subjects_are_keys_hashes_names_objects_and_thresholds():
    """Every kind of subject survives signing and reading; an object can hold a right but never act."""
    people = People("pito", "met", "ccs")
    met, ccs = people.met.public_key, people.ccs.public_key
    subjects = (
        met,
        KeyHash(met.key_id),
        Name(met, ("brokers", "london")),
        ObjectHash(b"o" * 32),
        Threshold(1, (met, ccs)),
    )
    for subject in subjects:
        certificate = grant(people.pito, subject, READ, delegate=True)
        assert parse_certificate(certificate.raw).body.subject == subject
    assert not decide(people.pito, people.met, [grant(people.pito, ObjectHash(b"o" * 32), READ, delegate=True)])


@pytest.mark.requirement("1.04")
def test_two_tuples_reduce_to_one():
    """(Pa,Pb,true,{read,write},[1,100]) + (Pb,Pc,false,{read},[50,200]) -> (Pa,Pc,false,{read},[50,100])."""
    people = People("a", "b", "c")
    first = five_tuple(grant(people.a, people.b, "(* set (read) (write))", delegate=True, valid=(1, 100)))
    second = five_tuple(grant(people.b, people.c, READ, valid=(50, 200)))
    result = reduce_pair(first, second)
    assert result.issuer == people.a.public_key.key_id
    assert result.subject == people.c.public_key.key_id
    assert result.delegate is False
    assert result.tag == parse_tag(READ)
    assert result.period == Period(at(50), at(100))


@pytest.mark.requirement("1.04")
def test_each_condition_of_reduction_has_its_own_error():
    """S1 = I2, D1, rights in common, time in common: broken one at a time."""
    people = People("a", "b", "c")
    first = five_tuple(grant(people.a, people.b, "(* set (read) (write))", delegate=True, valid=(1, 100)))
    second = five_tuple(grant(people.b, people.c, READ, valid=(50, 200)))
    broken = {
        "BROKEN_CHAIN": (first, replace(second, issuer=people.a.public_key.key_id)),
        "DELEGATION_FORBIDDEN": (replace(first, delegate=False), second),
        "EMPTY_AUTHORITY": (first, replace(second, tag=parse_tag((b"delete",)))),
        "EMPTY_VALIDITY": (first, replace(second, period=Period(at(101), at(200)))),
    }
    for code, pair in broken.items():
        with pytest.raises(MaiaError) as caught:
            reduce_pair(*pair)
        assert caught.value.code == code


def chain_of(signers: list, delegations: str, **kinds: object) -> list[Certificate]:
    """Link signers in turn; one letter per link says whether it may be passed on."""
    pairs = zip(pairwise(signers), delegations, strict=True)
    return [grant(issuer, subject, READ, delegate=letter == "t", **kinds) for (issuer, subject), letter in pairs]


@pytest.mark.requirement("1.05")
def test_a_chain_of_five_reduces_and_a_forbidden_third_link_ends_it():
    """D=t,t,t,t,f gives one tuple; the third D=f forbids."""
    people = People(*"abcdef")
    signers = [people[name] for name in "abcdef"]
    good = chain_of(signers, "ttttf")
    result = reduce_chain([five_tuple(link) for link in good])
    assert (result.issuer, result.subject) == (people.a.public_key.key_id, people.f.public_key.key_id)
    assert result.delegate is False
    assert decide(people.a, people.f, good)
    bad = chain_of(signers, "ttftf")
    with pytest.raises(ChainError, match="DELEGATION_FORBIDDEN"):
        reduce_chain([five_tuple(link) for link in bad])
    denial = decide(people.a, people.f, bad)
    assert denial.reason == "DELEGATION_FORBIDDEN"
    assert people.c.public_key.fingerprint in denial.error.message


@pytest.mark.requirement("1.06")
def test_one_invalid_link_voids_the_chain_and_is_named():
    """Four valid certificates and one expired: no, because of that one."""
    people = People(*"abcdef")
    signers = [people[name] for name in "abcdef"]
    links = chain_of(signers, "ttttf", valid=(0, 10**9))
    expired = grant(people.c, people.d, READ, delegate=True, valid=(0, 99))
    evidence = [*links[:2], expired, *links[3:]]
    assert decide(people.a, people.f, evidence, when=at(99))
    denial = decide(people.a, people.f, evidence, when=at(100))
    assert isinstance(denial.error, ExpiredError)
    assert denial.stage is Stage.VALIDITY
    assert expired.certificate_id.hex()[:16] in denial.error.message


@pytest.mark.requirement("1.06")
@pytest.mark.parametrize("flaw", ["signature", "revoked", "unchecked"])
def test_any_kind_of_invalid_link_voids_the_chain(flaw: str):
    """A forged signature, a revocation and a failed on-line test each void the chain as expiry does."""
    people = People("a", "b", "c", "lister")
    tests = () if flaw == "signature" else [online(TestKind.CRL, people.lister)]
    middle = grant(people.a, people.b, READ, delegate=True, tests=tests)
    last = grant(people.b, people.c, READ)
    known = book() if flaw != "revoked" else book(listing(TestKind.CRL, people.lister, [middle]))
    raw = middle.raw[:-3] + bytes((middle.raw[-3] ^ 1,)) + middle.raw[-2:] if flaw == "signature" else middle.raw
    denial = decide(people.a, people.c, [raw, last.raw], statements=known)
    expected = {"signature": Stage.SIGNATURES, "revoked": Stage.TESTS, "unchecked": Stage.TESTS}
    codes = {"signature": "BAD_SIGNATURE", "revoked": "REVOKED", "unchecked": "NO_STATEMENT"}
    assert (denial.allowed, denial.stage, denial.reason) == (False, expected[flaw], codes[flaw])


@pytest.mark.requirement("1.07")
def test_a_lower_certificate_is_capped_by_the_one_above():
    """C1 grants subscribe on T1, C2 claims everything: subscribe on T1 is what is left."""
    people = People("pito", "met", "smith")
    owner = people.pito.public_key
    on_t1 = type_right(owner, "T1", actions=[Action.SUBSCRIBE])
    evidence = [
        grant(people.pito, people.met, on_t1, delegate=True, valid=(0, 100)),
        grant(people.met, people.smith, "(*)", valid=(0, 10**9)),
    ]
    [clause] = Verifier().clauses(
        ask_type(Action.SUBSCRIBE, owner, "T1", "1"), principal=people.smith.public_key, evidence=evidence, at=at(50)
    )
    assert clause.period == Period(at(0), at(100))
    for action, name, allowed in (
        (Action.SUBSCRIBE, "T1", True),
        (Action.PUBLISH, "T1", False),
        (Action.MANAGE, "T1", False),
        (Action.SUBSCRIBE, "T2", False),
    ):
        asked = ask_type(action, owner, name, "1")
        assert bool(decide(people.pito, people.smith, evidence, asked=asked, when=at(50))) is allowed


@pytest.mark.requirement("1.08")
def test_certificates_of_one_chain_are_renewed_independently():
    """C1 ends at 100, C2 at 500; at 150 a new C1 joins the old C2."""
    people = People("a", "b", "c")
    first = grant(people.a, people.b, READ, delegate=True, valid=(0, 100))
    second = grant(people.b, people.c, READ, valid=(0, 500))
    renewed = grant(people.a, people.b, READ, delegate=True, valid=(0, 400))
    assert not decide(people.a, people.c, [first, second], when=at(150))
    assert decide(people.a, people.c, [renewed, second], when=at(150))


@pytest.mark.requirement("1.09")
def test_a_chain_must_start_at_the_owner():
    """A flawless chain from Evil proves nothing about a type of PITO."""
    people = People("pito", "evil", "smith")
    right = type_right(people.pito.public_key, "uk.gov.pito.Numberplate")
    asked = ask_type(Action.SUBSCRIBE, people.pito.public_key, "uk.gov.pito.Numberplate", "8516")
    denial = decide(people.pito, people.smith, [grant(people.evil, people.smith, right)], asked=asked)
    assert (denial.reason, denial.stage) == ("WRONG_ROOT", Stage.ROOT)
    assert decide(people.evil, people.smith, [grant(people.pito, people.smith, right)], asked=asked)


@pytest.mark.requirement("1.10")
def test_linked_names_resolve_in_their_own_namespaces():
    """P1:foo->P2 and P2:bar->P3 make [P1,foo,bar] P3; P4:foo is nobody; an expired P1:foo resolves no more."""
    people = People("p1", "p2", "p3", "p4")
    foo = naming(people.p1, "foo", people.p2, valid=(0, 100))
    bar = naming(people.p2, "bar", people.p3)
    linked = grant(people.p1, Name(people.p1.public_key, ("foo", "bar")), READ)
    assert decide(people.p1, people.p3, [linked, foo, bar], when=at(50))
    of_p4 = grant(people.p1, Name(people.p4.public_key, ("foo",)), READ)
    denial = decide(people.p1, people.p2, [of_p4, foo, bar], when=at(50))
    assert (denial.reason, denial.stage) == ("NAME_UNRESOLVED", Stage.NAMES)
    expired = decide(people.p1, people.p3, [linked, foo, bar], when=at(101))
    assert not expired
    assert expired.reason == "EXPIRED"


@pytest.mark.requirement("1.11")
def test_one_grant_to_a_name_empowers_its_members_while_they_are_members():
    """Met Brokers: MB1 and MB2 may, MB3 may not, and MB2 stops when its name ends; the grant stays."""
    people = People("met", "mb1", "mb2", "mb3")
    to_brokers = grant(people.met, Name(people.met.public_key, ("Met Brokers",)), READ)
    evidence = [
        to_brokers,
        naming(people.met, "Met Brokers", people.mb1, valid=(0, 1000)),
        naming(people.met, "Met Brokers", people.mb2, valid=(0, 100)),
    ]
    answers = {
        when: [bool(decide(people.met, people[who], evidence, when=at(when))) for who in ("mb1", "mb2", "mb3")]
        for when in (100, 101)
    }
    assert answers == {100: [True, True, False], 101: [True, False, False]}


@pytest.mark.requirement("1.12")
def test_a_threshold_needs_different_members():
    """2-of-3 {A,B,C}: A and B do; A alone, and A twice, do not."""
    people = People("owner", "a", "b", "c", "smith")
    keys = tuple(people[name].public_key for name in "abc")
    shared = grant(people.owner, Threshold(2, keys), READ, delegate=True)
    by = {name: grant(people[name], people.smith, READ) for name in "abc"}
    again = grant(people.a, people.smith, READ, valid=(0, None))
    assert decide(people.owner, people.smith, [shared, by["a"], by["b"]])
    alone = decide(people.owner, people.smith, [shared, by["a"]])
    assert alone.reason == "THRESHOLD_NOT_MET"
    assert "2 of 3 needed, 1 present" in alone.error.message
    assert decide(people.owner, people.smith, [shared, by["a"], by["a"], again]).reason == "THRESHOLD_NOT_MET"


@pytest.mark.requirement("1.12")
def test_a_member_under_two_names_counts_once():
    """2-of-3 {A, `friends` of the owner, C}, and the friend is A: A alone is one, A and C are two."""
    people = People("owner", "a", "c", "smith")
    friends = Name(people.owner.public_key, ("friends",))
    members = (people.a.public_key, friends, people.c.public_key)
    named = naming(people.owner, "friends", people.a)
    shared = grant(people.owner, Threshold(2, members), READ, delegate=True)
    by = {name: grant(people[name], people.smith, READ) for name in "ac"}
    assert decide(people.owner, people.smith, [shared, named, by["a"]]).reason == "THRESHOLD_NOT_MET"
    assert decide(people.owner, people.smith, [shared, named, by["a"], by["c"]])


@pytest.mark.requirement("1.09")
def test_a_configured_root_says_nothing_of_types():
    """Whom a verifier trusts with what names no owner is not trusted with a type that names another."""
    people = People("pito", "evil", "smith")
    request = ask_type(Action.SUBSCRIBE, people.pito.public_key, "T", "1")
    trusting = Verifier([Root(subject=people.evil.public_key)])
    given = [grant(people.evil, people.smith, type_right(people.pito.public_key, "T", actions=[Action.SUBSCRIBE]))]
    denial = trusting.decide(request, principal=people.smith.public_key, evidence=given, at=NOW)
    assert (denial.allowed, denial.reason) == (False, "WRONG_ROOT")


@pytest.mark.requirement("1.12")
def test_a_quorum_exchanges_a_member():
    """A and B pass all they have on to {A,B,D}; with that group as root C and A count as one, D and A as two."""
    people = People("a", "b", "c", "d", "smith")
    keys = {name: people[name].public_key for name in "abcd"}
    old = Threshold(2, (keys["a"], keys["b"], keys["c"]))
    new = Threshold(2, (keys["a"], keys["b"], keys["d"]))
    by = {name: grant(people[name], people.smith, READ) for name in "abcd"}
    exchange = [grant(people[name], new, "(*)", delegate=True) for name in "ab"]

    def allowed(group: Threshold, *evidence: Certificate) -> Decision:
        verifier = Verifier([Root(subject=group)])
        return verifier.decide(ask(READ), principal=people.smith.public_key, evidence=evidence, at=NOW)

    assert allowed(old, by["c"], by["a"])
    # The quorum hands over: under the old root D counts through its certificates, and one of them is not enough.
    assert allowed(old, *exchange, by["d"], by["a"])
    assert not allowed(old, exchange[0], by["d"], by["a"])
    # With the hand-over shown, verifiers take the new group for their root.
    counted = allowed(new, by["c"], by["a"])
    assert counted.reason == "THRESHOLD_NOT_MET"
    assert "2 of 3 needed, 1 present" in counted.error.message
    assert allowed(new, by["d"], by["a"])


@pytest.mark.requirement("1.13")
def test_a_copied_chain_is_worth_nothing_without_the_key():
    """Jones shows Smith's chain and signs the nonce with Jones's key: no; Smith signs: yes."""
    people = People("met", "smith", "jones", "broker")
    evidence = [grant(people.met, people.smith, READ).raw]
    challenge, audience = b"c" * 16, people.broker.public_key.key_id
    verifier = Verifier([Root(subject=people.met.public_key)])
    answers = {}
    for who in ("smith", "jones"):
        proof = prove_by_nonce(people[who], audience=audience, challenge=challenge, own_nonce=who.encode() * 8)
        proven = check_nonce_proof(proof, audience=audience, challenge=challenge)
        shown = Presentation(authenticated=proven, evidence=evidence, request=ask(READ))
        answers[who] = bool(decide_presentation(shown, verifier, at=NOW))
    assert answers == {"smith": True, "jones": False}
    stolen = prove_by_nonce(people.jones, audience=audience, challenge=challenge, own_nonce=b"j" * 16)
    with pytest.raises(SignatureError):
        check_nonce_proof(replace(stolen, key=people.smith.public_key), audience=audience, challenge=challenge)


@pytest.mark.requirement("1.15")
def test_identity_follows_content_and_nothing_else():
    """The same right with its attributes in another order is the same certificate; another value is another."""
    people = People("pito", "met")
    owner = people.pito.public_key

    def identity(attributes: list[str], plate: str = "AE05 XYZ") -> bytes:
        right = type_right(owner, "NP", attributes=attributes, constraints=[Constraint("3265", "=", plate)])
        return grant(people.pito, people.met, right).certificate_id

    assert identity(["3265", "9058", "3467"]) == identity(["3467", "3265", "9058"])
    assert identity(["3265"]) != identity(["3265"], plate="AE05 XYY")
    certificate = grant(people.pito, people.met, READ)
    assert encode(parse_canonical(certificate.raw)) == certificate.raw
    assert parse_certificate(certificate.raw).certificate_id == certificate.certificate_id


def test_a_certificate_reads_back_as_it_was_written():
    """The body that was signed is the body that is read."""
    people = People("pito", "met")
    certificate = grant(people.pito, people.met, parse_advanced("(ftp (* prefix /a))"), conditions=["hour < 18"])
    assert isinstance(certificate.body, Authorisation)
    assert parse_certificate(certificate.raw).body == certificate.body
