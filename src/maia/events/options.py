"""How a type's events travel: sealed how, over which links, and what a reader gets for a closed attribute."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from maia.encoding import Sexp
from maia.errors import EncodingError, MalformedError
from maia.principals import decode_text

MAX_PADDING = 1 << 16
_OFF: Sexp = (b"compression", b"off")
_TOPIC: Sexp = (b"topic",)
_MARKS = ((), (_OFF,), (_TOPIC,), (_OFF, _TOPIC))


class EncryptionMode(StrEnum):
    """What is sealed under which key."""

    PLAIN = "plain"
    EVENT = "event"
    ATTRIBUTE = "attribute"


class ClosedAttributes(StrEnum):
    """What a reader sees of an attribute that is closed to it: a null, or nothing at all."""

    NULL = "null"
    OMIT = "omit"


class Release(StrEnum):
    """Which links events may take: the shared overlay, or direct links between domains only."""

    OVERLAY = "overlay"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one version of a type.

    Attributes:
        encryption: Sealing of events; by attribute unless said otherwise.
        closed: Null keeps the schema stable; omit leaves the attribute out.
        release: Overlay or direct links.
        padding: Sealed lengths are rounded up to a multiple of this many octets; 0 is no padding.
        compression: Whether values are packed before they are sealed, so that lengths tell of them.
        topic: Whether it is a topic, under the rights of its super-topics; see `topics`.
    """

    encryption: EncryptionMode = EncryptionMode.ATTRIBUTE
    closed: ClosedAttributes = ClosedAttributes.NULL
    release: Release = Release.OVERLAY
    padding: int = 0
    topic: bool = False
    compression: bool = True

    def __post_init__(self) -> None:
        """Accept the words for the options and refuse all others."""
        for name, kind in (("encryption", EncryptionMode), ("closed", ClosedAttributes), ("release", Release)):
            try:
                object.__setattr__(self, name, kind(getattr(self, name)))
            except ValueError as error:
                raise MalformedError(f"the option `{name}` has no such value", code="TYPE_OPTION") from error
        if type(self.padding) is not int or not 0 <= self.padding <= MAX_PADDING:
            raise MalformedError(f"padding is a number from 0 to {MAX_PADDING}", code="TYPE_OPTION")
        if type(self.topic) is not bool:
            raise MalformedError("a type is a topic or not", code="TYPE_OPTION")
        if type(self.compression) is not bool:
            raise MalformedError("values are compressed or not", code="TYPE_OPTION")

    def to_sexp(self) -> Sexp:
        """Write ``(options (encryption …) (closed …) (release …) (padding …) (compression off)? (topic)?)``.

        The first four stand there always, the others when they are not as usual.
        """
        mark: tuple[Sexp, ...] = (*(() if self.compression else (_OFF,)), *((_TOPIC,) if self.topic else ()))
        return (
            b"options",
            (b"encryption", self.encryption.value.encode()),
            (b"closed", self.closed.value.encode()),
            (b"release", self.release.value.encode()),
            (b"padding", b"%d" % self.padding),
            *mark,
        )


def parse_options(expression: Sexp) -> Options:
    """Read what `Options.to_sexp` writes, and nothing else.

    Raises:
        EncodingError: An option is missing, unknown, out of order or has another spelling.
    """
    match expression:
        case (
            b"options",
            (b"encryption", mode),
            (b"closed", closed),
            (b"release", release),
            (b"padding", bytes() as padding),
            *mark,
        ) if tuple(mark) in _MARKS:
            words = [decode_text(word, "an option") for word in (mode, closed, release)]
        case _:
            raise EncodingError(
                "the options of a type are encryption, closed, release, padding, compression and topic",
                code="TYPE_OPTION",
            )
    if not padding.isdigit() or len(padding) > 6 or padding != b"%d" % int(padding):
        raise EncodingError("padding is a plain decimal", code="TYPE_OPTION")
    return Options(
        encryption=EncryptionMode(_member(EncryptionMode, words[0])),
        closed=ClosedAttributes(_member(ClosedAttributes, words[1])),
        release=Release(_member(Release, words[2])),
        padding=int(padding),
        topic=_TOPIC in mark,
        compression=_OFF not in mark,
    )


def _member(kind: type[StrEnum], word: str) -> str:
    if word not in {member.value for member in kind}:
        raise EncodingError("an option has no such value", code="TYPE_OPTION")
    return word
