"""What two domains say to each other in the log: the receiver of an agreement asks, its giver welcomes.

    (peer-ask (version "1") (agreement <digest>) (join …))
    (peer-welcome (version "1") (agreement <digest>) (signature <certificate>) (answers <answer> …)
                  (history (<type> <label> <sealed>) …))

Each is a record of its sender's lane, which signs it. What is secret in a welcome is sealed to the keys of the join:
places in key groups, as in every key manager's answer, and keys of earlier epochs, as far as the giver gives them.
"""

from __future__ import annotations

from dataclasses import dataclass

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.policy.peers.files import VERSION, octets, wrong
from maia.policy.peers.joining import JoinOffer, parse_join_offer

_LIMITS = SexpLimits(max_bytes=16 << 20, max_depth=8, max_atom=8 << 20)
_DIGEST = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerAsk:
    """An ask for the keys of an agreement's types."""

    agreement: bytes
    offer: JoinOffer

    def encoded(self) -> bytes:
        """Write it.

        >>> parse_peer_ask(PeerAsk(agreement=bytes(32), offer=JoinOffer(requests=(b"r",))).encoded()).offer.requests
        (b'r',)
        """
        return encode((b"peer-ask", VERSION, (b"agreement", self.agreement), self.offer.to_sexp()))


def parse_peer_ask(data: bytes) -> PeerAsk:
    """Read an ask.

    Raises:
        EncodingError: It is none.
    """
    match parse_canonical(data, limits=_LIMITS):
        case (b"peer-ask", version, (b"agreement", bytes(agreement)), offer) if (
            version == VERSION and len(agreement) == _DIGEST
        ):
            return PeerAsk(agreement=agreement, offer=parse_join_offer(offer))
        case _:
            raise wrong()


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerWelcome:
    """A welcome.

    Attributes:
        agreement: The digest of the agreement.
        signature: The giver's signature of it, a certificate.
        answers: The key manager's answers, one for each type.
        history: By type and label of a group, the sealed keys of earlier epochs.
    """

    agreement: bytes
    signature: bytes
    answers: tuple[bytes, ...] = ()
    history: tuple[tuple[bytes, bytes, bytes], ...] = ()

    def encoded(self) -> bytes:
        """Write it.

        >>> parse_peer_welcome(PeerWelcome(agreement=bytes(32), signature=b"s").encoded()).signature
        b's'
        """
        return encode(
            (
                b"peer-welcome", VERSION, (b"agreement", self.agreement), (b"signature", self.signature),
                (b"answers", *self.answers), (b"history", *self.history),
            )
        )  # fmt: skip


def parse_peer_welcome(data: bytes) -> PeerWelcome:
    """Read a welcome.

    Raises:
        EncodingError: It is none.
    """
    match parse_canonical(data, limits=_LIMITS):
        case (
            b"peer-welcome", version, (b"agreement", bytes(agreement)), (b"signature", bytes(signature)),
            (b"answers", *answers), (b"history", *history),
        ) if version == VERSION and len(agreement) == _DIGEST:  # fmt: skip
            return PeerWelcome(
                agreement=agreement, signature=signature, answers=octets(answers), history=tuple(map(_group, history))
            )
        case _:
            raise wrong()


def _group(item: Sexp) -> tuple[bytes, bytes, bytes]:
    match item:
        case (bytes(type_id), bytes(label), bytes(sealed)):
            return type_id, label, sealed
        case _:
            raise wrong()
