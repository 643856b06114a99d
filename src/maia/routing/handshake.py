"""How neighbours show each other what they may do, and show more when they gain more.

A broker shows all its certificates to whoever it talks to, before the first thing it says, and again when a
conversation begins afresh. What it gains later it shows alone, to everybody it talks to. Rules kept here:

- what is shown is signed by the key that the rights are for, for this neighbour, for this place, and just now; one that
  was seen before counts no second time;
- what is shown later adds to what the same key showed; another key begins with nothing;
- what does not verify changes nothing in the routing entry;
- a broker that asks for credentials takes no advertisement from a neighbour that has shown none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from maia.authority import Verifier
from maia.encoding import encode
from maia.errors import ExpiredError, VerificationError
from maia.principals import Kind, Principal, Signer, verify_signature
from maia.routing.evidence import MAX_CREDENTIALS, REPLAY_WINDOW
from maia.routing.identifiers import Identifier
from maia.routing.messages import ShownCredentials
from maia.routing.rights import NeighbourRights, reduce_rights

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Peer:
    shown: ShownCredentials
    certificates: tuple[bytes, ...]


class LinkHandshake:
    """What one broker shows its neighbours, and what they showed to it."""

    def __init__(
        self,
        own: Identifier,
        signer: Signer,
        certificates: Iterable[bytes],
        *,
        verifier: Verifier,
        types: Iterable[tuple[Principal, str]],
    ) -> None:
        """Have shown nothing to anybody.

        Args:
            own: The broker's place.
            signer: Its key.
            certificates: All that it holds.
            verifier: Who decides what the certificates of others are worth.
            types: The types that are routed here, by owner and name.
        """
        self._own = own
        self._signer = signer
        self._certificates = tuple(certificates)
        self._verifier = verifier
        self._types = tuple(types)
        self._number = 0
        self._met: dict[Identifier, None] = {}
        self._peers: dict[Identifier, _Peer] = {}

    def meet(self, peer: Identifier, *, now: float) -> ShownCredentials | None:
        """What to show a neighbour before anything else is said; ``None`` when it saw it."""
        if peer in self._met:
            return None
        self._met[peer] = None
        return self._sign(peer, self._certificates, now, adds=False)

    def gain(self, certificates: Iterable[bytes], *, now: float) -> list[tuple[Identifier, ShownCredentials]]:
        """Take new certificates, and say what to show to whom: those alone, to everybody met."""
        gained = tuple(certificates)
        self._certificates += gained
        return [(peer, self._sign(peer, gained, now, adds=True)) for peer in self._met]

    def forget(self, peer: Identifier) -> None:
        """Forget a neighbour whose conversation ended."""
        self._met.pop(peer, None)
        self._peers.pop(peer, None)

    def take(self, peer: Identifier, shown: ShownCredentials, *, now: float) -> NeighbourRights:
        """Reduce what a neighbour showed, with what it showed before, to what it may do.

        Raises:
            ExpiredError: It was not shown just now, or was seen before.
            VerificationError: It is not signed by its key for this broker, or adds to what another key showed.
        """
        at = _EPOCH + timedelta(seconds=now)
        before = self._peers.get(peer)
        if abs(now - shown.stamp) > REPLAY_WINDOW.total_seconds():
            raise ExpiredError("the credentials were not shown just now; show them anew", code="STALE_CREDENTIALS")
        if before is not None and shown.number <= before.shown.number:
            raise ExpiredError("the credentials were seen before; show them anew", code="STALE_CREDENTIALS")
        verify_signature(Kind.REQUEST, _body(peer, self._own, shown), shown.signature, shown.key)
        if shown.adds and (before is None or before.shown.key != shown.key):
            raise VerificationError("credentials that add to what another key showed", code="OTHER_KEY")
        certificates = (*(before.certificates if before is not None and shown.adds else ()), *shown.certificates)
        if len(certificates) > MAX_CREDENTIALS:
            raise VerificationError("a neighbour shows more credentials than are looked at", code="LIMIT_EXCEEDED")
        rights = reduce_rights(self._verifier, shown.key, self._types, evidence=certificates, at=at)
        self._peers[peer] = _Peer(shown, certificates)
        return rights

    def _sign(self, peer: Identifier, certificates: tuple[bytes, ...], now: float, *, adds: bool) -> ShownCredentials:
        self._number += 1
        made = ShownCredentials(self._signer.public_key, self._number, now, certificates, adds, b"")
        return replace(made, signature=self._signer.sign(Kind.REQUEST, _body(self._own, peer, made)))


def _body(source: Identifier, target: Identifier, shown: ShownCredentials) -> bytes:
    return encode(
        (
            b"overlay-credentials", b"%d" % source, b"%d" % target, b"%d" % shown.number,
            repr(shown.stamp).encode(), b"adds" if shown.adds else b"all",
            *(hashlib.sha256(raw).digest() for raw in shown.certificates),
        )
    )  # fmt: skip
