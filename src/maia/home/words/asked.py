"""Rights as people write them: an event type, a network, or any tag.

An attribute is written by its name, where the type is kept in the home, or as ``uid:3``. A value is read as its
attribute's type demands; where the type is not known, by how it is written: ``500`` is an integer, ``1.5`` a decimal
number, ``true`` a boolean, ``2026-06-01`` a date, ``2026-06-01T09:00:00Z`` an instant, anything else and anything in
quotes is text. What is useless is refused: a name that no known version has, a value that no event could have. A uid
that no known version has may be given, since a right speaks of versions to come as well; whoever gives it is told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import partial

from maia.authority import (
    Action,
    Constraint,
    KnownVersions,
    OnViolation,
    Request,
    Tag,
    check_ground,
    network_blanket,
    network_right,
    parse_tag,
    type_blanket,
    type_right,
)
from maia.encoding import Sexp, did_you_mean, parse_advanced
from maia.errors import MalformedError, TagError, UsageError
from maia.events import Attribute, AttributeType, EventType, ValueType, parse_uid
from maia.home.folder import Folder
from maia.home.words.bounds import parse_bounds
from maia.home.words.principals import parse_principal_text
from maia.home.words.rights import describe_tag
from maia.principals import KeyHash, KeyId, Principal, fingerprint, principal_id

_OPERATORS = r"<=|>=|!=|=|<|>|\bin\b|\bprefix\b|\bsuffix\b|\bcontains\b|\bany\b"
_UID = "uid:"
_MAX_VALUE = 4096
_Value = str | int | bool | Decimal | date | datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """What somebody asks for or gives.

    Attributes:
        tag: The right itself.
        owner: Who owns what it is about, when one is named.
        text: The right in words.
        unknown: The uids that no known version of the type has.
        versions: What the known versions of the type have, when it is about one.
    """

    tag: Tag
    owner: Principal | None
    text: str
    unknown: tuple[str, ...] = ()
    versions: KnownVersions | None = None

    def request(self) -> Request:
        """Ask for this right: for exactly it when it names one thing, else for at least a part of it."""
        expression = self.tag.to_sexp()
        ground = expression if _is_ground(expression) else None
        return Request(wanted=self.tag, ground=ground, owner=self.owner, versions=self.versions, text=self.text)


def parse_right(
    home: Folder,
    *,
    type_: str | None = None,
    network: str | None = None,
    tag: str | None = None,
    actions: Sequence[str] | None = None,
    attributes: Sequence[str] | None = None,
    on_violation: str | None = None,
    enforced: bool = False,
    bounds: Sequence[str] | None = None,
) -> Right:
    """Read a right; exactly one of ``type_``, ``network`` and ``tag`` is given.

    Raises:
        UsageError: None or several are given, or something does not fit the rest.
        MalformedError: The tag, an action or a value is not one.
        NotFoundError: A principal or a type is not known here.
    """
    if sum(option is not None for option in (type_, network, tag)) != 1:
        raise UsageError("give exactly one of --type, --network and --tag", code="RIGHT_OPTIONS")
    if attributes and type_ is None:
        raise UsageError("--attribute goes with --type", code="RIGHT_OPTIONS")
    if on_violation is not None and type_ is None:
        raise UsageError("--on-violation goes with --type", code="RIGHT_OPTIONS")
    if enforced and type_ is None:
        raise UsageError("--enforced goes with --type", code="RIGHT_OPTIONS")
    if bounds and type_ is None:
        raise UsageError("--bound goes with --type", code="RIGHT_OPTIONS")
    if actions and tag is not None:
        raise UsageError("--action goes with --type or --network; a tag says it itself", code="RIGHT_OPTIONS")
    chosen = [_action(word.strip()) for text in actions or () for word in text.split(",")] or None
    if type_ is not None:
        broken = _parse_violation(on_violation)
        return _type_right(home, type_, chosen, attributes, broken, enforced=enforced, bounds=bounds or ())
    if network is not None:
        return _network_right(home, network, chosen)
    return _raw_right(home, tag or "")


def _action(word: str) -> Action:
    try:
        return Action.parse(word)
    except TagError as error:
        near = did_you_mean(word, [action.value for action in Action])
        raise UsageError(f"{error.message}{near}", code=error.code) from error


def _is_ground(expression: Sexp) -> bool:
    """Tell whether an expression asks for one thing. Rights on cells and unfinished rights of Maia's do not."""
    match expression:
        case (b"maia-type", _, _, _, (b"manage", *_) | b"extend") | (b"maia-network", _, _, _):
            pass
        case (b"maia-type" | b"maia-network", *_):
            return False
    try:
        check_ground(expression)
    except TagError:
        return False
    return True


def _parse_violation(text: str | None) -> OnViolation | None:
    if text is None:
        return None
    try:
        return OnViolation(text)
    except ValueError as error:
        words = ", ".join(item.value for item in OnViolation)
        raise UsageError(f"`{text}` is none of {words}", code="RIGHT_OPTIONS") from error


def _type_right(
    home: Folder,
    text: str,
    actions: list[Action] | None,
    attributes: Sequence[str] | None,
    on_violation: OnViolation | None,
    *,
    enforced: bool,
    bounds: Sequence[str],
) -> Right:
    owner: Principal | None = None
    known: tuple[EventType, ...] = ()
    name, version = "*", "*"
    if text.strip() != "*":
        owner, name, exact = split_type(text, home)
        version = exact or "*"
        known = home.versions(principal_id(owner), name) if "*" not in name else ()
        if exact is not None and exact != "*":
            known = tuple(item for item in known if item.name.version.text == exact)
    demands = [parse_attribute(item, known) for item in attributes or ()]
    uids = list(dict.fromkeys(uid for uid, _ in demands)) if demands else None
    constraints = [constraint for _, constraint in demands if constraint is not None]
    if enforced and not constraints:
        raise UsageError("--enforced speaks of a demand on the row, and there is none", code="RIGHT_OPTIONS")
    make = partial(
        type_right, actions=actions, attributes=uids, constraints=constraints, on_violation=on_violation,
        enforced=enforced, bounds=parse_bounds(bounds, known, uids),
    )  # fmt: skip
    if owner is None:
        whole = actions is None and uids is None and on_violation is None
        return _shown(type_blanket() if whole else make(None), None, home)
    here = {item.uid for version in known for item in version.attributes}
    unknown = tuple(uid for uid in uids or () if known and uid not in here)
    return _versioned(replace(_shown(make(owner, name, version), owner, home), unknown=unknown), home)


def _versioned(right: Right, home: Folder) -> Right:
    """Say what the versions have of the one type that a right is about, where its own is among those known here.

    What they inherit is not among it: rights on the type that it comes from speak of that.
    """
    match right.tag.to_sexp():
        case (b"maia-type", bytes() as owner, bytes() as name, *rest):
            kept = home.versions(owner, name.decode("utf-8", "replace"))
            known = KnownVersions.of((item.name.version.text, (one.uid for one in item.attributes)) for item in kept)
            return replace(right, versions=known) if kept and known.knows(_version(rest)) else right
        case _:
            return right


def _version(rest: list[Sexp]) -> Tag:
    return parse_tag(rest[0] if rest else (b"*",))


def _network_right(home: Folder, text: str, actions: list[Action] | None) -> Right:
    if text.strip() == "*":
        if actions:
            raise UsageError("--network '*' stands for every action; leave --action out", code="RIGHT_OPTIONS")
        return _shown(network_blanket(), None, home)
    owner_text, name = split_owner(text)
    owner = parse_principal_text(owner_text, home)
    return _shown(network_right(owner, name, actions), owner, home)


def _raw_right(home: Folder, text: str) -> Right:
    expression = parse_advanced(text)
    match expression:
        case (b"maia-type" | b"maia-network", bytes() as owner, *_) if len(owner) == 32:
            return _versioned(_shown(parse_tag(expression), KeyHash(KeyId(owner)), home), home)
        case _:
            return _shown(parse_tag(expression), None, home)


def _shown(tag: Tag, owner: Principal | None, home: Folder) -> Right:
    return Right(tag=tag, owner=owner, text=describe_tag(tag.to_sexp(), home))


def split_type(text: str, home: Folder) -> tuple[Principal, str, str | None]:
    """Read OWNER/NAME[@VERSION]; the owner may be left out where one owner in the home has the name.

    Raises:
        UsageError: No owner is named, and none or several fit, or the home wants full names.
    """
    bare = _slash(text) is None
    owner_text, rest = ("", text.strip()) if bare else split_owner(text)
    name, mark, version = rest.rpartition("@")
    name, exact = (name, version) if mark else (rest, None)
    if not bare:
        return parse_principal_text(owner_text, home), name, exact
    owners = {item.owner_id: item.owner for item in home.types.names() if item.name == name}
    if home.config is not None and home.config.names == "full":
        raise UsageError(f"`{text}` does not say whose it is; write OWNER/NAME", code="TYPE_TEXT")
    if len(owners) == 1:
        return owners.popitem()[1], name, exact
    if owners:
        listed = ", ".join(f"`{home.names.get(owner, fingerprint(owner))}/{rest}`" for owner in sorted(owners))
        which = f"several owners have that name: {listed}"
    else:
        near = did_you_mean(name, {item.name for item in home.types.names()})
        which = f"no type of that name is kept here; write OWNER/NAME{near}"
    raise UsageError(f"`{text}` does not say whose it is, and {which}", code="TYPE_TEXT")


def split_owner(text: str) -> tuple[str, str]:
    """Split at the first slash outside parentheses, since a principal may hold one.

    Raises:
        UsageError: There is no owner.
    """
    position = _slash(text)
    owner, rest = ("", "") if position is None else (text[:position].strip(), text[position + 1 :].strip())
    if not owner or not rest:
        raise UsageError(f"`{text}` does not say whose it is; write OWNER/NAME", code="RIGHT_OPTIONS")
    return owner, rest


def _slash(text: str) -> int | None:
    depth = 0
    for position, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "/" and depth == 0:
            return position
    return None


def parse_attribute(text: str, known: Sequence[EventType] = ()) -> tuple[str, Constraint | None]:
    """Read an attribute, or a demand on its value; ``known`` are the versions that it may belong to.

    Raises:
        UsageError: It is no attribute, or the versions have none such.

    >>> parse_attribute("uid:7>=500")
    ('7', Constraint(uid='7', operator='>=', value=500))
    >>> parse_attribute("3265=AE05 XYZ")[1].value
    'AE05 XYZ'
    """
    names = sorted({item.name for version in known for item in version.attributes}, key=len, reverse=True)
    word = "|".join([*(re.escape(name) for name in names), r"[^\s=<>!'\"]+"])
    found = re.fullmatch(rf"\s*({word})\s*(?:({_OPERATORS})\s*(.*))?", text, re.DOTALL)
    if found is None or len(text) > _MAX_VALUE or (found[2] == "any" and found[3]):
        raise UsageError(
            f"`{text}` is no attribute; write NAME, NAME=VALUE, NAME>=VALUE, `NAME in (A, B)` or `NAME any`",
            code="ATTRIBUTE_TEXT",
        )
    uid, kind = find_attribute(found[1], known)
    operator, value = found[2], found[3]
    if operator is None:
        return uid, None
    if operator == "any":
        return uid, Constraint(uid, "any", ())
    if operator == "in":
        inner = value.strip()
        if not (inner.startswith("(") and inner.endswith(")")):
            raise UsageError(f"`{text}` lacks its list; write `NAME in (A, B)`", code="ATTRIBUTE_TEXT")
        values = tuple(_typed(item, kind, found[1]) for item in _list_items(inner[1:-1]))
        return uid, Constraint(uid, "in", values)
    return uid, Constraint(uid, operator, _typed(value, kind, found[1]))


def find_attribute(word: str, known: Sequence[EventType]) -> tuple[str, ValueType | None]:
    """Find the uid of an attribute, and its type where a version says it; ``uid:N`` need not be known.

    Raises:
        UsageError: No known version has it, or it may be two: ``NO_SUCH_ATTRIBUTE``, ``AMBIGUOUS``.
    """
    every = [item for version in known for item in version.attributes]
    by_uid = word.startswith(_UID)
    found: dict[str, Attribute] = {item.uid: item for item in every if item.name == word and not by_uid}
    found |= {item.uid: item for item in every if item.uid == word.removeprefix(_UID)}
    if len(found) > 1:
        listed = ", ".join(f"`uid:{uid}`" for uid in found)
        raise UsageError(f"`{word}` may be any of {listed}", code="AMBIGUOUS")
    if found:
        item = found.popitem()[1]
        return item.uid, item.type
    if known and not by_uid:
        near = did_you_mean(word, {item.name for item in every})
        what, parents = known[0].name.name, {item.extends.name for item in known if item.extends is not None}
        own = f" of its own; rights on {', '.join(f'`{name}`' for name in sorted(parents))} give what it inherits"
        raise UsageError(f"`{what}` has no attribute `{word}`{own if parents else ''}{near}", code="NO_SUCH_ATTRIBUTE")
    try:
        return parse_uid(word.removeprefix(_UID)), None
    except MalformedError as error:
        raise UsageError(
            f"no type here says which uid `{word}` has; keep the type in this home, or write `uid:N`",
            code="NO_SUCH_ATTRIBUTE",
        ) from error


def _list_items(text: str) -> list[str]:
    """Split a list at commas outside quotes."""
    items, quote, start = [], "", 0
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == ",":
            items.append(text[start:position])
            start = position + 1
    return [*items, text[start:]]


def _typed(text: str, whole: ValueType | None, word: str) -> _Value:
    """Read a value as an attribute's type demands; by how it is written when that is not known."""
    value = parse_value(text)
    if whole is None:
        return value
    kind = whole.base
    if kind is AttributeType.STRING:
        return value if isinstance(value, str) else text.strip()
    if kind in (AttributeType.FLOAT, AttributeType.DECIMAL) and type(value) is int:
        return Decimal(value)
    wanted = {
        AttributeType.INTEGER: int, AttributeType.FLOAT: Decimal, AttributeType.DECIMAL: Decimal,
        AttributeType.BOOLEAN: bool, AttributeType.DATE: date, AttributeType.TIMESTAMP: datetime,
    }.get(kind)  # fmt: skip
    if wanted is None:
        raise UsageError(f"`{word}` is {whole.value}, on which no demand can be made", code="ATTRIBUTE_UNCOMPARED")
    if type(value) is not wanted:
        article = "an" if kind.value[0] in "aeiou" else "a"
        raise UsageError(f"`{word}` is {article} {kind.value}, which `{text.strip()}` is not", code="ATTRIBUTE_VALUE")
    return value


def parse_value(text: str) -> _Value:
    """Read a value, typed by how it is written.

    >>> [parse_value(text) for text in ("500", "'500'", "true", "AE05 XYZ")]
    [500, '500', True, 'AE05 XYZ']
    """
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if re.fullmatch(r"-?(0|[1-9]\d{0,18})", text):
        return int(text)
    if re.fullmatch(r"-?(0|[1-9]\d{0,30})\.\d{1,30}", text):
        return Decimal(text)
    if text in ("true", "false"):
        return text == "true"
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            return date.fromisoformat(text)
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}T[0-9:.]+(Z|[+-]\d{2}:\d{2})", text):
            return datetime.fromisoformat(text)
    except ValueError:
        return text
    if not text:
        raise UsageError("an empty value; write '' for empty text", code="ATTRIBUTE_TEXT")
    return text
