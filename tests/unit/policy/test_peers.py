"""The files between peers: read as written, refused when changed, and nothing but typed errors."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.authority import network_right, type_right
from maia.errors import EncodingError, ExpiredError, MaiaError, SignatureError
from maia.policy import Agreement, AgreementRow, SignedAgreement, peers, sign_agreement
from maia.principals import KeySigner

CLINIC, MARY, SECRET = (KeySigner(bytes([number]) * 32) for number in (1, 2, 3))
AT = datetime(2026, 6, 1, tzinfo=UTC)
ROW = AgreementRow(role="clerk", words="subscribe T", tag=type_right(CLINIC.public_key, "T"))
INVITATION = peers.PeerInvitation(
    title="x", name="clinic", key=CLINIC.public_key, peer="St Mary's", begins=AT, ends=AT + timedelta(days=7),
    one_time_key=SECRET.public_key, log="/shared", manager=CLINIC.public_key, types=(b"type",), rows=(ROW,),
)  # fmt: skip
WHOLE = replace(
    INVITATION, peer_key=MARY.public_key, network=(CLINIC.public_key, "Wards"), manager_address="https://keys.example",
    history=AT, keys=(("owner", MARY.public_key),), certificates=(b"certificate",),
)  # fmt: skip


def invitation_file(invitation: peers.PeerInvitation = INVITATION) -> bytes:
    """Write the file of an invitation."""
    return peers.format_peer_invitation(peers.sign_peer_invitation(invitation, CLINIC, SECRET)).encode()


def answer_file() -> bytes:
    """Write the file of an answer."""
    agreement = Agreement(title="x", giver=CLINIC.public_key, receiver=MARY.public_key, rows=(ROW,))
    half = sign_agreement(SignedAgreement(agreement=agreement), MARY)
    answer = peers.PeerAnswer(
        invitation=INVITATION.digest, name="St Mary's", agreement=agreement, signature=half.signatures[0],
        offer=peers.JoinOffer(requests=(b"r",), certificates=(b"c",), statements=(b"s",)),
    )  # fmt: skip
    return peers.sign_peer_answer(answer, MARY, SECRET).encode()


@pytest.mark.parametrize("invitation", [INVITATION, WHOLE], ids=["the least", "everything"])
def test_an_invitation_is_read_as_it_was_written(invitation: peers.PeerInvitation) -> None:
    """With its secret where there is one, and without it as the inviting side keeps it."""
    read = peers.parse_peer_invitation(invitation_file(invitation))
    assert read.invitation == invitation
    assert read.secret is not None
    assert read.secret.public_key == SECRET.public_key
    kept = peers.format_peer_invitation(replace(read, secret=None)).encode()
    assert SECRET.export_seed() not in kept
    assert peers.parse_peer_invitation(kept, with_secret=False).invitation == invitation
    with pytest.raises(EncodingError):
        peers.parse_peer_invitation(kept)
    with pytest.raises(EncodingError):
        peers.parse_peer_invitation(invitation_file(invitation), with_secret=False)


def test_an_answer_is_read_as_it_was_written_and_proves_its_secret() -> None:
    """Another secret than the invitation's proves nothing."""
    read = peers.parse_peer_answer(answer_file())
    assert (read.answer.name, read.answer.invitation) == ("St Mary's", INVITATION.digest)
    assert read.answer.offer == peers.JoinOffer(requests=(b"r",), certificates=(b"c",), statements=(b"s",))
    read.check_secret(SECRET.public_key)
    with pytest.raises(SignatureError) as refused:
        read.check_secret(MARY.public_key)
    assert refused.value.code == "PEER_FILE_ALTERED"


def test_kinds_are_told_apart_and_each_is_only_itself() -> None:
    """No signature over one of them passes for the other."""
    kinds = peers.PeerFileKind
    assert peers.kind_of_peer_file(invitation_file()) is kinds.INVITATION
    assert peers.kind_of_peer_file(answer_file()) is kinds.ANSWER
    with pytest.raises(EncodingError):
        peers.parse_peer_answer(invitation_file())
    with pytest.raises(EncodingError):
        peers.parse_peer_invitation(answer_file())


@given(st.data())
def test_a_changed_file_is_refused_by_a_typed_error(data: st.DataObject) -> None:
    """One octet exchanged anywhere: it says the same in another spelling, or it is refused."""
    whole = data.draw(st.sampled_from([invitation_file(), invitation_file(WHOLE)]))
    place = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:place] + bytes([data.draw(st.integers(0, 255))]) + whole[place + 1 :]
    try:
        read = peers.parse_peer_invitation(changed)
    except MaiaError as error:
        assert error.code in ("PEER_FILE_SHAPE", "PEER_FILE_ALTERED", "SIGNATURE_INVALID")  # noqa: PT017
    else:
        assert read.invitation in (INVITATION, WHOLE)


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda tail: b"(signed-peer-invitation " + tail))
def test_whatever_comes_is_a_file_or_a_typed_error(data: bytes) -> None:
    """Readers of files and of records raise nothing but Maia's errors."""
    for read in (
        peers.kind_of_peer_file, peers.parse_peer_invitation, peers.parse_peer_answer, peers.parse_peer_welcome,
        peers.parse_peer_ask,
    ):  # fmt: skip
        try:
            read(data)
        except MaiaError:
            continue


def test_a_file_that_is_too_large_is_not_looked_at() -> None:
    """The limit counts before anything is parsed."""
    with pytest.raises(EncodingError) as refused:
        peers.kind_of_peer_file(b"(" * (peers.MAX_PEER_FILE + 1))
    assert refused.value.code == "PEER_FILE_SIZE"


@pytest.mark.parametrize("off", [timedelta(seconds=-1), timedelta(days=7, seconds=1)], ids=["before", "after"])
def test_an_invitation_is_open_for_its_time(off: timedelta) -> None:
    """Its ends count, a second beyond does not."""
    INVITATION.check_open(at=AT)
    INVITATION.check_open(at=INVITATION.ends)
    with pytest.raises(ExpiredError):
        INVITATION.check_open(at=AT + off)


def test_rows_are_about_types() -> None:
    """A right on a network, or on every type, belongs in no row."""
    for tag in (network_right(CLINIC.public_key, "N", None), type_right(None)):
        with pytest.raises(EncodingError):
            peers.types_of_rows([replace(ROW, tag=tag)])


def test_secrets_are_not_shown() -> None:
    """Neither an invitation's nor anything's that holds it."""
    signed = peers.sign_peer_invitation(INVITATION, CLINIC, SECRET)
    assert SECRET.export_seed().hex() not in repr(signed)
    assert "x" in repr(signed)
