"""What a client asks for, a type or topics, and the plans by which it reads: one for each type, of the one kernel.

Rules kept here:

- a topic is found among the definitions that verify here, by its own name, ``[OWNER/]NAME``; the owner may be left out
  where one owner has topics of that name. Whoever subscribes to it asks for all below it as well, and with ``*`` for a
  component for whatever stands there;
- each topic is planned as the type that it is, by the rights of that moment: one that is not open to the client stays
  away, and the audit says so. A client without a right on the topic that it named, or on any of a pattern, is
  refused;
- topics that are read together have the same attributes: one that has others than the topic at the top of its tree is
  left out, so that whoever may define one somewhere below disturbs nobody else.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from maia.domain.label_files import FrameLabels
from maia.domain.operations import audit_of
from maia.domain.possession import ProvenClient
from maia.domain.snapshot import Snapshot
from maia.domain.types import find_type, is_owner, show_type
from maia.encoding import counted, did_you_mean
from maia.errors import DeniedError, NotFoundError, UncheckedError, UsageError, VerificationError
from maia.events import EventType, TopicPattern, TypeName, lineage
from maia.kernel import DeliverPlan
from maia.log import AuditRow, Commit
from maia.principals import PublicKey

if TYPE_CHECKING:
    from maia.domain.domain import Domain

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeOrTopic:
    """What is published or read: a type, or a topic.

    Attributes:
        type: ``owner/name@version``, with what is clear left out.
        version: The version, when the type does not say.
        topic: ``owner/name``, for reading with ``*`` where any component may stand.
    """

    type: str | None = None
    version: str | None = None
    topic: str | None = None

    def __post_init__(self) -> None:
        """Refuse both, none, and the version of a topic."""
        if (self.type is None) is (self.topic is None):
            raise UsageError("name either a type or a topic", code="TYPE_OR_TOPIC")
        if self.topic is not None and self.version is not None:
            raise UsageError("a topic has no versions", code="TYPE_OR_TOPIC")

    @property
    def text(self) -> str:
        """What was asked for, as it was written."""
        return self.topic or self.type or ""

    def names(self, domain: Domain, *, known: Snapshot | None = None) -> tuple[TypeName, ...]:
        """Give the types that are read, the one that was named first, of what is ``known``, if that is at hand.

        Raises:
            NotFoundError: There is none: ``TYPE_NOT_FOUND``, ``TOPIC_NOT_FOUND``.
            UsageError: Several fit, or topics are not alike: ``TYPE_AMBIGUOUS``, ``TOPIC_ATTRIBUTES``.
        """
        if self.topic is None:
            return (
                find_type(domain.home, self.type or "", self.version, among=None if known is None else known.names),
            )
        return tuple(item.name for item in _find_topics(domain, self.topic, known))

    def fixed(self, domain: Domain) -> TypeOrTopic:
        """Give the same with the owner of the topics said, so that no later topic of another owner makes it unclear.

        Raises:
            MaiaError: As `names`.
        """
        if self.topic is None or "/" in self.topic:
            return self
        name = self.names(domain)[0]
        if not isinstance(name.owner, PublicKey):
            return self  # several keys have no text that finds them
        owner, mark, _ = show_type(domain.home, name).partition("/")
        return replace(self, topic=f"{owner}{mark}{self.topic}")

    def published(self, domain: Domain) -> TypeName:
        """Give the one type that is published.

        Raises:
            UsageError: It is a pattern: ``TOPIC_PATTERN``.
            MaiaError: As `names`.
        """
        if self.topic is not None and "*" in self.topic:
            raise UsageError("events are published under one topic, not under a pattern", code="TOPIC_PATTERN")
        return self.names(domain)[0]

    def event_type(self, domain: Domain) -> EventType:
        """Give the definition of the first type that is read; the attributes of all topics are the same.

        Raises:
            MaiaError: There is none, or it does not verify.
        """
        return domain.event_type(self.names(domain)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class TypePart:
    """What a stretch of the log holds of one type, and the plan by which a client sees it.

    Attributes:
        name: The type.
        commits: Of this type.
        plan: Nothing when the client is refused.
        code: Why it is.
    """

    name: TypeName
    commits: tuple[Commit, ...]
    plan: DeliverPlan | None
    code: str = ""


def plan_parts(
    domain: Domain,
    asked: TypeOrTopic,
    *,
    client: ProvenClient,
    where: str = "",
    commits: Sequence[Commit] = (),
    at: datetime | None = None,
    tell: bool = True,
    frames: FrameLabels | None = None,
) -> tuple[TypePart, ...]:
    """Plan what a client sees of commits, type by type.

    Args:
        domain: Who reads.
        asked: What for.
        client: Whose key was proven.
        where: Its filter.
        commits: The part of the log.
        at: The instant up to which the log was followed; it is followed now without one.
        tell: Whether the audit hears of a refusal.
        frames: By what a labelled frame that reads was labelled; a topic is read without.

    Raises:
        MaiaError: The type is unknown, the client has no right, or the filter is refused.
    """
    moment = domain.follow() if at is None else at
    known = domain.known(at=moment)  # one look at the home's files for all topics
    names = asked.names(domain, known=known)
    if asked.topic is None:
        plan = domain.deliver_plan(
            names[0], client=client, where=where, commits=commits, at=moment, followed=True, tell=tell, frames=frames
        )
        return (TypePart(name=names[0], commits=tuple(commits), plan=plan),)
    parts = tuple(_plan_topic(domain, known, name, client, where, commits, moment) for name in names)
    needed = parts if "*" in asked.topic else parts[:1]
    if all(part.plan is None for part in needed):  # the refusal itself, with its reason, as of any type
        domain.deliver_plan(names[0], client=client, where=where, commits=(), at=moment, followed=True, tell=tell)
    return parts


def note_refused(domain: Domain, part: TypePart, client: str) -> None:
    """Put into the audit that a client was refused what a stretch of the log holds of a type."""
    source = f"{counted(len(part.commits), 'commit')} of {part.name.name}"
    row = AuditRow(
        at=domain.clock(), kind="refuse", principal=domain.home.key(client).fingerprint,
        type_id=part.name.type_id.hex(), source=source, subject=client,
        code=part.code, events=sum(commit.events for commit in part.commits),
    )  # fmt: skip
    audit_of(domain.home).note([row])


def _plan_topic(
    domain: Domain,
    known: Snapshot,
    name: TypeName,
    client: ProvenClient,
    where: str,
    commits: Sequence[Commit],
    at: datetime,
) -> TypePart:
    wire = known.read_as(name.type_id, domain.home)
    mine = tuple(commit for commit in commits if commit.type_id in wire)
    try:
        plan = domain.deliver_plan(
            name, client=client, where=where, commits=mine, at=at, followed=True, tell=False, known=known
        )
    except UncheckedError:
        raise  # what is not known yet waits, with all that was asked for
    except (VerificationError, DeniedError) as error:
        return TypePart(name=name, commits=mine, plan=None, code=error.code)
    return TypePart(name=name, commits=mine, plan=plan)


def _alike(topics: Sequence[EventType]) -> list[EventType]:
    """Leave out topics whose attributes are not those of the top of their tree, where that is known here."""
    tops = {(item.name.owner_id, item.name.name): item.attributes for item in topics}
    found = []
    for item in topics:
        if tops.get((item.name.owner_id, lineage(item.name.name)[0]), item.attributes) == item.attributes:
            found.append(item)
        else:
            _log.error("the topic `%s` has other attributes than its tree: TOPIC_ATTRIBUTES", item.name.name)
    return found


def _find_topics(domain: Domain, text: str, snapshot: Snapshot | None) -> list[EventType]:
    """Find the topics that a text asks for, the named one first, then by name."""
    owner, mark, rest = text.partition("/")
    pattern = TopicPattern(rest if mark else text)
    # SECURITY: only what verifies here is a topic; a definition that somebody put beside the others is none.
    snapshot = domain.known(at=domain.clock()) if snapshot is None else snapshot
    known = [verified.event_type for verified, _ in snapshot.types]
    topics = _alike([item for item in known if item.options.topic])
    if mark:
        topics = [item for item in topics if is_owner(domain.home, owner, item.name.owner)]
    found = sorted((item for item in topics if pattern.includes(item.name.name)), key=lambda item: item.name.name)
    named = [item for item in found if item.name.name == pattern.text]
    if not found or not (named or pattern.has_wildcard):
        near = did_you_mean(pattern.text, [item.name.name for item in topics])
        raise NotFoundError(f"there is no topic `{text}`{near}", code="TOPIC_NOT_FOUND")
    if len({item.name.owner_id for item in found}) > 1:
        listed = ", ".join(f"`{show_type(domain.home, item.name).partition('@')[0]}`" for item in found)
        raise UsageError(f"`{text}` may be of several owners: {listed}", code="TYPE_AMBIGUOUS")
    unlike = [item.name.name for item in found if item.attributes != found[0].attributes]
    if unlike:
        raise UsageError(
            f"`{unlike[0]}` has other attributes than `{found[0].name.name}`, so they are not read together",
            code="TOPIC_ATTRIBUTES",
        )
    return found
