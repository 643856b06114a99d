"""Reads XML policies, strictly: what the schema does not name is refused, and so is all of XML that reaches outside.

Rules:
    1. No DOCTYPE, hence no entities but the five of XML itself, no external subset, no default attributes; no
       processing instructions; UTF-8 only. Nothing is ever fetched, whatever the text names.
    2. Every element stands where ``policy.xsd`` says, in the namespace ``urn:maia:policy:1``, with the attributes that
       are named there and no others; between elements stand blanks and comments only.
    3. A text has at most `XmlLimits.octets` octets, `XmlLimits.rules` rules and as many hours; elements nest three
       deep at most, because nothing deeper has a name.
    4. An error has a code, a line and a column. A policy with an error says nothing at all.
    5. Stricter than the schema: a rule on filters has ``user``, ``filter`` and ``effect``, or ``channel`` and
       ``only``; a name has no star inside, and no letters that cannot be seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import time
from enum import StrEnum
from importlib import resources
from typing import NoReturn, TypeVar
from xml.parsers import expat  # nothing of it but well-formedness is used; see rule 1

from maia.encoding import did_you_mean, printable
from maia.policy.problems import PolicySyntaxError
from maia.policy.xml.names import is_name
from maia.policy.xml.rules import (
    ANYONE,
    AccessRule,
    Between,
    Effect,
    ForcedHandler,
    ForcedKind,
    ImageRule,
    InstallRule,
    Region,
    XmlPolicy,
    XmlRule,
)

NAMESPACE = "urn:maia:policy:1"
MAX_KEEP_ONE_IN = 10_000
_CLOCK = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]")
_BLANKS = " \t\r\n"
_HANDLERS = frozenset(kind.value for kind in ForcedKind)
_CHILDREN: Mapping[str, frozenset[str]] = {
    "": frozenset({"policies"}),
    "policies": frozenset({"image", "access", "install"}),
    "image": _HANDLERS,
    "access": frozenset({"between"}),
}
_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "image": ("camera", "user"),
    "access": ("user", "camera", "effect"),
    "between": ("from", "to"),
    ForcedKind.BLUR: ("region",),
    ForcedKind.FRAME_RATE: ("keep-one-in",),
}
_INSTALL = frozenset({"user", "filter", "channel", "effect", "only"})
_Word = TypeVar("_Word", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlLimits:
    """How much of a text is read, and how many texts decide together.

    Attributes:
        octets: Of one text.
        rules: In one text, and hours in it.
        policies: That decide together.
    """

    octets: int = 1 << 20
    rules: int = 10_000
    policies: int = 64


DEFAULT_XML_LIMITS = XmlLimits()


def schema() -> str:
    """Give the XML schema of policies, for editors and other programs; it is never fetched from anywhere."""
    return resources.files("maia.policy.xml").joinpath("policy.xsd").read_text(encoding="utf-8")


def parse_xml(text: str | bytes, limits: XmlLimits = DEFAULT_XML_LIMITS) -> XmlPolicy:
    """Read a policy.

    >>> found = parse_xml('<policies xmlns="urn:maia:policy:1"><access user="X" camera="*" effect="deny"/></policies>')
    >>> [rule.effect.value for rule in found.rules]
    ['deny']
    >>> parse_xml('<policies xmlns="urn:maia:policy:1"><acess/></policies>')
    Traceback (most recent call last):
    maia.policy.problems.PolicySyntaxError: [XML_ELEMENT] line 1, column 38: ... no element `acess`; did you mean ...

    Args:
        text: The document; octets are UTF-8.
        limits: How much of it is read.

    Raises:
        PolicySyntaxError: ``XML_SYNTAX``, ``XML_FORBIDDEN``, ``XML_LIMIT``, ``XML_ELEMENT``, ``XML_ATTRIBUTE`` or
            ``XML_VALUE``, with line and column.
    """
    try:
        data = text.encode("utf-8") if isinstance(text, str) else text
        data.decode("utf-8")
    except UnicodeError as error:
        raise PolicySyntaxError("line 1: the text is not UTF-8", code="XML_FORBIDDEN") from error
    if len(data) > limits.octets:
        raise PolicySyntaxError(f"line 1: a policy has at most {limits.octets} octets", code="XML_LIMIT")
    return _Reader(limits).read(data)


class _Reader:
    """Follows the events of one document."""

    def __init__(self, limits: XmlLimits) -> None:
        self._limits = limits
        self._open: list[str] = [""]
        self._rules: list[XmlRule] = []
        self._handlers: list[ForcedHandler] = []
        self._between: list[Between] = []
        self._hours = 0
        self._values: Mapping[str, str] = {}
        self._place = (1, 1)
        self._parser = expat.ParserCreate("utf-8", " ")
        self._parser.XmlDeclHandler = self._declaration
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.ProcessingInstructionHandler = self._instruction
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text

    def read(self, data: bytes) -> XmlPolicy:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            place = (error.lineno, error.offset + 1)
            self._wrong(f"not XML: {expat.ErrorString(error.code)}", place, code="XML_SYNTAX")
        return XmlPolicy(rules=tuple(self._rules))

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:  # noqa: ARG002 - expat's
        if version != "1.0" or (encoding is not None and encoding.lower() != "utf-8"):
            self._wrong("a policy is XML 1.0 in UTF-8", code="XML_FORBIDDEN")

    def _doctype(self, *_: object) -> None:
        # SECURITY: before anything of it is read, so that no entity is ever declared.
        self._wrong("a DOCTYPE has no place in a policy", code="XML_FORBIDDEN")

    def _instruction(self, *_: object) -> None:
        self._wrong("a policy has no processing instructions", code="XML_FORBIDDEN")

    def _wrong(self, message: str, place: tuple[int, int] | None = None, *, code: str) -> NoReturn:
        line, column = place or (self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1)
        raise PolicySyntaxError(f"line {line}, column {column}: {message}", code=code, line=line, column=column)

    def _text(self, text: str) -> None:
        if text.strip(_BLANKS):
            self._wrong("a policy has no text between its elements", code="XML_ELEMENT")

    def _start(self, full: str, values: Mapping[str, str]) -> None:
        namespace, _, name = full.rpartition(" ")
        parent = self._open[-1]
        known = _CHILDREN.get(parent, frozenset())
        if namespace != NAMESPACE or name not in known:
            where = f"inside `{parent}`" if parent else f"as the root, in the namespace `{NAMESPACE}`"
            near = did_you_mean(name, known)
            self._wrong(f"there is no element `{_shown(name)}` {where}{near}", code="XML_ELEMENT")
        self._open.append(name)
        self._check_attributes(name, values)
        if name in _HANDLERS:
            self._handlers.append(self._handler(ForcedKind(name), values))
        elif name == "between":
            if self._hours >= self._limits.rules:
                self._wrong(f"a policy has at most {self._limits.rules} `between`", code="XML_LIMIT")
            self._hours += 1
            self._between.append(Between(self._clock(values["from"]), self._clock(values["to"])))
        elif name != "policies":
            self._begin(values)

    def _begin(self, values: Mapping[str, str]) -> None:
        if len(self._rules) >= self._limits.rules:
            self._wrong(f"a policy has at most {self._limits.rules} rules", code="XML_LIMIT")
        self._handlers, self._between, self._values = [], [], dict(values)
        self._place = (self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1)

    def _end(self, _full: str) -> None:
        made: dict[str, Callable[[], XmlRule]] = {
            "image": self._image, "access": self._access, "install": self._install
        }  # fmt: skip
        name = self._open.pop()
        if name in made:
            self._rules.append(made[name]())

    def _check_attributes(self, name: str, values: Mapping[str, str]) -> None:
        required = _REQUIRED.get(name, ())
        known = _INSTALL if name == "install" else frozenset(required)
        for found in values:
            if found not in known:
                near = did_you_mean(found, known)
                self._wrong(f"`{name}` has no attribute `{_shown(found)}`{near}", code="XML_ATTRIBUTE")
        for wanted in required:
            if wanted not in values:
                self._wrong(f"`{name}` needs the attribute `{wanted}`", code="XML_ATTRIBUTE")

    def _image(self) -> ImageRule:
        if not self._handlers:
            self._wrong("an `image` rule names at least one handler, such as `blur`", self._place, code="XML_ELEMENT")
        return ImageRule(
            camera=self._name("camera", blanks=True), user=self._name("user", blanks=True),
            handlers=tuple(self._handlers), line=self._place[0],
        )  # fmt: skip

    def _access(self) -> AccessRule:
        return AccessRule(
            user=self._name("user", blanks=True), camera=self._name("camera", blanks=True),
            effect=self._word(Effect, self._values["effect"], self._place), between=tuple(self._between),
            line=self._place[0],
        )  # fmt: skip

    def _install(self) -> InstallRule:
        given = self._values.keys()
        only = "only" in given
        wanted = {"channel", "only"} if only else {"user", "filter", "effect"}
        if not wanted <= given or (only and given & {"filter", "effect"}):
            self._wrong(
                "`install` needs `user`, `filter` and `effect`, or `channel` and `only`",
                self._place,
                code="XML_ATTRIBUTE",
            )
        listed = re.findall(f"[^{_BLANKS}]+", self._values["only"]) if only else [self._name("filter")]
        if only and not all(map(is_name, listed)):
            self._wrong("`only` lists the names of filters, with blanks between them", self._place, code="XML_VALUE")
        return InstallRule(
            user=self._name("user", blanks=True), channel=self._name("channel"), filters=frozenset(listed), only=only,
            effect=Effect.ALLOW if only else self._word(Effect, self._values["effect"], self._place),
            line=self._place[0],
        )  # fmt: skip

    def _name(self, attribute: str, *, blanks: bool = False) -> str:
        """Read a name, or the star; what is left out is the star."""
        value = self._values.get(attribute, ANYONE)
        if value != ANYONE and not is_name(value, blanks=blanks):
            self._wrong(f"`{attribute}` is a name, or `*` alone: not `{_shown(value)}`", self._place, code="XML_VALUE")
        return value

    def _handler(self, kind: ForcedKind, values: Mapping[str, str]) -> ForcedHandler:
        region = self._word(Region, values["region"]) if kind is ForcedKind.BLUR else None
        kept = values["keep-one-in"] if kind is ForcedKind.FRAME_RATE else None
        if kept is not None and not (re.fullmatch("[1-9][0-9]{0,4}", kept) and 2 <= int(kept) <= MAX_KEEP_ONE_IN):
            self._wrong(f"`keep-one-in` is a number from 2 to {MAX_KEEP_ONE_IN}", code="XML_VALUE")
        return ForcedHandler(kind, region, None if kept is None else int(kept))

    def _word(self, words: type[_Word], value: str, place: tuple[int, int] | None = None) -> _Word:
        known = [word.value for word in words]
        if value not in known:
            message = f"`{_shown(value)}` is none of {', '.join(f'`{word}`' for word in known)}"
            self._wrong(f"{message}{did_you_mean(value, known)}", place, code="XML_VALUE")
        return words(value)

    def _clock(self, value: str) -> time:
        found = parse_clock(value)
        if found is None:
            self._wrong(f"`{_shown(value)}` is no time of the day from `00:00` to `23:59`", code="XML_VALUE")
        return found


def parse_clock(text: str) -> time | None:
    """Read a time of the day, ``HH:MM``; nothing when it is none.

    >>> parse_clock("22:00"), parse_clock("24:00"), parse_clock("9:00")
    (datetime.time(22, 0), None, None)
    """
    return time.fromisoformat(text) if text.isascii() and _CLOCK.fullmatch(text) else None


def _shown(text: str) -> str:
    return printable(text[:64])
