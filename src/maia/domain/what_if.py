"""What would change: with a certificate more or less, or at another moment, by what this home knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from maia.encoding import counted, html_table
from maia.events import Attribute, value_to_json
from maia.principals import UnverifiedCertificate
from maia.reasoning import Changes, HeldAttribute, World, changes, ends

if TYPE_CHECKING:
    from maia.domain.domain import Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class RightChange:
    """One attribute that somebody gains, loses, or keeps in other rows.

    Attributes:
        what: ``began``, ``ended``, ``widened`` or ``narrowed``.
        principal: Who, as this home calls it.
        action: ``subscribe`` or ``publish``.
        type: Of which type.
        attribute: Which attribute.
        row: Where it is kept in other rows: one that is gained or lost, by name.
    """

    what: str
    principal: str
    action: str
    type: str
    attribute: str
    row: Mapping[str, object] | None = None

    def to_json(self) -> dict[str, object]:
        """Describe it for machines."""
        data: dict[str, object] = {
            "what": self.what, "principal": self.principal, "action": self.action, "type": self.type,
            "attribute": self.attribute,
        }  # fmt: skip
        return data if self.row is None else data | {"row": dict(self.row)}

    def __str__(self) -> str:
        """Say it."""
        shown = "" if self.row is None else f", for example where {self.row}"
        return f"{self.what:<8} {self.principal} {self.action} `{self.attribute}` of `{self.type}`{shown}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What changes from one state of affairs to another; true in a condition when anything does.

    Attributes:
        changes: In the order began, ended, widened, narrowed.
        doubts: Of whom it could not be told, and why.
        complete: Whether nothing was left in doubt.
        answer: As `maia.reasoning` gave it.
    """

    changes: tuple[RightChange, ...]
    doubts: tuple[str, ...]
    complete: bool
    answer: Changes

    def __bool__(self) -> bool:
        """Tell whether anything changes."""
        return bool(self.changes)

    def of(self, what: str) -> tuple[tuple[str, str, str], ...]:
        """List what began, ended, widened or narrowed, as principal, action and attribute."""
        return tuple((item.principal, item.action, item.attribute) for item in self.changes if item.what == what)

    def lines(self) -> list[str]:
        """Say it, one change a line."""
        out = [str(item) for item in self.changes] or ["nothing changes"]
        return out + [f"in doubt: {doubt}" for doubt in self.doubts]

    def __str__(self) -> str:
        """Say it in one text."""
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        """Say it in short."""
        return f"<{counted(len(self.changes), 'change')}{'' if self.complete else ', not complete'}>"

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        rows = [(item.what, item.principal, item.action, item.type, item.attribute) for item in self.changes]
        return html_table("what changes", ("", "principal", "action", "type", "attribute"), rows)

    def to_json(self) -> dict[str, object]:
        """Describe it for machines."""
        return {
            "changes": [item.to_json() for item in self.changes], "doubts": list(self.doubts),
            "complete": self.complete,
        }  # fmt: skip


def find_changes(
    domain: Domain,
    world: World,
    *,
    add: Iterable[UnverifiedCertificate] = (),
    remove: Iterable[UnverifiedCertificate] = (),
    then: World | None = None,
) -> WhatIf:
    """Tell what changes with certificates more and less, and at another moment."""
    more, less = tuple(add), [one.certificate_id for one in remove]
    if not more and then is None:
        found = ends(world, less)
    else:
        found = changes(world, (world if then is None else then).without(less).having(more))
    names: dict[bytes, tuple[str, dict[str, Attribute]]] = {}
    for version in (*world.versions(), *(() if then is None else then.versions())):
        _, known = names.setdefault(version.type_id, (version.name.name, {}))
        known.update({str(item.uid): item for item in version.attributes})
    said: list[RightChange] = []
    for what, held in (("began", found.began), ("ended", found.ended)):
        said += [_change(domain, what, item, names) for item in held]
    for what, moved in (("widened", found.widened), ("narrowed", found.narrowed)):
        for one in moved:
            known = names[one.held.type_id][1]
            row = {known[uid].name: value_to_json(value) for uid, value in one.row.items() if uid in known}
            said.append(_change(domain, what, one.held, names, row))
    show = domain.home.folder.show
    doubts = tuple(f"{show(key)}: {code}" for key, code in found.doubts)
    doubts += tuple(f"certificate {identity.hex()[:16]} waits for a statement" for identity in found.unknown)
    return WhatIf(changes=tuple(said), doubts=doubts, complete=found.complete, answer=found)


def _change(
    domain: Domain,
    what: str,
    held: HeldAttribute,
    names: Mapping[bytes, tuple[str, dict[str, Attribute]]],
    row: Mapping[str, object] | None = None,
) -> RightChange:
    type_name, attributes = names[held.type_id]
    return RightChange(
        what=what, principal=domain.home.folder.show(held.key), action=held.action, type=type_name,
        attribute=attributes[held.uid].name, row=row,
    )  # fmt: skip


def moment_of(domain: Domain, at: datetime | None) -> datetime:
    """Give a moment, now unless one is said."""
    return domain.clock() if at is None else at
