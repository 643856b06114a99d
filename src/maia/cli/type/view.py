"""Event types as the commands show them: for people as text, for machines as JSON."""

from __future__ import annotations

from collections.abc import Iterable

from maia.authority import VerifiedEventType
from maia.cli.read.instants import show_instant
from maia.cli.show.output import printable, write_line
from maia.cli.show.principals import subject_to_json
from maia.cli.show.tables import draw_table
from maia.encoding import counted
from maia.events import (
    Attribute,
    Change,
    ClosedAttributes,
    EncryptionMode,
    Release,
    TypeName,
    UnverifiedEventType,
    VersionFinding,
)
from maia.home import Folder, extended_definitions, words

_SEALED = {
    EncryptionMode.PLAIN: "nothing is sealed (encryption: plain)",
    EncryptionMode.EVENT: "whole events are sealed under one key (encryption: event)",
    EncryptionMode.ATTRIBUTE: "each attribute is sealed under a key of its own (encryption: attribute)",
}
_CLOSED = {
    ClosedAttributes.NULL: "who may not read an attribute sees null in its place (closed: null)",
    ClosedAttributes.OMIT: "who may not read an attribute does not see that there is one (closed: omit)",
}
_LINKS = {
    Release.OVERLAY: "events may pass through brokers of other domains (release: overlay)",
    Release.DIRECT: "events go straight from domain to domain, through no broker between (release: direct)",
}


def name_to_json(name: TypeName) -> dict[str, object]:
    """Write a full name for machines; the owner is never left out."""
    return {"owner": subject_to_json(name.owner), "name": name.name, "version": name.version.text}


def attribute_to_json(item: Attribute) -> dict[str, object]:
    """Write an attribute for machines."""
    return {"name": item.name, "uid": item.uid, "type": item.type.value}


def type_to_json(unverified: UnverifiedEventType) -> dict[str, object]:
    """Write a definition for machines."""
    definition = unverified.definition
    previous = definition.previous
    if isinstance(previous, UnverifiedEventType):
        previous = previous.definition_id
    return {
        **name_to_json(definition.name),
        "type_id": definition.type_id.hex(),
        "definition_id": unverified.definition_id.hex(),
        "attributes": [attribute_to_json(item) for item in definition.attributes],
        "options": {
            "encryption": definition.options.encryption.value,
            "closed": definition.options.closed.value,
            "release": definition.options.release.value,
            "padding": definition.options.padding,
            "compression": definition.options.compression,
            "topic": definition.options.topic,
        },
        "extends": None if definition.extends is None else name_to_json(definition.extends),
        "previous": None if previous is None else previous.hex(),
        "credentials": [item.certificate_id.hex() for item in definition.credentials],
        "signer": subject_to_json(unverified.signer),
    }


def inherited_to_json(unverified: UnverifiedEventType, home: Folder) -> dict[str, object]:
    """Write what a definition inherits for machines; nothing when it extends no other."""
    if unverified.definition.extends is None:
        return {}
    return {
        "inherited": [
            {**attribute_to_json(item), "from": name_to_json(parent.name)}
            for parent in extended_definitions(home, unverified.definition)
            for item in parent.attributes
        ]
    }


def verified_to_json(verified: VerifiedEventType) -> dict[str, object]:
    """Write the outcome of a verification for machines."""
    return {
        "verified": True,
        **name_to_json(verified.definition.name),
        "definition_id": verified.definition.definition_id.hex(),
        "signer": subject_to_json(verified.signer),
        "expires": show_instant(verified.expires),
    }


def show_name(name: TypeName, home: Folder) -> str:
    """Write a full name for people: readable part, version, and whose it is."""
    return f"{printable(name.name)} version {name.version} of {words.show_subject(name.owner, home)}"


def draw_type(unverified: UnverifiedEventType, home: Folder) -> None:
    """Draw a definition: its name, attributes, options and evidence."""
    definition = unverified.definition
    write_line(show_name(definition.name, home))
    if definition.extends is None:
        own = [(item.name, item.uid, item.type.value) for item in definition.attributes]
        draw_table(("attribute", "uid", "type"), own)
    else:
        whole = [(definition, ""), *((one, one.name.name) for one in extended_definitions(home, definition))]
        rows = [(item.name, item.uid, item.type.value, of) for one, of in whole for item in one.attributes]
        draw_table(("attribute", "uid", "type", "inherited from"), rows)
    options = definition.options
    if options.topic:
        write_line("a topic: publishing under it needs the right on its super-topics too")
    write_line(_SEALED[options.encryption])
    write_line(_CLOSED[options.closed])
    write_line(_LINKS[options.release])
    if options.padding:
        write_line(f"padding {options.padding}")
    if not options.compression:
        write_line("values are not compressed before they are sealed")
    if definition.extends is not None:
        write_line(f"extends {show_name(definition.extends, home)}")
    if definition.previous is not None:
        previous = definition.previous
        embedded = isinstance(previous, UnverifiedEventType)
        identity = previous.definition_id if isinstance(previous, UnverifiedEventType) else previous
        write_line(f"previous {identity.hex()[:16]}{' (embedded)' if embedded else ''}")
    credentials = counted(len(definition.credentials), "credential")
    write_line(f"signed by {home.show(unverified.signer.key_id)}, {credentials}")


def draw_names(names: Iterable[TypeName], home: Folder) -> None:
    """Draw a list of types."""
    rows = [(name.name, name.version.text, words.show_subject(name.owner, home)) for name in names]
    draw_table(("name", "version", "owner"), rows)


def change_to_json(change: Change) -> dict[str, object]:
    """Write a change for machines."""
    sides = {"before": change.before, "after": change.after}
    shown = {side: attribute_to_json(item) for side, item in sides.items() if item}
    return {"needs": change.action.value, **shown}


def finding_to_json(finding: VersionFinding) -> dict[str, object]:
    """Write a warning for machines."""
    return {
        "warning": finding.code,
        "attribute": finding.attribute.name,
        "uid": finding.attribute.uid,
        "clients": list(finding.clients),
        "advice": finding.advice,
    }
