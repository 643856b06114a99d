"""Questions about rights: who sees what, why, and what if.

Each function is a method of `Domain`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from maia.authority import Action
from maia.domain.comparison import Comparison, compare_principals
from maia.domain.explanation import CellExplanation, explain_cell
from maia.domain.given import several
from maia.domain.grants import Granted
from maia.domain.label_files import screened_clauses, why_closed
from maia.domain.readers import Readers, Refutation, cell_of, find_readers, refute, rights_table, world_of
from maia.domain.what_if import WhatIf, find_changes, moment_of
from maia.events import TypeName
from maia.home import Folder, words
from maia.principals import parse_certificate
from maia.reasoning import World

if TYPE_CHECKING:
    from maia.domain.domain import Domain


def explain(
    domain: Domain, name: str, *, principal: str, attribute: str, version: str | None = None, at: datetime | None = None
) -> CellExplanation:
    """Explain why a client sees an attribute or not, with the chains behind it.

    Raises:
        MaiaError: The type, the attribute or the client is unknown here; the message has the nearest name.
    """
    folder, moment = Folder(domain.path), domain.clock() if at is None else at
    found = domain.find_type(name, version)
    known = domain.known(at=moment)
    return explain_cell(
        known, found, folder.key(principal), principal=principal, attribute=attribute, folder=folder, at=moment,
        labelled=lambda clauses, seen: screened_clauses(domain.home, known, clauses, seen, principal, at=moment),
        why_closed=lambda seen: why_closed(domain.home, known, seen, attribute, principal, at=moment),
    )  # fmt: skip


def who_can(
    domain: Domain,
    name: str,
    attribute: str,
    *,
    action: str = "subscribe",
    row: Mapping[str, object] | None = None,
    where: str = "",
    version: str | None = None,
    only: str | Sequence[str] | None = None,
    add: bytes | Sequence[bytes] = (),
    remove: str | Sequence[str] = (),
    at: datetime | None = None,
) -> Readers:
    """Find everybody who reads or writes an attribute, by all certificates that this home knows, each by its chain.

    The answer is complete or says that it is not, and lists what it rests on. Owners are not listed.

    Args:
        domain: Whose certificates count.
        name: The type.
        attribute: The attribute, by name.
        action: ``subscribe`` for readers, ``publish`` for writers.
        row: In this row, by name; what is not named is null.
        where: In some row that a filter matches; in some row when neither is given.
        version: In this version alone; in any by default.
        only: Who alone may: names of keys, or local names such as ``nhs: clients``. Everybody else is listed among
            the ``outsiders``, each with an event that shows it.
        add: As if these certificates were known as well.
        remove: As if these certificates were not there: the beginning of an id, or a file.
        at: At this moment; now by default.

    Raises:
        MaiaError: The type, the attribute or a certificate is unknown, or the row or filter does not fit.
    """
    world, found = _asked(domain, name, version, at)
    cell = cell_of(
        world, found, attribute, action=action, row=row, where=where, any_version=version is None
    )  # fmt: skip
    more = (add,) if isinstance(add, bytes) else add
    gone = [domain.home.folder.certificate(text).certificate_id for text in several(remove) or ()]
    insiders = None if only is None else [
        words.parse_principal_text(text, domain.home.folder) for text in several(only) or ()
    ]  # fmt: skip
    world = world.without(gone).having(more) if gone or more else world
    return find_readers(domain, world, found, cell, only=insiders)


def rights(domain: Domain, name: str, *, at: datetime | None = None) -> dict[str, dict[str, tuple[str, ...]]]:
    """Tell everybody's effective rights on a type and its network, by all certificates that this home knows.

    Returns:
        By principal and action, the attributes that it may do it on in some row; ``*`` for what is not about
        attributes: ``manage``, ``extend``, ``connect``, ``install``. Owners are not listed.

    Raises:
        UncheckedError: Of somebody it cannot be told.
    """
    return rights_table(domain, *_asked(domain, name, None, at))


def why_not(
    domain: Domain,
    name: str,
    attribute: str,
    *,
    principal: str,
    action: str = "subscribe",
    row: Mapping[str, object] | None = None,
    where: str = "",
    at: datetime | None = None,
) -> Refutation:
    """Say what keeps somebody from reading or writing an attribute; true in a condition when nothing does.

    With a row it is about one event: that no right stops it from reaching this principal, or the one that does.

    Raises:
        MaiaError: As for `who_can`; or the principal is unknown here.
    """
    world, found = _asked(domain, name, None, at)
    cell = cell_of(world, found, attribute, action=action, row=row, where=where)
    return refute(domain, world, found, cell, domain.home.folder.key(principal).key_id)


def what_if(
    domain: Domain,
    *,
    add: bytes | Sequence[bytes] = (),
    remove: str | Sequence[str] = (),
    then: datetime | None = None,
    at: datetime | None = None,
) -> WhatIf:
    """Tell who would gain and lose what: with certificates more, with certificates less, or at another moment.

    Args:
        domain: Whose certificates count.
        add: Certificates, as octets.
        remove: Certificates: the beginning of an id, or a file.
        then: The moment with which this one is compared; this one when there is none.
        at: This moment; now by default.

    Raises:
        MaiaError: A certificate is none, or unknown here.
    """
    world = world_of(domain, at=moment_of(domain, at))
    more = [parse_certificate(raw) for raw in ((add,) if isinstance(add, bytes) else add)]
    less = [domain.home.folder.certificate(text) for text in several(remove) or ()]
    later = None if then is None else world_of(domain, at=then)
    return find_changes(domain, world, add=more, remove=less, then=later)


def ends(domain: Domain, certificate: str | Granted, *, at: datetime | None = None) -> WhatIf:
    """Tell what ends with a certificate: who would lose which attribute if it were revoked now.

    Args:
        domain: Whose certificates count.
        certificate: What `grant` returned, the beginning of the certificate's id, or its file.
        at: The moment; now by default.
    """
    text = certificate.certificate.certificate_id.hex() if isinstance(certificate, Granted) else certificate
    return domain.what_if(remove=text, at=at)


def compare(
    domain: Domain,
    name: str,
    left: str,
    right: str | None = None,
    *,
    action: str = "subscribe",
    at: datetime | None = None,
    then: datetime | None = None,
) -> Comparison:
    """Compare what principals are shown of a type: whether one is shown whatever the other is, and the like.

    Exact over all rows that there could be; where the answer is no, with a row that shows it. Of one principal
    alone: what it is always and never shown.

    Args:
        domain: Whose certificates count.
        name: The type.
        left: One principal.
        right: The other.
        action: ``subscribe``, or ``publish`` for what they may write.
        at: The moment at which the first is looked at; now by default.
        then: The moment at which the second is looked at; the same by default.

    Raises:
        MaiaError: The type or a principal is unknown here.
    """
    world, found = _asked(domain, name, None, at)
    folder, later = domain.home.folder, world if then is None else world_of(domain, at=then)
    one, *other = [(text, folder.key(text).key_id) for text in (left, right) if text is not None]
    return compare_principals(
        found, (*one, world), (*other[0], later) if other else None, Action.parse(action)
    )  # fmt: skip


def _asked(domain: Domain, name: str, version: str | None, at: datetime | None) -> tuple[World, TypeName]:
    """Give what is known at a moment, and the type that a question is about."""
    world = world_of(domain, at=moment_of(domain, at))
    return world, domain.find_type(name, version)
