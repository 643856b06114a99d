"""Who acts for a client: whoever holds its private key, and nobody by a name alone.

Rules kept here:

- a client is proven by signing a fresh challenge with its private key: unlocked in this process, held by the agent of
  the process that unlocked it, or with the client itself, at the other end of a connection;
- the proof is of the key that the home knows under the client's name;
- the domain's broker, its own key and its key manager are no clients, under whatever name: who serves everybody reads
  for nobody.

`ProvenClient` holds an `Authenticated`, which only a run of the protocol makes; plans are made for no other.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from maia.encoding import did_you_mean
from maia.errors import NotFoundError, UsageError, VerificationError
from maia.home import MAX_KEY_FILE, Home, ask_agent, passphrase_asker, read_file, read_key
from maia.kernel import KEY_MANAGER
from maia.principals import Authenticated, KeySigner, PublicKey, check_nonce_proof, is_sealed, prove_by_nonce

_NONCE = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenClient:
    """A client of a domain whose key was proven.

    Attributes:
        name: What the key is called in the domain's home.
        proof: That somebody held the key.
    """

    name: str
    proof: Authenticated

    @property
    def key(self) -> PublicKey:
        """The key that was proven."""
        return self.proof.key


def client_key(home: Home, name: str) -> PublicKey:
    """Find the key of a client.

    Raises:
        NotFoundError: The home knows no such key: ``NO_SUCH_KEY``.
        UsageError: It is a key of the domain's own services: ``NOT_A_CLIENT``.
    """
    known = home.folder.keys
    if name not in known:
        raise NotFoundError(f"no key `{name}` in this home{did_you_mean(name, known)}", code="NO_SUCH_KEY")
    services = (home.config.broker, home.config.domain, KEY_MANAGER)
    # SECURITY: by key, not by name: a second name of the broker's key would read all that the broker does.
    if known[name] in [known[service] for service in services if service in known]:
        raise UsageError(
            f"`{name}` is a key of the domain's own services, which are no clients; make one with `maia key new`",
            code="NOT_A_CLIENT",
        )
    return known[name]


def unlock_client(home: Home, name: str, *, passphrase: Callable[[], str] | None = None) -> KeySigner:
    """Unlock the private key of a client.

    Args:
        home: Where it lies.
        name: What it is called there.
        passphrase: Asks for the passphrase of a sealed key; as `passphrase_asker` by default.

    Raises:
        NotFoundError: The private key is not in this home: ``NO_SUCH_KEY``.
        KeyFormatError: The passphrase is wrong.
        VerificationError: ``NAME.key`` and ``NAME.pub`` are of two keys: ``KEY_PAIR``.
    """
    key, path = client_key(home, name), home.key_path(name)
    if not path.is_file():
        raise NotFoundError(
            f"the private key of `{name}` is not in this home, so nobody acts as `{name}` here", code="NO_SUCH_KEY"
        )
    signer = read_key(path, passphrase=passphrase or passphrase_asker(f"`{name}`"))
    if signer.public_key != key:
        raise VerificationError(f"`{name}.key` is not the private key of `{name}.pub`", code="KEY_PAIR")
    return signer


def is_locked(home: Home, name: str) -> bool:
    """Tell whether other processes of this user need more than the file to unlock a client's key."""
    return is_sealed(read_file(home.key_path(name), limit=MAX_KEY_FILE))


def prove_client(home: Home, name: str, signer: KeySigner) -> ProvenClient:
    """Prove a client by its unlocked key."""
    audience, challenge = home.key(home.config.broker).key_id, secrets.token_bytes(_NONCE)
    proof = prove_by_nonce(signer, audience=audience, challenge=challenge, own_nonce=secrets.token_bytes(_NONCE))
    return ProvenClient(name=name, proof=check_nonce_proof(proof, audience=audience, challenge=challenge))


def prove_by_agent(home: Home, name: str, agent: Path) -> ProvenClient:
    """Let the agent of the process that unlocked a client's key prove it.

    Raises:
        UnavailableError: There is none: ``NO_AGENT``.
        SignatureError: It holds another key.
    """
    key, audience = client_key(home, name), home.key(home.config.broker).key_id
    return ProvenClient(name=name, proof=ask_agent(agent, key, audience=audience))


def client_over_wire(home: Home, proof: Authenticated) -> ProvenClient:
    """Find the client that proved its key to this domain's broker over a connection.

    Raises:
        NotFoundError: The home knows no such key: ``NO_SUCH_KEY``.
        UsageError: It is a key of the domain's own services: ``NOT_A_CLIENT``.
    """
    name = home.folder.names.get(proof.key.key_id)
    if name is None:
        raise NotFoundError("this domain has no client with this key", code="NO_SUCH_KEY")
    client_key(home, name)
    return ProvenClient(name=name, proof=proof)
