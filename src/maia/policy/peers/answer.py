"""The answer to an invitation: the agreement, signed by the domain that accepts it, and what its broker needs.

    (signed-peer-answer <body> <signature of the domain> <signature of the invitation's secret>)

    (peer-answer (version "1") (invitation <digest>) (name <text>) (agreement …) (signature <certificate>) (join …))

Rules kept here:

- two keys sign it: the domain that answers, which the agreement names as its receiver, and the secret of the
  invitation. Whoever sees an answer on its way can neither change it nor answer in its place;
- it names one invitation by its digest, and so all that this says.
"""

from __future__ import annotations

from dataclasses import dataclass

from maia.encoding import Sexp, encode
from maia.errors import MalformedError
from maia.policy.agreement_text import agreement_from_sexp
from maia.policy.agreements import Agreement
from maia.policy.peers.files import VERSION, PeerFileKind, check_signed, read_file, write_file, wrong
from maia.policy.peers.joining import JoinOffer, parse_join_offer
from maia.principals import Kind, PublicKey, Signer, decode_text, encode_text

_DIGEST = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerAnswer:
    """What the invited domain answers.

    Attributes:
        invitation: The digest of the invitation.
        name: What the domain calls itself.
        agreement: With the answering domain as its receiver.
        signature: The receiver's signature of the agreement, a certificate.
        offer: What its broker asks for.
    """

    invitation: bytes
    name: str
    agreement: Agreement
    signature: bytes
    offer: JoinOffer

    def to_sexp(self) -> Sexp:
        """Write the body that is signed."""
        return (
            b"peer-answer", VERSION, (b"invitation", self.invitation), (b"name", encode_text(self.name, "a name")),
            self.agreement.to_sexp(), (b"signature", self.signature), self.offer.to_sexp(),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedPeerAnswer:
    """An answer that the domain it names has signed; whether the invitation's secret did is `check_secret`'s question.

    Attributes:
        answer: What it says.
        body: The octets that were signed.
        proof: The signature of the secret.
    """

    answer: PeerAnswer
    body: bytes
    proof: bytes

    def check_secret(self, one_time_key: PublicKey) -> None:
        """Check that whoever answered was given the invitation.

        Raises:
            SignatureError: It was not: ``PEER_FILE_ALTERED``.
        """
        check_signed(Kind.PEER_ANSWER, self.body, self.proof, one_time_key)


def sign_peer_answer(answer: PeerAnswer, signer: Signer, secret: Signer) -> str:
    """Write the file, signed by the domain and by the secret of the invitation."""
    body = encode(answer.to_sexp())
    signatures = (signer.sign(Kind.PEER_ANSWER, body), secret.sign(Kind.PEER_ANSWER, body))
    return write_file((PeerFileKind.ANSWER.value.encode(), answer.to_sexp(), *signatures))


def parse_peer_answer(data: bytes) -> SignedPeerAnswer:
    """Read a file and check that the domain that it names signed it.

    >>> parse_peer_answer(b"(signed-peer-answer)")
    Traceback (most recent call last):
    maia.errors.EncodingError: [PEER_FILE_SHAPE] not an invitation to a peer, nor an answer to one

    Raises:
        EncodingError: It is no answer.
        SignatureError: It was altered: ``PEER_FILE_ALTERED``.
    """
    match read_file(data):
        case (b"signed-peer-answer", body, bytes(signature), bytes(proof)):
            pass
        case _:
            raise wrong()
    try:
        answer = _read(body)
    except (MalformedError, ValueError) as error:
        raise wrong() from error
    octets = encode(body)
    check_signed(Kind.PEER_ANSWER, octets, signature, answer.agreement.receiver)
    return SignedPeerAnswer(answer=answer, body=octets, proof=proof)


def _read(body: Sexp) -> PeerAnswer:
    match body:
        case (
            b"peer-answer", version, (b"invitation", bytes(invitation)), (b"name", name), agreement,
            (b"signature", bytes(signature)), offer,
        ) if version == VERSION and len(invitation) == _DIGEST:  # fmt: skip
            return PeerAnswer(
                invitation=invitation, name=decode_text(name, "a name"), agreement=agreement_from_sexp(agreement),
                signature=signature, offer=parse_join_offer(offer),
            )  # fmt: skip
        case _:
            raise wrong()
