"""Rights on topics, as people write them.

Rules kept here: a right to subscribe to a topic is one on all below it; a right to publish is on the topic alone,
unless whoever gives it says otherwise, and whoever publishes needs one on every super-topic besides. A right on some
attributes is always on the attribute `topic` as well, by which events are told apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from maia.authority import Action, one_of, type_right
from maia.encoding import did_you_mean
from maia.errors import NotFoundError, UsageError
from maia.events import TOPIC, EventType
from maia.home.folder import Folder
from maia.home.words.asked import Right, parse_attribute, split_type
from maia.home.words.rights import describe_tag
from maia.principals import principal_id

_ACTIONS = (Action.PUBLISH, Action.SUBSCRIBE, Action.MANAGE)


def find_topic(home: Folder, text: str) -> EventType:
    """Find the definition of a topic that speaks for its owner: OWNER/NAME, or NAME where one owner has it.

    Raises:
        NotFoundError: There is none: ``TOPIC_NOT_FOUND``.
    """
    owner, name, _ = split_type(text, home)
    found = [item for item in home.versions(principal_id(owner), name) if item.options.topic]
    if not found:
        near = did_you_mean(name, {item.name for item in home.types.names()})
        raise NotFoundError(f"there is no topic `{text}`{near}; `maia topic define` makes one", code="TOPIC_NOT_FOUND")
    return found[0]


def parse_topic_right(
    home: Folder,
    topic: str,
    *,
    actions: Sequence[str] | None = None,
    attributes: Sequence[str] | None = None,
    sub_topics: bool = False,
) -> Right:
    """Read a right on a topic.

    Args:
        home: Knows the topic.
        topic: OWNER/NAME, or NAME where one owner has it.
        actions: ``publish``, ``subscribe`` or ``manage``; subscribe when there are none.
        attributes: Which attributes, by name, each with a demand on the row where there is one; all when there are
            none.
        sub_topics: Whether a right to publish or to manage is on all topics below as well.

    Raises:
        UsageError: Another action, or no such attribute.
        NotFoundError: The topic is not known here.
    """
    definition = find_topic(home, topic)
    name, chosen = definition.name, [Action.parse(word) for word in actions or ("subscribe",)]
    if wrong := [action.value for action in chosen if action not in _ACTIONS]:
        raise UsageError(f"`{wrong[0]}` is no action on a topic", code="RIGHT_OPTIONS")
    demands = [parse_attribute(item, (definition,)) for item in attributes or ()]
    uids = dict.fromkeys((definition.by_name(TOPIC).uid, *(uid for uid, _ in demands))) if demands else None
    constraints = [constraint for _, constraint in demands if constraint is not None]
    tag = one_of(
        type_right(
            name.owner, name.name, actions=[action], attributes=uids, constraints=constraints,
            sub_topics=sub_topics or action is Action.SUBSCRIBE,
        )
        for action in chosen
    )  # fmt: skip
    return Right(tag=tag, owner=name.owner, text=describe_tag(tag.to_sexp(), home))
