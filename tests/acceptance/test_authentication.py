"""Proving a key to a service: with a time stamp, and with random numbers; over HTTP, as everybody can send it."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from processes import serving

import maia
from maia.encoding import encode
from maia.errors import ExpiredError, SignatureError, VerificationError
from maia.principals import (
    KeySigner,
    NonceProof,
    PublicKey,
    StampChecker,
    check_nonce_proof,
    open_private_key,
    prove_by_nonce,
    prove_by_stamp,
)
from maia.testing import Command, ManagedType, managed_type, served

NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)
RULES = """\
reader(self)  <-  hired(self)*
reader(self)  |-  subscribe Result(value)
"""


def text(octets: bytes) -> str:
    """Write octets as the services take them."""
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def octets(value: str) -> bytes:
    """Read octets as the services give them."""
    return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))


@pytest.mark.requirement("6.03")
def test_a_stamped_proof_is_fresh_addressed_and_used_once() -> None:
    """Window 30 s: 29 old passes, 31 does not, early or late; addressed to B2 it is nothing to B1; twice it is none."""
    smith, b1, b2 = (KeySigner.generate() for _ in range(3))
    checker = StampChecker(b1.public_key.key_id)

    def proof(age: int, *, to: KeySigner = b1) -> Any:
        return prove_by_stamp(smith, audience=to.public_key.key_id, at=NOW - timedelta(seconds=age))

    assert checker.check(proof(29), at=NOW).key == smith.public_key
    assert checker.check(proof(-29), at=NOW).key == smith.public_key
    for age in (31, -31):
        with pytest.raises(ExpiredError):
            checker.check(proof(age), at=NOW)
    with pytest.raises(VerificationError) as other:
        checker.check(proof(1, to=b2), at=NOW)
    assert other.value.code == "WRONG_AUDIENCE"
    with pytest.raises(SignatureError):
        checker.check(replace(proof(1, to=b2), audience=b1.public_key.key_id), at=NOW)
    once = proof(2)
    checker.check(once, at=NOW)
    with pytest.raises(VerificationError) as again:
        checker.check(once, at=NOW + timedelta(seconds=20))
    assert again.value.code == "REPLAY"


@dataclass(frozen=True)
class Office:
    """A domain whose service renews certificates, and the key of a member of it."""

    port: int
    key: PublicKey
    ward: KeySigner
    certificate: str

    def renew(self, *, age: timedelta = timedelta(), audience: PublicKey | None = None) -> dict[str, str]:
        """Write the request of the ward for its certificate anew, proven by a stamp of some age."""
        at = datetime.now(UTC) - age
        proof = prove_by_stamp(self.ward, audience=(audience or self.key).key_id, at=at)
        return {
            "certificate": self.certificate, "key": self.ward.public_key.raw.hex(), "stamp": at.isoformat(),
            "proof": proof.signature.hex(),
        }  # fmt: skip

    def answer(self, query: dict[str, str]) -> str:
        """Ask; give `yes` or the code of the refusal."""
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/v1/open/renewal?{urlencode(query)}"):
                return "yes"
        except HTTPError as error:
            with error:
                return str(json.load(error)["code"])


@contextmanager
def office(root: Path) -> Iterator[Office]:
    """Run the access control service of a domain with one member."""
    command = Command(root / "office")
    command.do("domain", "init", str(command.home), "--key")
    command.keys("ward")
    command.do("type", "define", "domain/Result@1", "--attribute", "value:float")
    (command.home / "policy" / "office.rules").write_text(RULES, "utf-8")
    command.do("policy", "apply")
    code = root / "code"
    code.write_text(command.do("domain", "invite", "ward")["invitation"], "utf-8")
    command.do("domain", "join", str(command.home), "--as", "ward", "--invitation-file", str(code))
    command.do("role", "appoint", "hired(ward)")
    command.do("role", "activate", "reader(ward)", "--as", "ward")
    shown = command.do("cert", "show")["certificates"]
    [right] = [item for item in shown if item.get("delegate") is False and item["tests"] and "value" in str(item)]
    ward = KeySigner(_seed(command.home / "keys" / "ward.key"))
    key = maia.open(command.home).home.key("domain")
    with serving("acs", command.home) as service:
        yield Office(service.port, key, ward, right["id"])


def _seed(path: Path) -> bytes:
    return open_private_key(path.read_bytes(), None)


@pytest.mark.requirement("6.03")
def test_a_service_takes_a_stamp_that_is_fresh_its_own_and_new(tmp_path: Path) -> None:
    """A certificate is renewed by a fresh stamp for this service; by an old, a foreign or a used one it is not."""
    with office(tmp_path) as service:
        once = service.renew()
        assert service.answer(once) == "yes"
        assert service.answer(once) == "DENIED"
        assert service.answer(service.renew(age=timedelta(seconds=31))) == "DENIED"
        assert service.answer(service.renew(age=timedelta(seconds=-61))) == "DENIED"
        foreign = KeySigner.generate().public_key
        assert service.answer(service.renew(audience=foreign)) == "DENIED"
        assert service.answer(service.renew()) == "yes"


@pytest.mark.requirement("6.04")
def test_an_answer_fits_the_random_number_that_was_sent_last() -> None:
    """Over both random numbers and the verifier it passes; for an older number, or another verifier, it does not."""
    smith, b1, b2 = (KeySigner.generate() for _ in range(3))
    older, newer = secrets.token_bytes(32), secrets.token_bytes(32)
    own = secrets.token_bytes(32)
    to = b1.public_key.key_id
    proof = prove_by_nonce(smith, audience=to, challenge=newer, own_nonce=own)
    assert check_nonce_proof(proof, audience=to, challenge=newer).key == smith.public_key
    stale = prove_by_nonce(smith, audience=to, challenge=older, own_nonce=own)
    wrong = {
        "an older number": (stale, to),
        "another verifier": (proof, b2.public_key.key_id),
        "another number of the prover's": (replace(proof, own_nonce=secrets.token_bytes(32)), to),
        "another key": (replace(proof, key=b2.public_key), to),
        "no number of the prover's": (replace(proof, own_nonce=b""), to),
    }
    for shown, audience in wrong.values():
        with pytest.raises(SignatureError):
            check_nonce_proof(shown, audience=audience, challenge=newer)
    first, second = (
        prove_by_nonce(smith, audience=to, challenge=newer, own_nonce=secrets.token_bytes(32)) for _ in range(2)
    )
    assert first.signature != second.signature, "the verifier alone does not choose what is signed"


class Handshake:
    """The handshake of a client with a service, step by step, as the protocol says it."""

    def __init__(self, port: int, signer: KeySigner) -> None:
        """Speak with a service of this machine."""
        self._url = f"http://127.0.0.1:{port}"
        self._signer = signer
        with urlopen(f"{self._url}/v1/server") as answer:  # noqa: S310 - this machine
            self.server = PublicKey(octets(json.load(answer)["key"]))

    def _post(self, path: str, body: dict[str, str]) -> dict[str, Any]:
        sent = Request(  # noqa: S310 - this machine
            f"{self._url}{path}", json.dumps(body).encode(), {"content-type": "application/json"}, method="POST"
        )
        try:
            with urlopen(sent) as answer:  # noqa: S310 - this machine
                return dict(json.load(answer))
        except HTTPError as error:
            with error:
                return dict(json.load(error))

    def challenge(self, random: bytes) -> bytes:
        """Ask for the service's random number."""
        body = {"key": text(self._signer.public_key.raw), "nonce": text(random)}
        return octets(self._post("/v1/challenge", body)["challenge"])

    def answer(self, random: bytes, shown: bytes, *, signed: bytes | None = None, to: PublicKey | None = None) -> str:
        """Show a random number of the service, signed over itself or another one; give `yes` or the refusal's code."""
        over = hashlib.sha256(
            encode((b"maia/1 handshake", b"client", shown if signed is None else signed, b"loopback"))
        ).digest()
        own = secrets.token_bytes(32)
        proof: NonceProof = prove_by_nonce(
            self._signer, audience=(to or self.server).key_id, challenge=over, own_nonce=own
        )
        done = self._post(
            "/v1/session",
            {
                "key": text(self._signer.public_key.raw), "nonce": text(random), "challenge": text(shown),
                "own_nonce": text(own), "proof": text(proof.signature),
            },
        )  # fmt: skip
        return "yes" if "session" in done else str(done["code"])


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> ManagedType:
    """Give a home that manages the keys of its type."""
    return managed_type(tmp_path_factory.mktemp("hands") / "clinic")


@pytest.mark.requirement("6.04")
def test_a_service_opens_a_session_for_its_own_newest_random_number(clinic: ManagedType) -> None:
    """The answer to r_B opens a session, once. Over an older r_B, for another server or client, it opens none."""
    with served("key-manager", clinic.path) as port:
        smith, eve = Handshake(port, clinic.broker), Handshake(port, KeySigner.generate())
        random = secrets.token_bytes(32)
        older, newer = smith.challenge(random), smith.challenge(random)
        assert smith.answer(random, newer, signed=older) == "BAD_SIGNATURE"
        assert smith.answer(random, newer, to=KeySigner.generate().public_key) == "BAD_SIGNATURE"
        assert smith.answer(secrets.token_bytes(32), newer) == "UNKNOWN_CHALLENGE"
        assert eve.answer(random, newer) == "UNKNOWN_CHALLENGE"
        assert smith.answer(random, newer) == "yes"
        assert smith.answer(random, newer) != "yes", "a challenge serves once"
    with served("key-manager", clinic.path) as port:
        again = Handshake(port, clinic.broker)
        assert again.answer(random, newer) == "UNKNOWN_CHALLENGE", "a challenge of another process"
