"""Rights in words: what a tag says about networks, event types, attributes and rows.

Works on expressions, so what it shows is what is signed. Attributes are named as the home's own verified definitions
name them; anything that is not known is shown as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from maia.authority import alternatives
from maia.encoding import Sexp, format_advanced, printable
from maia.filters import Bound
from maia.home.folder import Folder
from maia.home.words.bounds import bounds_of, describe_bounds
from maia.principals import KeyId

ANY: Sexp = (b"*",)
_MAX_SHOWN = 40
_BROKEN: Mapping[Sexp, str] = MappingProxyType(
    {
        (b"*", b"set", b"drop", b"reject"): "a row that breaks this is dropped",
        b"reject": "a batch that breaks this is refused",
    }
)
_RELATIONS = {b"g": ">", b"ge": ">=", b"l": "<", b"le": "<="}


@dataclass(frozen=True, slots=True, kw_only=True)
class RightView:
    """One alternative of a right, taken apart; ``None`` means no restriction."""

    kind: str
    owner: str | None
    name: str | None
    version: str | None
    actions: tuple[str, ...] | None
    attributes: tuple[str, ...] | None
    rows: tuple[tuple[str, str], ...]
    broken: str | None = None
    bounds: tuple[tuple[Bound, ...], ...] = ()
    names: Mapping[str, str] = field(default_factory=dict, compare=False)

    def text(self, *, uids: bool = False) -> str:
        """Say it in one line, with the uids of the attributes where they matter."""
        actions = "every action" if self.actions is None else ", ".join(self.actions)
        if self.kind == "network":
            return f"{actions} on {self._what('network')}"
        parts = [f"{actions} on {self._what('event type')}"]
        if self.version is not None:
            parts[0] += f", version {self.version}"
        if self.actions is None or {"publish", "subscribe"} & set(self.actions):
            parts.append(self.cells({uid: f"{name} (uid {uid})" for uid, name in self.names.items()} if uids else None))
        return ": ".join(parts)

    def cells(self, names: Mapping[str, str] | None = None) -> str:
        """Say which attributes, under which demands; ``names`` are shown in the place of uids."""
        known = self.names if names is None else names
        demands = dict(self.rows)
        if self.attributes is None:
            shown = ["all attributes"]
        else:
            shown = [
                f"{known.get(uid, uid)} {demands.pop(uid)}" if uid in demands else known.get(uid, uid)
                for uid in self.attributes
            ]
            if not known:
                shown[0] = f"attributes {shown[0]}" if len(shown) > 1 else f"attribute {shown[0]}"
        text = ", ".join(shown)
        text += "".join(f", where {known.get(uid, uid)} {demand}" for uid, demand in demands.items())
        text = text if self.broken is None else f"{text} ({self.broken})"
        within = self.within(known)
        return f"{text}, within {within}" if within else text

    def within(self, names: Mapping[str, str] | None = None) -> str:
        """Say which bounds hold: those of one alternative all, of the alternatives one."""
        known = self.names if names is None else names
        return " or ".join(describe_bounds(together, known) for together in self.bounds)

    def brief(self, names: Mapping[str, str] | None = None, known: RightView | None = None) -> str:
        """Say it in few words, where the reader knows which network and type are meant; ``known`` says them."""
        actions = "every action" if self.actions is None else ", ".join(self.actions)
        if known is None:
            where = " on every type" if self.kind == "type" and self.name is None else ""
        else:
            where = "" if self.name == known.name else f" on {self.name}"
            where += "" if self.version == known.version else f", version {self.version}"
        on_cells = self.kind == "type" and (self.actions is None or bool({"publish", "subscribe"} & set(self.actions)))
        return f"{actions}{where}" + (f": {self.cells(names)}" if on_cells else "")

    def to_json(self) -> dict[str, object]:
        """Give the parts for machines."""
        return {
            "kind": self.kind, "owner": self.owner, "name": self.name, "version": self.version,
            "actions": None if self.actions is None else list(self.actions),
            "attributes": None if self.attributes is None else list(self.attributes),
            "constraints": dict(self.rows), "broken": self.broken, "names": dict(self.names),
            "bounds": [describe_bounds(together, self.names) for together in self.bounds],
        }  # fmt: skip

    def _what(self, noun: str) -> str:
        if self.owner is None and self.name is None:
            return f"every {noun}"
        name = f"every {noun}" if self.name is None else f"{noun} {self.name}"
        return name if self.owner is None else f"{name} of {self.owner}"


def views(tag: Sexp, home: Folder) -> list[RightView] | None:
    """Take a tag apart into alternatives; ``None`` when one of them is not a right of Maia's."""
    found: list[RightView] = []
    for item in alternatives(tag):
        view = _view(item, home)
        if view is None:
            return None
        found.append(view)
    return found


def describe_tag(tag: Sexp, home: Folder, *, uids: bool = False) -> str:
    """Say what a tag permits, in one line, with the uids of attributes where they matter."""
    if tag == ANY:
        return "everything"
    items = alternatives(tag)
    if not items:
        return "nothing"
    shown = [_describe_one(item, home, uids=uids) for item in items[:_MAX_SHOWN]]
    if len(items) > _MAX_SHOWN:
        shown.append(f"and {len(items) - _MAX_SHOWN} more")
    return "; ".join(shown)


def describe_value(form: Sexp) -> str:
    """Say what a value must be.

    >>> describe_value((b"*", b"range", b"numeric", b"ge", b"500", b"l", b"700"))
    '>= 500 and < 700'
    """
    match form:
        case bytes() as exact:
            return f"= {_text(exact)}"
        case (b"*", b"set", *members) if all(isinstance(member, bytes) for member in members):
            return f"in ({', '.join(_text(_raw(member)) for member in members)})"
        case (b"*", b"set", *members):
            return " or ".join(describe_value(member) for member in members)
        case (b"*", b"prefix", bytes() as start):
            return f"starts with {_text(start)}"
        case (b"*", b"range", _, b"ge", bytes() as low, b"le", bytes() as high) if low == high:
            return f"= {_text(low)}"
        case (b"*", b"range", bytes(), *limits):
            pairs = zip(limits[::2], limits[1::2], strict=False)
            return " and ".join(f"{_RELATIONS.get(_raw(mark), '?')} {_text(_raw(limit))}" for mark, limit in pairs)
        case (b"*", b"pieces", *pieces):
            return f"like {'*'.join(_text(_raw(piece)) for piece in pieces)}"
        case (b"*",):
            return "any value"
        case _:
            return format_advanced(form)


def _describe_one(item: Sexp, home: Folder, *, uids: bool) -> str:
    view = _view(item, home)
    return format_advanced(item) if view is None else view.text(uids=uids)


def _view(item: Sexp, home: Folder) -> RightView | None:
    match item:
        case (b"maia-network", *rest) if len(rest) <= 3:
            owner, name, action = _padded(rest, 3)
            return _fields(home, "network", owner, name, ANY, action, ANY, ANY)
        case (b"maia-type", *rest) if len(rest) <= 8:
            owner, name, version, action, uids, rows, broken, bounds = _padded(rest, 8)
            view = _fields(home, "type", owner, name, version, action, uids, rows)
            if view is None:
                return None
            ends = None if broken == ANY else _BROKEN.get(broken, format_advanced(broken))
            forms = [form for form in alternatives(bounds) if form != ANY]
            within = tuple(map(bounds_of, forms))
            if not all(within):  # something that is no bound: nobody says what it means
                return None
            return replace(view, broken=ends, bounds=within, names=_attribute_names(home, owner, name, version))
        case _:
            return None


def _padded(items: Sequence[Sexp], length: int) -> list[Sexp]:
    return [*items, *(ANY for _ in range(length - len(items)))]


def _fields(
    home: Folder, kind: str, owner: Sexp, name: Sexp, version: Sexp, action: Sexp, uids: Sexp, rows: Sexp
) -> RightView | None:
    actions = None if action == ANY else [_action(item) for item in alternatives(action)]
    attributes = None if uids == ANY else [_raw(uid).decode("ascii", "replace") for uid in alternatives(uids)]
    if actions is not None and None in actions:
        return None
    return RightView(
        kind=kind,
        owner=None if owner == ANY else _owner(owner, home),
        name=None if name == ANY else _name(name),
        version=None if version == ANY else _name(version),
        actions=None if actions is None else tuple(word for word in actions if word is not None),
        attributes=None if attributes is None else tuple(attributes),
        rows=tuple(_row(rows)),
    )


def name_attributes(uids: Iterable[str], tag: Sexp, home: Folder) -> tuple[str, ...]:
    """Name uids as the type that a right is about names them; ``*`` is any attribute."""
    names: dict[str, str] = {"*": "any attribute"}
    for view in views(tag, home) or ():
        names |= view.names
    return tuple(names.get(uid, uid) for uid in uids)


def _attribute_names(home: Folder, owner: Sexp, name: Sexp, version: Sexp) -> Mapping[str, str]:
    """Name the uids of one type, or of topics, which share them; of a pattern of types each counts its own uids."""
    name = _topic(name) or name
    if not isinstance(owner, bytes) or len(owner) != 32 or not isinstance(name, bytes):
        return {}
    found: dict[str, str] = {}
    for definition in home.versions(owner, name.decode("utf-8", "replace")):
        if version in (ANY, definition.name.version.text.encode()):
            for item in definition.attributes:
                shown, before = printable(item.name), found.get(item.uid)
                found[item.uid] = shown if before in (None, shown) else f"{before}/{shown}"
    return found


def _owner(owner: Sexp, home: Folder) -> str:
    if isinstance(owner, bytes) and len(owner) == 32:
        key = KeyId(owner)
        return home.names.get(key) or home.show(key)
    return format_advanced(owner)


def _name(name: Sexp) -> str:
    match name:
        case bytes():
            return _text(name, quoted=False)
        case (b"*", b"prefix", bytes() as start):
            return f"{_text(start, quoted=False)}*"
        case (b"*", b"glob", bytes() as pattern):
            return _text(pattern, quoted=False)
        case (b"*", b"pieces", *pieces):
            return "*".join(_text(_raw(piece), quoted=False) for piece in pieces)
        case _ if (topic := _topic(name)) is not None:
            return f"{_text(topic, quoted=False)} and its sub-topics"
        case _:
            return format_advanced(name)


def _topic(name: Sexp) -> bytes | None:
    """Give the topic of a right on it and on all below it, see `maia.authority.type_right`."""
    match name:
        case (b"*", b"set", (b"*", b"prefix", bytes() as start), bytes() as topic) if start == topic + b".":
            return topic
        case _:
            return None


def _action(action: Sexp) -> str | None:
    match action:
        case bytes() as word:
            return _text(word, quoted=False)
        case (b"manage",):
            return "manage"
        case (b"manage", bytes() as part):
            return f"manage/{_text(part, quoted=False)}"
        case _:
            return None


def _row(rows: Sexp) -> Iterable[tuple[str, str]]:
    match rows:
        case (b"*", b"where", *constraints):
            for constraint in constraints:
                match constraint:
                    case (bytes() as uid, form):
                        yield _text(uid, quoted=False), describe_value(form)
        case (b"*",):
            return
        case _:
            yield "row", format_advanced(rows)


def _raw(item: Sexp) -> bytes:
    return item if isinstance(item, bytes) else format_advanced(item).encode()


def _text(octets: bytes, *, quoted: bool = True) -> str:
    try:
        text = printable(octets.decode("utf-8"))
    except UnicodeDecodeError:
        return f"#{octets.hex()}#"
    return f"'{text}'" if quoted and not _is_number(text) else text


def _is_number(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).isdigit()
