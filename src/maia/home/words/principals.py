"""Principals as people write them in a home, and as they are shown there.

smith                        a key of this home, by its file name
k3f7-u5wd                    a key by its fingerprint, or the beginning of it
d75a98…511a                  a key by its 64 hexadecimal digits
hash:0f1e…                   a key known only by its hash, 64 hexadecimal digits
met: Met Brokers             a local name; `met: brokers: london` follows two of them
2 of (smith, jones, 3 of (a, b, c))     a threshold
(name (public-key …) "a:b")  anything else, as an S-expression
"""

from __future__ import annotations

import re

from maia.authority import NameNode, ObjectNode, ThresholdNode
from maia.authority import describe_node as _describe
from maia.encoding import parse_advanced
from maia.errors import UsageError
from maia.home.folder import Folder
from maia.principals import KeyHash, KeyId, Name, Principal, PublicKey, Subject, Threshold, parse_principal

_THRESHOLD = re.compile(r"\s*(\d{1,4})\s+of\s*\(", re.IGNORECASE)
_HASH = re.compile(r"hash:([0-9a-fA-F]{64})")
_MAX_TEXT = 16_384
_MAX_DEPTH = 8


def parse_principal_text(text: str, home: Folder, *, depth: int = 0) -> Principal:
    """Read a principal.

    Raises:
        UsageError: The text is no principal, or too long or deep.
        NotFoundError: It names a key that this home does not know.
    """
    text = text.strip()
    if len(text) > _MAX_TEXT or depth > _MAX_DEPTH:
        raise UsageError("a principal that is too long or nested too deep", code="PRINCIPAL_TEXT")
    if not text:
        raise UsageError("an empty principal", code="PRINCIPAL_TEXT")
    if text.startswith("("):
        return parse_principal(parse_advanced(text))
    threshold = _THRESHOLD.match(text)
    if threshold:
        if not text.endswith(")"):
            raise UsageError(f"`{text}` does not end with `)`", code="PRINCIPAL_TEXT")
        members = _split(text[threshold.end() : -1])
        return Threshold(
            int(threshold[1]), tuple(parse_principal_text(part, home, depth=depth + 1) for part in members)
        )
    found = _HASH.fullmatch(text)
    if found:
        return KeyHash(KeyId(bytes.fromhex(found[1])))
    base, *parts = (part.strip() for part in text.split(":"))
    if parts:
        return Name(home.key(base), tuple(parts))
    return home.key(text)


def _split(text: str) -> list[str]:
    """Split at the commas that stand outside parentheses."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            raise UsageError("a principal with an unbalanced `)`", code="PRINCIPAL_TEXT")
        if character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    if depth:
        raise UsageError("a principal with an unbalanced `(`", code="PRINCIPAL_TEXT")
    return [*parts, text[start:]]


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


def _short(key: KeyId, home: Folder) -> str:
    return home.names.get(key) or home.show(key)
