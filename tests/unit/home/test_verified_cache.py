"""Verified certificates on disk: warm after a start, and worth nothing by themselves."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from maia.authority import (
    Action,
    ListStatement,
    SignatureCache,
    StatementBook,
    Verifier,
    ask_type,
    issue_statement,
    type_right,
)
from maia.encoding import encode
from maia.home import VerifiedCache
from maia.principals import (
    Authorisation,
    Certificate,
    KeySigner,
    OnlineTest,
    Period,
    TestKind,
    issue,
    parse_certificate,
    unsafe_sign_certificate,
)

MET, SMITH, JONES = (KeySigner(bytes([n]) * 32) for n in (1, 2, 3))
SUBSCRIBE = ask_type(Action.SUBSCRIBE, MET.public_key, "Sighting", "1")


def hour(number: int) -> datetime:
    """An hour of the day in question."""
    return datetime(2026, 6, 1, number, tzinfo=UTC)


def body(subject: KeySigner = SMITH, *tests: OnlineTest) -> Authorisation:
    """The right to subscribe to sightings, until 20."""
    return Authorisation(
        issuer=MET.public_key,
        subject=subject.public_key,
        delegate=False,
        tag=type_right(MET.public_key, "Sighting", actions=[Action.SUBSCRIBE]).to_sexp(),
        period=Period(None, hour(20)),
        tests=tests,
    )


def grant(subject: KeySigner = SMITH) -> Certificate:
    """That right, signed by its owner."""
    return issue(body(subject), MET)


def saved(path: Path, *certificates: Certificate) -> VerifiedCache:
    """A cache file with these certificates."""
    cache = SignatureCache()
    for certificate in certificates:
        cache.verify(parse_certificate(certificate.raw))
    store = VerifiedCache(path)
    store.save(cache)
    return store


def test_a_cached_certificate_saves_verifications_and_ends_with_its_expiry(tmp_path: Path) -> None:
    """The second subscription verifies nothing; cached at 10, expired at 20, used at 21: denied, from disk too."""
    store = VerifiedCache(tmp_path / "home" / "verified")
    verifier = Verifier(signatures=store.load())
    evidence = (grant().raw,)
    assert verifier.decide(SUBSCRIBE, principal=SMITH.public_key, evidence=evidence, at=hour(10))
    assert verifier.signatures.verifications == 1
    assert verifier.decide(SUBSCRIBE, principal=SMITH.public_key, evidence=evidence, at=hour(11))
    assert verifier.signatures.verifications == 1
    late = verifier.decide(SUBSCRIBE, principal=SMITH.public_key, evidence=evidence, at=hour(21))
    assert (late.allowed, late.reason) == (False, "EXPIRED")
    store.save(verifier.signatures)

    restarted = Verifier(signatures=store.load())
    assert restarted.signatures.verifications == 1  # verified again during start-up
    assert restarted.decide(SUBSCRIBE, principal=SMITH.public_key, evidence=evidence, at=hour(12))
    assert restarted.signatures.verifications == 1  # and not again for the subscription
    late = restarted.decide(SUBSCRIBE, principal=SMITH.public_key, evidence=evidence, at=hour(21))
    assert (late.allowed, late.reason) == (False, "EXPIRED")


def test_a_cached_certificate_ends_with_its_revocation(tmp_path: Path) -> None:
    """A new list counts against a certificate that came from disk."""
    certificate = issue(body(SMITH, OnlineTest(TestKind.CRL, MET.public_key)), MET)
    book = StatementBook()
    verifier = Verifier(statements=book, signatures=saved(tmp_path / "verified", certificate).load())
    for sequence, revoked, allowed in ((1, (), True), (2, (certificate.certificate_id,), False)):
        listed = ListStatement(
            kind=TestKind.CRL, signer=MET.public_key, sequence=sequence, certificates=frozenset(revoked)
        )
        book.accept(issue_statement(listed, MET))
        answer = verifier.decide(SUBSCRIBE, principal=SMITH.public_key, evidence=(certificate.raw,), at=hour(10))
        assert answer.allowed is allowed


FORGERIES = {
    "signed by the subject itself": unsafe_sign_certificate(body(JONES), JONES),
    "a subject exchanged under an old signature": grant().raw.replace(SMITH.public_key.raw, JONES.public_key.raw),
    "a flipped signature bit": grant(JONES).raw[:-3] + bytes([grant(JONES).raw[-3] ^ 1]) + grant(JONES).raw[-2:],
}


@pytest.mark.parametrize("forged", FORGERIES.values(), ids=FORGERIES)
def test_a_tampered_entry_is_not_trusted(tmp_path: Path, forged: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """What somebody wrote into the file is dropped and said, the rest serves, and the forgery proves nothing."""
    path = tmp_path / "verified"
    path.write_bytes(encode((b"verified", (b"version", b"1"), grant().raw, forged, (b"list",))))
    cache = VerifiedCache(path).load()
    assert [certificate.raw for certificate in cache] == [grant().raw]
    assert "dropped 2 entries" in caplog.text
    verifier = Verifier(signatures=cache)
    assert not verifier.decide(SUBSCRIBE, principal=JONES.public_key, evidence=(forged,), at=hour(10))


DAMAGED = {
    "nothing": b"",
    "junk": b"junk",
    "another version": encode((b"verified", (b"version", b"2"), grant().raw)),
    "another file": encode((b"statements", (b"version", b"1"))),
    "cut": encode((b"verified", (b"version", b"1"), grant().raw))[:-1],
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_cache_starts_empty_and_says_so(
    tmp_path: Path, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """A cache can be lost without loss."""
    (tmp_path / "verified").write_bytes(data)
    assert len(VerifiedCache(tmp_path / "verified").load()) == 0
    assert "damaged" in caplog.text


def test_a_missing_cache_is_empty(tmp_path: Path) -> None:
    """The first start has none."""
    assert len(VerifiedCache(tmp_path / "none").load()) == 0


def test_order_and_capacity_survive(tmp_path: Path) -> None:
    """Oldest first, as in memory; a smaller capacity keeps the newest."""
    first, second, third = grant(SMITH), grant(JONES), grant(MET)
    store = saved(tmp_path / "verified", first, second, third)
    assert [item.raw for item in store.load()] == [first.raw, second.raw, third.raw]
    assert [item.raw for item in store.load(capacity=2)] == [second.raw, third.raw]
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600


def test_a_cache_larger_than_its_file_keeps_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of the file is bounded, so that it can be read again."""
    from maia.encoding import SexpLimits
    from maia.home import verified_cache as module

    first, second = grant(SMITH), grant(JONES)
    room = SexpLimits(max_bytes=len(second.raw) + 100, max_depth=2, max_atom=1 << 16)
    monkeypatch.setattr(module, "CACHE_FILE_LIMITS", room)
    store = saved(tmp_path / "verified", first, second)
    assert [item.raw for item in store.load()] == [second.raw]
