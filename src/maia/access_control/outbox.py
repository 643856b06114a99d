"""The outbox: what was decided is told in order, at least once, and leaves only when it was heard.

A kind that is not heard keeps no other waiting: a log that takes no list does not keep a key manager from putting out
whoever lost its certificate, and a key manager that does not answer keeps no list from those who need it.
"""

from __future__ import annotations

from maia.access_control.register import Register
from maia.access_control.values import Telling, Withdrawn
from maia.encoding import SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, MaiaError
from maia.principals import CertificateId, KeyId, encode_instant, parse_instant

STATEMENT = "statement"
CERTIFICATE = "certificate"
WITHDRAWN = "withdrawn"
_LIMITS = SexpLimits(max_bytes=64 << 20, max_depth=4, max_atom=64)
_HASH = 32


def tell(register: Register, telling: Telling | None) -> bool:
    """Tell everything that waits, lists and certificates first, each kind oldest first up to what is not heard.

    Args:
        register: Whose outbox.
        telling: Who must hear; when nobody has to, what waits is dropped.

    Returns:
        Whether nothing is left.
    """
    if telling is None:
        with register.writing_rows() as records:
            records.outbox.told(item.number for item in records.outbox.waiting())
        return True
    with register.reading_rows() as records:  # mostly there is nothing, and no writer has to wait for that
        waiting = records.outbox.waiting(last=WITHDRAWN)
    heard: list[int] = []
    unheard: set[str] = set()
    try:
        for item in waiting:
            if item.kind in unheard:
                continue
            try:
                if item.kind == STATEMENT:
                    telling.statement(KeyId(item.topic), item.body)
                elif item.kind == CERTIFICATE:
                    telling.certificate(KeyId(item.topic), item.body)
                else:
                    telling.withdrawn(withdrawn_from_bytes(item.body))
            except MaiaError:
                unheard.add(item.kind)
            else:
                heard.append(item.number)
    finally:
        if heard:
            with register.writing_rows() as records:
                records.outbox.told(heard)
    return not unheard


def withdrawn_to_bytes(notice: Withdrawn) -> bytes:
    """Write a notice for the outbox."""
    return encode(
        (
            b"withdrawn",
            encode_instant(notice.at.replace(microsecond=0)),
            (b"certificates", *sorted(notice.certificates)),
            (b"keys", *sorted(notice.keys)),
        )
    )


def withdrawn_from_bytes(raw: bytes) -> Withdrawn:
    """Read a notice from the outbox.

    Raises:
        EncodingError: The octets are no notice.
    """
    match parse_canonical(raw, limits=_LIMITS):
        case (b"withdrawn", at, (b"certificates", *certificates), (b"keys", *keys)):
            ids = [item for item in (*certificates, *keys) if isinstance(item, bytes) and len(item) == _HASH]
            if len(ids) == len(certificates) + len(keys):
                return Withdrawn(
                    certificates=frozenset(CertificateId(item) for item in ids[: len(certificates)]),
                    keys=frozenset(KeyId(item) for item in ids[len(certificates) :]),
                    at=parse_instant(at),
                )
    raise EncodingError("not a notice of a revocation", code="NOTICE_SHAPE")
