"""Maia's rights, written as tags.

    (maia-network <owner> <name> <action>)                             connect, install
    (maia-type <owner> <name> <version> <action> <uids> <rows>)        publish, subscribe
    (maia-type <owner> <name> <version> publish <uids> <rows> <mends>) what may become of a row that breaks <rows>
    (maia-type <owner> <name> <version> <action> <uids> <rows> <mends> <bounds>)  within access-control filters
    (maia-type <owner> <name> <version> <action>)                      (manage), (manage addAttribute), …, extend

An owner is the identity of a principal (32 octets), names may be globs, a version is exact or ``(*)``. Trailing
elements that would be ``(*)`` are left out, so ``(maia-type)`` is every right on every type: a blanket. The tag algebra
gives the rest: a manage right covers its four parts because ``(manage)`` is the shorter list, and a request for a cell
``(maia-type o n v subscribe <uid> (row (<uid> <value>) …))`` is ground.

``<mends>`` is one of ``(* set force drop reject)`` cut short from the left (choice C1): a chain can only make it
stricter, and the mildest that is left counts. Left out, it is everything: force what is an equality, drop the rest.
``<bounds>`` is ``(* bound …)`` (see `bounds`), or a set of such forms, of which one must allow the use.

Rules kept here: versions have no order, so a relational version is refused; a uid is listed once; ``!=`` becomes two
ranges; only the owner in the name is the root of a right on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from maia.authority.bounds import Bounds
from maia.authority.constraints import Constraint, check_uid, rows_tag
from maia.authority.tag_forms import EVERYTHING, Everything, Exactly, ListTag, OneOf, Rows, Tag, one_of, sequence
from maia.authority.tags import parse_tag, permits
from maia.encoding import Sexp
from maia.errors import TagError
from maia.filters import Bound
from maia.principals import Principal, principal_id

NETWORK = b"maia-network"
TYPE = b"maia-type"
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,127}")
_MAX_NAME = 512
_VERSION_AT, _ACTION, _UIDS, _ROWS, _MENDS, _BOUNDS = 3, 4, 5, 6, 7, 8  # positions in a right on cells


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
    TRANSFORM_FROM = "transformFrom"
    TRANSFORM_TO = "transformTo"
    INSTALL_HANDLER = "installHandler"
    ROUTE = "route"
    TRANSFER = "transfer"

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
    enforced: bool = False,
    bounds: Iterable[Bound] = (),
    sub_topics: bool = False,
) -> Tag:
    """Grant actions on event types.

    Args:
        owner: Whose types; ``None`` leaves it open, which still reaches the issuer's own types only.
        name: Exact, or a glob with ``*``.
        version: Exact, or ``*``.
        actions: ``None`` means every action.
        attributes: Uids that may be read or set; ``None`` means all, also those added later.
        constraints: Demands on the row; they may speak of attributes that ``attributes`` keeps closed, but only of
            those that are open to the issuer: else the certificate gives nothing (see `speech`).
        on_violation: What becomes of a publication that breaks them; by default an equality is forced, and a row that
            breaks another demand is dropped.
        enforced: Whether the receiving domain is trusted to enforce the demands. Its brokers may then hold the keys of
            whole columns; otherwise a right with a demand on the row opens no key group.
        bounds: Access-control filters, over uids; all of them must allow what is published or subscribed to.
        sub_topics: Whether the name stands for a topic and all topics below it, also those defined later.

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
        topics_tag(name) if sub_topics else _name_tag(name),
        EVERYTHING if version == "*" else Exactly(version.encode()),
    )
    cells = (uids_tag(attributes), rows_tag(demands, enforced=enforced))
    mends = EVERYTHING if on_violation is None else on_violation.to_tag()
    members = tuple(bounds)
    within: Tag = Bounds.of(members) if members else EVERYTHING
    if actions is None and mends == within == EVERYTHING:
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
    found = [_trim(*start, on_cells, *cells, EVERYTHING, within), _trim(*start, others)]
    if split:
        found.append(_trim(*start, parse_tag(Action.PUBLISH.to_sexp()), *cells, mends, within))
    return one_of(found)


def topics_tag(name: str) -> Tag:
    """Write the names of a topic and of all topics below it.

    >>> topics_tag("Stocks").to_sexp()
    (b'*', b'set', (b'*', b'prefix', b'Stocks.'), b'Stocks')
    """
    return one_of((_name_tag(name), parse_tag((b"*", b"prefix", encode_name(f"{name}.")))))


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


def encode_name(name: str) -> bytes:
    """Write the name of a network or an event type, or refuse one that is empty, overlong or no text."""
    if not name or len(name) > _MAX_NAME:
        raise TagError(f"a name has 1 to {_MAX_NAME} characters", code="NAME_LENGTH")
    try:
        return name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TagError("a name with a lone surrogate", code="NOT_UTF8") from error


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


@dataclass(frozen=True, slots=True)
class CellRight:
    """One alternative of a right on cells: the uids it opens, the demands on the row, what a breach may become.

    ``enforced`` lists the uids whose demand the receiving domain is trusted to enforce. Under a ``version`` that is not
    ``(*)``, uids are those of that version alone. All ``bounds`` must allow what is published or subscribed to.
    """

    uids: Tag
    constraints: tuple[tuple[str, Tag], ...]
    mends: Tag = EVERYTHING
    enforced: frozenset[str] = frozenset()
    version: Tag = EVERYTHING
    bounds: tuple[Bound, ...] = ()

    @property
    def served(self) -> bool:
        """Whether the granting side must enforce it: some demand, or a bound, is not the receiving domain's to."""
        return bool(self.bounds) or any(uid not in self.enforced for uid, _ in self.constraints)

    @property
    def on_violation(self) -> OnViolation | None:
        """The mildest that the right allows for a row that breaks a demand; ``None`` when it allows nothing."""
        return next((item for item in OnViolation if permits(self.mends, item.value.encode())), None)


def may_publish(tag: Tag) -> bool:
    """Tell whether some alternative of a right is one to publish events of a type.

    >>> [may_publish(type_right(None, actions=[action])) for action in (Action.SUBSCRIBE, Action.PUBLISH)]
    [False, True]
    """
    for option in tag.members if isinstance(tag, OneOf) else (tag,):
        if isinstance(option, Everything):
            return True
        if isinstance(option, ListTag) and option.items[:1] == (Exactly(TYPE),):
            action = option.items[_ACTION] if len(option.items) > _ACTION else EVERYTHING
            if permits(action, Action.PUBLISH.to_sexp()):
                return True
    return False


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
        version = option.items[_VERSION_AT] if len(option.items) > _VERSION_AT else EVERYTHING
        uids = option.items[_UIDS] if len(option.items) > _UIDS else EVERYTHING
        demands = option.items[_ROWS] if len(option.items) > _ROWS else EVERYTHING
        mends = option.items[_MENDS] if len(option.items) > _MENDS else EVERYTHING
        bounds = _bounds(option)
        for demand in demands.members if isinstance(demands, OneOf) else (demands,):
            trusted: frozenset[str] = frozenset()
            if isinstance(demand, Rows):
                found = tuple((_uid_text(uid), wanted) for uid, wanted in demand.constraints)
                trusted = frozenset(_uid_text(uid) for uid in demand.enforced)
            elif isinstance(demand, Everything):
                found = ()
            else:
                raise TagError("not a constraint on rows", code="TAG_NOT_CELLS")
            out += [CellRight(uids, found, mends, trusted, version, within) for within in bounds]
    return tuple(out)


def _bounds(option: ListTag) -> list[tuple[Bound, ...]]:
    """Read the alternative bounds of a right."""
    tag = option.items[_BOUNDS] if len(option.items) > _BOUNDS else EVERYTHING
    found: list[tuple[Bound, ...]] = []
    for item in tag.members if isinstance(tag, OneOf) else (tag,):
        if not isinstance(item, (Bounds, Everything)):
            raise TagError("not a bound", code="TAG_NOT_CELLS")
        found.append(item.members if isinstance(item, Bounds) else ())
    return found


def _uid_text(uid: bytes) -> str:
    """Read a uid out of a tag, where it may be any octets."""
    if not all(33 <= octet < 127 for octet in uid):
        raise TagError("a row constraint on a malformed uid", code="UID")
    return uid.decode("ascii")
