"""Rights as options of the command line: an event type, a network, or any tag.

Values of demands are typed by how they are written: ``500`` is an integer, ``1.5`` a decimal number, ``true`` a
boolean, ``2026-06-01`` a date, ``2026-06-01T09:00:00Z`` an instant, anything else and anything in quotes is text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import partial

from maia.authority import (
    Action,
    Constraint,
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
from maia.cli.read.principals import parse_principal_text
from maia.cli.show.rights import describe_tag
from maia.encoding import Sexp, parse_advanced
from maia.errors import TagError, UsageError
from maia.home import Folder
from maia.principals import KeyHash, KeyId, Principal

_ATTRIBUTE = re.compile(
    r"\s*([^\s=<>!'\"]+)\s*(?:(<=|>=|!=|=|<|>|\bin\b|\bprefix\b|\bsuffix\b|\bcontains\b)\s*(.*))?", re.DOTALL
)
_MAX_VALUE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """What the options of a command line ask for or give."""

    tag: Tag
    owner: Principal | None
    text: str

    def request(self) -> Request:
        """Ask for this right: for exactly it when it names one thing, else for at least a part of it."""
        expression = self.tag.to_sexp()
        ground = expression if _is_ground(expression) else None
        return Request(wanted=self.tag, ground=ground, owner=self.owner, text=self.text)


def parse_right(
    home: Folder,
    *,
    type_: str | None,
    network: str | None,
    tag: str | None,
    actions: Sequence[str] | None,
    attributes: Sequence[str] | None,
    on_violation: str | None = None,
) -> Right:
    """Read a right from options; exactly one of ``--type``, ``--network`` and ``--tag`` is given.

    Raises:
        UsageError: None or several are given, or an option does not fit the others.
        MalformedError: The tag, an action or a value is not one.
    """
    if sum(option is not None for option in (type_, network, tag)) != 1:
        raise UsageError("give exactly one of --type, --network and --tag", code="RIGHT_OPTIONS")
    if attributes and type_ is None:
        raise UsageError("--attribute goes with --type", code="RIGHT_OPTIONS")
    if on_violation is not None and type_ is None:
        raise UsageError("--on-violation goes with --type", code="RIGHT_OPTIONS")
    if actions and tag is not None:
        raise UsageError("--action goes with --type or --network; a tag says it itself", code="RIGHT_OPTIONS")
    chosen = [Action.parse(word.strip()) for text in actions or () for word in text.split(",")] or None
    if type_ is not None:
        return _type_right(home, type_, chosen, attributes, _parse_violation(on_violation))
    if network is not None:
        return _network_right(home, network, chosen)
    return _raw_right(home, tag or "")


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
) -> Right:
    demands = [parse_attribute(item) for item in attributes or ()]
    uids = list(dict.fromkeys(uid for uid, _ in demands)) if demands else None
    constraints = [constraint for _, constraint in demands if constraint is not None]
    make = partial(type_right, actions=actions, attributes=uids, constraints=constraints, on_violation=on_violation)
    if text.strip() == "*":
        whole = actions is None and uids is None and on_violation is None
        return _shown(type_blanket() if whole else make(None), None, home)
    owner_text, name, version = _split_type(text)
    owner = parse_principal_text(owner_text, home)
    return _shown(make(owner, name, version), owner, home)


def _network_right(home: Folder, text: str, actions: list[Action] | None) -> Right:
    if text.strip() == "*":
        if actions:
            raise UsageError("--network '*' stands for every action; leave --action out", code="RIGHT_OPTIONS")
        return _shown(network_blanket(), None, home)
    owner_text, name = _split_owner(text)
    owner = parse_principal_text(owner_text, home)
    return _shown(network_right(owner, name, actions), owner, home)


def _raw_right(home: Folder, text: str) -> Right:
    expression = parse_advanced(text)
    match expression:
        case (b"maia-type" | b"maia-network", bytes() as owner, *_) if len(owner) == 32:
            return _shown(parse_tag(expression), KeyHash(KeyId(owner)), home)
        case _:
            return _shown(parse_tag(expression), None, home)


def _shown(tag: Tag, owner: Principal | None, home: Folder) -> Right:
    return Right(tag=tag, owner=owner, text=describe_tag(tag.to_sexp(), home))


def _split_type(text: str) -> tuple[str, str, str]:
    owner, rest = _split_owner(text)
    name, mark, version = rest.rpartition("@")
    return (owner, name, version) if mark else (owner, rest, "*")


def _split_owner(text: str) -> tuple[str, str]:
    """Split at the first slash outside parentheses, since a principal may hold one."""
    depth = 0
    for position, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "/" and depth == 0:
            owner, rest = text[:position].strip(), text[position + 1 :].strip()
            if owner and rest:
                return owner, rest
            break
    raise UsageError(f"`{text}` does not say whose it is; write OWNER/NAME", code="RIGHT_OPTIONS")


def parse_attribute(text: str) -> tuple[str, Constraint | None]:
    """Read ``UID`` or ``UID OPERATOR VALUE``.

    >>> parse_attribute("7>=500")
    ('7', Constraint(uid='7', operator='>=', value=500))
    >>> parse_attribute("3265=AE05 XYZ")[1].value
    'AE05 XYZ'
    """
    found = _ATTRIBUTE.fullmatch(text)
    if found is None or len(text) > _MAX_VALUE:
        raise UsageError(
            f"`{text}` is no attribute; write UID, UID=VALUE, UID>=VALUE or `UID in (A, B)`", code="ATTRIBUTE_TEXT"
        )
    uid, operator, value = found.groups()
    if operator is None:
        return uid, None
    if operator == "in":
        inner = value.strip()
        if not (inner.startswith("(") and inner.endswith(")")):
            raise UsageError(f"`{text}` lacks its list; write `UID in (A, B)`", code="ATTRIBUTE_TEXT")
        values = tuple(parse_value(item) for item in _list_items(inner[1:-1]))
        return uid, Constraint(uid, "in", values)
    return uid, Constraint(uid, operator, parse_value(value))


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


def parse_value(text: str) -> str | int | bool | Decimal | date | datetime:
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
