"""Principals as Maia shows them: by the names that this home knows, else by fingerprint."""

from __future__ import annotations

from maia.authority import NameNode, ObjectNode, ThresholdNode
from maia.authority import describe_node as _describe
from maia.home import Folder
from maia.principals import KeyHash, KeyId, Name, PublicKey, Subject, Threshold


def show_subject(subject: Subject, home: Folder) -> str:
    """Write a subject for people, with the names this home knows."""
    if isinstance(subject, (PublicKey, KeyHash)):
        return home.show(subject.key_id)
    if isinstance(subject, Name):
        return f"{_short(subject.base.key_id, home)}: {': '.join(subject.parts)}"
    if isinstance(subject, Threshold):
        return f"{subject.k} of ({', '.join(show_subject(member, home) for member in subject.members)})"
    return f"object {subject.digest.hex()[:16]}"


def show_node(node: KeyId | NameNode | ThresholdNode | ObjectNode, home: Folder) -> str:
    """Write a node of a proof for people."""
    if isinstance(node, bytes):
        return home.show(node)
    if isinstance(node, NameNode):
        return f"{_short(node.base, home)}: {': '.join(node.parts)}"
    if isinstance(node, ThresholdNode):
        return f"{node.k} of ({', '.join(show_node(member, home) for member in node.members)})"
    return _describe(node)


def subject_to_json(subject: Subject) -> object:
    """Write a subject for machines: keys as hexadecimal, the rest as objects."""
    if isinstance(subject, PublicKey):
        return {"key": subject.raw.hex(), "fingerprint": subject.fingerprint}
    if isinstance(subject, KeyHash):
        return {"hash": subject.key_id.hex(), "fingerprint": subject.fingerprint}
    if isinstance(subject, Name):
        return {"name": [subject_to_json(subject.base), *subject.parts]}
    if isinstance(subject, Threshold):
        return {"threshold": subject.k, "members": [subject_to_json(member) for member in subject.members]}
    return {"object": subject.digest.hex()}


def _short(key: KeyId, home: Folder) -> str:
    return home.names.get(key) or home.show(key)
