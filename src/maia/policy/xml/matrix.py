"""Writes an access matrix, a table of users and what they may, as an XML policy.

    user,door,yard,filter:greyscale,filter:mirror@c1
    ann,allow,deny 22:00-06:00,allow,allow
    bob,blur lower-half,allow 08:00-18:00,,

Rules:
    1. The first line names the columns: ``user``, then cameras, and filters as ``filter:NAME`` or
       ``filter:NAME@CHANNEL``. Each user and each column stands once; nobody is called ``*``.
    2. The cell of a camera holds words with ``;`` between them: ``allow`` or ``deny``, perhaps with hours, and handlers
       (``blur REGION``, ``greyscale``, ``half-size``, ``mirror``, ``edges``, ``frame-rate one in N``), which allow as
       well. An empty cell allows nothing; a cell that only denies hours allows the others.
    3. The cell of a filter is ``allow``, or empty or ``deny``, which both deny.
    4. What has no column is not spoken of; who has no line gets nothing.
    5. What is written is read again, so a matrix makes a valid policy or an error with its line.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from html import escape

from maia.encoding import printable
from maia.policy.problems import PolicySyntaxError
from maia.policy.xml.names import is_name
from maia.policy.xml.reader import DEFAULT_XML_LIMITS, NAMESPACE, XmlLimits, parse_xml
from maia.policy.xml.rules import ForcedKind

_ACCESS = re.compile(r"(allow|deny)(?: ([0-9]{2}:[0-9]{2})-([0-9]{2}:[0-9]{2}))?")
_BLUR = re.compile(r"blur ([a-z-]+)")
_RATE = re.compile(r"frame-rate one in ([0-9]{1,5})")
_FILTER = "filter:"
_PLAIN = (ForcedKind.GREYSCALE, ForcedKind.HALF_SIZE, ForcedKind.MIRROR, ForcedKind.EDGES)


def import_matrix(text: str, limits: XmlLimits = DEFAULT_XML_LIMITS) -> str:
    r"""Write a matrix in CSV as the text of a policy.

    >>> print(import_matrix("user,door\nann,allow\nbob,deny 22:00-06:00\n"))
    <policies xmlns="urn:maia:policy:1">
      <access user="ann" camera="door" effect="allow"/>
      <access user="bob" camera="door" effect="allow"/>
      <access user="bob" camera="door" effect="deny"><between from="22:00" to="06:00"/></access>
    </policies>
    <BLANKLINE>

    Args:
        text: The table.
        limits: How much of it is read.

    Raises:
        PolicySyntaxError: ``MATRIX_SYNTAX`` or ``MATRIX_CELL``, with the line, and the column as a number of the cell;
            ``XML_LIMIT`` when it makes too many rules.
    """
    if len(text.encode("utf-8", "surrogatepass")) > limits.octets:
        raise _problem(f"a matrix has at most {limits.octets} octets", (1, 1), code="XML_LIMIT")
    rules: list[str] = []
    for rule in _rules(text):
        if len(rules) >= limits.rules:
            raise _problem(f"the matrix makes more than {limits.rules} rules", (1, 1), code="XML_LIMIT")
        rules.append(f"  {rule}\n")
    made = f'<policies xmlns="{NAMESPACE}">\n{"".join(rules)}</policies>\n'
    parse_xml(made, limits)
    return made


def _rules(text: str) -> Iterator[str]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] = []
    users: set[str] = set()
    try:
        for row in reader:
            cells = [cell.strip(" ") for cell in row]
            if not any(cells):
                continue
            if not header:
                header = _checked_header(cells, reader.line_num)
                continue
            if len(cells) != len(header):
                message = f"{len(cells)} cells under {len(header)} columns"
                raise _problem(message, (reader.line_num, len(cells)), code="MATRIX_SYNTAX")
            if cells[0] in users or not is_name(cells[0], blanks=True):
                message = f"`{printable(cells[0][:64])}` is no name of a user, or stands twice"
                raise _problem(message, (reader.line_num, 1), code="MATRIX_SYNTAX")
            users.add(cells[0])
            yield from _line(cells, header, reader.line_num)
    except csv.Error as error:
        raise _problem(f"not CSV: {error}", (max(reader.line_num, 1), 1), code="MATRIX_SYNTAX") from error
    if not header:
        raise _problem("a matrix begins with its columns: `user`, cameras, filters", (1, 1), code="MATRIX_SYNTAX")


def _checked_header(cells: Sequence[str], line: int) -> list[str]:
    if cells[0] != "user" or len(cells) < 2:
        raise _problem("the first column is `user`, and others follow", (line, 1), code="MATRIX_SYNTAX")
    for place, name in enumerate(cells[1:], 2):
        parts = name.removeprefix(_FILTER).split("@") if name.startswith(_FILTER) else ()
        good = all(map(is_name, parts)) and len(parts) <= 2 if parts else is_name(name, blanks=True)
        if not good or name in cells[1 : place - 1]:
            message = f"`{printable(name[:64])}` is no camera and no filter, or stands twice"
            raise _problem(message, (line, place), code="MATRIX_SYNTAX")
    return list(cells)


def _line(cells: Sequence[str], header: Sequence[str], line: int) -> Iterator[str]:
    user = _quoted(cells[0])
    for place, (cell, name) in enumerate(zip(cells[1:], header[1:], strict=True), 2):
        if not name.startswith(_FILTER):
            yield from _camera(cell, user, _quoted(name), (line, place))
        elif cell in ("", "deny"):
            filter_, _, channel = name.removeprefix(_FILTER).partition("@")
            where = f" channel={_quoted(channel)}" if channel else ""
            yield f'<install user={user} filter={_quoted(filter_)}{where} effect="deny"/>'
        elif cell != "allow":
            raise _problem("the cell of a filter is `allow`, `deny` or empty", (line, place), code="MATRIX_CELL")


def _camera(cell: str, user: str, camera: str, place: tuple[int, int]) -> Iterator[str]:
    access, handlers = list[tuple[str, str]](), list[str]()
    for word in filter(None, (part.strip(" ") for part in cell.split(";"))):
        if match := _ACCESS.fullmatch(word):
            hours = f"<between from={_quoted(match[2])} to={_quoted(match[3])}/>" if match[2] else ""
            access.append((match[1], hours))
        elif match := _BLUR.fullmatch(word):
            handlers.append(f"<blur region={_quoted(match[1])}/>")
        elif match := _RATE.fullmatch(word):
            handlers.append(f"<frame-rate keep-one-in={_quoted(match[1])}/>")
        elif word in _PLAIN:
            handlers.append(f"<{word}/>")
        else:
            message = f"`{printable(word[:64])}` is no word of a cell, such as `allow` or `deny 22:00-06:00`"
            raise _problem(message, place, code="MATRIX_CELL")
    if not access and not handlers:
        return
    if all(effect == "deny" for effect, _ in access) and ("deny", "") not in access:
        access.insert(0, ("allow", ""))
    for effect, hours in access:
        start = f'<access user={user} camera={camera} effect="{effect}"'
        yield f"{start}>{hours}</access>" if hours else f"{start}/>"
    if handlers:
        yield f"<image camera={camera} user={user}>{''.join(handlers)}</image>"


def _quoted(text: str) -> str:
    return f'"{escape(text)}"'


def _problem(message: str, place: tuple[int, int], *, code: str) -> PolicySyntaxError:
    line, column = place
    return PolicySyntaxError(f"line {line}, cell {column}: {message}", code=code, line=line, column=column)
