"""Rows 13.01 to 13.08: periods, lists, revalidations, and how long a revocation may take."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from maia.authority import (
    Challenge,
    Decision,
    Root,
    StatementBook,
    Verifier,
    ask,
    exposure_window,
    parse_statement,
    renew,
    unsafe_sign_statement,
    verify_statement,
)
from maia.encoding import Sexp
from maia.errors import DeniedError, UsageError, VerificationError
from maia.principals import Certificate, Period, PublicKey, TestKind
from maia.testing import Command, People, answer, at, book, grant, listing, online

READ: Sexp = (b"read",)
CRL, REVALIDATION, ONE_TIME = TestKind.CRL, TestKind.REVALIDATION, TestKind.ONE_TIME


class Desk:
    """Smith's right, which demands one kind of statement, and a verifier with a book."""

    def __init__(self, kind: TestKind | None, **rest: object) -> None:
        """Issue the right."""
        self.people = People("met", "smith", "lister", "evil")
        tests = [] if kind is None else [online(kind, self.people.lister, "https://lists.example/met")]
        self.right = grant(self.people.met, self.people.smith, READ, tests=tests, **rest)
        self.book = StatementBook()

    def decide(self, when: int, challenge: Challenge | None = None) -> Decision:
        """Decide at an instant."""
        verifier = Verifier([Root(subject=self.people.met.public_key)], statements=self.book)
        return verifier.decide(
            ask(READ), principal=self.people.smith.public_key, evidence=[self.right], at=at(when), challenge=challenge
        )

    def list(self, kind: TestKind, *certificates: Certificate, **rest: object) -> None:
        """Receive a list of the named signer."""
        self.book.accept(listing(kind, self.people.lister, certificates, **rest))


@pytest.mark.requirement("13.01")
def test_a_period_includes_its_ends_and_an_absent_end_is_open():
    """[10,20]: 9 no, 10 yes, 20 yes, 21 no; without an end, yes at 10^9; without a start, yes at the beginning."""
    closed = Desk(None, valid=(10, 20))
    assert [bool(closed.decide(when)) for when in (9, 10, 20, 21)] == [False, True, True, False]
    assert closed.decide(9).reason == "NOT_YET_VALID"
    assert closed.decide(21).reason == "EXPIRED"
    assert Desk(None, valid=(10, None)).decide(10**9)
    assert Desk(None, valid=(None, 20)).decide(-(10**9))


def test_a_short_lived_right_ends_when_it_is_not_renewed():
    """Life 60 s, policy changed at 10: over after 60 at the latest, which the exposure window says beforehand."""
    desk = Desk(None, valid=(0, 59))
    assert desk.decide(10)
    exposure = exposure_window(desk.right, at=at(10), statements=desk.book)
    assert exposure.window == timedelta(seconds=50)
    assert desk.decide(59)
    assert not desk.decide(60)


def test_an_issuer_revokes_by_declining_to_renew():
    """While the policy holds, the right is renewed; after it changed at 10, the renewal call returns a refusal."""
    desk = Desk(None, valid=(0, 59))
    renewed = renew(desk.right, desk.people.met, at=at(5), still_granted=lambda body: True)
    assert renewed.certificate_id != desk.right.certificate_id
    assert (renewed.body.tag, renewed.body.period) == (desk.right.body.tag, Period(at(5), at(64)))
    with pytest.raises(DeniedError) as caught:
        renew(renewed, desk.people.met, at=at(10), still_granted=lambda body: False)
    assert caught.value.code == "RENEWAL_REFUSED"
    with pytest.raises(UsageError):
        renew(renewed, desk.people.evil, at=at(10), still_granted=lambda body: True)
    with pytest.raises(UsageError):
        renew(Desk(None).right, desk.people.met, at=at(10), still_granted=lambda body: True)


@pytest.mark.requirement("13.03")
def test_a_plain_list_with_a_lower_number_is_not_taken():
    """Sequence 7, then 6 arrives: 7 is kept."""
    desk = Desk(CRL)
    desk.list(CRL, desk.right, sequence=7)
    with pytest.raises(VerificationError) as caught:
        desk.list(CRL, sequence=6)
    assert caught.value.code == "STATEMENT_ROLLBACK"
    assert desk.decide(10).reason == "REVOKED"
    desk.list(CRL, sequence=8)
    assert desk.decide(10)


@pytest.mark.requirement("13.03")
def test_a_plain_list_promises_no_time():
    """A plain list may be withheld for ever, so the exposure window has no bound."""
    desk = Desk(CRL)
    desk.list(CRL, sequence=7)
    assert exposure_window(desk.right, at=at(10), statements=desk.book).window is None


@pytest.mark.requirement("13.04")
def test_when_a_timed_list_lapses_the_certificates_that_rely_on_it_do():
    """CRL [0,60), none newer: at 59 yes, at 60 no, though not listed."""
    desk = Desk(CRL)
    desk.list(CRL, valid=(0, 60))
    assert desk.decide(59)
    assert desk.decide(60).reason == "NO_STATEMENT"
    assert exposure_window(desk.right, at=at(10), statements=desk.book).window == timedelta(seconds=50)


@pytest.mark.requirement("13.05")
def test_timed_lists_do_not_overlap_and_a_successor_counts_from_its_start():
    """[0,60) + [50,110) is refused; [60,120) received at 40 serves from 60."""
    desk = Desk(CRL)
    desk.list(CRL, valid=(0, 60))
    with pytest.raises(VerificationError) as caught:
        desk.list(CRL, desk.right, valid=(50, 110), sequence=2)
    assert caught.value.code == "STATEMENT_OVERLAP"
    desk.list(CRL, desk.right, valid=(60, 120), sequence=2)
    assert desk.decide(59)
    assert desk.decide(60).reason == "REVOKED"


@pytest.mark.requirement("13.05")
def test_a_gap_between_two_lists_denies():
    """Half-open intervals may touch; a time between them is a time without a list (C19)."""
    desk = Desk(CRL)
    desk.list(CRL, valid=(0, 60))
    desk.list(CRL, valid=(61, 120), sequence=2)
    assert [bool(desk.decide(when)) for when in (59, 60, 61)] == [True, False, True]


@pytest.mark.requirement("13.06")
def test_a_list_by_another_key_is_no_list():
    """The certificate names the key; a list of Evil is treated as absent."""
    desk = Desk(CRL)
    desk.book.accept(listing(CRL, desk.people.evil, valid=(0, 60)))
    assert desk.decide(10).reason == "NO_STATEMENT"
    [test] = desk.right.body.tests
    assert test.signer == desk.people.lister.public_key
    assert test.uris == ("https://lists.example/met",)


@pytest.mark.requirement("13.06")
@pytest.mark.threat("T31")
def test_a_list_in_the_name_of_another_is_refused(maia_command: Command) -> None:
    """Evil says that nothing is revoked: signed by itself, under the met's name, and as an altered list of the met."""
    home, evil = maia_command, People("evil").evil
    home.keys("met", "smith")
    met = PublicKey.import_(bytes.fromhex(home.do("key", "show", "met")["keys"][0]["key"]))
    given = home.grant("--from", "met", "--to", "smith", "--tag", "(read)", "--root", "met", "--test", "crl:met")
    asked = ("explain", "--as", "smith", "--tag", "(read)", "--root", "met", "--json")
    home.do("statement", "crl", "--from", "met", "--out", str(home.home / "empty.crl"))
    empty = parse_statement((home.home / "empty.crl").read_bytes())
    assert home(*asked).code == 0
    home.do("statement", "crl", given[:16], "--from", "met", "--out", str(home.home / "genuine.crl"))
    genuine = (home.home / "genuine.crl").read_bytes()
    own = unsafe_sign_statement(replace(empty.body, sequence=9), evil)
    forgeries = {
        "own": (own, "WRONG_SIGNER"),
        "stolen": (own.replace(evil.public_key.raw, met.raw), "BAD_SIGNATURE"),
        "altered": (re.sub(rb"8:sequence1:\d", b"8:sequence1:9", genuine), "BAD_SIGNATURE"),
    }
    for name, (raw, code) in forgeries.items():
        assert raw not in (genuine, empty.raw)
        (home.home / f"{name}.crl").write_bytes(raw)
        assert home.refused("statement", "add", str(home.home / f"{name}.crl")) == (4, code)
        assert home(*asked, "--statement", str(home.home / f"{name}.crl")).code == 4
    assert home(*asked).code == 3


@pytest.mark.requirement("13.07")
def test_a_revalidation_is_a_positive_list():
    """Missing from the current revalidation: no; on it: yes; after its end: no."""
    desk = Desk(REVALIDATION)
    other = grant(desk.people.met, desk.people.evil, READ)
    desk.list(REVALIDATION, other, valid=(0, 60))
    assert desk.decide(10).reason == "REVOKED"
    desk.list(REVALIDATION, other, desk.right, valid=(60, 120), sequence=2)
    assert desk.decide(60)
    assert desk.decide(119)
    assert desk.decide(120).reason == "NO_STATEMENT"
    with pytest.raises(VerificationError, match="STATEMENT_OVERLAP"):
        desk.list(REVALIDATION, valid=(110, 130), sequence=3)


@pytest.mark.requirement("13.08")
def test_a_one_time_answer_serves_one_decision():
    """The answer to a fresh nonce is good once."""
    desk = Desk(ONE_TIME)
    challenge = Challenge(nonce=b"n" * 16, verifier="broker-1", until=at(20))
    assert desk.decide(10).reason == "NO_STATEMENT"
    assert desk.decide(10, challenge).reason == "NO_STATEMENT"
    desk.book.accept(answer(challenge, desk.people.lister, [desk.right]))
    assert desk.decide(10, challenge)
    assert desk.decide(10, challenge).reason == "NO_STATEMENT"
    assert exposure_window(desk.right, at=at(10), statements=desk.book).window == timedelta(0)


@pytest.mark.requirement("13.08")
def test_what_was_revoked_a_millisecond_before_is_not_confirmed():
    """The signer leaves the certificate out of its answer: no."""
    desk = Desk(ONE_TIME)
    challenge = Challenge(nonce=b"n" * 16, verifier="broker-1", until=at(20))
    desk.book.accept(answer(challenge, desk.people.lister, []))
    assert desk.decide(10, challenge).reason == "REVOKED"


def test_all_tests_of_a_certificate_must_pass():
    """A list and a revalidation by two keys: one of them is not enough."""
    people = People("met", "smith", "first", "second")
    tests = [online(CRL, people.first), online(REVALIDATION, people.second)]
    right = grant(people.met, people.smith, READ, tests=tests)
    lists = {
        "crl": listing(CRL, people.first, valid=(0, 60)),
        "revalidation": listing(REVALIDATION, people.second, [right], valid=(0, 30)),
    }
    for held, allowed in ((("crl",), False), (("revalidation",), False), (("crl", "revalidation"), True)):
        verifier = Verifier([Root(subject=people.met.public_key)], statements=book(*(lists[name] for name in held)))
        decision = verifier.decide(ask(READ), principal=people.smith.public_key, evidence=[right], at=at(10))
        assert decision.allowed is allowed
    assert decision.grant.until == at(30)


def test_a_book_survives_a_restart_whatever_the_order_its_lists_came_in():
    """Lists accepted early, with lower numbers than those before them, are accepted again."""
    desk = Desk(CRL)
    desk.list(CRL, valid=(60, 120), sequence=2)
    desk.list(CRL, desk.right, valid=(0, 60), sequence=5)
    again = StatementBook()
    for raw in desk.book.raw_statements():
        again.accept(verify_statement(parse_statement(raw)))
    desk.book = again
    assert desk.decide(30).reason == "REVOKED"
    assert desk.decide(90)
