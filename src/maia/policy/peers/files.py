"""The files by which two domains become peers: text that mail carries and people read.

Rules kept here:

- a file is bounded before it is looked at; what is signed is the canonical form of its body, whatever its layout;
- a field that is unknown, missing or in another place makes it no such file: nothing is passed over.
"""

from __future__ import annotations

from enum import StrEnum

from maia.encoding import Sexp, SexpLimits, format_advanced, parse_advanced
from maia.errors import EncodingError, MalformedError, SignatureError
from maia.principals import Kind, PublicKey, parse_principal, verify_signature

MAX_PEER_FILE = 1 << 20
"""The octets of a file."""
FILE_LIMITS = SexpLimits(max_bytes=MAX_PEER_FILE, max_depth=64, max_atom=MAX_PEER_FILE)
VERSION: Sexp = (b"version", b"1")
_DIGITS = 15


class PeerFileKind(StrEnum):
    """What a file is."""

    INVITATION = "signed-peer-invitation"
    ANSWER = "signed-peer-answer"


def kind_of_peer_file(data: bytes) -> PeerFileKind:
    """Tell what a file is, believing nothing.

    >>> kind_of_peer_file(b"(signed-peer-answer)").name
    'ANSWER'

    Raises:
        EncodingError: It is too large (``PEER_FILE_SIZE``) or neither (``PEER_FILE_SHAPE``).
    """
    match read_file(data):
        case (bytes(word), *_) if word in [kind.value.encode() for kind in PeerFileKind]:
            return PeerFileKind(word.decode())
        case _:
            raise wrong()


def read_file(data: bytes) -> Sexp:
    """Read a file as an expression.

    Raises:
        EncodingError: It is too large, or none.
    """
    if len(data) > MAX_PEER_FILE:
        raise EncodingError(f"a file between peers has at most {MAX_PEER_FILE} octets", code="PEER_FILE_SIZE")
    try:
        return parse_advanced(data.decode("utf-8"), limits=FILE_LIMITS)
    except (UnicodeDecodeError, MalformedError) as error:
        raise wrong() from error


def write_file(expression: Sexp) -> str:
    """Write an expression as a file."""
    return f"{format_advanced(expression)}\n"


def check_signed(kind: Kind, body: bytes, signature: bytes, key: PublicKey) -> None:
    """Check who signed a file.

    Raises:
        SignatureError: It was altered, or somebody else signed it: ``PEER_FILE_ALTERED``.
    """
    try:
        verify_signature(kind, body, signature, key)
    except SignatureError as error:
        raise SignatureError(
            "the file was altered, or not signed by whom it names; ask for it again", code="PEER_FILE_ALTERED"
        ) from error


def read_key(item: Sexp) -> PublicKey:
    """Read a key.

    Raises:
        EncodingError: It is none.
    """
    key = parse_principal(item)
    if not isinstance(key, PublicKey):
        raise wrong()
    return key


def read_number(item: Sexp) -> int:
    """Read a whole number in its one spelling."""
    if not isinstance(item, bytes) or not item.isdigit() or len(item) > _DIGITS or item != b"%d" % int(item):
        raise wrong()
    return int(item)


def octets(items: list[Sexp]) -> tuple[bytes, ...]:
    """Read octet strings."""
    found = tuple(item for item in items if isinstance(item, bytes))
    if len(found) != len(items):
        raise wrong()
    return found


def wrong() -> EncodingError:
    """Say that something is no file between peers."""
    return EncodingError("not an invitation to a peer, nor an answer to one", code="PEER_FILE_SHAPE")
