"""Canonical S-expressions (RFC 9804, section 6.1): one value, one spelling.

Whatever Maia signs or hashes is in this form. The reader accepts exactly the bytes the writer makes:

- a length is decimal ASCII without a leading zero (``0:`` is the empty string), followed by ``:`` and that many octets;
- no white space, no other string form, no bytes after the expression;
- a display hint is ``[`` octet string ``]`` followed by an octet string, never by a list or another hint;
- the input size, the nesting depth and the length of one string stay within `SexpLimits`;
- a declared length is compared with what is there before anything is copied, so a huge one costs nothing.

Reader and writer use their own stacks: depth is bounded by the limits, never by the interpreter.
"""

from __future__ import annotations

from maia.encoding.sexp import DEFAULT_LIMITS, END_OF_LIST, EndOfList, Hinted, Sexp, SexpLimits
from maia.errors import EncodingError, UsageError

_OPEN, _CLOSE, _HINT, _END_HINT = b"(", b")", b"[", b"]"


def encode(expression: Sexp) -> bytes:
    """Write an expression in canonical form.

    Args:
        expression: Octet strings, hinted strings and tuples of them.

    Returns:
        The only canonical spelling of ``expression``.

    Raises:
        UsageError: Something else than bytes, `Hinted` or tuple was found.

    >>> encode((b"cert", (b"issuer", b"bob")))
    b'(4:cert(6:issuer3:bob))'
    """
    out: list[bytes] = []
    append = out.append
    stack: list[Sexp | EndOfList] = [expression]
    while stack:
        item = stack.pop()
        if type(item) is bytes:
            append(b"%d:%b" % (len(item), item))
        elif type(item) is tuple:
            append(_OPEN)
            stack.append(END_OF_LIST)
            stack.extend(item[::-1])
        elif item is END_OF_LIST:
            append(_CLOSE)
        elif isinstance(item, Hinted):
            append(b"[%d:%b]%d:%b" % (len(item.hint), item.hint, len(item.octets), item.octets))
        else:
            raise UsageError(f"an S-expression holds no {type(item).__name__}")
    return b"".join(out)


def parse_canonical(  # noqa: C901, PLR0912 - one loop, since every verification waits for it
    data: bytes, *, limits: SexpLimits = DEFAULT_LIMITS
) -> Sexp:
    """Read one canonical expression that fills ``data`` exactly.

    Args:
        data: The bytes as they came.
        limits: Bounds on size, depth and string length.

    Returns:
        The expression; ``encode`` of it gives ``data`` back, octet for octet.

    Raises:
        EncodingError: The bytes are not canonical, or exceed a limit.

    >>> parse_canonical(b"(4:cert(6:issuer3:bob))")
    (b'cert', (b'issuer', b'bob'))
    >>> parse_canonical(b"(04:cert)")
    Traceback (most recent call last):
    ...
    maia.errors.EncodingError: [SEXP_NOT_CANONICAL] length with a leading zero at octet 1
    """
    if len(data) > limits.max_bytes:
        raise EncodingError(f"expression of {len(data)} octets, limit {limits.max_bytes}", code="SEXP_TOO_LARGE")
    data = bytes(data)
    stack: list[list[Sexp]] = []
    items: list[Sexp] = []
    position, end = 0, len(data)
    find, max_atom = data.find, limits.max_atom
    while position < end:
        head = data[position]
        if 48 <= head <= 57:  # a digit
            start = position + 2
            if start <= end and data[position + 1] == 58:  # one digit and a colon, as most lengths are
                length = head - 48
            else:
                colon = find(b":", position, position + 9)
                digits = data[position:colon]
                if colon < 0 or not digits.isdigit():
                    raise _not_canonical("length without a colon", position)
                if head == 48:
                    raise _not_canonical("length with a leading zero", position)
                length = int(digits)
                start = colon + 1
            position = start + length
            if position > end:
                raise _not_canonical("string runs past the end", start)
            if length > max_atom:
                raise EncodingError(f"string of {length} octets, limit {max_atom}", code="SEXP_TOO_LARGE")
            items.append(data[start:position])
        elif head == 40:  # (
            if len(stack) >= limits.max_depth:
                raise EncodingError(f"lists nested deeper than {limits.max_depth}", code="SEXP_TOO_DEEP")
            stack.append(items)
            items = []
            position += 1
            continue
        elif head == 41:  # )
            if not stack:
                raise _not_canonical("closing bracket without an opening one", position)
            done = tuple(items)
            items = stack.pop()
            items.append(done)
            position += 1
        elif head == 91:  # [
            hint, position = _string(data, position + 1, limits)
            if data[position : position + 1] != _END_HINT:
                raise _not_canonical("display hint without `]`", position)
            octets, position = _string(data, position + 1, limits)
            items.append(Hinted(hint, octets))
        else:
            raise _not_canonical("unexpected octet", position)
        if not stack:
            break
    if stack or not items:
        raise _not_canonical("expression ends too early", end)
    if position != end:
        raise _not_canonical("octets after the expression", position)
    return items[0]


def _string(data: bytes, position: int, limits: SexpLimits) -> tuple[bytes, int]:
    """Read one octet string at ``position``; the slow path, used inside hints."""
    colon = data.find(b":", position, position + 9)
    digits = data[position : max(colon, position)]
    if not digits.isdigit() or (digits[0] == 48 and len(digits) > 1):
        raise _not_canonical("expected an octet string", position)
    stop = colon + 1 + int(digits)
    if stop > len(data):
        raise _not_canonical("string runs past the end", colon + 1)
    if int(digits) > limits.max_atom:
        raise EncodingError(f"string of {int(digits)} octets, limit {limits.max_atom}", code="SEXP_TOO_LARGE")
    return data[colon + 1 : stop], stop


def _not_canonical(what: str, position: int) -> EncodingError:
    return EncodingError(f"{what} at octet {position}", code="SEXP_NOT_CANONICAL")
