"""Optional inheritance: a child lists its own attributes and takes over those of the version it extends.

Rules kept here:

- names and uids of the parent are the parent's: the child re-uses none of them;
- inherited values travel as their owner wants them to: a child is sealed, padded and released as the version it
  extends is. A type whose events are sealed as a whole cannot be extended: one key would open what two owners rule.
"""

from __future__ import annotations

from dataclasses import replace

from maia.errors import MalformedError
from maia.events.definition import EventType
from maia.events.options import EncryptionMode


def inherit(child: EventType, parent: EventType) -> EventType:
    """Put a child's attributes together: those of the parent first, then its own.

    ``parent`` is the definition that the child's `extends` names, itself put together when it extends another.

    Raises:
        MalformedError: The child extends another type or version, re-uses a name or a uid of the parent, or travels
            otherwise.
    """
    if child.extends != parent.name:
        raise MalformedError(f"`{child.name.name}` does not extend `{parent.name}`", code="TYPE_EXTENDS")
    ours, theirs = child.options, parent.options
    if theirs.encryption is EncryptionMode.EVENT:
        raise MalformedError(
            f"`{parent.name.name}` is sealed as a whole, so nothing can extend it", code="TYPE_EXTENDS_OPTIONS"
        )
    if replace(ours, closed=theirs.closed, topic=theirs.topic) != theirs:
        raise MalformedError(
            f"`{child.name.name}` has to be sealed, padded and released as `{parent.name.name}`, which it extends: "
            f"encryption {theirs.encryption}, padding {theirs.padding}, release {theirs.release}, "
            f"compression {'on' if theirs.compression else 'off'}",
            code="TYPE_EXTENDS_OPTIONS",
        )
    return replace(child, attributes=parent.attributes + child.attributes)
