"""The lists of one signer: the next number, the next interval, and one certificate by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from maia.authority import ListStatement, Series, StatementBook, check_standing, issue_statement
from maia.errors import UsageError
from maia.principals import Authorisation, CertificateId, KeySigner, OnlineTest, Period, TestKind, issue

MET, OTHER = (KeySigner(bytes([n]) * 32) for n in (1, 2))
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
ONE, TWO = (CertificateId(bytes([n]) * 32) for n in (1, 2))


def crl(sequence: int, *ids: CertificateId, starts: datetime | None = None, signer: KeySigner = MET) -> ListStatement:
    """Make a list; a timed one lasts a day."""
    return ListStatement(
        kind=TestKind.CRL, signer=signer.public_key, sequence=sequence, certificates=frozenset(ids), starts=starts,
        ends=None if starts is None else starts + DAY,
    )  # fmt: skip


def series(*lists: ListStatement) -> Series:
    """Sum up the CRLs of the Met."""
    return Series.of(lists, kind=TestKind.CRL, signer=MET.public_key)


def test_numbers_rise_over_plain_and_timed_lists_together():
    """Whichever list is newest, the next number is above all of them; other signers do not count."""
    assert series().next(frozenset(), interval=None).sequence == 1
    found = series(crl(7), crl(3, starts=NOON), crl(90, signer=OTHER))
    assert found.next(frozenset(), interval=None).sequence == 8


def test_timed_lists_follow_one_another_without_overlap():
    """The next one starts where the last one ends, and lasts as long, and carries all that any of them revoked."""
    found = series(crl(1, ONE, starts=NOON), crl(2, TWO))
    assert found.next_interval(at=NOON) == (NOON + DAY, NOON + 2 * DAY)
    assert found.next_interval(at=NOON + 5 * DAY) == (NOON + 5 * DAY, NOON + 6 * DAY)
    assert found.certificates == {ONE, TWO}


def test_plain_lists_stay_plain_until_an_end_is_given():
    """A signer of plain lists goes on with them; a revalidation needs an end."""
    assert series(crl(1)).next_interval(at=NOON) is None
    assert series(crl(1)).next_interval(at=NOON, ends=NOON + DAY) == (NOON, NOON + DAY)
    with pytest.raises(UsageError, match="LIST_END"):
        Series(kind=TestKind.REVALIDATION, signer=MET.public_key).next_interval(at=NOON)


def test_a_plain_list_of_a_signer_of_timed_lists_only_revokes_and_so_do_those_after_it():
    """Also when the timed lists are forgotten; a signer of plain lists confirms by them."""
    assert not series(crl(1)).next(frozenset(), interval=None).only_revokes
    said = series(crl(1, starts=NOON)).next(frozenset({ONE}), interval=None)
    assert said.only_revokes
    assert series(said).next(frozenset(), interval=None).only_revokes
    assert not series(said).next(frozenset(), interval=(NOON, NOON + DAY)).only_revokes


def test_a_book_remembers_the_series():
    """What a book accepted is continued."""
    book = StatementBook()
    book.accept(issue_statement(crl(4, ONE), MET))
    found = Series.in_book(book, kind=TestKind.CRL, signer=MET.public_key)
    assert (found.sequence, found.certificates) == (4, frozenset({ONE}))


def test_a_statement_that_is_overtaken_is_not_taken():
    """An older list is passed over; a new one is taken."""
    book = StatementBook()
    assert book.accept_unless_known(issue_statement(crl(4), MET))
    assert not book.accept_unless_known(issue_statement(crl(3), MET))


def test_a_certificate_stands_until_it_ends_or_is_revoked():
    """Form, signature, period and statements are looked at, in this order."""
    test = OnlineTest(TestKind.CRL, MET.public_key, ())
    body = Authorisation(
        issuer=MET.public_key, subject=OTHER.public_key, delegate=False, tag=(b"read",),
        period=Period(NOON, NOON + DAY), tests=(test,),
    )  # fmt: skip
    certificate, book = issue(body, MET), StatementBook()
    identity = certificate.certificate_id

    def standing(at: datetime, raw: bytes = certificate.raw) -> tuple[CertificateId | None, str | None]:
        found, error = check_standing(raw, at=at, statements=book)
        return found, None if error is None else error.code

    assert standing(NOON) == (identity, "NO_STATEMENT")
    book.accept(issue_statement(crl(1), MET))
    assert standing(NOON) == (identity, None)
    assert standing(NOON - DAY)[1] == "EXPIRED"
    assert standing(NOON + 2 * DAY)[1] == "EXPIRED"
    book.accept(issue_statement(crl(2, identity), MET))
    assert standing(NOON) == (identity, "REVOKED")
    forged = certificate.raw[:-5] + bytes([certificate.raw[-5] ^ 1]) + certificate.raw[-4:]
    assert standing(NOON, forged)[0] is None


def test_the_moment_of_a_withdrawal_stays_from_list_to_list():
    """The first list that names a certificate says since when, later ones repeat it; without a moment it is ever."""
    first = series().next(frozenset({ONE}), interval=None, at=NOON)
    later = series(first).next(frozenset({ONE, TWO}), interval=(NOON + DAY, NOON + 2 * DAY), at=NOON + DAY)
    noon, day = (int(moment.timestamp() * 1000) for moment in (NOON, NOON + DAY))
    assert (first.moments(), later.moments()) == ({ONE: noon}, {ONE: noon, TWO: day})
    old = series(crl(1, ONE), crl(2, TWO, starts=NOON)).next(frozenset({ONE, TWO}), interval=None, at=NOON + DAY)
    assert old.moments() == {ONE: 0, TWO: noon}
    assert not series(first).next(frozenset({ONE}), interval=None).since, "who gives no time says none"
    good = Series(kind=TestKind.REVALIDATION, signer=MET.public_key)
    assert not good.next(frozenset({ONE}), interval=(NOON, NOON + DAY), at=NOON).since
