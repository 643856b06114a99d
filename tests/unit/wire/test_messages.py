"""Signed requests and answers: everything that matters is covered, and nothing else is accepted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.errors import ExpiredError, MaiaError, MalformedError, SignatureError, VerificationError
from maia.principals import KeySigner
from maia.wire import (
    Answer,
    Fields,
    ServiceRequest,
    decode_key,
    decode_octets,
    encode_key,
    encode_octets,
    sign_answer,
    sign_request,
    verify_answer,
    verify_request,
)
from maia.wire.messages import HTTPMessageSigner, _PrefixedEd25519, _sign

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
ALICE, BOB = KeySigner(b"a" * 32), KeySigner(b"b" * 32)
URL = "https://keys.example/v1/echo?a=1"


def signed(signer: KeySigner = ALICE, *, at: datetime = NOON) -> ServiceRequest:
    """Make a signed request."""
    request = ServiceRequest(method="POST", url=URL, body=b'{"word":"hi"}')
    sign_request(request, signer, session="s1", nonce=b"n" * 16, at=at)
    return request


def copy(request: ServiceRequest) -> ServiceRequest:
    """Copy a request, fields included."""
    return replace(request, headers=Fields(request.headers.items()))


def test_a_signed_request_proves_its_key_time_nonce_and_session() -> None:
    """The key is the principal: no directory is asked."""
    found = verify_request(signed(), at=NOON)
    assert (found.key, found.nonce, found.created, found.session) == (ALICE.public_key, b"n" * 16, NOON, "s1")


def set_field(name: str, change: Callable[[str], str]) -> Callable[[ServiceRequest], None]:
    """Change one field of a request."""

    def apply(request: ServiceRequest) -> None:
        request.headers[name] = change(request.headers[name])

    return apply


def set_part(**parts: object) -> Callable[[ServiceRequest], None]:
    """Change a request itself."""

    def apply(request: ServiceRequest) -> None:
        for name, value in parts.items():
            setattr(request, name, value)

    return apply


CHANGES = {
    "another method": set_part(method="PUT"),
    "another host": set_part(url=URL.replace("keys", "evil")),
    "another port": set_part(url=URL.replace("example", "example:444")),
    "another path": set_part(url=URL.replace("echo", "gold")),
    "another query": set_part(url=URL.replace("a=1", "a=2")),
    "no query": set_part(url=URL.partition("?")[0]),
    "another body": set_part(body=b'{"word":"ho"}'),
    "no body": set_part(body=b""),
    "another digest": set_field("content-digest", lambda text: text.replace("sha-256", "sha-512")),
    "another session": set_field("maia-session", lambda _: "s2"),
    "another nonce": set_field("signature-input", lambda text: text.replace(encode_octets(b"n" * 16), "b" * 22)),
    "a later time": set_field("signature-input", lambda text: text.replace("created=1", "created=2")),
    "another key": set_field(
        "signature-input", lambda text: text.replace(encode_key(ALICE.public_key), encode_key(BOB.public_key))
    ),
    "another signature": set_field("signature", lambda text: text.replace("A", "B", 1)),
    "another algorithm": set_field("signature-input", lambda text: text.replace("maia-1-ed25519", "ed25519")),
    "an end": set_field("signature-input", lambda text: text + ";expires=9999999999"),
    "another use": set_field("signature-input", lambda text: text.replace("maia-request", "maia-answer")),
    "one component less": set_field("signature-input", lambda text: text.replace(' "@path"', "")),
    "one component more": set_field("signature-input", lambda text: text.replace('"@path"', '"@path" "@scheme"')),
    "a second signature": lambda request: [
        set_field("signature-input", lambda text: text + ", two" + text.removeprefix("maia"))(request),
        set_field("signature", lambda text: text + ", two" + text.removeprefix("maia"))(request),
    ],
    "no signature": lambda request: request.headers.pop("signature"),
    "no digest": lambda request: request.headers.pop("content-digest"),
    "no session": lambda request: request.headers.pop("maia-session"),
    "a long field": set_field("signature-input", lambda text: text + " " * 5000),
    "no time at all": set_field("signature-input", lambda text: text.replace("created=", "created=99999")),
}


@pytest.mark.threat("T60")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_request_is_refused(change: Callable[[ServiceRequest], object]) -> None:
    """Whatever is changed after signing, the request proves nothing."""
    request = copy(signed())
    change(request)
    with pytest.raises((MalformedError, VerificationError)):
        verify_request(request, at=NOON)
    verify_request(signed(), at=NOON)


@pytest.mark.threat("T61")
@pytest.mark.parametrize(
    "seconds, fresh", [(-31, False), (-30, True), (-29, True), (29, True), (30, True), (31, False)]
)
def test_a_request_is_fresh_within_thirty_seconds_of_either_side(seconds: int, fresh: bool) -> None:
    """Inside the window it counts, outside it does not."""
    request, at = signed(), NOON + timedelta(seconds=seconds)
    if fresh:
        assert verify_request(request, at=at).created == NOON
    else:
        with pytest.raises(ExpiredError) as refusal:
            verify_request(request, at=at)
        assert refusal.value.code == "STALE_REQUEST"


def test_a_signature_that_covers_less_is_refused_though_it_verifies() -> None:
    """The verifier says what must be covered, not the sender."""
    request = ServiceRequest(method="POST", url=URL, headers=Fields([("maia-session", "s1")]), body=b"{}")
    _sign(request, ALICE, ("@method", "content-digest"), tag="maia-request", nonce=encode_octets(b"n" * 16), at=NOON)
    with pytest.raises(SignatureError):
        verify_request(request, at=NOON)


def test_a_signature_that_covers_more_is_refused_though_it_verifies() -> None:
    """One form, so that nothing hides in another."""
    request = ServiceRequest(method="POST", url=URL, headers=Fields([("maia-session", "s1")]), body=b"{}")
    more = ("@method", "@authority", "@path", "@query", "content-digest", "maia-session", "@scheme")
    _sign(request, ALICE, more, tag="maia-request", nonce=encode_octets(b"n" * 16), at=NOON)
    with pytest.raises(MalformedError) as refusal:
        verify_request(request, at=NOON)
    assert refusal.value.code == "SIGNATURE_FORM"


def test_a_request_signed_without_the_prefix_is_refused() -> None:
    """A signature over the bare signature base is not one of Maia's."""
    from nacl.bindings import crypto_sign

    request = ServiceRequest(method="POST", url=URL, headers=Fields([("maia-session", "s1")]), body=b"{}")
    bare = HTTPMessageSigner(signature_algorithm=_PrefixedEd25519)
    prepared = bare.prepare(
        request,
        key_id=encode_key(ALICE.public_key),
        created=NOON,
        nonce=encode_octets(b"n" * 16),
        label="maia",
        tag="maia-request",
        covered_component_ids=("@method", "@authority", "@path", "@query", "content-digest", "maia-session"),
        body=b"{}",
    )
    bare.apply(request, prepared, crypto_sign(prepared.signature_base, ALICE._secret)[:64])
    with pytest.raises(SignatureError):
        verify_request(request, at=NOON)


def answered() -> Answer:
    """Make a signed answer of Bob's to Alice."""
    answer = Answer(status_code=200, headers=Fields(), body=b'{"word":"hi"}', request=signed())
    sign_answer(answer, BOB, at=NOON)
    return answer


ANSWER_CHANGES: dict[str, Callable[[Answer], object]] = {
    "another status": lambda answer: setattr(answer, "status_code", 403),
    "another body": lambda answer: setattr(answer, "body", b"{}"),
    "another request": lambda answer: setattr(answer, "request", signed(at=NOON + timedelta(seconds=1))),
    "no signature": lambda answer: answer.headers.pop("signature"),
    "no digest": lambda answer: answer.headers.pop("content-digest"),
}


@pytest.mark.parametrize("change", ANSWER_CHANGES.values(), ids=ANSWER_CHANGES)
def test_a_changed_answer_is_refused(change: Callable[[Answer], object]) -> None:
    """An answer is the server's word on one request, and on no other."""
    verify_answer(answered(), BOB.public_key)
    answer = answered()
    change(answer)
    with pytest.raises((MalformedError, SignatureError)):
        verify_answer(answer, BOB.public_key)


def test_an_answer_of_another_key_is_refused() -> None:
    """The client knows whom it asked."""
    with pytest.raises(SignatureError):
        verify_answer(answered(), ALICE.public_key)


def test_an_answer_to_an_unreadable_signature_cannot_be_signed() -> None:
    """There is nothing to bind it to."""
    request = ServiceRequest(method="GET", url=URL, headers=Fields([("signature", "?!"), ("signature-input", "x")]))
    with pytest.raises(MalformedError):
        sign_answer(Answer(status_code=400, headers=Fields(), body=b"", request=request), BOB, at=NOON)


@given(
    fields=st.dictionaries(st.sampled_from(("signature", "signature-input", "content-digest")), st.text(max_size=80))
)
def test_any_fields_raise_only_maias_errors(fields: dict[str, str]) -> None:
    """What arrives in header fields is somebody else's text."""
    request = copy(signed())
    for name, value in fields.items():
        request.headers[name] = value
    try:
        verify_request(request, at=NOON)
    except MaiaError:
        return
    assert not fields or all(request.headers[name] == signed().headers[name] for name in fields)


@pytest.mark.parametrize("text", ["", "A", "AA=", "A" * 43 + "=", "A" * 44, "+" * 43, "é" * 43, "A" * 42 + "B"])
def test_octets_have_one_spelling(text: str) -> None:
    """Padding, another alphabet, another length and unused bits are refused."""
    with pytest.raises(MalformedError):
        decode_octets(text, length=32)


@given(raw=st.binary(max_size=80))
def test_octets_come_back(raw: bytes) -> None:
    """What is written is read."""
    assert decode_octets(encode_octets(raw), length=len(raw)) == raw


def test_a_key_comes_back() -> None:
    """A key in `keyid` is the key."""
    assert decode_key(encode_key(ALICE.public_key)) == ALICE.public_key
