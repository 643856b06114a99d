"""What partners have put into a home: how much of it is whose, and up to where their lanes were read.

    (pushed (version "1") (sender <key id> <number> <digest> (refused "n") (kept (<id> "octets" <end>) …)) …)

Rules kept here:

- each sender has a share, in certificates and in octets. What goes beyond is refused and counted, and takes no room
  from others;
- what has expired goes, and frees its share;
- losing this file costs time only: lanes are read again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, NotFoundError
from maia.home import PRIVATE_FILE, read_file, write_file
from maia.log import START, Place
from maia.principals import Certificate, CertificateId, KeyId, encode_instant, parse_instant

SHARES_FILE = "pushed"
MAX_SHARE = 1_000
"""Certificates of one sender, unless there are so many senders that everybody gets less."""
MAX_SHARE_OCTETS = 4 << 20
MAX_KEPT = 20_000
"""Certificates of all senders."""
_LIMITS = SexpLimits(max_bytes=64 << 20, max_depth=5, max_atom=64)


@dataclass(slots=True)
class Share:
    """What one sender has here.

    Attributes:
        place: Up to where its lane was read.
        refused: How many certificates found no room.
        kept: Sizes and ends of those that are here.
    """

    place: Place = START
    refused: int = 0
    kept: dict[CertificateId, tuple[int, datetime | None]] = field(default_factory=dict)

    def take(self, certificate: Certificate, *, most: int) -> bool:
        """Take a certificate in, if there is room; tell whether there was."""
        octets = sum(size for size, _ in self.kept.values()) + len(certificate.raw)
        if len(self.kept) >= most or octets > MAX_SHARE_OCTETS:
            self.refused += 1
            return False
        self.kept[certificate.certificate_id] = (len(certificate.raw), certificate.body.period.not_after)
        return True

    def expire(self, *, at: datetime) -> list[CertificateId]:
        """Let go of what has expired; name it."""
        gone = [identity for identity, (_, ends) in self.kept.items() if ends is not None and ends < at]
        for identity in gone:
            del self.kept[identity]
        return gone

    def to_sexp(self, sender: KeyId) -> Sexp:
        """Write it."""
        kept: list[Sexp] = [
            (bytes(identity), b"%d" % size, *(() if ends is None else (encode_instant(ends),)))
            for identity, (size, ends) in sorted(self.kept.items())
        ]
        place = (b"%d" % (self.place.number + 1), self.place.digest)
        return (b"sender", bytes(sender), *place, (b"refused", b"%d" % self.refused), (b"kept", *kept))


def share_of(senders: int) -> int:
    """Tell how many certificates each of so many senders may have here."""
    return min(MAX_SHARE, MAX_KEPT // max(1, senders))


def read_shares(path: Path) -> dict[KeyId, Share]:
    """Read what senders have in a home; nothing when nobody knows."""
    try:
        found = parse_canonical(read_file(path, limit=_LIMITS.max_bytes), limits=_LIMITS)
        match found:
            case (b"pushed", (b"version", b"1"), *items):
                return dict(_read_share(item) for item in items)
    except (NotFoundError, EncodingError):
        pass
    return {}


def write_shares(path: Path, shares: dict[KeyId, Share]) -> None:
    """Write what senders have in a home."""
    items = [share.to_sexp(sender) for sender, share in sorted(shares.items())]
    write_file(path, encode((b"pushed", (b"version", b"1"), *items)), mode=PRIVATE_FILE)


def _read_share(item: Sexp) -> tuple[KeyId, Share]:
    match item:
        case (
            b"sender",
            bytes() as sender,
            bytes() as number,
            bytes() as digest,
            (b"refused", bytes() as refused),
            (b"kept", *kept),
        ) if number.isdigit() and refused.isdigit():
            place = Place(int(number) - 1, digest)
            return KeyId(sender), Share(place=place, refused=int(refused), kept=dict(_read_kept(one) for one in kept))
    raise EncodingError("not a list of shares", code="SHARES_SHAPE")


def _read_kept(item: Sexp) -> tuple[CertificateId, tuple[int, datetime | None]]:
    match item:
        case (bytes() as identity, bytes() as size, *ends) if size.isdigit() and len(ends) <= 1:
            return CertificateId(identity), (int(size), parse_instant(ends[0]) if ends else None)
    raise EncodingError("not a list of shares", code="SHARES_SHAPE")
