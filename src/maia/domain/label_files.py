"""The label policy of a home: ``policy/labels.toml``.

Rules kept here:

- a home without the file labels nothing; a file that is there and cannot be read or understood, or a link to nowhere,
  closes every read;
- of a family under ``sequences``, a tag that a client lost opens what was published before; a labelled frame has the
  tags of now alone;
- whoever judges reads the file once: what it says and by which digest it is known belong together.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from maia.domain.agreement_files import POLICY_FOLDER
from maia.domain.snapshot import Snapshot
from maia.domain.tag_names import resolver_of
from maia.domain.type_labels import labels_of_type
from maia.errors import EncodingError, FlowError, MaiaError, NotFoundError, UncheckedError
from maia.events import EventType
from maia.filters import TypedFilter
from maia.home import Home
from maia.kernel import Clause, milliseconds, screen_by_labels
from maia.labels import (
    Label,
    LabelPolicy,
    LabelReader,
    LocalTags,
    common_tags,
    family_of,
    is_global,
    known_tags,
    outside_labels,
    parse_label_policy,
    policy_tags,
    translated_policy,
    whole_family,
)
from maia.policy import flow_tag, numbered

if TYPE_CHECKING:
    from maia.access_control import AccessControl

_T = TypeVar("_T")
LABELS_FILE = "labels.toml"
_NO_FILTER = TypedFilter()
_MAX_FILE = (1 << 20) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameLabels:
    """By what a labelled frame was labelled; it reads by the same, however long it lives.

    Attributes:
        policy: The digest of the label policy.
        tags: The secrecy that may flow into it.
    """

    policy: str
    tags: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LostTag:
    """A flow tag of a sequence that somebody lost: what is published since has the next one."""

    client: str
    tag: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TagHere:
    """A flow tag as one home has it.

    Attributes:
        tag: What it is called here; of a family the family.
        uri: What others call it, if they can.
        number: Its number, which means nothing elsewhere; nothing when nobody says here what it stands for.
        resolved: Whether its URI, if it has one, stands for it now.
    """

    tag: str
    uri: str | None
    number: int | None
    resolved: bool


def frame_labels(home: Home, client: str, *, at: datetime) -> FrameLabels:
    """Say by what a frame that a client reads now is labelled.

    Raises:
        UncheckedError: The policy cannot be read: ``LABELS_UNKNOWN``.
    """
    found = _read(home, at=at)
    return FrameLabels(policy=found.digest, tags=reader_of_client(home, found.policy, client, at=at).inside.secrecy)


def has_labels(home: Home) -> bool:
    """Tell whether a home has a label policy, whatever is in it."""
    return os.path.lexists(home.path / POLICY_FOLDER / LABELS_FILE)


def has_roles(home: Home) -> bool:
    """Tell whether flow tags depend on roles that the register of the domain knows, which is no file of its home."""
    from maia.domain.register import has_register  # noqa: PLC0415 - as below

    try:
        policy = _parsed(_octets(home.path / POLICY_FOLDER))
    except UncheckedError:
        return False
    return bool(policy.role_tags or policy.role_sequences) and has_register(home.folder)


def read_label_policy(
    home: Home, frames: FrameLabels | None = None, *, at: datetime, known: Snapshot | None = None
) -> LabelPolicy:
    """Read a home's label policy, in the flow tags of this home.

    Args:
        home: The home.
        frames: By what a labelled frame was labelled; it is read by nothing else.
        at: Now: flow tags of other domains are those that are known at this instant.
        known: The home's evidence, where somebody has it.

    Raises:
        UncheckedError: It cannot be read, so that nobody knows what may flow (``LABELS_UNKNOWN``), or it is another one
            than the frame was labelled by (``LABEL_POLICY_CHANGED``).
    """
    found = _read(home, at=at, known=known)
    if frames is not None and frames.policy != found.digest:  # SECURITY: its labels may be too low by now
        raise UncheckedError(
            "the label policy changed since the frame was read: read again", code="LABEL_POLICY_CHANGED"
        )
    return found.policy


def reader_of_client(home: Home, policy: LabelPolicy, client: str, *, at: datetime) -> LabelReader:
    """Say what may flow to a client now: what the policy says, and the flow tags that its roles give it.

    Raises:
        UncheckedError: Its roles cannot be asked for: ``LABELS_UNKNOWN``.
    """
    if not policy.role_tags:
        return policy.reader(client)
    held = _of_register(home, lambda service: service.privileges(at=at, principal=client))
    tags = (flow_tag(privilege, policy.role_tags) for _, privilege in held)
    return policy.reader(client, [tag for tag in tags if tag is not None])


def lost_tags(home: Home, policy: LabelPolicy, *, at: datetime, client: str | None = None) -> tuple[LostTag, ...]:
    """List the flow tags of sequences that somebody lost, latest first, of one client or of all.

    Raises:
        UncheckedError: Its roles cannot be asked for: ``LABELS_UNKNOWN``.
    """
    if not policy.role_sequences:
        return ()
    found = _of_register(home, lambda service: service.lost(at=at, principal=client))
    named = ((who, flow_tag(privilege, policy.role_sequences), when) for who, privilege, when in found)
    return tuple(LostTag(client=who, tag=tag, at=when) for who, tag, when in named if tag is not None)


def tag_sequence(home: Home, policy: LabelPolicy, tag: str, *, at: datetime) -> tuple[tuple[str, datetime | None], ...]:
    """Name the tags of a sequence, oldest first, each with the instant from which on data has the next one.

    Raises:
        UncheckedError: The roles cannot be asked for: ``LABELS_UNKNOWN``.
    """
    ends = sorted({item.at for item in lost_tags(home, policy, at=at) if item.tag == tag})
    return tuple((numbered(tag, number), end) for number, end in enumerate((*ends, None), start=1))


def _of_register(home: Home, ask: Callable[[AccessControl], tuple[_T, ...]]) -> tuple[_T, ...]:
    """Ask the register of a home, if it has one; what cannot be asked closes every read."""
    from maia.domain.register import has_register  # noqa: PLC0415 - needs a database, which most homes that follow do not

    if not has_register(home.folder):
        return ()
    from maia.domain.access_control import domain_signer, open_register  # noqa: PLC0415 - most policies need no roles

    try:
        with open_register(home, domain_signer(home)) as service:
            return ask(service)
    except MaiaError as error:
        raise UncheckedError("the roles of the domain cannot be asked for flow tags", code="LABELS_UNKNOWN") from error


def screened_clauses(
    home: Home,
    known: Snapshot,
    clauses: tuple[Clause, ...],
    event_type: EventType,
    client: str,
    *,
    at: datetime,
    filter_: TypedFilter = _NO_FILTER,
    frames: FrameLabels | None = None,
) -> tuple[Clause, ...]:
    """Close what may not flow to a client, by its home's label policy.

    Args:
        home: Whose policy.
        known: The home's evidence.
        clauses: The client's rights alone.
        event_type: The version that it sees.
        client: What the client's key is called in the home.
        at: Now.
        filter_: The client's filter, over uids.
        frames: By what a labelled frame that reads was labelled; it checks again what leaves it.

    Raises:
        UncheckedError: The policy cannot be read, or does not fit the types that are known here: ``LABELS_UNKNOWN``; or
            it is another one than the frame was labelled by: ``LABEL_POLICY_CHANGED``.
        DeniedError: Nothing of the type may flow to the client, or its filter reads what may not.
    """
    policy = read_label_policy(home, frames, at=at, known=known)
    labels = labels_of_type(home, policy, known, event_type)
    if labels is None:
        return clauses
    reader = reader_of_client(home, policy, client, at=at)
    target = reader.label
    if frames is not None:  # SECURITY: what a client gained since is not in the labels of its frame
        target = Label(secrecy=common_tags(reader.inside.secrecy, frames.tags), integrity=reader.label.integrity)
        return screen_by_labels(clauses, event_type, labels, target, filter_)
    # Latest first, so that of several losses of one tag the last one counts.
    lost = {item.tag: milliseconds(item.at) for item in reversed(lost_tags(home, policy, at=at, client=client))}
    return screen_by_labels(clauses, event_type, labels, target, filter_, lost=lost)


def why_closed(home: Home, known: Snapshot, event_type: EventType, attribute: str, client: str, *, at: datetime) -> str:
    """Say which flow tags keep an attribute from a client: those it does not hold, and those nobody vouches with.

    Raises:
        UncheckedError: The policy cannot be read, or does not fit the types that are known here: ``LABELS_UNKNOWN``.
    """
    policy = read_label_policy(home, at=at, known=known)
    labels = labels_of_type(home, policy, known, event_type)
    if labels is None:
        return ""
    reader = reader_of_client(home, policy, client, at=at).label
    label = labels.columns[attribute].bounded(reader.secrecy)
    secret = {whole_family(item.family) for item in label.carriers if item.values == frozenset()}
    lacks = sorted(secret | (label.secrecy - reader.secrecy))
    if strange := sorted(set(lacks) & unresolved_tags(home, at=at, known=known)):
        return f"nobody says here what {_quoted(strange)} stands for: TAG_UNRESOLVED"
    unvouched = sorted(reader.integrity - label.integrity) if label.integrity is not None else []
    found = [f"the client does not hold {_quoted(lacks)}"] if lacks else []
    return " and ".join([*found, *([f"nobody vouches for it with {_quoted(unvouched)}"] if unvouched else [])])


def _quoted(tags: Iterable[str]) -> str:
    return ", ".join(f"`{tag}`" for tag in tags)


@dataclass(frozen=True, slots=True)
class _PolicyFile:
    digest: str
    policy: LabelPolicy


def unresolved_tags(home: Home, *, at: datetime, known: Snapshot | None = None) -> frozenset[str]:
    """List the flow tags of other domains in the policy that stand for nothing that is known here.

    Raises:
        UncheckedError: The policy cannot be read: ``LABELS_UNKNOWN``.
    """
    policy = _parsed(_octets(home.path / POLICY_FOLDER))
    named = known_tags(policy, resolver_of(home, policy, at=at, known=known))
    return frozenset(tag for tag in policy_tags(policy) if not _is_known(named, tag))


def tags_here(home: Home, *, at: datetime) -> tuple[TagHere, ...]:
    """List the flow tags that the policy speaks of, as this home has them.

    Raises:
        UncheckedError: The policy cannot be read: ``LABELS_UNKNOWN``.
    """
    policy = _parsed(_octets(home.path / POLICY_FOLDER))
    named = known_tags(policy, resolver_of(home, policy, at=at))
    families = {tag if (found := family_of(tag)) is None else found[0] for tag in policy_tags(policy)}
    rows = {}
    for tag in sorted(families | {*policy.names}):
        here = named.name_here(tag) if _is_known(named, tag) else tag
        uri = here if is_global(here) else policy.names.get(here)
        rows[here] = TagHere(
            tag=here, uri=uri, number=named.number(here) if _is_known(named, here) else None,
            resolved=uri is None or _is_known(named, uri),
        )  # fmt: skip
    return tuple(rows[name] for name in sorted(rows))


def labels_outside(home: Home, name: str, *, at: datetime) -> dict[str, Label]:
    """Give the labels of a type's attributes as another domain would write them into its own policy.

    Raises:
        FlowError: One of the flow tags has no global name: ``TAG_LOCAL``.
        NotFoundError: The policy does not speak of the type: ``NO_LABELS``.
        UncheckedError: The policy cannot be read: ``LABELS_UNKNOWN``.
    """
    policy = _parsed(_octets(home.path / POLICY_FOLDER))
    if name not in policy.types:
        raise NotFoundError(f"the label policy does not speak of `{name}`", code="NO_LABELS")
    named = known_tags(policy, resolver_of(home, policy, at=at))
    return outside_labels(policy.types[name], named)


def _is_known(named: LocalTags, tag: str) -> bool:
    try:
        named.name_here(tag)
    except FlowError:
        return False
    return True


def _read(home: Home, *, at: datetime, known: Snapshot | None = None) -> _PolicyFile:
    raw = _octets(home.path / POLICY_FOLDER)
    policy = _parsed(raw)
    here = translated_policy(policy, known_tags(policy, resolver_of(home, policy, at=at, known=known)))
    return _PolicyFile(hashlib.sha256(raw or b"").hexdigest(), here)


def _parsed(raw: bytes | None) -> LabelPolicy:
    try:
        return LabelPolicy() if raw is None else parse_label_policy(raw)
    except EncodingError as error:
        raise UncheckedError(f"{error.message}, so nobody knows what may flow", code="LABELS_UNKNOWN") from error


def _octets(folder: Path) -> bytes | None:
    file = folder / LABELS_FILE
    try:
        with file.open("rb") as opened:
            return opened.read(_MAX_FILE)
    except FileNotFoundError as error:
        # SECURITY: a link to nowhere is a policy that cannot be read, and not a home without one.
        if not file.is_symlink() and (folder.exists() or not folder.is_symlink()):
            return None
        failed: OSError = error
    except OSError as error:
        failed = error
    raise UncheckedError(
        "the label policy cannot be read, so nobody knows what may flow", code="LABELS_UNKNOWN"
    ) from failed
