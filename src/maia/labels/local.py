"""Flow tags inside a process and between nodes: a bit here, a name there.

Inside a process a tag is a bit: a label is translated once, and every check after that is two operations on numbers.
Between nodes a tag is a global name, a URI, which each node translates into a bit of its own; the bits of two nodes
have nothing in common.

Rules kept here:

- a tag that was made here, or was resolved once, needs nobody: an outage stops no local flow;
- a name that cannot be resolved denies: what carries it flows nowhere here;
- a tag without a global name never leaves its node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from maia.errors import EncodingError, FlowError, UnavailableError
from maia.labels.label import Label
from maia.labels.tag import check_tag, family_of

Resolve = Callable[[str], bool]
"""Says whether a global name stands for a tag; raises `UnavailableError` when it cannot be asked."""
MAX_LOCAL_TAGS = 1_000_000
_GLOBAL = re.compile(r"https://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?/[!-~]+")


@dataclass(frozen=True, slots=True)
class LocalLabel:
    """A label in the bits of one node."""

    secrecy: int
    integrity: int


class LocalTags:
    """The flow tags of one node.

    >>> node = LocalTags(resolve=lambda name: name.startswith("https://nhs.example/"))
    >>> node.create("ward")
    >>> ward = node.localise(Label(secrecy=frozenset({"ward"})))
    >>> node.flows(ward, ward), node.flows(ward, node.localise(Label()))
    (True, False)
    >>> node.localise(Label(secrecy=frozenset({"https://else.example/t"})))
    Traceback (most recent call last):
    ...
    maia.errors.FlowError: [TAG_UNRESOLVED] a flow tag of another node stands for nothing that is known here
    """

    def __init__(self, *, resolve: Resolve) -> None:
        """Begin without tags.

        Args:
            resolve: Who knows global names of other nodes.
        """
        self._resolve = resolve
        self._bits: dict[str, int] = {}
        self._global: dict[str, str] = {}
        self._own: dict[int, str] = {}

    def create(self, name: str, *, uri: str | None = None) -> None:
        """Make a tag, known to other nodes by a URI when it has one.

        Raises:
            EncodingError: The name is none, or the URI is no global one: ``LABEL_TAGS``.
        """
        if uri is not None and not is_global(uri):
            raise EncodingError(f"`{uri}` is no global name of a flow tag, such as `https://…`", code="LABEL_TAGS")
        bit = self._bit(check_tag(name))
        if uri is not None:
            self._global[name] = uri
            self._bits[uri] = bit
            self._own[bit] = name

    def localise(self, label: Label) -> LocalLabel:
        """Translate a label into the bits of this node.

        Raises:
            FlowError: It has a tag that is not known here and cannot be resolved: ``TAG_UNRESOLVED``.
        """
        return LocalLabel(self._bits_of(label.secrecy), self._bits_of(label.integrity))

    def globalise(self, label: Label) -> Label:
        """Translate a label into names that other nodes can resolve.

        Raises:
            FlowError: It has a tag that has no global name: ``TAG_LOCAL``.
        """
        return Label(secrecy=self._names_of(label.secrecy), integrity=self._names_of(label.integrity))

    def name_here(self, tag: str) -> str:
        """Give what a tag is called here: its own name, or its URI when it has no other; of a family by the family.

        Raises:
            FlowError: It is one of another node that cannot be resolved: ``TAG_UNRESOLVED``.

        >>> node = LocalTags(resolve=lambda name: False)
        >>> node.create("clinical", uri="https://nhs.example/t/clinical")
        >>> node.name_here("https://nhs.example/t/clinical(7)")
        'clinical(7)'
        """
        name, rest = _parted(tag)
        bit = self._bits.get(name)
        if bit is None:
            bit = self._learn(name) if is_global(name) else self._bit(name)
        return self._own.get(bit, name) + rest

    def name_outside(self, tag: str) -> str:
        """Give what other nodes call a tag; of a family by the family.

        Raises:
            FlowError: It has no global name: ``TAG_LOCAL``.
        """
        name, rest = _parted(tag)
        (found,) = self._names_of([name])
        return found + rest

    def number(self, tag: str) -> int:
        """Give the number of a tag's bit, which means nothing on any other node."""
        return self._bits[_parted(self.name_here(tag))[0]].bit_length() - 1

    def flows(self, source: LocalLabel, target: LocalLabel) -> bool:
        """Tell whether data may go from one label to another."""
        return not source.secrecy & ~target.secrecy and not target.integrity & ~source.integrity

    def _bits_of(self, tags: Iterable[str]) -> int:
        found = 0
        for tag in tags:
            bit = self._bits.get(tag)
            if bit is None:
                bit = self._learn(tag)
            found |= bit
        return found

    def _learn(self, tag: str) -> int:
        known = False
        if is_global(tag):
            try:
                known = self._resolve(tag)
            except UnavailableError:
                known = False
        if not known:  # SECURITY: fail closed; what is known already is not asked for and flows on
            raise FlowError("a flow tag of another node stands for nothing that is known here", code="TAG_UNRESOLVED")
        return self._bit(tag)

    def _bit(self, name: str) -> int:
        if name not in self._bits:
            if len(self._bits) >= MAX_LOCAL_TAGS:
                raise FlowError(f"a node has at most {MAX_LOCAL_TAGS} flow tags", code="TAG_UNRESOLVED")
            self._bits[name] = 1 << len(self._bits)
        return self._bits[name]

    def _names_of(self, tags: Iterable[str]) -> frozenset[str]:
        found = set()
        for tag in tags:
            name = tag if is_global(tag) else self._global.get(tag)
            if name is None:
                raise FlowError("a flow tag without a global name does not leave its node", code="TAG_LOCAL")
            found.add(name)
        return frozenset(found)


def _parted(tag: str) -> tuple[str, str]:
    """Part a tag of a family into the family and the rest."""
    found = family_of(tag)
    return (tag, "") if found is None else (tag[: tag.index("(")], tag[tag.index("(") :])


def is_global(name: str) -> bool:
    """Tell whether a tag's name is one that other nodes can resolve.

    >>> is_global("https://nhs.example/t/identifiable"), is_global("identifiable"), is_global("file:///etc")
    (True, False, False)
    """
    return _GLOBAL.fullmatch(name) is not None
