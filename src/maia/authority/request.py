"""What is asked for: one ground request, or any cell of an event type."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from maia.authority.bounds import filter_request
from maia.authority.budget import Budget
from maia.authority.constraints import check_uid
from maia.authority.known_versions import KnownVersions
from maia.authority.rights import NETWORK, TYPE, Action, OnViolation, encode_name
from maia.authority.tag_forms import EVERYTHING, Exactly, Tag, is_nothing, sequence
from maia.authority.tags import apart, check_ground, intersect, parse_tag, permits
from maia.authority.tuples import Root
from maia.encoding import Sexp, encode, format_advanced
from maia.errors import TagError
from maia.filters import TypedFilter
from maia.principals import Principal, principal_id

_NO_FILTER = TypedFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A question to a verifier.

    Attributes:
        ground: The request as one expression, when it is one.
        wanted: The set of ground requests it stands for; access is "at least one of them".
        owner: Who owns what is asked for; then the owner is the only root.
        versions: What the versions of the type in question have, where whoever asks knows: by it a right that is bound
            to one of them closes the attributes of all others.
        speaker: Who speaks for the owner, when members of it were exchanged; the verifier says so.
    """

    wanted: Tag
    ground: Sexp | None = None
    owner: Principal | None = None
    versions: KnownVersions | None = None
    text: str = field(default="", compare=False)
    speaker: Principal | None = field(default=None, compare=False)

    @property
    def digest(self) -> bytes:
        """What names the request in a challenge, so that an answer serves no other."""
        owner: Sexp = b"" if self.owner is None else principal_id(self.owner)
        return hashlib.sha256(encode((b"request", self.wanted.to_sexp(), owner))).digest()

    def admitted_by(self, tag: Tag, budget: Budget | None = None) -> bool:
        """Tell whether a tag permits the request, or a part of it."""
        if self.ground is not None:
            return permits(tag, self.ground, budget)
        return not is_nothing(intersect(tag, self.wanted, budget))

    def excluded_by(self, tag: Tag) -> bool:
        """Tell, in one look at each part of a tag, that it surely permits nothing of the request."""
        if self.ground is not None:
            return not permits(tag, self.ground)
        return apart(tag, self.wanted)

    def roots(self, configured: tuple[Root, ...]) -> tuple[Root, ...]:
        """Return the roots that count: the owner in the name, else what the verifier was configured with."""
        if self.owner is not None:
            return (Root(subject=self.owner if self.speaker is None else self.speaker),)
        return tuple(root for root in configured if self.admitted_by(root.tag))

    def __str__(self) -> str:
        """Say what is asked for."""
        return self.text or format_advanced(self.wanted.to_sexp())


def ask(expression: Sexp) -> Request:
    """Ask for exactly one thing.

    Raises:
        TagError: The expression holds a star form or an empty list.

    >>> str(ask((b"ftp", b"read")))
    '(ftp read)'
    """
    check_ground(expression)
    return Request(wanted=parse_tag(expression), ground=expression, text=format_advanced(expression))


def ask_network(action: Action, owner: Principal, name: str) -> Request:
    """Ask to connect to a network, or to install types on it; its owner is the root."""
    if not action.on_network:
        raise TagError(f"`{action.value}` is not an action on a network", code="UNKNOWN_ACTION")
    expression: Sexp = (NETWORK, principal_id(owner), encode_name(name), action.to_sexp())
    text = f"{action.value} to network {name}" if action is Action.CONNECT else f"{action.value} on network {name}"
    return Request(wanted=parse_tag(expression), ground=expression, owner=owner, text=text)


def ask_type(
    action: Action, owner: Principal, name: str, version: str | None, versions: KnownVersions | None = None
) -> Request:
    """Ask for an action on an event type; its owner is the root.

    For publish and subscribe the question is whether any cell is open; which ones is what the clauses say. They may
    leave the version open, which asks for any of them: that is how an origin's right to publish a type is checked,
    since parcels carry no version. Whoever applies the answer to data gives the ``versions`` it knows.

    Raises:
        TagError: The action is on a network, or one that needs a version came without.
    """
    if action.on_network or (version is None and not action.on_cells):
        raise TagError(f"`{action.value}` cannot be asked for so", code="UNKNOWN_ACTION")
    text = f"{action.value} {name} version {version or '*'}"
    start = (TYPE, principal_id(owner), encode_name(name))
    if not action.on_cells:
        expression: Sexp = (*start, encode_name(version or ""), action.to_sexp())
        return Request(wanted=parse_tag(expression), ground=expression, owner=owner, text=text)
    wanted_version = EVERYTHING if version is None else Exactly(encode_name(version))
    wanted = sequence([*(Exactly(part) for part in start), wanted_version, parse_tag(action.to_sexp())])
    return Request(wanted=wanted, owner=owner, versions=versions, text=text)


def ask_cell(
    action: Action, owner: Principal, name: str, version: str, uid: str, row: Sexp, wanted: TypedFilter = _NO_FILTER
) -> Request:
    """Ask for one cell: this attribute, in a row with these values; to read it, by a subscription to ``wanted``."""
    if not action.on_cells:
        raise TagError(f"`{action.value}` is not an action on cells", code="UNKNOWN_ACTION")
    # The strictest way to treat a breach, which every right allows: the row is asked about as it is.
    expression: Sexp = (
        TYPE, principal_id(owner), encode_name(name), encode_name(version), action.to_sexp(), check_uid(uid), row,
        str(OnViolation.REJECT.value).encode(), row if action is Action.PUBLISH else filter_request(wanted),
    )  # fmt: skip
    check_ground(expression)
    text = f"{action.value} attribute {uid} of {name} version {version}"
    return Request(wanted=parse_tag(expression), ground=expression, owner=owner, text=text)
