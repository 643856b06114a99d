"""Giving a right by hand, and taking one back: drafted, signed, kept, and refused where it would be useless."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.domain import (
    RightQuestion,
    ask_conditions,
    draft_grant,
    draft_revocation,
    explain_chains,
    in_register,
    sign_grant,
    sign_revocation,
)
from maia.errors import DeniedError, UsageError
from maia.home import Folder, words, write_key, write_public_key
from maia.policy import ConditionSyntaxError, Occasion
from maia.principals import KeySigner, OnlineTest, Period, TestKind, parse_certificate

AT = datetime(2026, 6, 1, 12, tzinfo=UTC)
PITO, MET, SMITH = (KeySigner(bytes([n]) * 32) for n in (1, 2, 3))
CRL = OnlineTest(TestKind.CRL, MET.public_key, ())


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Give a folder with three keys."""
    for name, signer in (("pito", PITO), ("met", MET), ("smith", SMITH)):
        write_key(tmp_path / "keys" / f"{name}.key", signer, passphrase=None)
        write_public_key(tmp_path / "keys" / f"{name}.pub", signer.public_key)
    return Folder(tmp_path)


def right(folder: Folder, *actions: str) -> words.Right:
    """Name a right on the one type of these tests."""
    return words.parse_right(folder, type_="pito/Numberplate", actions=list(actions))


def test_a_grant_is_checked_signed_kept_and_told(folder: Folder) -> None:
    """The certificate lies in the folder, proves the right, and its worst case is known."""
    draft = draft_grant(
        folder, PITO.public_key, right(folder, "subscribe"), to=SMITH.public_key, at=AT,
        period=Period(None, AT + timedelta(hours=1)),
    )  # fmt: skip
    done = sign_grant(folder, draft, PITO, at=AT)
    assert done.file.is_file()
    assert done.exposure.window == timedelta(hours=1, seconds=1)
    question = RightQuestion(
        home=folder, request=right(folder, "subscribe").request(), principal=SMITH.public_key, pool=folder.pool(),
        book=folder.book(), roots=(), at=AT,
    )  # fmt: skip
    decision = question.decide()
    assert decision.grant is not None
    assert question.is_whole()
    assert explain_chains(question, decision.grant).text().startswith("holds subscribe on event type Numberplate")


def test_nobody_gives_what_it_does_not_hold(folder: Folder) -> None:
    """The refusal says what is missing; `blanket` signs it all the same."""
    with pytest.raises(DeniedError, match=r"ISSUER_LACKS_RIGHT.*holds nothing of it"):
        draft_grant(folder, MET.public_key, right(folder, "subscribe"), to=SMITH.public_key, at=AT)
    assert draft_grant(folder, MET.public_key, right(folder, "subscribe"), to=SMITH.public_key, at=AT, blanket=True)


def test_what_is_useless_is_not_drafted(folder: Folder) -> None:
    """A right that is over, one without an owner, a condition that is none."""
    given = right(folder, "subscribe")
    with pytest.raises(UsageError, match="ENDS_IN_PAST"):
        draft_grant(
            folder, PITO.public_key, given, to=SMITH.public_key, at=AT, period=Period(None, AT - timedelta(seconds=1))
        )
    with pytest.raises(UsageError, match="NO_OWNER"):
        draft_grant(
            folder, PITO.public_key, words.parse_right(folder, tag="(ftp read)"), to=SMITH.public_key, at=AT
        )  # fmt: skip
    with pytest.raises(ConditionSyntaxError):
        draft_grant(folder, PITO.public_key, given, to=SMITH.public_key, at=AT, conditions=["now.hour( <"])


def test_a_revocation_continues_the_signers_series(folder: Folder) -> None:
    """The list names what earlier ones did and this; a second time it is refused."""
    drafts = [
        draft_grant(folder, PITO.public_key, right(folder, action), to=SMITH.public_key, at=AT, tests=(CRL,))
        for action in ("subscribe", "publish")
    ]
    first, second = (parse_certificate(sign_grant(folder, item, PITO, at=AT).certificate.raw) for item in drafts)
    for number, certificate in enumerate((first, second), 1):
        revocation = draft_revocation(folder, certificate, at=AT)
        assert revocation.signer == MET.public_key
        assert revocation.body.sequence == number
        assert len(revocation.body.certificates) == number
        sign_revocation(folder, revocation, MET, at=AT)
    with pytest.raises(UsageError, match="REVOKED_BEFORE"):
        draft_revocation(folder, first, at=AT)
    assert not in_register(folder, first.certificate_id.hex())


@pytest.mark.parametrize(
    "tests, code", [((), "IRREVOCABLE"), ((OnlineTest(TestKind.ONE_TIME, MET.public_key, ()),), "NOT_BY_CRL")]
)
def test_what_no_list_reaches_is_not_revoked(folder: Folder, tests: tuple[OnlineTest, ...], code: str) -> None:
    """Nobody pretends that a list ends what no verifier looks up in one."""
    draft = draft_grant(folder, PITO.public_key, right(folder), to=SMITH.public_key, at=AT, tests=tests)
    certificate = parse_certificate(sign_grant(folder, draft, PITO, at=AT).certificate.raw)
    with pytest.raises(UsageError, match=code):
        draft_revocation(folder, certificate, at=AT)


def test_conditions_are_asked_now(folder: Folder) -> None:
    """What holds, what does not, what only events or a ledger can tell, and what nobody can answer."""
    occasion = Occasion(action="subscribe", at=AT, principal="00")
    sources = ['now.hour("UTC") == 12', 'now.hour("UTC") < 12', 'event["3"] == "x"', 'rate(10, "1m")', "on_duty(self)"]
    found = ask_conditions(folder, sources, occasion)
    assert [item.holds for item in found] == [True, False, None, None, False]
    assert found[1].why == "is false now"
    assert "cannot be asked here" in found[4].why
