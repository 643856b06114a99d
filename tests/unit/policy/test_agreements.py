"""Agreements: what both sign is what counts, nothing else; each rule with the case in which it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.authority import type_right
from maia.errors import EncodingError, ExpiredError, MaiaError, UsageError, VerificationError
from maia.events import EventType, TypeName, attribute, parse_version
from maia.policy import (
    PolicySyntaxError,
    SignedAgreement,
    TypeCatalogue,
    VerifiedAgreement,
    check_meaning,
    draft_agreement,
    format_agreement,
    giver_bodies,
    parse_agreement,
    sign_agreement,
    verify_agreement,
)
from maia.principals import ALWAYS, KeySigner, Period, fingerprint
from maia.principals import TestKind as Kind
from maia.testing import at, book, grant, listing, online

CLINIC, PHARMACY, EVE = (KeySigner(bytes([n]) * 32) for n in (1, 2, 3))
NOW = at("2026-06-01T09:00:00")
KIND = EventType(
    name=TypeName(CLINIC.public_key, "uk.nhs.Prescription", parse_version("1")),
    attributes=tuple(attribute(name, uid, "string") for name, uid in (("drug", 1), ("dose", 2), ("diagnosis", 3))),
)
KNOWN = TypeCatalogue([KIND])
TABLE = "pharmacist |- subscribe Prescription(drug, dose)\nauditor |- subscribe Prescription(drug)"
PLAN = SignedAgreement(agreement=draft_agreement("2026", CLINIC.public_key, PHARMACY.public_key, TABLE, KNOWN))
BOTH = sign_agreement(sign_agreement(PLAN, CLINIC), PHARMACY)


def test_both_signatures_make_an_agreement():
    """One certificate a role, for the receiver's names, and one for its brokers; nobody may pass them on."""
    bodies = giver_bodies(verify_agreement(BOTH, at=NOW))
    assert [body.subject.parts for body in bodies] == [("role auditor",), ("role pharmacist",), ("brokers",)]
    assert {body.subject.base for body in bodies} == {PHARMACY.public_key}
    assert not any(body.delegate for body in bodies)


UNSIGNED = {
    "nobody": PLAN,
    "the giver alone": sign_agreement(PLAN, CLINIC),
    "the giver twice": sign_agreement(sign_agreement(PLAN, CLINIC), CLINIC),
    "the receiver alone": sign_agreement(PLAN, PHARMACY),
    "signatures of another agreement": replace(
        PLAN,
        signatures=sign_agreement(
            sign_agreement(replace(PLAN, agreement=replace(PLAN.agreement, title="2025")), CLINIC), PHARMACY
        ).signatures,
    ),
    "certificates that are no signatures": replace(
        PLAN, signatures=(grant(CLINIC, PHARMACY, "(maia-agreement)").raw, grant(PHARMACY, CLINIC, "(x)").raw)
    ),
}


@pytest.mark.parametrize("signed", UNSIGNED.values(), ids=UNSIGNED)
def test_without_both_signatures_it_counts_for_nothing(signed):
    """Whoever has not signed exactly this agreement has agreed to nothing."""
    with pytest.raises(VerificationError) as refusal:
        verify_agreement(signed, at=NOW)
    assert refusal.value.code == "AGREEMENT_UNSIGNED"


def test_a_changed_row_is_another_agreement():
    """A diagnosis slipped in after signing has nobody's signature."""
    row = BOTH.agreement.rows[0]
    wider = replace(row, tag=type_right(CLINIC.public_key, "uk.nhs.Prescription"))
    with pytest.raises(VerificationError):
        verify_agreement(replace(BOTH, agreement=replace(BOTH.agreement, rows=(wider,))), at=NOW)


def test_a_forged_signature_refuses_the_whole():
    """One flipped octet is no signature, and not a missing one either."""
    first, second = BOTH.signatures
    broken = first[:-10] + bytes([first[-10] ^ 1]) + first[-9:]
    with pytest.raises(MaiaError):
        verify_agreement(replace(BOTH, signatures=(broken, second)), at=NOW)


def test_strangers_do_not_sign():
    """Only the two domains are parties, and they are two."""
    with pytest.raises(UsageError):
        sign_agreement(PLAN, EVE)
    with pytest.raises(UsageError):
        draft_agreement("x", CLINIC.public_key, CLINIC.public_key, TABLE, KNOWN)


def test_an_agreement_ends_with_the_first_signature_that_ends():
    """What is issued under it ends then as well."""
    signed = sign_agreement(sign_agreement(PLAN, CLINIC, period=Period(None, at(100))), PHARMACY)
    assert {body.period.not_after for body in giver_bodies(verify_agreement(signed, at=at(100)))} == {at(100)}
    with pytest.raises(ExpiredError):
        verify_agreement(signed, at=at(101))


def test_a_signature_is_withdrawn_like_a_certificate():
    """The receiver's list names its signature: the agreement is over; without a list it does not count either."""
    signed = sign_agreement(sign_agreement(PLAN, CLINIC), PHARMACY, tests=(online(Kind.CRL, PHARMACY),))
    from maia.principals import parse_certificate, verify_certificate

    certificate = verify_certificate(parse_certificate(signed.signatures[1]))
    good, bad = (book(listing(Kind.CRL, PHARMACY, listed)) for listed in ([], [certificate]))
    assert verify_agreement(signed, at=NOW, statements=good)
    for statements in (bad, None):
        with pytest.raises(VerificationError):
            verify_agreement(signed, at=NOW, statements=statements)


def test_an_owner_named_by_the_giver_is_the_same_owner_to_the_receiver():
    """Names of keys differ from home to home: a row says the fingerprint, and means nothing else elsewhere."""
    giver, other = (KeySigner(bytes([n]) * 32).public_key for n in (1, 2))
    types = [
        EventType(name=TypeName(owner, "Report", parse_version("1")), attributes=(attribute("text", uid, "string"),))
        for uid, owner in enumerate((giver, other), 7)
    ]
    here = TypeCatalogue(types, owners={"clinic": giver, "pharmacy": other})
    agreed = draft_agreement("2026", giver, other, "reader |- subscribe pharmacy/Report@1(text)", here)
    assert agreed.rows[0].words == f"subscribe {fingerprint(other.key_id)}/Report@1(text)"
    check_meaning(agreed, TypeCatalogue(types))
    check_meaning(agreed, TypeCatalogue(types, owners={"pharmacy": giver}))
    with pytest.raises(VerificationError, match="AGREEMENT_MEANING"):
        check_meaning(agreed, TypeCatalogue(types[:1]))


def test_words_that_mean_something_else_are_found():
    """The words say drug, the right opens everything: who reads it does not sign it."""
    check_meaning(PLAN.agreement, KNOWN)
    lying = replace(PLAN.agreement.rows[0], tag=type_right(CLINIC.public_key, "uk.nhs.Prescription"))
    for rows in ((lying,), (replace(lying, words="nonsense |- "),)):
        with pytest.raises(VerificationError) as refusal:
            check_meaning(replace(PLAN.agreement, rows=rows), KNOWN)
        assert refusal.value.code == "AGREEMENT_MEANING"


ROWS = {
    "a parameter": "pharmacist(p) |- subscribe Prescription(drug)",
    "a condition": "pharmacist, ?on-duty |- subscribe Prescription(drug)",
    "an activation": "pharmacist <- hired(self)",
    "no right": "pharmacist |- 'everything'",
    "an unknown attribute": "pharmacist |- subscribe Prescription(price)",
    "a variable": "pharmacist |- subscribe Prescription(drug = x)",
}


@pytest.mark.parametrize("table", ROWS.values(), ids=ROWS)
def test_a_row_is_a_role_and_a_right(table):
    """Everything else is refused with its line."""
    with pytest.raises(PolicySyntaxError) as refusal:
        draft_agreement("x", CLINIC.public_key, PHARMACY.public_key, f"\n{table}", KNOWN)
    assert refusal.value.line == 2


def test_an_agreement_survives_its_file():
    """Written and read it is the same, signatures included."""
    assert parse_agreement(format_agreement(BOTH)) == BOTH


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    """Nothing but Maia's own errors."""
    try:
        parse_agreement(text)
    except MaiaError:
        pass
    else:
        pytest.fail("a random text is no agreement")


def test_agreed_is_a_type():
    """Nobody makes a verified agreement by hand."""
    with pytest.raises(UsageError):
        VerifiedAgreement(PLAN.agreement, ALWAYS, object())


def test_other_versions_are_refused():
    """An unknown version is not guessed at."""
    text = format_agreement(BOTH).replace("(version 1)", "(version 2)").replace('(version "1")', '(version "2")')
    assert text != format_agreement(BOTH)
    with pytest.raises(EncodingError):
        parse_agreement(text)
