"""The advanced form of RFC 9804: what people read and write.

Nothing is ever verified in this form; it is parsed to an expression first and that expression's canonical bytes count.
The reader knows tokens, quoted strings with escapes, ``#hex#``, ``|base64|``, verbatim ``3:abc``, ``{transport}`` of a
canonical expression, and display hints, all within the same `SexpLimits` as the canonical reader.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import replace

from maia.encoding.canonical import parse_canonical
from maia.encoding.sexp import DEFAULT_LIMITS, END_OF_LIST, EndOfList, Hinted, Sexp, SexpLimits
from maia.errors import EncodingError, UsageError

_TOKEN = re.compile(rb"[A-Za-z\-./_:*+=][A-Za-z0-9\-./_:*+=]*")
_SPACE = re.compile(rb"[ \t\v\f\r\n]*")
_LENGTH = re.compile(rb"(0|[1-9][0-9]{0,7})(?=[:\"#|])")
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(rb"\\(x[0-9A-Fa-f]{2}|[0-7]{3}|\r\n|\n\r|.)", re.DOTALL)
_HEX = re.compile(rb"#([0-9A-Fa-f \t\v\f\r\n]*)#")
_BASE64 = re.compile(rb"\|([A-Za-z0-9+/= \t\v\f\r\n]*)\|")
_TRANSPORT = re.compile(rb"\{([A-Za-z0-9+/= \t\v\f\r\n]*)\}")
_PLAIN_ESCAPES = {
    b"b": b"\b", b"t": b"\t", b"v": b"\v", b"n": b"\n", b"f": b"\f", b"r": b"\r",
    b'"': b'"', b"'": b"'", b"\\": b"\\", b"?": b"?", b"a": b"\a",
}  # fmt: skip
_SHORT = 40  # octets up to which hexadecimal reads better than base64


def format_advanced(expression: Sexp) -> str:
    """Write an expression for people, on one line.

    Tokens stand bare, printable text is quoted, other octets become hexadecimal when short and base64 when long.
    Reading the text back gives the same expression.

    >>> format_advanced((b"tag", (b"*", b"range", b"numeric", b"ge", b"10")))
    '(tag (* range numeric ge "10"))'
    """
    out: list[str] = []
    stack: list[Sexp | EndOfList] = [expression]
    while stack:
        item = stack.pop()
        if item is END_OF_LIST:
            out.append(")")
            continue
        if out and out[-1] != "(":
            out.append(" ")
        if isinstance(item, bytes):
            out.append(_format_string(item))
        elif isinstance(item, tuple):
            out.append("(")
            stack.append(END_OF_LIST)
            stack.extend(reversed(item))
        elif isinstance(item, Hinted):
            out.append(f"[{_format_string(item.hint)}]{_format_string(item.octets)}")
        else:
            raise UsageError(f"an S-expression holds no {type(item).__name__}")
    return "".join(out)


def _format_string(octets: bytes) -> str:
    if _TOKEN.fullmatch(octets):
        return octets.decode("ascii")
    if all(32 <= octet < 127 for octet in octets):
        return '"' + octets.decode("ascii").replace("\\", "\\\\").replace('"', '\\"') + '"'
    if len(octets) <= _SHORT:
        return f"#{octets.hex()}#"
    return f"|{base64.b64encode(octets).decode('ascii')}|"


def parse_advanced(text: str, *, limits: SexpLimits = DEFAULT_LIMITS) -> Sexp:
    r"""Read one expression in the advanced form.

    Args:
        text: The expression; white space around it is ignored, anything else after it is refused.
        limits: Bounds on size, depth and string length.

    Returns:
        The expression that the text stands for.

    Raises:
        EncodingError: The text is not an advanced S-expression, or exceeds a limit.

    >>> parse_advanced('(tag (* prefix "/pub/cme") #0a#)')
    (b'tag', (b'*', b'prefix', b'/pub/cme'), b'\n')
    """
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise EncodingError("text with a lone surrogate", code="SEXP_SYNTAX") from error
    if len(data) > limits.max_bytes:
        raise EncodingError(f"expression of {len(data)} octets, limit {limits.max_bytes}", code="SEXP_TOO_LARGE")
    return _Reader(data, limits).read()


class _Reader:
    """One pass over advanced text with an explicit stack."""

    def __init__(self, data: bytes, limits: SexpLimits) -> None:
        self.data = data
        self.limits = limits
        self.position = 0

    def read(self) -> Sexp:
        stack: list[list[Sexp]] = []
        items: list[Sexp] = []
        while True:
            self._skip_space()
            head = self.data[self.position : self.position + 1]
            if not head:
                raise self._error("expression ends too early")
            if head == b"(":
                if len(stack) >= self.limits.max_depth:
                    raise EncodingError(f"lists nested deeper than {self.limits.max_depth}", code="SEXP_TOO_DEEP")
                stack.append(items)
                items = []
                self.position += 1
                continue
            if head == b")":
                if not stack:
                    raise self._error("closing bracket without an opening one")
                self.position += 1
                done = tuple(items)
                items = stack.pop()
                items.append(done)
            else:
                items.append(self._value(head, depth=len(stack)))
            if not stack:
                break
        self._skip_space()
        if self.position != len(self.data):
            raise self._error("text after the expression")
        return items[0]

    def _value(self, head: bytes, *, depth: int) -> Sexp:
        if head == b"{":
            match = self._match(_TRANSPORT, "transport form without `}`")
            left = self.limits.max_depth - depth
            if left < 1:
                raise EncodingError(f"lists nested deeper than {self.limits.max_depth}", code="SEXP_TOO_DEEP")
            return parse_canonical(self._base64(match[1]), limits=replace(self.limits, max_depth=left))
        if head != b"[":
            return self._string()
        self.position += 1
        self._skip_space()
        hint = self._string()
        self._skip_space()
        if self.data[self.position : self.position + 1] != b"]":
            raise self._error("display hint without `]`")
        self.position += 1
        self._skip_space()
        return Hinted(hint, self._string())

    def _string(self) -> bytes:
        start = self.position
        length = _LENGTH.match(self.data, start)
        if length:
            self.position = length.end()
            if self.data[self.position : self.position + 1] == b":":
                return self._verbatim(int(length[1]))
        head = self.data[self.position : self.position + 1]
        if head == b'"':
            octets = self._unescape(self._match(_QUOTED, "quoted string without an end")[1])
        elif head == b"#":
            octets = self._hex(self._match(_HEX, "hexadecimal string without an end")[1])
        elif head == b"|":
            octets = self._base64(self._match(_BASE64, "base64 string without an end")[1])
        else:
            octets = self._match(_TOKEN, "expected a token, a string or a list")[0]
        if length and int(length[1]) != len(octets):
            self.position = start
            raise self._error("declared length differs from the string")
        return self._bounded(octets)

    def _verbatim(self, length: int) -> bytes:
        start = self.position + 1
        if start + length > len(self.data):
            raise self._error("string runs past the end")
        self.position = start + length
        return self._bounded(self.data[start : self.position])

    def _bounded(self, octets: bytes) -> bytes:
        if len(octets) > self.limits.max_atom:
            raise EncodingError(f"string of {len(octets)} octets, limit {self.limits.max_atom}", code="SEXP_TOO_LARGE")
        return octets

    def _unescape(self, raw: bytes) -> bytes:
        if b"\\" not in raw:
            return raw

        def replace(match: re.Match[bytes]) -> bytes:
            code = match[1]
            if code[:1] == b"x" and len(code) == 3:
                return bytes((int(code[1:], 16),))
            if len(code) == 3 and code.isdigit():
                if int(code, 8) > 255:
                    raise self._error("octal escape beyond one octet")
                return bytes((int(code, 8),))
            if code in (b"\n", b"\r", b"\r\n", b"\n\r"):
                return b""
            if code in _PLAIN_ESCAPES:
                return _PLAIN_ESCAPES[code]
            raise self._error("unknown escape in a quoted string")

        return _ESCAPE.sub(replace, raw)

    def _hex(self, raw: bytes) -> bytes:
        try:
            return binascii.unhexlify(b"".join(raw.split()))
        except binascii.Error as error:
            raise self._error("odd number of hexadecimal digits") from error

    def _base64(self, raw: bytes) -> bytes:
        compact = b"".join(raw.split())
        try:
            # Padding may be left out in the advanced form.
            return base64.b64decode(compact + b"=" * (-len(compact) % 4), validate=True)
        except binascii.Error as error:
            raise self._error("not base64") from error

    def _skip_space(self) -> None:
        # The pattern matches nothing too, so there is always a match.
        self.position = _SPACE.match(self.data, self.position).end()  # type: ignore[union-attr]

    def _match(self, pattern: re.Pattern[bytes], otherwise: str) -> re.Match[bytes]:
        match = pattern.match(self.data, self.position)
        if match is None:
            raise self._error(otherwise)
        self.position = match.end()
        return match

    def _error(self, what: str) -> EncodingError:
        return EncodingError(f"{what} at octet {self.position}", code="SEXP_SYNTAX")
