"""What a domain shows of its broker, so that the other side's key manager can judge it.

    (join (requests <signed request> …) (certificates <certificate> …) (statements <list> …))

Nothing in it is believed for being here: the key manager verifies the requests, and the kernel judges the broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from maia.encoding import Sexp
from maia.events import TypeId, type_id
from maia.policy.agreements import AgreementRow
from maia.policy.peers.files import octets, wrong
from maia.principals import KeyHash, KeyId, decode_text

_MAX_PARTS = 1_000
_ID = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOffer:
    """A broker's requests to join the key groups of types, and what proves that it is one.

    Attributes:
        requests: One for each type, signed by the broker (`maia.encryption.sign_group_request`).
        certificates: That its domain calls it a broker, and lets it connect.
        statements: The lists that these certificates obey.
    """

    requests: tuple[bytes, ...] = ()
    certificates: tuple[bytes, ...] = ()
    statements: tuple[bytes, ...] = ()

    def to_sexp(self) -> Sexp:
        """Write it.

        >>> JoinOffer(requests=(b"r",)).to_sexp()
        (b'join', (b'requests', b'r'), (b'certificates',), (b'statements',))
        """
        return (
            b"join", (b"requests", *self.requests), (b"certificates", *self.certificates),
            (b"statements", *self.statements),
        )  # fmt: skip


def types_of_rows(rows: Iterable[AgreementRow]) -> tuple[TypeId, ...]:
    """List the types that rows of an agreement speak of, each once, by what their rights say.

    >>> from maia.authority import type_right
    >>> from maia.events import type_id
    >>> from maia.principals import KeySigner
    >>> owner = KeySigner(bytes(32)).public_key
    >>> row = AgreementRow(role="clerk", words="subscribe T", tag=type_right(owner, "T"))
    >>> types_of_rows([row]) == (type_id(owner, "T"),)
    True

    Raises:
        EncodingError: One is about no type: ``PEER_FILE_SHAPE``.
    """
    return tuple(dict.fromkeys(_type_of(row) for row in rows))


def _type_of(row: AgreementRow) -> TypeId:
    match row.tag.to_sexp():
        case (b"maia-type", bytes(owner), bytes(name), *_) if len(owner) == _ID:
            return type_id(KeyHash(KeyId(owner)), decode_text(name, "a name"))
        case _:
            raise wrong()


def parse_join_offer(expression: Sexp) -> JoinOffer:
    """Read an offer, believing nothing.

    >>> parse_join_offer(JoinOffer(requests=(b"r",)).to_sexp()).requests
    (b'r',)

    Raises:
        EncodingError: It is none: ``PEER_FILE_SHAPE``.
    """
    match expression:
        case (
            b"join", (b"requests", *requests), (b"certificates", *certificates), (b"statements", *statements),
        ) if max(map(len, (requests, certificates, statements))) <= _MAX_PARTS:  # fmt: skip
            return JoinOffer(
                requests=octets(requests), certificates=octets(certificates), statements=octets(statements)
            )
        case _:
            raise wrong()
