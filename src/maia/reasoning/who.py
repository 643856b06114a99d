"""Who reads or writes a cell: everybody who does, each with the chain that gives it.

The law: a key is in the answer exactly when a decision for it grants the cell: its right, its connection to the
network, and its broker, which shows no cell that it may not open itself. Candidates are found by one walk from the
owner over the certificates in force, which leaves nobody out; then each is decided for, and that decides. Owners, who
need no certificate, are not listed. Who is a client of another domain's broker is listed by its right, and it is said
that nothing is known of that broker.

An answer is about the certificates, statements and types that are known. It says what it could not find out: for whom
a decision ended in doubt, which certificates wait for a statement, and which conditions on events it took to hold in
some row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from maia.authority import Action, Request, ask_cell, row_request
from maia.errors import ChainError, DeniedError, MaiaError, UncheckedError
from maia.events import EventType, TypeId
from maia.filters import value_atom
from maia.kernel import Clause, requests_for
from maia.principals import CertificateId, KeyHash, KeyId
from maia.reasoning.cells import shown
from maia.reasoning.regions import Demands, Row
from maia.reasoning.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell that is asked about.

    Attributes:
        type_id: Of which type.
        uid: Which attribute.
        action: Whether it is read, by subscribing, or written, by publishing.
        row: In which row, by uid; in some row when there is none.
        where: What is asked of the row, when any will do.
        version: In which version; in any when there is none.
    """

    type_id: TypeId
    uid: str
    action: Action = Action.SUBSCRIBE
    row: Row | None = None
    where: Demands = ()
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellHolder:
    """Somebody who reads or writes a cell.

    Attributes:
        key: Who.
        version: The version in which it does.
        clauses: What gives it, one entry per chain that opens the cell in this row.
        row: A row in which it does; without values, every row.
        assumed: Conditions on the event that are taken to hold in some row.
        elsewhere: Whether another broker serves it, of which nothing is known here, and which may show it less.
    """

    key: KeyId
    version: EventType
    clauses: tuple[Clause, ...]
    row: Row = field(hash=False)
    assumed: tuple[str, ...] = ()
    elsewhere: bool = False

    @property
    def chain(self) -> tuple[CertificateId, ...]:
        """The certificates that give it, root first: of several chains the shortest."""
        return min((clause.chain for clause in self.clauses), key=lambda chain: (len(chain), chain))


@dataclass(frozen=True, slots=True)
class WhoCan:
    """Everybody who reads or writes a cell.

    Attributes:
        cell: The cell.
        holders: Who does, sorted by key.
        doubts: Of whom it could not be told, with the code of what stood in the way.
        unknown: Certificates that wait for a statement; whoever holds the cell by those alone is not listed.
    """

    cell: Cell
    holders: tuple[CellHolder, ...]
    doubts: tuple[tuple[KeyId, str], ...] = ()
    unknown: tuple[CertificateId, ...] = ()

    def __contains__(self, key: object) -> bool:
        """Tell whether a key is among them."""
        return any(holder.key == key for holder in self.holders)

    @property
    def complete(self) -> bool:
        """Whether nothing was left in doubt: then nobody else reads or writes the cell by what is known."""
        return not self.doubts and not self.unknown and not any(holder.assumed for holder in self.holders)


def who_can(world: World, cell: Cell) -> WhoCan:
    """Find everybody who reads or writes a cell.

    Raises:
        UncheckedError: There is more evidence than one search may look at.
    """
    found: dict[KeyId, CellHolder] = {}
    doubts: dict[KeyId, str] = {}
    unknown: set[CertificateId] = set()
    for version in _versions(world, cell):
        candidates = world.candidates(cell.action, version, cell.uid)
        unknown.update(candidates.unknown)
        for key in candidates.keys:
            if key in found:
                continue
            try:
                holder = held(world, key, cell, version)
            except UncheckedError as error:
                doubts[key] = error.code
                continue
            if holder is not None:
                found[key] = holder
    return WhoCan(
        cell,
        tuple(found[key] for key in sorted(found)),
        tuple(sorted((key, code) for key, code in doubts.items() if key not in found)),
        tuple(sorted(unknown)),
    )


def held(world: World, key: KeyId, cell: Cell, version: EventType) -> CellHolder | None:
    """Decide for one principal and one version; nothing for an owner, who needs no certificate.

    Raises:
        UncheckedError: It cannot be told.
    """
    clauses = world.clauses(key, cell.action, version)
    if any(not clause.chain and clause.opens(cell.uid) for clause in clauses):
        return None
    found = shown(world, clauses, cell.action, version, cell.uid, row=cell.row, where=cell.where)
    if found is None:
        return None
    return CellHolder(
        key=key, version=version, clauses=found.clauses, row=found.row, assumed=found.assumed,
        elsewhere=bool(world.elsewhere(key, cell.action, version)),
    )  # fmt: skip


def opens_cell(world: World, clauses: Sequence[Clause], cell: Cell, version: EventType) -> bool:
    """Tell whether clauses show a cell: for a door that closed some of them, as labels do.

    Raises:
        UncheckedError: It cannot be told.
    """
    return shown(world, clauses, cell.action, version, cell.uid, row=cell.row, where=cell.where) is not None


def why_not(world: World, key: KeyId, cell: Cell) -> MaiaError | None:
    """Say what is missing for a principal to read or write a cell; nothing when it does.

    Of several versions the one is spoken of that comes nearest: a right that does not open the cell is nearer than no
    right.
    """
    nearest: MaiaError | None = None
    for version in _versions(world, cell):
        try:
            clauses = world.clauses(key, cell.action, version)
            if any(not clause.chain and clause.opens(cell.uid) for clause in clauses):
                return None
            if shown(world, clauses, cell.action, version, cell.uid, row=cell.row, where=cell.where) is not None:
                return None
        except UncheckedError as error:
            return error
        missing = _missing(world, key, cell, version, clauses)
        if nearest is None or clauses:
            nearest = missing
    if nearest is None:
        return ChainError("no version that is known has this attribute", code="NO_SUCH_ATTRIBUTE")
    return nearest


def _missing(world: World, key: KeyId, cell: Cell, version: EventType, clauses: tuple[Clause, ...]) -> MaiaError:
    sessions, principal = world.sessions, KeyHash(key)
    opened = any(clause.opens(cell.uid) for clause in clauses)
    try:
        if not clauses:
            sessions.granted(principal, cell.action, version, world.pool, at=world.at)
        elif not opened:
            held = sessions.clauses(principal, cell.action, version, world.pool, at=world.at)
            if any(clause.opens(cell.uid) for clause in held):
                return DeniedError("the broker may not open this attribute itself", code="BROKER_LACKS_RIGHT")
            for request in _requests(world, cell, version):
                sessions.verifier.verify(request, principal=principal, evidence=world.pool, at=world.at)
    except MaiaError as error:
        return error
    if opened:
        return ChainError("no right that opens the attribute admits such a row", code="ROW_NOT_ADMITTED")
    return ChainError("no right opens the attribute", code="ATTRIBUTE_CLOSED")


def _requests(world: World, cell: Cell, version: EventType) -> Iterator[Request]:
    """Ask for all that the cell needs: the type that the attribute belongs to, and in it the attribute."""
    for definition in world.sessions.lineage(version):
        if cell.uid in definition.uids:
            yield from requests_for(cell.action, definition)
            name = definition.name
            kinds = world.sessions.kinds(version.type_id)
            row = {
                uid: value_atom(value, kinds[uid].base)  # type: ignore[arg-type] # of a type that has an order
                for uid, value in (cell.row or {}).items()
                if kinds[uid].base.filterable
            }
            yield ask_cell(cell.action, name.owner, name.name, name.version.text, cell.uid, row_request(row))


def _versions(world: World, cell: Cell) -> Iterator[EventType]:
    """Go through the versions that have the attribute."""
    for version in world.versions(cell.type_id):
        if cell.version in (None, version.name.version.text) and any(
            item.uid == cell.uid for item in version.attributes
        ):
            yield version
