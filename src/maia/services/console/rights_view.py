"""Who sees what: everybody's cells of a type, and the proof of one of them. All answers are the domain's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from maia.domain import Delegation, Domain, Reader, Readers, show_type
from maia.errors import MaiaError, NotFoundError
from maia.principals import KeyId, fingerprint

ACTIONS = {"subscribe": "reads", "publish": "writes"}
"""What is asked about cells, and how it is said."""
_MAX_ATTRIBUTES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """One principal and one attribute: ``all`` rows, ``some`` rows, ``none``, or in ``doubt``."""

    attribute: str
    state: str
    rows: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """One principal: its name here, if it has one, its fingerprint, and its cells."""

    name: str
    mark: str
    cells: tuple[MatrixCell, ...]

    @property
    def text(self) -> str:
        """How it is asked about."""
        return self.name or self.mark


@dataclass(frozen=True, slots=True, kw_only=True)
class RightsMatrix:
    """Everybody's cells of a type.

    Attributes:
        attributes: The attributes, in the order of the type.
        rows: Who has some.
        without: Keys of this home that have none.
        owner: Whose type it is, who needs no certificate.
        assumptions: On what the answer rests.
        complete: Whether nothing is in doubt.
    """

    attributes: tuple[tuple[str, str], ...]
    rows: tuple[MatrixRow, ...]
    without: tuple[str, ...]
    owner: str
    assumptions: tuple[str, ...]
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CellProof:
    """Why somebody has a cell, or why not.

    Attributes:
        principal: Who.
        attribute: Of what.
        holds: Whether it does, in some row.
        lines: The answer in sentences.
        steps: The certificates behind it, root first.
        until: When the first of them ends.
        example: A row in which it holds.
        code: Why not.
    """

    principal: str
    attribute: str
    holds: bool
    lines: tuple[str, ...]
    steps: tuple[Delegation, ...] = ()
    until: datetime | None = None
    example: Mapping[str, object] | None = None
    code: str = ""


def type_names(domain: Domain) -> tuple[str, ...]:
    """Name the types of a home, the newest version of each; what does not verify is left to `status`."""
    found = {}
    for name in sorted(domain.home.types.names(), key=lambda name: (name.name, name.version.text)):
        found[name.type_id] = name
    return tuple(sorted(show_type(domain.home, name) for name in found.values()))


def find_matrix(domain: Domain, type_: str, *, action: str, at: datetime) -> RightsMatrix:
    """Ask the domain about every attribute of a type.

    Raises:
        MaiaError: The type is unknown, or does not verify.
    """
    event_type, folder = domain.event_type(type_, at=at), domain.home.folder
    asked: dict[str, Readers] = {}
    for item in event_type.attributes[:_MAX_ATTRIBUTES]:
        asked[item.name] = domain.who_can(type_, item.name, action=action, at=at)
    cells: dict[str, dict[str, MatrixCell]] = {}
    for attribute, readers in asked.items():
        for key, _code in readers.answer.doubts:
            cells.setdefault(key.hex(), {})[attribute] = MatrixCell(attribute=attribute, state="doubt")
        for reader in readers:
            state = "some" if reader.rows or reader.assumed else "all"
            cells.setdefault(reader.key, {})[attribute] = MatrixCell(attribute=attribute, state=state, rows=reader.rows)
    names = {key.hex(): name for key, name in folder.names.items()}
    rows = [
        MatrixRow(
            name=names.get(key, ""), mark=fingerprint(KeyId(bytes.fromhex(key))),
            cells=tuple(mine.get(attribute, MatrixCell(attribute=attribute, state="none")) for attribute in asked),
        )
        for key, mine in cells.items()
    ]  # fmt: skip
    return RightsMatrix(
        attributes=tuple((item.name, str(item.type)) for item in event_type.attributes[:_MAX_ATTRIBUTES]),
        rows=tuple(sorted(rows, key=lambda row: (not row.name, row.text))),
        without=tuple(sorted(name for key, name in names.items() if key not in cells)),
        owner=type_.partition("/")[0] if "/" in type_ else "its owner",
        assumptions=tuple(dict.fromkeys(line for readers in asked.values() for line in readers.assumptions)),
        complete=all(readers.complete for readers in asked.values()),
    )  # fmt: skip


def find_proof(
    domain: Domain,
    type_: str,
    attribute: str,
    principal: str,
    *,
    action: str,
    at: datetime,
    row: Mapping[str, object] | None = None,
    where: str = "",
) -> CellProof:
    """Ask the domain why somebody has a cell, or what keeps it from it.

    Raises:
        MaiaError: The type, the attribute or the principal is unknown, or the row or filter does not fit.
    """
    answer = domain.why_not(type_, attribute, principal=principal, action=action, row=row, where=where, at=at)
    if not answer:
        message = _with_names(domain, type_, answer.message, at=at)
        return CellProof(
            principal=answer.principal, attribute=attribute, holds=False, lines=(message,), code=answer.code or ""
        )
    readers = domain.who_can(type_, attribute, action=action, row=row, where=where, at=at)
    key = domain.home.folder.key(principal).key_id.hex()
    reader = next((one for one in readers if one.key == key), None)
    if reader is None:
        owns = f"{answer.principal} {answer.cell}: the type is its own, and it needs no certificate."
        return CellProof(principal=answer.principal, attribute=attribute, holds=True, lines=(owns,))
    known = {one.certificate: one for one in domain.delegations(at=at)}
    return CellProof(
        principal=answer.principal, attribute=attribute, holds=True,
        lines=tuple(_sentences(domain, type_, reader, attribute, principal, action=action, at=at)),
        steps=tuple(known[identity] for identity in reader.chain if identity in known),
        until=reader.until, example=reader.example or None,
    )  # fmt: skip


def _sentences(
    domain: Domain, type_: str, reader: Reader, attribute: str, principal: str, *, action: str, at: datetime
) -> list[str]:
    said = [f"In rows where {reader.rows}." if reader.rows else "In every row."]
    said += [f"The condition `{text}` is taken to hold in some row." for text in reader.assumed]
    if action == "subscribe":  # what its broker lets through, and labels, may leave less than its right
        try:
            shown = domain.explain(type_, principal=principal, attribute=attribute, at=at)
        except NotFoundError:
            return said
        if not shown:
            said.append(f"Yet it is shown nothing of it here: {shown.reason}")
    return said


def _with_names(domain: Domain, type_: str, message: str, *, at: datetime) -> str:
    """Name attributes where a denial has their uids."""
    for item in domain.event_type(type_, at=at).attributes:
        message = message.replace(f" attribute {item.uid} of ", f" attribute `{item.name}` of ")
    return message


def safe_proof(domain: Domain, type_: str, attribute: str, principal: str, *, action: str, at: datetime) -> CellProof:
    """Ask as `find_proof`, and say what could not be answered in the answer's place."""
    try:
        return find_proof(domain, type_, attribute, principal, action=action, at=at)
    except MaiaError as error:
        return CellProof(
            principal=principal, attribute=attribute, holds=False, lines=(error.message,), code=error.code
        )  # fmt: skip
