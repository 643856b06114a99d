"""The advertisements that a domain's broker remembers, in ``advertisements.toml`` of its home.

format = 1

[[advertisement]]
as = "camera"
key = "<id of the key>"
type = "<id of the type>"
name = "pito/uk.gov.pito.Numberplate@8516"
version = "8516"
where = "location = 'Victoria'"

Rules kept here:

- nothing is kept of a client whose key, or whose right and broker's right, was not proven;
- the audit has each advertisement and each withdrawal, with principal and chains, before the file does;
- the file holds what was said and gives no right: rights are judged from certificates, whatever stands here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from maia.domain.operations import note_session, without_values
from maia.domain.possession import ProvenClient
from maia.domain.types import show_type
from maia.domain.wanted import toml_text
from maia.errors import DeniedError, MalformedError, NotFoundError
from maia.events import EventType, TypeId, TypeName
from maia.filters import TypedFilter, compile_filter
from maia.home import PRIVATE_FILE, Home, locked, newer_format, read_file, write_file
from maia.kernel import Clause, KeptAdvertisement, standing_advertisement

ADVERTISEMENTS_FILE = "advertisements.toml"
_FORMAT = 1
_MAX_FILE = 16 << 20
_MAX_KEPT = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAdvertisement:
    """An advertisement with the names that people use for client and type."""

    client: str
    type: str
    kept: KeptAdvertisement

    def to_json(self) -> dict[str, object]:
        """Write it for machines."""
        kept = self.kept
        return {"as": self.client, "type": self.type, "where": kept.filter, "withdrawn": kept.withdrawn}


def read_advertisements(home: Path) -> tuple[ShownAdvertisement, ...]:
    """Read what the broker of a home remembers; nothing when nobody advertised.

    Raises:
        MalformedError: The file is not what it should be: ``ADVERTISEMENTS``. Nothing is published then.
        UnavailableError: A newer Maia wrote it: ``FORMAT_NEWER``.
    """
    try:
        data = read_file(home / ADVERTISEMENTS_FILE, limit=_MAX_FILE)
    except NotFoundError:
        return ()
    try:
        value = tomllib.loads(data.decode("utf-8"))
        form, items = value.pop("format"), value.pop("advertisement", [])
        if type(form) is int and form > _FORMAT:
            raise newer_format(ADVERTISEMENTS_FILE, found=form, known=_FORMAT)
        found = tuple(_read(item) for item in items)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _malformed() from error
    if value or form != _FORMAT or len(found) > _MAX_KEPT:
        raise _malformed()
    return found


def keep_advertisement(
    home: Home,
    client: ProvenClient,
    event_type: EventType,
    clauses: Sequence[Clause],
    *,
    said: str | None,
    at: datetime,
    publication: str | None = None,
    decision: str = "",
) -> None:
    """Remember what a client advertises, in place of what it said before of the same version.

    Args:
        home: Whose broker.
        client: Whose key was proven.
        event_type: The version.
        clauses: By which it may publish it.
        said: What it will publish, as a filter.
        at: Now.
        publication: The publication that was the first, when that makes it; what stands already is left alone then.
        decision: How its right was decided.

    Raises:
        DeniedError: It was withdrawn, and a publication revives nothing: ``NOT_ADVERTISED``.
    """
    name = event_type.name
    kept = KeptAdvertisement(
        principal=client.key.key_id.hex(), type_id=name.type_id, version=name.version.text, filter=said
    )
    shown = ShownAdvertisement(client=client.name, type=show_type(home, name), kept=kept)
    with locked(home.path / ADVERTISEMENTS_FILE):
        before = read_advertisements(home.path)
        if publication is not None:
            # Another process may have advertised, or taken back, since this one looked.
            known = standing_advertisement(
                (one.kept for one in before), kept.principal, name, said=said, explicit=False
            )  # fmt: skip
            if known is not None:
                return
        others = [one for one in before if not one.kept.is_of(kept.principal, name)]
        note_session(
            home, "advertise", client, name.type_id, clauses=clauses,
            source=shown.type if publication is None else f"publication {publication}",
            said="" if said is None else without_values(_compiled(event_type, said), event_type), at=at,
            decision=decision,
        )  # fmt: skip
        _write(home, (*others, shown))


def withdraw_advertisements(home: Home, client: ProvenClient, names: Iterable[TypeName], *, at: datetime) -> None:
    """Take a client's advertisements of these versions back; what it publishes of them is refused from now on.

    Raises:
        DeniedError: It has advertised none of them: ``NOT_ADVERTISED``.
    """
    with locked(home.path / ADVERTISEMENTS_FILE):
        before, wanted = read_advertisements(home.path), tuple(names)
        mine = [
            one
            for one in before
            if not one.kept.withdrawn and any(one.kept.is_of(client.key.key_id.hex(), name) for name in wanted)
        ]
        if not mine:
            raise DeniedError(f"`{client.name}` advertises none of this here", code="NOT_ADVERTISED")
        for one in mine:
            note_session(home, "unadvertise", client, one.kept.type_id, source=one.type, at=at)
        ended = [
            ShownAdvertisement(
                client=one.client, type=one.type,
                kept=KeptAdvertisement(
                    principal=one.kept.principal, type_id=one.kept.type_id, version=one.kept.version, withdrawn=True
                ),
            )
            for one in mine
        ]  # fmt: skip
        _write(home, (*(one for one in before if one not in mine), *ended))


def _read(item: dict[str, object]) -> ShownAdvertisement:
    texts = {key: item.pop(key) for key in ("as", "key", "type", "name", "version")}
    where, withdrawn = item.pop("where", None), item.pop("withdrawn", False)
    if (
        item
        or not all(isinstance(text, str) for text in texts.values())
        or not isinstance(where, str | None)
        or not isinstance(withdrawn, bool)
    ):
        raise ValueError("not an advertisement")
    kept = KeptAdvertisement(
        principal=str(texts["key"]), type_id=TypeId(bytes.fromhex(str(texts["type"]))), version=str(texts["version"]),
        filter=where, withdrawn=withdrawn,
    )  # fmt: skip
    return ShownAdvertisement(client=str(texts["as"]), type=str(texts["name"]), kept=kept)


def _write(home: Home, items: Iterable[ShownAdvertisement]) -> None:
    lines = [f"format = {_FORMAT}", ""]
    for one in items:
        kept = one.kept
        texts = {
            "as": one.client, "key": kept.principal, "type": kept.type_id.hex(), "name": one.type,
            "version": kept.version,
        }  # fmt: skip
        if kept.filter is not None:
            texts["where"] = kept.filter
        lines += ["[[advertisement]]", *(f"{key} = {toml_text(text)}" for key, text in texts.items())]
        lines += ["withdrawn = true", ""] if kept.withdrawn else [""]
    write_file(home.path / ADVERTISEMENTS_FILE, "\n".join(lines).encode(), mode=PRIVATE_FILE)


def _compiled(event_type: EventType, said: str) -> TypedFilter:
    return compile_filter(said, {item.name: item.type.value for item in event_type.attributes})


def _malformed() -> MalformedError:
    return MalformedError(f"`{ADVERTISEMENTS_FILE}` is not a list of advertisements", code="ADVERTISEMENTS")
