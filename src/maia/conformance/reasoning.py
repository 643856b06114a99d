"""The verbs of reasoning: who can read a cell, what ends with a certificate, how rights compare."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from maia.authority import Tag
from maia.conformance.certificates import Kinds, names_of, principal_of, right_of, uid_of
from maia.conformance.fields import Json, field, instant, objects, wrong
from maia.conformance.scenarios import Staged, kinds_of, stage
from maia.conformance.shapes import check_shape
from maia.conformance.types import read_value, version_type, write_value
from maia.errors import UncheckedError
from maia.events import Attribute, EventType, TypeId, TypeName, Value, attribute, type_id
from maia.principals import KeyId
from maia.reasoning import (
    NOT_COMPARABLE,
    Cell,
    Rights,
    World,
    disjoint,
    ends,
    equivalent,
    implies,
    rights_alone,
    rights_on,
    who_can,
)

_DOUBTS = ("LIMIT_EXCEEDED", "FILTER_TOO_LARGE", NOT_COMPARABLE)


def find_readers(request: Json) -> list[str]:
    """``reason.who_can``: the keys that can read a cell by themselves, owners left out."""
    world, _ = _world(request)
    cell = field(request, "cell", dict)
    place, uid = _type_of(cell.get("type")), uid_of(cell.get("attribute"))
    row = cell.get("row")
    if row is not None and not isinstance(row, dict):
        raise wrong("row", "an object")
    versions = world.versions(place)
    known = {item.name: item for version in reversed(versions) for item in version.attributes}
    found: set[KeyId] = set()
    for version in versions:
        names = known | {item.name: item for item in version.attributes}
        values = None if row is None else _row(row, names)
        answer = who_can(world, Cell(type_id=place, uid=uid, row=values, version=version.name.version.text))
        found.update(holder.key for holder in answer.holders)
        _refuse_doubt(answer.doubts)
    return _named(found, request)


def find_ends(request: Json) -> list[list[str]]:
    """``reason.ends``: who loses which attribute with a certificate, attributes by uid."""
    world, staged = _world(request)
    index = field(request, "certificate", int)
    if not 0 <= index < len(staged.identities):
        raise wrong("certificate", "the index of a certificate")
    identity = staged.identities[index]
    if identity is None:
        return []
    done = ends(world, [identity])
    _refuse_doubt(done.doubts)
    names = names_of("reason.ends", request)
    found = {(names.get(item.key, item.key.hex()), item.action, item.uid) for item in done.ended}
    return [list(item) for item in sorted(found)]  # types may have equal uids


def compare_rights(request: Json) -> dict[str, object]:
    """``reason.compare``: what one holder's rights show that another's do not."""
    types = request.get("types")
    if isinstance(types, dict):
        attributes = {uid: attribute(uid, uid, field(types, uid, str)) for uid in types}
        kinds = {uid: item.type for uid, item in attributes.items()}
        bases = {uid: (kind.base,) for uid, kind in kinds.items()}
        a, b = (_tags(request, side, lambda _: bases) for side in ("a", "b"))
        return _compared([(*rights_alone(a, b, kinds), attributes)])
    versions = objects(request, "types")
    check_shape("version", versions)
    definitions: dict[TypeName, EventType] = {}
    for value in versions:
        definition = version_type(value).definition
        definitions.setdefault(definition.name, definition)  # the first one counts
    a, b = (_tags(request, side, kinds_of(versions)) for side in ("a", "b"))
    first, second = (rights_on(tags, definitions.values()) for tags in (a, b))
    return _compared([(first[one], second[one], _attributes(definitions.values(), one)) for one in first])


_Pair = tuple[Rights, Rights, Mapping[str, Attribute]]  # type: ignore[type-arg] # of either kind of cell


def _compared(pairs: list[_Pair]) -> dict[str, object]:
    result: dict[str, object] = {}
    shown: dict[str, object] | None = None
    for word, ask in (("implies", implies), ("equivalent", equivalent), ("disjoint", disjoint)):
        found = ((ask(a, b).witness, attributes) for a, b, attributes in pairs)
        witness, attributes = next(((item, names) for item, names in found if item is not None), (None, {}))
        result[word] = witness is None
        if witness is not None and shown is None:
            row = ((attributes[uid], value) for uid, value in witness.row.items() if uid in attributes)
            shown = {item.name: write_value(item, value) for item, value in row}
    return result if shown is None else result | {"witness": shown}


def _attributes(definitions: Collection[EventType], place: TypeId) -> dict[str, Attribute]:
    """Name the attributes of a type, by uid; of several versions as the first one does."""
    found: dict[str, Attribute] = {}
    for version in definitions:
        for item in version.attributes if version.type_id == place else ():
            found.setdefault(str(item.uid), item)
    return found


def _tags(request: Json, side: str, kinds: Kinds) -> list[Tag]:
    return [right_of(value, kinds) for value in objects(request, side) if "network" not in value]


def _world(request: Json) -> tuple[World, Staged]:
    at = instant(request.get("at"))
    staged = stage(field(request, "scenario", dict), at)
    return World(sessions=staged.sessions, pool=staged.pool, at=at), staged


def _type_of(value: object) -> TypeId:
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[1], str):
        raise wrong("type", "owner and name")
    return type_id(principal_of(value[0]), value[1])


def _row(row: Json, names: Mapping[str, Attribute]) -> dict[str, Value]:
    for name in row:
        if name not in names:
            raise wrong("row", f"a row of the type, which has no attribute `{name}`")
    read = {names[name].uid: read_value(names[name], value) for name, value in row.items()}
    return {str(uid): value for uid, value in read.items() if value is not None}


def _named(keys: set[KeyId], request: Json) -> list[str]:
    names = names_of("reason.who_can", request)
    return sorted(names.get(key, key.hex()) for key in keys)


def _refuse_doubt(doubts: tuple[tuple[KeyId, str], ...]) -> None:
    """An answer that may leave somebody out is none; where a statement is missing, the answer is no."""
    for _, code in doubts:
        if code in _DOUBTS:
            raise UncheckedError("for some principals it cannot be told", code=code)


VERBS: dict[str, Callable[[Mapping[str, object]], object]] = {
    "reason.who_can": find_readers,
    "reason.ends": find_ends,
    "reason.compare": compare_rights,
}
