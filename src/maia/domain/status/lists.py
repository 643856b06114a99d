"""How the validity lists stand that a home knows or needs.

A signer that ever issued timed lists is held to them (`maia.authority.StatementBook`): the end that is told is that of
the timed lists, whatever plain lists came after.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from maia.authority import ListStatement, StatementBook, parse_statement
from maia.domain.lists import renews_lists
from maia.domain.snapshot import Snapshot
from maia.domain.status.values import ListStatus
from maia.home import Folder
from maia.principals import CertificateId, KeyId, TestKind

_MAX_NAMED = 20
_SHORT = 16


def list_statuses(folder: Folder, known: Snapshot, *, at: datetime) -> Iterator[ListStatus]:
    """Tell of each signer and kind: its newest list, until when its lists reach, and who renews them."""
    book = known.verifier.statements
    wanted: dict[tuple[KeyId, TestKind], list[CertificateId]] = {}
    for certificate in known.pool:
        for test in certificate.body.tests:
            if test.kind is not TestKind.ONE_TIME:
                wanted.setdefault((test.signer.key_id, test.kind), []).append(certificate.certificate_id)
    found = []
    for signer, kind in {**dict.fromkeys(wanted), **dict.fromkeys(_held(book))}:
        made = _status(folder, book, signer, kind, wanted.get((signer, kind), []), at=at)
        if made is not None:
            found.append(made)
    yield from sorted(found, key=lambda item: (item.signer, item.kind))


def _status(
    folder: Folder, book: StatementBook, signer: KeyId, kind: TestKind, wanted: list[CertificateId], *, at: datetime
) -> ListStatus | None:
    lists = book.lists(signer, kind)
    timed = [item for item in lists if item.timed]
    serving = [item for item in lists if item.in_force(at)]
    over = not any(item.in_force(at) for item in timed) if timed else not serving
    if over and not wanted:
        return None
    starts, ends = _reach(timed, at)
    newest = max(serving, key=lambda item: item.sequence, default=None)
    good = wanted if newest is None or kind is TestKind.CRL else sorted(newest.certificates)
    return ListStatus(
        signer=folder.show(signer), kind=kind.value, ends=ends, starts=starts,
        number=None if over or newest is None else newest.sequence,
        certificates=0 if newest is None else len(newest.certificates),
        renews=renews_lists(folder, signer, kind),
        names=() if kind is TestKind.CRL else tuple(item.hex()[:_SHORT] for item in good[:_MAX_NAMED]),
    )  # fmt: skip


def _held(book: StatementBook) -> Iterator[tuple[KeyId, TestKind]]:
    for raw in book.raw_statements():
        body = parse_statement(raw).body
        if isinstance(body, ListStatement):
            yield body.signer.key_id, body.kind


def _reach(timed: list[ListStatement], at: datetime) -> tuple[datetime | None, datetime | None]:
    """Tell when the last list begins and ends that follows on the one in force without a gap, or on the last one."""
    periods = sorted((item.starts, item.ends) for item in timed if item.starts is not None and item.ends is not None)
    found: tuple[datetime | None, datetime | None] = (None, None)
    for starts, ends in periods:
        last = found[1]
        if starts <= at or (last is not None and at < last and starts <= last):
            found = (starts, ends)
    return found
