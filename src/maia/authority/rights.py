"""Maia's rights, written as tags.

    (maia-network <owner> <name> <action>)                             connect, install
    (maia-type <owner> <name> <version> <action> <uids> <rows>)        publish, subscribe
    (maia-type <owner> <name> <version> publish <uids> <rows> <mends>) what may become of a row that breaks <rows>
    (maia-type <owner> <name> <version> <action>)                      (manage), (manage addAttribute), …, extend

An owner is the identity of a principal (32 octets), names may be globs, a version is exact or ``(*)``. Trailing
elements that would be ``(*)`` are left out, so ``(maia-type)`` is every right on every type: a blanket. The tag algebra
gives the rest: a manage right covers its four parts because ``(manage)`` is the shorter list, and a request for a cell
``(maia-type o n v subscribe <uid> (row (<uid> <value>) …))`` is ground.

``<mends>`` is one of ``(* set force drop reject)`` cut short from the left (choice C1): a chain can only make it
stricter, and the mildest that is left counts. Left out, it is everything: force what is an equality, drop the rest.

Rules kept here: versions have no order, so a relational version is refused; a uid is listed once; ``!=`` becomes two
ranges; only the owner in the name is the root of a right on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import TypeAlias

from maia.authority.tags import (
    EVERYTHING,
    Everything,
    Exactly,
    ListTag,
    OneOf,
    Rows,
    Tag,
    intersect,
    one_of,
    parse_tag,
    permits,
    rows,
    sequence,
)
from maia.encoding import Sexp
from maia.errors import TagError
from maia.principals import Principal, principal_id

NETWORK = b"maia-network"
TYPE = b"maia-type"
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,127}")
_MAX_NAME = 512
_UIDS, _ROWS, _MENDS = 5, 6, 7  # positions in a right on cells


class Action(Enum):
    """What can be allowed; the value is the word in certificates."""

    CONNECT = "connect"
    INSTALL = "install"
    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    EXTEND = "extend"
    MANAGE = "manage"
    ADD_ATTRIBUTE = "addAttribute"
    REMOVE_ATTRIBUTE = "removeAttribute"
    EDIT_ATTRIBUTE_NAME = "editAttributeName"
    EDIT_ATTRIBUTE_TYPE = "editAttributeType"

    @classmethod
    def parse(cls, word: str) -> Action:
        """Read an action, the names of the thesis included (choice C20).

        >>> Action.parse("manage/rename").value
        'editAttributeName'
        """
        known = _ALIASES.get(word, word)
        try:
            return cls(known)
        except ValueError as error:
            raise TagError(f"unknown action `{word}`", code="UNKNOWN_ACTION") from error

    @property
    def on_network(self) -> bool:
        """Tell whether the action is about a network rather than an event type."""
        return self in (Action.CONNECT, Action.INSTALL)

    @property
    def on_cells(self) -> bool:
        """Tell whether the action carries attributes and row constraints."""
        return self in (Action.PUBLISH, Action.SUBSCRIBE)

    def to_sexp(self) -> Sexp:
        """Write the action as it stands in a tag."""
        if self is Action.MANAGE:
            return (b"manage",)
        if self in MANAGE_PARTS:
            return (b"manage", str(self.value).encode())
        return str(self.value).encode()


class OnViolation(Enum):
    """What becomes of a publication that breaks a constraint, mildest first; each allows the stricter ones below it."""

    FORCE = "force"
    DROP = "drop"
    REJECT = "reject"

    def to_tag(self) -> Tag:
        """Write it as it stands in a right."""
        if self is OnViolation.FORCE:
            return EVERYTHING
        return one_of(Exactly(item.value.encode()) for item in _STRICTER[self])


_STRICTER = {
    OnViolation.DROP: (OnViolation.DROP, OnViolation.REJECT),
    OnViolation.REJECT: (OnViolation.REJECT,),
}
MANAGE_PARTS = (
    Action.ADD_ATTRIBUTE,
    Action.REMOVE_ATTRIBUTE,
    Action.EDIT_ATTRIBUTE_NAME,
    Action.EDIT_ATTRIBUTE_TYPE,
)
_ALIASES = {
    "manage/add": "addAttribute",
    "manage/remove": "removeAttribute",
    "manage/rename": "editAttributeName",
    "manage/retype": "editAttributeType",
    "add": "addAttribute",
    "remove": "removeAttribute",
    "rename": "editAttributeName",
    "change": "editAttributeType",
}

Value: TypeAlias = "str | int | float | bool | Decimal | date | datetime"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A demand on the value of one attribute, named by its uid."""

    uid: str
    operator: str
    value: Value | tuple[Value, ...]

    def to_tag(self) -> Tag:
        """Write the demand as a tag on the attribute's value."""
        return value_tag(self.operator, self.value)


def network_right(owner: Principal, name: str, actions: Iterable[Action] | None) -> Tag:
    """Grant actions on a network; ``None`` means every action.

    >>> from maia.principals import KeySigner
    >>> right = network_right(KeySigner(bytes(32)).public_key, "UK Police Network", [Action.CONNECT])
    >>> right.to_sexp()[0], right.to_sexp()[3]
    (b'maia-network', b'connect')
    """
    allowed = EVERYTHING if actions is None else one_of(_network_action(action) for action in actions)
    return _trim(Exactly(NETWORK), Exactly(principal_id(owner)), _name_tag(name), allowed)


def type_right(
    owner: Principal | None,
    name: str = "*",
    version: str = "*",
    *,
    actions: Iterable[Action] | None = None,
    attributes: Iterable[str] | None = None,
    constraints: Iterable[Constraint] = (),
    on_violation: OnViolation | None = None,
) -> Tag:
    """Grant actions on event types.

    Args:
        owner: Whose types; ``None`` leaves it open, which still reaches the issuer's own types only.
        name: Exact, or a glob with ``*``.
        version: Exact, or ``*``.
        actions: ``None`` means every action.
        attributes: Uids that may be read or set; ``None`` means all, also those added later.
        constraints: Demands on the row; they may speak of attributes that ``attributes`` keeps closed.
        on_violation: What becomes of a publication that breaks them; by default an equality is forced, and a row that
            breaks another demand is dropped.

    Raises:
        TagError: A version with an operator, an unknown action, a malformed uid or value; or something is to be forced
            that is no equality.

    >>> right = type_right(None, actions=[Action.PUBLISH], on_violation=OnViolation.REJECT)
    >>> right.to_sexp()[-1]
    b'reject'
    """
    demands = tuple(constraints)
    if on_violation is OnViolation.FORCE and any(item.operator != "=" for item in demands):
        raise TagError("only an equality can be forced", code="CONSTRAINT_FORCE")
    if version != "*" and not _VERSION.fullmatch(version):
        raise TagError(f"versions are exact or `*`, not `{version}`", code="VERSION_PATTERN")
    start = (
        Exactly(TYPE),
        EVERYTHING if owner is None else Exactly(principal_id(owner)),
        _name_tag(name),
        EVERYTHING if version == "*" else Exactly(version.encode()),
    )
    cells = (uids_tag(attributes), rows_tag(demands))
    mends = EVERYTHING if on_violation is None else on_violation.to_tag()
    if actions is None and mends == EVERYTHING:
        return _trim(*start, EVERYTHING, *cells)
    chosen = (Action.PUBLISH, Action.SUBSCRIBE, Action.MANAGE, Action.EXTEND) if actions is None else tuple(actions)
    if any(action.on_network for action in chosen):
        raise TagError("connect and install are rights on a network", code="UNKNOWN_ACTION")
    split = mends != EVERYTHING and Action.PUBLISH in chosen
    on_cells = one_of(
        parse_tag(action.to_sexp())
        for action in chosen
        if action.on_cells and (action, split) != (Action.PUBLISH, True)
    )
    others = one_of(parse_tag(action.to_sexp()) for action in chosen if not action.on_cells)
    found = [_trim(*start, on_cells, *cells), _trim(*start, others)]
    if split:
        found.append(_trim(*start, parse_tag(Action.PUBLISH.to_sexp()), *cells, mends))
    return one_of(found)


def type_blanket() -> Tag:
    """Every right on every type, as far as the issuer has it."""
    return sequence((Exactly(TYPE),))


def network_blanket() -> Tag:
    """Every right on every network, as far as the issuer has it."""
    return sequence((Exactly(NETWORK),))


def uids_tag(attributes: Iterable[str] | None) -> Tag:
    """Write a set of uids; ``None`` means all."""
    if attributes is None:
        return EVERYTHING
    return one_of(Exactly(check_uid(uid)) for uid in attributes)


def rows_tag(constraints: Iterable[Constraint]) -> Tag:
    """Write demands on a row; several on one uid must all hold.

    >>> rows_tag([Constraint("7", ">=", 500), Constraint("7", "<", 700)]).to_sexp()
    (b'*', b'where', (b'7', (b'*', b'range', b'numeric', b'ge', b'500', b'l', b'700')))
    """
    found: dict[bytes, Tag] = {}
    for constraint in constraints:
        uid = check_uid(constraint.uid)
        tag = constraint.to_tag()
        found[uid] = intersect(found[uid], tag) if uid in found else tag
    return rows(found.items())


def value_tag(operator: str, value: Value | tuple[Value, ...]) -> Tag:
    """Write ``operator value`` as a tag on strings: sets, prefixes, globs and ranges.

    >>> value_tag("!=", 5).to_sexp()
    (b'*', b'set', (b'*', b'range', b'numeric', b'g', b'5'), (b'*', b'range', b'numeric', b'l', b'5'))
    """
    if operator == "any":
        return EVERYTHING
    if operator == "in":
        if not isinstance(value, tuple):
            raise TagError("`in` needs a list of values", code="CONSTRAINT_VALUE")
        return one_of(value_tag("=", item) for item in value)
    if isinstance(value, tuple):
        raise TagError(f"`{operator}` needs one value", code="CONSTRAINT_VALUE")
    ordering, text = encode_value(value)
    if operator in _TEXT_OPERATORS:
        if not isinstance(value, str):
            raise TagError(f"`{operator}` is for strings", code="CONSTRAINT_VALUE")
        return parse_tag(_text_form(operator, text))
    if operator == "=" and ordering in (b"alpha", b""):
        return Exactly(text)
    if not ordering:
        if operator == "!=":
            return Exactly(b"false" if value else b"true")
        raise TagError("booleans have no order", code="CONSTRAINT_VALUE")
    limits = _RANGES.get(operator)
    if limits is None:
        raise TagError(f"unknown operator `{operator}`", code="CONSTRAINT_OPERATOR")
    forms: list[Sexp] = [(b"*", b"range", ordering, *(part for op in ops for part in (op, text))) for ops in limits]
    return one_of(parse_tag(form) for form in forms)


def encode_value(value: Value) -> tuple[bytes, bytes]:
    """Return the ordering of a value and its text; the ordering of a boolean is empty.

    >>> encode_value(12), encode_value("Victoria")
    ((b'numeric', b'12'), (b'alpha', b'Victoria'))
    """
    if isinstance(value, bool):
        return b"", b"true" if value else b"false"
    if isinstance(value, int):
        return b"numeric", b"%d" % value
    if isinstance(value, float):
        if not isfinite(value):
            raise TagError("a constraint on a number that is not finite", code="CONSTRAINT_VALUE")
        text = format(Decimal(repr(value)), "f")
        return b"decimal", (text if "." in text else f"{text}.0").encode()
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise TagError("a constraint on a number that is not finite", code="CONSTRAINT_VALUE")
        text = format(value, "f")
        return b"decimal", (text if "." in text else f"{text}.0").encode()
    if isinstance(value, datetime):
        return b"date", encode_timestamp(value)
    if isinstance(value, date):
        return b"date", value.isoformat().encode()
    try:
        return b"alpha", value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TagError("a constraint on text with a lone surrogate", code="CONSTRAINT_VALUE") from error


def encode_timestamp(value: datetime) -> bytes:
    """Write an instant to the microsecond, without trailing zeros."""
    if value.tzinfo is None:
        raise TagError("a constraint on an instant without a time zone", code="CONSTRAINT_VALUE")
    at = value.astimezone(UTC)
    text = at.strftime("%Y-%m-%d_%H:%M:%S").rjust(19, "0")
    return (f"{text}.{at.microsecond:06d}".rstrip("0") if at.microsecond else text).encode()


def row_request(values: Mapping[str, bytes]) -> Sexp:
    """Write the values of one row as the ground form ``(row (<uid> <value>) …)``; nulls are left out."""
    return (b"row", *((check_uid(uid), text) for uid, text in sorted(values.items())))


def encode_name(name: str) -> bytes:
    """Write the name of a network or an event type, or refuse one that is empty, overlong or no text."""
    if not name or len(name) > _MAX_NAME:
        raise TagError(f"a name has 1 to {_MAX_NAME} characters", code="NAME_LENGTH")
    try:
        return name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TagError("a name with a lone surrogate", code="NOT_UTF8") from error


def check_uid(uid: str) -> bytes:
    """Refuse a uid with surprising characters."""
    octets = uid.encode("utf-8", "surrogatepass")
    if not octets or len(octets) > 128 or not all(33 <= octet < 127 for octet in octets):
        raise TagError(f"malformed uid `{uid!r}`", code="UID")
    return octets


def _network_action(action: Action) -> Tag:
    if not action.on_network:
        raise TagError(f"`{action.value}` is a right on an event type", code="UNKNOWN_ACTION")
    return parse_tag(action.to_sexp())


def _name_tag(name: str) -> Tag:
    octets = encode_name(name)
    return EVERYTHING if name == "*" else parse_tag((b"*", b"glob", octets))


def _trim(*items: Tag) -> Tag:
    """Build a list without trailing elements that say nothing."""
    kept = list(items)
    if any(isinstance(item, OneOf) and not item.members for item in kept):
        return OneOf(())
    while isinstance(kept[-1], Everything):
        kept.pop()
    return sequence(kept)


def _text_form(operator: str, text: bytes) -> Sexp:
    if operator == "prefix":
        return (b"*", b"prefix", text)
    return (b"*", b"pieces", b"", text) if operator == "suffix" else (b"*", b"pieces", b"", text, b"")


_TEXT_OPERATORS = frozenset(("prefix", "suffix", "contains"))
_RANGES: dict[str, tuple[tuple[bytes, ...], ...]] = {
    "=": ((b"ge", b"le"),),
    "!=": ((b"l",), (b"g",)),
    "<": ((b"l",),),
    "<=": ((b"le",),),
    ">": ((b"g",),),
    ">=": ((b"ge",),),
}


@dataclass(frozen=True, slots=True)
class CellRight:
    """One alternative of a right on cells: the uids it opens, the demands on the row, what a breach may become."""

    uids: Tag
    constraints: tuple[tuple[str, Tag], ...]
    mends: Tag = EVERYTHING

    @property
    def on_violation(self) -> OnViolation | None:
        """The mildest that the right allows for a row that breaks a demand; ``None`` when it allows nothing."""
        return next((item for item in OnViolation if permits(self.mends, item.value.encode())), None)


def cell_rights(tag: Tag) -> tuple[CellRight, ...]:
    """Read the cells out of a right on a type, one entry per alternative.

    Args:
        tag: What a chain leaves of a request to publish or subscribe.

    Raises:
        TagError: The tag is no right on cells.

    >>> right = type_right(None, actions=[Action.SUBSCRIBE], attributes=["7"], constraints=[Constraint("8", "=", "x")])
    >>> tuple((item.uids.to_sexp(), item.constraints[0][0]) for item in cell_rights(right))
    ((b'7', '8'),)
    """
    out: list[CellRight] = []
    for option in tag.members if isinstance(tag, OneOf) else (tag,):
        if not isinstance(option, ListTag) or option.items[:1] != (Exactly(TYPE),):
            raise TagError("not a right on the cells of a type", code="TAG_NOT_CELLS")
        uids = option.items[_UIDS] if len(option.items) > _UIDS else EVERYTHING
        demands = option.items[_ROWS] if len(option.items) > _ROWS else EVERYTHING
        mends = option.items[_MENDS] if len(option.items) > _MENDS else EVERYTHING
        for demand in demands.members if isinstance(demands, OneOf) else (demands,):
            if isinstance(demand, Rows):
                found = tuple((_uid_text(uid), wanted) for uid, wanted in demand.constraints)
            elif isinstance(demand, Everything):
                found = ()
            else:
                raise TagError("not a constraint on rows", code="TAG_NOT_CELLS")
            out.append(CellRight(uids, found, mends))
    return tuple(out)


def _uid_text(uid: bytes) -> str:
    """Read a uid out of a tag, where it may be any octets."""
    if not all(33 <= octet < 127 for octet in uid):
        raise TagError("a row constraint on a malformed uid", code="UID")
    return uid.decode("ascii")
