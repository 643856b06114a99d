"""Filters over links: a domain seals what it wants, and the one that serves says what of a log cannot be that.

Rules kept here:

- a filter is sealed by a domain that has the keys of all that it asks about; one that another covers is not sent;
- who serves reads of it what its own keys open. What a key that it has did not make counts as unread: no answer tells
  who holds which key. Here, at home, it is told to be forged;
- filters that were not read whole are not compared with others, and go on as they are.

What of a log they do not want is said in `unwanted`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maia.domain.stretches import wire_types
from maia.encryption import (
    Keyring,
    OpenedFilter,
    SealedFilter,
    open_filter,
    parse_sealed_filter,
    seal_filter,
)
from maia.errors import UsageError
from maia.events import AttributeType, EventType, TypeId
from maia.filters import CoveringSet, compile_filter
from maia.kernel import milliseconds

if TYPE_CHECKING:
    from maia.domain.domain import Domain

MAX_FILTERS = 16
"""Filters of one link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedFilter:
    """What a broker makes of a sealed filter.

    Attributes:
        sealed: As it came.
        opened: As far as it was read.
    """

    sealed: SealedFilter
    opened: OpenedFilter

    @property
    def state(self) -> str:
        """``read``, ``partly``, ``sealed``, or ``forged`` when no holder of a key made what stands under it."""
        if self.opened.forged:
            return "forged"
        if not self.opened.unread:
            return "read"
        return "partly" if self.opened.read else "sealed"


def seal_filters(domain: Domain, type_: str, texts: Sequence[str]) -> tuple[SealedFilter, ...]:
    """Seal filters on a type, given by its id in the log; what another covers is left away.

    Raises:
        UsageError: The type is not known here, or is not sealed, or there are too many: ``FILTER_TYPE``.
        SealError: A key is not held: ``NO_KEY``.
        MaiaError: A filter does not fit the type.
    """
    found = find_type(domain, type_)
    if found is None or not 0 < len(texts) <= MAX_FILTERS:
        raise UsageError(f"a link has 1 to {MAX_FILTERS} filters, on a type that is known here", code="FILTER_TYPE")
    known = _attributes(domain, found)
    types = dict(known.values())
    told = CoveringSet()
    compiled = {text: compile_filter(text, types) for text in dict.fromkeys(texts)}
    for text, filter_ in compiled.items():
        told.add(text, filter_)
    home, at = domain.home, milliseconds(domain.clock())
    uids, ring = {name: uid for uid, (name, _) in known.items()}, home.keyring()
    return tuple(
        seal_filter(
            compiled[str(text)], uids, ring, group=found.type_id, type_id=TypeId(bytes.fromhex(type_)),
            origin=home.broker.public_key.key_id, mode=found.options.encryption, filter_id=secrets.token_bytes(16),
            stamp=at,
        )
        for text in told.announced
    )  # fmt: skip


def weigh_filters(domain: Domain, raws: Iterable[bytes]) -> tuple[WeighedFilter, ...]:
    """Read filters with the keys of this home.

    Raises:
        EncodingError: One is no filter: ``FILTER_SHAPE``.
    """
    ring = domain.home.keyring()
    return tuple(
        WeighedFilter(sealed=sealed, opened=open_with(domain, sealed, find_type(domain, sealed.type_id.hex()), ring))
        for sealed in map(parse_sealed_filter, raws)
    )


def told_on(filters: Sequence[WeighedFilter]) -> tuple[WeighedFilter, ...]:
    """Tell which filters a broker passes on: not the forged ones, nor those that another one which it read covers."""
    told: dict[TypeId, CoveringSet] = {}
    hidden = set[int]()
    for number, item in enumerate(filters):
        # SECURITY: filters are compared by what they say; one that was not read says nothing, and is passed on.
        whole = item.opened.whole
        if item.opened.forged:
            hidden.add(number)
        elif whole is not None:
            told.setdefault(item.sealed.type_id, CoveringSet()).add(number, whole)
    shown = {number for covering in told.values() for number in covering.announced}
    read = {number for number, item in enumerate(filters) if item.opened.whole is not None}
    return tuple(item for number, item in enumerate(filters) if number not in hidden | (read - shown))


def open_with(domain: Domain, sealed: SealedFilter, found: EventType | None, ring: Keyring) -> OpenedFilter:
    """Read a filter with some keys, on a type as it is known here; nothing is read of one that is not."""
    if found is None:
        return OpenedFilter(mode=sealed.mode, read={}, unread=frozenset(sealed.attributes))
    return open_filter(sealed, ring, _attributes(domain, found), group=found.type_id)


def find_type(domain: Domain, identity: str) -> EventType | None:
    """Find a type by its id in the log."""
    return wire_types(domain, domain.known(at=domain.clock()), [identity]).get(identity)


def _attributes(domain: Domain, event_type: EventType) -> dict[bytes, tuple[str, AttributeType]]:
    """List the attributes of all versions of a type that can be asked about."""
    versions: Mapping[str, EventType] = {
        item.event_type.name.version.text: item.event_type
        for item in domain.known(at=domain.clock()).versions(event_type.type_id)
    }
    return {
        item.uid.encode(): (item.name, item.type.base)
        for version in (*versions.values(), event_type)
        for item in version.attributes
        if item.type.filterable
    }
