"""Keys that are the same in every run, by name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from maia.errors import UsageError
from maia.principals import KeyId, KeySigner, Signer, Subject

_PREFIX = b"maia.testing/"


class People:
    """Named key pairs. The same names and seed give the same keys, so nothing here is a secret.

    >>> people = People("pito", "met")
    >>> people.pito.public_key == People("pito").pito.public_key
    True
    >>> people.name_of(people.met.public_key.key_id)
    'met'
    """

    def __init__(self, *names: str, seed: str | None = "") -> None:
        """Make one key per name; with ``seed=None`` from the system's random source instead."""
        self._signers = {
            name: KeySigner.generate() if seed is None else KeySigner(_seed_of(seed, name)) for name in names
        }

    def __getattr__(self, name: str) -> KeySigner:
        """Return the signer of a person."""
        signers: dict[str, KeySigner] = self.__dict__.get("_signers", {})
        if name not in signers:
            raise AttributeError(f"nobody is called {name}")
        return signers[name]

    def __getitem__(self, name: str) -> KeySigner:
        """Return the signer of a person whose name is no identifier."""
        return self._signers[name]

    def __iter__(self) -> Iterator[str]:
        """Go through the names."""
        return iter(self._signers)

    def name_of(self, key_id: KeyId) -> str:
        """Tell whose key this is.

        Raises:
            UsageError: Nobody's.
        """
        for name, signer in self._signers.items():
            if signer.public_key.key_id == key_id:
                return name
        raise UsageError("a key of nobody here")


def subject_of(who: Signer | Subject) -> Subject:
    """Take a person for their public key, and anything else for itself."""
    return who.public_key if isinstance(who, Signer) else who


def _seed_of(seed: str, name: str) -> bytes:
    return hashlib.sha256(_PREFIX + seed.encode() + b"/" + name.encode()).digest()
