"""Who reads or writes a cell, by what this home knows: for doors that list them, and for one that asks about one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from maia.authority import Action, Tag, parse_tag
from maia.domain.explanation import chain_words
from maia.domain.label_files import has_labels
from maia.encoding import counted, did_you_mean, html_table
from maia.errors import MaiaError, UncheckedError, UsageError
from maia.events import Attribute, EventType, TypeName, Value, value_from_json, value_to_json
from maia.filters import compile_filter, to_tag
from maia.home import words
from maia.kernel import uid_filter
from maia.principals import KeyId, Principal
from maia.reasoning import Cell, CellHolder, Row, WhoCan, World, matrix, stands_for, who_can, why_not

if TYPE_CHECKING:
    from maia.domain.domain import Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Somebody who reads or writes a cell.

    Attributes:
        name: Who, as this home calls it.
        key: The identity of its key, in hex.
        version: The version in which it does.
        rows: In which rows, in words; empty for every row.
        example: A row in which it does, by name; empty for every row.
        chain: The certificates that give it, root first, in hex.
        given: Who gave it to whom, in words.
        until: The first instant at which the chain carries it no longer, statements being as they are.
        assumed: Conditions on the event that are taken to hold in some row.
    """

    name: str
    key: str
    version: str
    rows: str
    example: Mapping[str, object]
    chain: tuple[str, ...]
    given: str
    until: datetime | None
    assumed: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Describe it for machines."""
        return {
            "principal": self.name, "key": self.key, "version": self.version, "rows": self.rows,
            "example": dict(self.example), "chain": list(self.chain), "given": self.given,
            "until": None if self.until is None else value_to_json(self.until), "assumed": list(self.assumed),
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """Everybody who reads or writes a cell, by what is known here.

    Attributes:
        cell: The cell, in words.
        readers: Who, by name.
        doubts: Of whom it could not be told, and why.
        assumptions: On what the answer rests.
        complete: Whether nothing was left in doubt.
        answer: As `maia.reasoning` gave it.
        outsiders: Where somebody said who alone may: those of them who are none of these.
    """

    cell: str
    readers: tuple[Reader, ...]
    doubts: tuple[str, ...]
    assumptions: tuple[str, ...]
    complete: bool
    answer: WhoCan
    outsiders: tuple[Reader, ...] = ()

    def __contains__(self, name: object) -> bool:
        """Tell whether somebody is among them, by the name that this home has."""
        return any(name in (reader.name, reader.name.partition(" ")[0], reader.key) for reader in self.readers)

    def __iter__(self) -> Iterator[Reader]:
        """Go through them."""
        return iter(self.readers)

    def __len__(self) -> int:
        """Count them."""
        return len(self.readers)

    def lines(self) -> list[str]:
        """Say it, one reader a line, and below what the answer rests on."""
        out = [f"{reader.name} {_rows(reader)}, by {reader.given}" for reader in self.readers]
        out = [f"who {self.cell}: {counted(len(self.readers), 'principal')}", *(f"  {line}" for line in out)]
        out += [
            f"  outsider: {reader.name}, for example in {dict(reader.example) or 'any row'}"
            for reader in self.outsiders
        ]
        out += [f"  in doubt: {doubt}" for doubt in self.doubts]
        return out + [f"  assumed: {line}" for line in self.assumptions]

    def __str__(self) -> str:
        """Say it in one text."""
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        """Say it as `str` does."""
        return f"<{'; '.join(self.lines())}>"

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        rows = [(reader.name, reader.rows or "every row", reader.given) for reader in self.readers]
        rows += [("in doubt", doubt, "") for doubt in self.doubts]
        return html_table(
            f"who {self.cell}", ("principal", "rows", "by"), rows + [("assumed", it, "") for it in self.assumptions]
        )

    def to_json(self) -> dict[str, object]:
        """Describe it for machines."""
        return {
            "cell": self.cell, "principals": [reader.to_json() for reader in self.readers],
            "doubts": list(self.doubts), "assumptions": list(self.assumptions), "complete": self.complete,
            "outsiders": [reader.name for reader in self.outsiders],
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Refutation:
    """Why somebody does not read or write a cell; true in a condition when it does, and nothing is missing."""

    principal: str
    cell: str
    code: str | None
    message: str

    def __bool__(self) -> bool:
        """Stand for the answer."""
        return self.code is None

    def __str__(self) -> str:
        """Say it."""
        if self.code is None:
            return f"{self.principal} {self.cell}"
        return f"{self.principal} does not: {self.cell}: [{self.code}] {self.message}"


def world_of(domain: Domain, *, at: datetime) -> World:
    """Give what a home knows at a moment."""
    known = domain.known(at=at)
    return World(sessions=known.sessions, pool=known.pool, at=at)


def cell_of(
    world: World,
    name: TypeName,
    attribute: str,
    *,
    action: str = "subscribe",
    row: Mapping[str, object] | None = None,
    where: str = "",
    any_version: bool = True,
) -> Cell:
    """Read a question about a cell, written with names.

    Raises:
        MaiaError: The type has no such attribute, the action is none on cells, or the row or filter does not fit.
    """
    version = world.sessions.event_type(name.type_id, name.version.text, at=world.at)
    item = attribute_of(version, attribute)
    asked = Action.parse(action)
    if not asked.on_cells:
        raise UsageError(f"`{action}` is about no cell; ask for subscribe or publish", code="UNKNOWN_ACTION")
    if row is not None and where:
        raise UsageError("give a row or a filter, not both", code="ROW_AND_FILTER")
    values = None if row is None else _values(version, row)
    return Cell(
        type_id=name.type_id, uid=str(item.uid), action=asked, row=values, where=_demands(version, where),
        version=None if any_version else name.version.text,
    )  # fmt: skip


def find_readers(
    domain: Domain, world: World, name: TypeName, cell: Cell, *, only: Sequence[Principal] | None = None
) -> Readers:
    """Find everybody who reads or writes a cell, and say it with the names of this home.

    Args:
        domain: The home.
        world: What is known.
        name: The type.
        cell: The cell.
        only: Who alone may; everybody else is an outsider.
    """
    found = who_can(world, cell)
    folder = domain.home.folder
    by_id = {one.certificate_id: one for one in world.pool}
    readers = []
    for holder in found.holders:
        names = {str(item.uid): item for item in holder.version.attributes}
        clause = min(holder.clauses, key=lambda one: (len(one.chain), one.chain))
        readers.append(Reader(
            name=folder.show(holder.key), key=holder.key.hex(), version=holder.version.name.version.text,
            rows=_rows_of(holder, names), example=_example(holder.row, names),
            chain=tuple(identity.hex() for identity in clause.chain), given=chain_words(clause, by_id, folder),
            until=clause.until, assumed=holder.assumed,
        ))  # fmt: skip
    ordered = tuple(sorted(readers, key=lambda reader: reader.name))
    outside = () if only is None else tuple(
        reader for reader in ordered
        if not any(stands_for(world, one, KeyId(bytes.fromhex(reader.key))) for one in only)
    )  # fmt: skip
    # A policy of labels closes cells to those whom certificates let in; it is not reasoned about, which is said.
    labelled = ("labels of `policy/labels.toml` may close more",) if has_labels(domain.home) else ()
    return Readers(
        cell=cell_words(world, name, cell), readers=ordered, outsiders=outside,
        doubts=tuple(f"{folder.show(key)}: {code}" for key, code in found.doubts),
        assumptions=(*_assumptions(world, found), *labelled), complete=found.complete and not labelled, answer=found,
    )  # fmt: skip


def refute(domain: Domain, world: World, name: TypeName, cell: Cell, key: KeyId) -> Refutation:
    """Say why somebody does not read or write a cell, or that it does."""
    error: MaiaError | None = why_not(world, key, cell)
    folder = domain.home.folder
    return Refutation(
        principal=folder.show(key), cell=cell_words(world, name, cell), code=None if error is None else error.code,
        message="" if error is None else folder.decorate(error.message),
    )  # fmt: skip


def rights_table(domain: Domain, world: World, name: TypeName) -> dict[str, dict[str, tuple[str, ...]]]:
    """Tell everybody's effective rights on a type: by principal and action, the attributes, or ``*``."""
    found = matrix(world, name.type_id)
    names = {str(item.uid): item.name for version in world.versions(name.type_id) for item in version.attributes}
    if found.doubts:
        key, code = min(found.doubts.items())
        raise UncheckedError(f"of {domain.home.folder.show(key)} it cannot be told what it may", code=code)
    return {
        domain.home.folder.show(key): {
            action.value: tuple(sorted(names.get(uid, uid) for uid in uids)) for action, uids in rights.items()
        }
        for key, rights in sorted(found.rights.items(), key=lambda item: domain.home.folder.show(item[0]))
    }


def attribute_of(version: EventType, attribute: str) -> Attribute:
    """Find an attribute by name.

    Raises:
        UsageError: There is none: ``NO_SUCH_ATTRIBUTE``.
    """
    names = [item.name for item in version.attributes]
    if attribute not in names:
        near = did_you_mean(attribute, names)
        raise UsageError(f"`{version.name.name}` has no attribute `{attribute}`{near}", code="NO_SUCH_ATTRIBUTE")
    return version.by_name(attribute)


def cell_words(world: World, name: TypeName, cell: Cell) -> str:
    """Name a cell."""
    version = world.sessions.event_type(name.type_id, name.version.text, at=world.at)
    names = {str(item.uid): item for item in version.attributes}
    what = "reads" if cell.action is Action.SUBSCRIBE else "writes"
    rows = ""
    if cell.row is not None:
        rows = f" in the row {_example(cell.row, names)}"
    elif cell.where:
        rows = f" in rows where {demand_words(cell.where, names)}"
    return f"{what} `{names[cell.uid].name}` of `{name.name}`{rows}"


def demand_words(demands: Iterable[tuple[str, Tag]], names: Mapping[str, Attribute]) -> str:
    """Say what is asked of a row."""
    said = [
        f"{names[uid].name if uid in names else f'uid {uid}'} {words.describe_value(tag.to_sexp())}"
        for uid, tag in demands
    ]
    return " and ".join(said)


def _rows_of(holder: CellHolder, names: Mapping[str, Attribute]) -> str:
    said = [demand_words(clause.constraints, names) for clause in holder.clauses]
    return "" if not all(said) else " or ".join(dict.fromkeys(said))


def _rows(reader: Reader) -> str:
    return f"in rows where {reader.rows}" if reader.rows else "in every row"


def _example(row: Row, names: Mapping[str, Attribute]) -> dict[str, object]:
    return {names[uid].name: value_to_json(value) for uid, value in row.items() if uid in names}


def _values(version: EventType, row: Mapping[str, object]) -> dict[str, Value]:
    read = {str(item.uid): value_from_json(item, row[item.name]) for item in version.attributes if item.name in row}
    for name in row:
        attribute_of(version, name)
    return {uid: value for uid, value in read.items() if value is not None}


def _demands(version: EventType, where: str) -> tuple[tuple[str, Tag], ...]:
    kinds = {item.name: item.type.value for item in version.attributes}
    asked = uid_filter(version, compile_filter(where, kinds)).by_attribute()
    return tuple((uid, parse_tag(to_tag(constraints))) for uid, constraints in asked.items())


def _assumptions(world: World, found: WhoCan) -> tuple[str, ...]:
    said = [
        f"{counted(len(world.pool), 'certificate')} known here; a right given elsewhere and not kept here is not seen"
    ]
    if found.unknown:
        ids = ", ".join(identity.hex()[:16] for identity in found.unknown)
        said.append(f"what waits for a statement is not in force: {ids}")
    if any(holder.elsewhere for holder in found.holders):
        said.append("clients of other brokers than this home's are listed by their rights; their brokers may show less")
    conditions = sorted({text for holder in found.holders for clause in holder.clauses for text in clause.conditions})
    said += [f"the condition `{text}` holds as it does at this moment" for text in conditions]
    assumed = sorted({text for holder in found.holders for text in holder.assumed})
    return (*said, *(f"the condition `{text}` holds in some row" for text in assumed))
