"""Whether an issuer can give a right."""

from __future__ import annotations

from datetime import UTC, datetime

from maia.authority import (
    Action,
    CertificatePool,
    StatementBook,
    Tag,
    can_give,
    covers,
    is_nothing,
    type_right,
)
from maia.principals import Authorisation, Certificate, KeySigner, Period, issue

PITO, MET, SMITH = (KeySigner(bytes([n]) * 32) for n in (1, 2, 3))
AT = datetime(2026, 6, 1, tzinfo=UTC)
LATER = datetime(2026, 7, 1, tzinfo=UTC)


def right(*actions: Action, attributes: tuple[str, ...] | None = None) -> Tag:
    """Name a right on the one type of these tests."""
    return type_right(PITO.public_key, "Numberplate", actions=actions or None, attributes=attributes)


def given(tag: Tag, *, delegate: bool, until: datetime | None = None) -> Certificate:
    """Let the owner give a right to the Met."""
    body = Authorisation(
        issuer=PITO.public_key, subject=MET.public_key, delegate=delegate, tag=tag.to_sexp(), period=Period(None, until)
    )
    return issue(body, PITO)


def ask(tag: Tag, *certificates: Certificate, issuer: KeySigner = MET):
    """Ask whether an issuer can give a right, with these certificates at hand."""
    return can_give(
        tag, issuer=issuer.public_key, owner=PITO.public_key, roots=(), book=StatementBook(), at=AT,
        pool=CertificatePool(certificate.raw for certificate in certificates),
    )  # fmt: skip


def test_the_owner_needs_nothing():
    """What somebody owns, it may give for ever."""
    gift = ask(right(), issuer=PITO)
    assert gift.possible
    assert gift.until is None


def test_who_holds_nothing_gives_nothing():
    """Everything is missing, and nothing is held or kept."""
    gift = ask(right(Action.SUBSCRIBE))
    assert not gift.possible
    assert is_nothing(gift.held)
    assert is_nothing(gift.kept)


def test_what_may_not_be_passed_on_is_kept():
    """A right without delegation can be used but not given."""
    gift = ask(right(Action.SUBSCRIBE), given(right(Action.SUBSCRIBE), delegate=False))
    assert not gift.possible
    assert is_nothing(gift.held)
    assert covers(gift.kept, right(Action.SUBSCRIBE))


def test_what_is_missing_is_named_by_action_and_attribute():
    """Of a right that is held in part, only the rest is missing."""
    held = given(right(Action.SUBSCRIBE, attributes=("1", "2")), delegate=True)
    gift = ask(right(Action.SUBSCRIBE, Action.PUBLISH, attributes=("1", "3")), held)
    missing = {tag.to_sexp()[4:6] for tag in gift.missing}
    assert missing == {(b"publish", b"1"), (b"publish", b"3"), (b"subscribe", b"3")}
    assert covers(gift.held, right(Action.SUBSCRIBE, attributes=("1",)))


def test_a_gift_ends_with_what_it_rests_on():
    """The end of the issuer's own right is said; a chain without end makes it endless."""
    ending = given(right(Action.SUBSCRIBE), delegate=True, until=LATER)
    assert ask(right(Action.SUBSCRIBE), ending).until == LATER
    endless = given(right(), delegate=True)
    assert ask(right(Action.SUBSCRIBE), ending, endless).until is None


def test_two_chains_together_cover_what_neither_does():
    """Rights of several chains add up."""
    one = given(right(Action.SUBSCRIBE, attributes=("1",)), delegate=True)
    two = given(right(Action.SUBSCRIBE, attributes=("2",)), delegate=True)
    assert ask(right(Action.SUBSCRIBE, attributes=("1", "2")), one, two).possible
    assert not ask(right(Action.SUBSCRIBE, attributes=("1", "2")), one).possible
