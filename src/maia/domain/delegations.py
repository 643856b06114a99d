"""Who gave what to whom, certificate by certificate, as a home knows it; what a graph of delegation is drawn from.

Nothing here decides on access: a certificate that stands may still give nothing, when its issuer has nothing to give.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from maia.authority import check_standing
from maia.errors import MaiaError
from maia.events import TypeName
from maia.home import Folder, words
from maia.principals import Authorisation, Name, UnverifiedCertificate

if TYPE_CHECKING:
    from maia.domain.domain import Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """One certificate: who says it, for whom, what.

    Attributes:
        certificate: Its id, in hex.
        issuer: Who signed, in the words of the home.
        subject: For whom: a key, a name that stands for keys, or a threshold of them.
        what: The right or the name that it gives, in words.
        naming: Whether it gives a name; the subject then belongs to the group that the name stands for.
        passes_on: Whether the subject may pass the right on.
        until: Its last instant, if it has one.
        code: ``OK`` while it stands, else why it does not.
    """

    certificate: str
    issuer: str
    subject: str
    what: str
    naming: bool
    passes_on: bool
    until: datetime | None
    code: str


def find_delegations(domain: Domain, name: TypeName | None, *, at: datetime) -> tuple[Delegation, ...]:
    """List certificates that give rights, those on one type when it is named, and the names by which they are given.

    Args:
        domain: Whose certificates.
        name: The type.
        at: When they stand or do not.
    """
    folder, book = domain.home.folder, domain.home.statements.load()
    rights: list[Delegation] = []
    names: list[Delegation] = []
    for item in folder.pool():
        if not isinstance(item.body, Authorisation):
            names.append(_told(item, folder, check_standing(item.raw, at=at, statements=book)[1]))
        elif name is None or _is_on(item.body, name, folder):
            rights.append(_told(item, folder, check_standing(item.raw, at=at, statements=book)[1]))
    wanted = _reached({one.subject for one in rights}, names)
    found = rights + (names if name is None else [one for one in names if one.issuer in wanted])
    return tuple(sorted(found, key=lambda one: (one.issuer, one.subject, one.what, one.certificate)))


def _is_on(body: Authorisation, name: TypeName, folder: Folder) -> bool:
    """Tell whether a right may be on a type; what cannot be taken apart may be."""
    found = words.views(body.tag, folder)
    return found is None or any(
        view.kind != "network" and (view.name is None or fnmatchcase(name.name, view.name)) for view in found
    )


def _reached(subjects: Iterable[str], names: Iterable[Delegation]) -> set[str]:
    """Name the groups that rights are for, and those that these consist of."""
    wanted, before = set(subjects), -1
    while len(wanted) > before:  # bounded: each turn adds a group
        before = len(wanted)
        wanted |= {one.subject for one in names if one.issuer in wanted}
    return wanted


def _told(item: UnverifiedCertificate, folder: Folder, wrong: MaiaError | None) -> Delegation:
    body, issuer = item.body, folder.show(item.body.issuer_id)
    passes_on, naming = False, not isinstance(body, Authorisation)
    if isinstance(body, Authorisation):
        what, passes_on = words.describe_tag(body.tag, folder), body.delegate
    else:
        what = f"the name {body.name}"
        issuer = words.show_subject(Name(body.issuer, (body.name,)), folder)  # who belongs to it has its rights
    return Delegation(
        certificate=item.certificate_id.hex(), issuer=issuer, subject=words.show_subject(body.subject, folder),
        what=what, naming=naming, passes_on=passes_on, until=body.period.not_after,
        code="OK" if wrong is None else wrong.code,
    )  # fmt: skip
