"""Certificates: what is signed is what is read, and nothing near it verifies."""

from __future__ import annotations

import pickle
import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_trust import LONG, NOW, SIGNERS, random_tag, randoms

from maia.authority import Root, Verifier, ask, parse_statement
from maia.encoding import encode, parse_canonical
from maia.errors import MaiaError, VerificationError
from maia.principals import (
    Authorisation,
    Body,
    KeyHash,
    KeySigner,
    Name,
    Naming,
    ObjectHash,
    OnlineTest,
    Period,
    TestKind,
    Threshold,
    issue,
    parse_certificate,
    unsafe_sign_certificate,
    verify_certificate,
)

KEYS = tuple(signer.public_key for signer in SIGNERS)


def random_period(rng: random.Random) -> Period:
    """Draw a period, open at either end or both."""
    start = NOW - timedelta(seconds=rng.randrange(10**6)) if rng.random() < 0.5 else None
    end = NOW + timedelta(seconds=rng.randrange(10**6)) if rng.random() < 0.5 else None
    return Period(start, end)


def random_tests(rng: random.Random) -> tuple[OnlineTest, ...]:
    """Draw up to three on-line tests."""
    return tuple(
        OnlineTest(rng.choice(tuple(TestKind)), rng.choice(KEYS), ("https://example.org/list",) * rng.randrange(3))
        for _ in range(rng.randrange(4))
    )


def random_subject(rng: random.Random) -> object:
    """Draw any subject of an authorisation."""
    kind = rng.randrange(5)
    if kind == 0:
        return KeyHash(rng.choice(KEYS).key_id)
    if kind == 1:
        return Name(
            rng.choice(KEYS), tuple(rng.choice(("met", "brokers", "ünïcode")) for _ in range(rng.randrange(1, 4)))
        )
    if kind == 2:
        return Threshold(rng.randrange(1, 4), (*rng.sample(KEYS, 2), KeyHash(rng.choice(KEYS).key_id)))
    return ObjectHash(rng.randbytes(32)) if kind == 3 else rng.choice(KEYS)


def random_body(rng: random.Random, signer: KeySigner) -> Body:
    """Draw a body that this signer may sign."""
    issuer = rng.choice((signer.public_key, KeyHash(signer.public_key.key_id)))
    if rng.random() < 0.3:
        meaning = rng.choice((rng.choice(KEYS), Name(rng.choice(KEYS), ("a", "b"))))
        return Naming(
            issuer=issuer, name="brokers", subject=meaning, period=random_period(rng), tests=random_tests(rng)
        )
    return Authorisation(
        issuer=issuer, subject=random_subject(rng), delegate=rng.random() < 0.5, tag=random_tag(rng),
        period=random_period(rng), tests=random_tests(rng), conditions=("hour < 18",) * rng.randrange(3),
        renew=rng.choice((None, "https://example.org/renew")),
    )  # fmt: skip


@given(randoms)
def test_a_certificate_is_read_as_it_was_issued(rng: random.Random) -> None:
    """parse∘encode is the identity on bodies; identity and bytes survive reading, pickling and re-signing."""
    signer = rng.choice(SIGNERS)
    body = random_body(rng, signer)
    certificate = issue(body, signer)
    read = parse_certificate(certificate.raw)
    assert read.body == certificate.body == body
    assert read.body_bytes == encode(body.to_sexp())
    assert read.certificate_id == certificate.certificate_id
    assert encode(parse_canonical(certificate.raw)) == certificate.raw
    assert pickle.loads(pickle.dumps(certificate)) == certificate  # noqa: S301 - our own bytes


THREE = {
    "an authorisation with everything": Authorisation(
        issuer=KEYS[0],
        subject=Threshold(2, (KEYS[1], KEYS[2], Name(KEYS[3], ("met",)))),
        delegate=True,
        tag=(b"a", (b"*", b"range", b"numeric", b"ge", b"1"), (b"*", b"where", (b"1", (b"*", b"prefix", b"a")))),
        period=Period(NOW, NOW + timedelta(days=1)),
        tests=(OnlineTest(TestKind.CRL, KEYS[4], ("https://example.org/crl",)),),
        conditions=("hour < 18",),
        renew="https://example.org/renew",
    ),
    "a short authorisation by hash": Authorisation(
        issuer=KeyHash(KEYS[0].key_id), subject=KEYS[1], delegate=False, tag=(b"*",)
    ),
    "a name certificate": Naming(issuer=KEYS[0], name="brokers", subject=KEYS[1], period=Period(None, NOW)),
}


@pytest.mark.parametrize("body", THREE.values(), ids=THREE.keys())
def test_every_flipped_bit_refuses_the_certificate(body: Body) -> None:
    """Whichever single bit of a certificate is changed, it is malformed or its signature does not verify."""
    raw = unsafe_sign_certificate(body, SIGNERS[0])
    verify_certificate(parse_certificate(raw))
    for place in range(len(raw)):
        for bit in range(8):
            changed = raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1 :]
            with pytest.raises(MaiaError):
                verify_certificate(parse_certificate(changed))


def test_a_flipped_certificate_proves_nothing() -> None:
    """The verifier denies with each bit of the one certificate flipped, and says so without any other error."""
    body = Authorisation(issuer=KEYS[0], subject=KEYS[1], delegate=False, tag=(b"a", (b"*", b"set", b"b", b"c")))
    raw = issue(body, SIGNERS[0]).raw
    verifier = Verifier([Root(subject=KEYS[0])])
    wish = ask((b"a", b"b"))
    assert verifier.decide(wish, principal=KEYS[1], evidence=[raw], at=NOW)
    for place in range(len(raw)):
        for bit in (0, 3, 7):
            changed = raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1 :]
            decision = verifier.decide(wish, principal=KEYS[1], evidence=[changed], at=NOW)
            assert not decision
            assert isinstance(decision.error, VerificationError)


@given(randoms, st.data())
def test_no_change_of_a_certificate_verifies(rng: random.Random, data: st.DataObject) -> None:
    """Octets dropped, doubled, added or exchanged: refused, unless nothing changed."""
    signer = rng.choice(SIGNERS)
    raw = unsafe_sign_certificate(random_body(rng, signer), signer)
    start = data.draw(st.integers(0, len(raw)))
    stop = data.draw(st.integers(start, min(len(raw), start + 8)))
    changed = raw[:start] + data.draw(st.one_of(st.binary(max_size=8), st.just(raw[start:stop] * 2))) + raw[stop:]
    if changed != raw:
        with pytest.raises(MaiaError):
            verify_certificate(parse_certificate(changed))


@given(st.binary(max_size=300))
def test_any_bytes_are_a_certificate_or_refused(data: bytes) -> None:
    """parse_certificate and parse_statement raise nothing but Maia's errors."""
    for parse in (parse_certificate, parse_statement):
        with pytest.raises(MaiaError):
            parse(data)


FIELDS = st.sampled_from(
    [
        (b"version", b"1"), (b"issuer", KEYS[0].to_sexp()), (b"subject", KEYS[1].to_sexp()), (b"propagate",),
        (b"tag", (b"*",)), (b"tag", ()), (b"condition", b"x"), (b"condition", b"\xff"), (b"valid",),
        (b"valid", (b"not-before", b"2026-06-01_09:00:00")), (b"renew", b"u"), (b"unknown", b"1"), b"stray",
        (b"issuer", (b"name", KEYS[0].to_sexp(), b"n")), (b"subject", (b"k-of-n", b"1", b"1", KEYS[1].to_sexp())),
        (b"kind", b"crl"), (b"signer", KEYS[0].to_sexp()), (b"sequence", b"1"), (b"certificates",), (b"nonce", b"n"),
    ]
)  # fmt: skip


@given(st.lists(FIELDS, max_size=8), st.sampled_from([b"cert", b"statement", b"other"]))
def test_signed_nonsense_is_refused_or_read_as_written(fields: list[object], head: bytes) -> None:
    """Fields in any order, repeated or unknown: only Maia's errors, and whatever is read is what was written."""
    body = (head, *fields)
    mark = (b"signature", KEYS[0].to_sexp(), bytes(64))
    for parse, envelope in (
        (parse_certificate, (b"signed", b"1", body, mark)),
        (parse_statement, (b"signed", body, mark)),
    ):
        try:
            read = parse(encode(envelope))
        except MaiaError:
            continue
        assert read.body.to_sexp() == body


def test_random_certificates_flip_for_flip() -> None:
    """A random bit of each of many random certificates."""
    rng = random.Random(11)
    for _ in range(20_000 if LONG else 500):
        signer = rng.choice(SIGNERS)
        raw = bytearray(unsafe_sign_certificate(random_body(rng, signer), signer))
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        with pytest.raises(MaiaError):
            verify_certificate(parse_certificate(bytes(raw)))
