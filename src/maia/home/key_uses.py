"""How often each key of a home has sealed, counted over all tasks, processes and restarts.

    key-uses        blocks sealed by group and epoch: counts, no keys

Rules kept here:

- a use is on disk before the key is used. Uses are taken in stretches that double, for all groups of a type at once: a
  task that seals one parcel writes once, one that seals a million writes a few hundred times. What a task took and did
  not use stays counted, so the count is never too low and at most about twice the truth;
- a key that reached its cap seals no more (``KEY_EXHAUSTED``) until it is refreshed, whichever task asks;
- a file that is damaged stops sealing. One that is missing counts from nought.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.encryption import EpochId, KeyGroupId, Keyring, current_epoch
from maia.errors import EncodingError, SealError
from maia.events import TypeId
from maia.home.files import PRIVATE_FILE, locked, read_file, write_file
from maia.home.formats import newer_format

_MAX_FILE = 64 << 20
_LIMITS = SexpLimits(max_bytes=_MAX_FILE, max_depth=2, max_atom=1024)
_LONGEST = 4096
Use = tuple[KeyGroupId, EpochId]


@dataclass(slots=True)
class KeyUses:
    """The counts of a home, and what this task took of them.

    Attributes:
        path: The file.
        cap: The most blocks that one key seals.
    """

    path: Path
    cap: int
    _left: dict[Use, int] = field(default_factory=dict)
    _stretch: int = 1

    def take(self, ring: Keyring, group: KeyGroupId, epoch: EpochId, *, stamp: int) -> None:
        """Count one use of a key.

        Args:
            ring: The keys of this home, to take uses for the other attributes of the type along with this one.
            group: The key's group.
            epoch: The key's epoch.
            stamp: By which the epochs of the other groups are chosen.

        Raises:
            SealError: The key was used too often: ``KEY_EXHAUSTED``.
            EncodingError: The counts are damaged: ``KEY_USES``.
        """
        use = (group, epoch)
        if not self._left.get(use):
            self._reserve(ring, use, stamp)
        self._left[use] -= 1

    def counted(self) -> dict[Use, int]:
        """Read the counts.

        Raises:
            EncodingError: They are damaged: ``KEY_USES``.
        """
        if not self.path.exists():
            return {}
        match parse_canonical(read_file(self.path, limit=_MAX_FILE), limits=_LIMITS):
            case (b"key-uses", b"1", *entries):
                return dict(_read(entry) for entry in entries)
            case (b"key-uses", bytes() as number, *_) if number.isdigit():
                raise newer_format(str(self.path), found=int(number), known=1)
            case _:
                raise EncodingError("not the counts of a home's keys", code="KEY_USES")

    def _reserve(self, ring: Keyring, use: Use, stamp: int) -> None:
        type_id = use[0].type_id
        wanted = {use}
        for group in ring.groups():
            epoch = current_epoch(ring, group, stamp) if group.type_id == type_id else None
            if epoch is not None:
                wanted.add((group, epoch))
        with locked(self.path):
            counts = self.counted()
            if counts.get(use, 0) >= self.cap:
                raise SealError("the key was used too often and must be refreshed", code="KEY_EXHAUSTED")
            for item in wanted:
                given = min(self._stretch, self.cap - counts.get(item, 0))
                if not self._left.get(item) and given > 0:
                    counts[item] = counts.get(item, 0) + given
                    self._left[item] = given
            kept = {item: count for item, count in counts.items() if item in wanted or _seals(ring, item)}
            entries: tuple[Sexp, ...] = tuple(
                (group.type_id, group.label, b"%d" % epoch, b"%d" % count)
                for (group, epoch), count in sorted(kept.items())
            )
            write_file(self.path, encode((b"key-uses", b"1", *entries)), mode=PRIVATE_FILE)
        self._stretch = min(2 * self._stretch, _LONGEST)


def _seals(ring: Keyring, item: Use) -> bool:
    """Tell whether a key may still be used: one that is retired seals no more, and needs no count."""
    return ring.key(*item) is not None


def _read(entry: Sexp) -> tuple[Use, int]:
    match entry:
        case (bytes() as type_id, bytes() as label, bytes() as epoch, bytes() as count) if (
            epoch.isdigit() and count.isdigit()
        ):
            return (KeyGroupId(TypeId(type_id), label), EpochId(int(epoch))), int(count)
        case _:
            raise EncodingError("not the count of a key", code="KEY_USES")
