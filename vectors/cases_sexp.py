"""Canonical S-expressions: the one spelling, and every near miss."""

from __future__ import annotations

from builders import Case, case

ABOUT = "Canonical bytes (RFC 9804) have one spelling per value; the advanced form is for people."


def cases() -> list[Case]:
    """List the cases."""
    return [
        *(_good(says, data, text) for says, data, text in GOOD),
        *(case(says, "sexp.parse", {"data_hex": data.hex()}, {"error": code}) for says, data, code in BAD),
        *(case(says, "sexp.read", {"text": text}, {"canonical_hex": data.hex()}) for says, text, data in READ),
        *(case(says, "sexp.read", {"text": text}, {"error": code}) for says, text, code in UNREADABLE),
    ]


def _good(says: str, data: bytes, text: str) -> Case:
    return case(says, "sexp.parse", {"data_hex": data.hex()}, {"advanced": text})


GOOD = [
    ("the empty string", b"0:", '""'),
    ("a string of one octet", b"1:a", "a"),
    ("a string that looks like an expression", b"3:(1:", '"(1:"'),
    ("the empty list", b"()", "()"),
    ("a list in a list", b"(4:cert(6:issuer3:bob))", "(cert (issuer bob))"),
    ("octets that are no text", b"2:\x00\xff", "#00ff#"),
    ("a display hint", b"[10:text/plain]3:foo", "[text/plain]foo"),
    ("64 lists in each other, the deepest allowed", b"(" * 64 + b")" * 64, "(" * 64 + ")" * 64),
]
NOT = "SEXP_NOT_CANONICAL"
BAD = [
    ("no octets at all", b"", NOT),
    ("a length with a leading zero", b"03:abc", NOT),
    ("the empty string with two zeros", b"00:", NOT),
    ("a length without a colon", b"3abc", NOT),
    ("a colon without a length", b":abc", NOT),
    ("a string that runs past the end", b"4:abc", NOT),
    ("a length larger than any input", b"99999999:a", NOT),
    ("a length of more digits than are read", b"1000000000:a", NOT),
    ("a list without its end", b"(3:abc", NOT),
    ("an end without its list", b"3:abc)", NOT),
    ("an octet after the expression", b"3:abcx", NOT),
    ("two expressions", b"3:abc3:def", NOT),
    ("a space before the expression", b" 3:abc", NOT),
    ("a space inside a list", b"(3:abc )", NOT),
    ("a token", b"(abc)", NOT),
    ("a quoted string", b'"abc"', NOT),
    ("hexadecimal", b"#616263#", NOT),
    ("base64", b"|YWJj|", NOT),
    ("a display hint without its end", b"[1:a1:b", NOT),
    ("a display hint on a list", b"[1:a](1:b)", NOT),
    ("a display hint on a display hint", b"[1:a][1:b]1:c", NOT),
    ("a display hint alone", b"[1:a]", NOT),
    ("a negative length", b"-1:a", NOT),
    ("65 lists in each other", b"(" * 65 + b")" * 65, "SEXP_TOO_DEEP"),
]
READ = [
    (
        "a token, a string, hexadecimal and base64 of the same octets",
        '(abc "abc" #616263# |YWJj|)',
        b"(3:abc3:abc3:abc3:abc)",
    ),
    ("verbatim strings in the advanced form", "(3:abc 0:)", b"(3:abc0:)"),
    ("escapes in a quoted string", '"a\\n\\x41\\101\\\\"', b"5:a\nAA\\"),
    ("a transport form", "{MzphYmM=}", b"3:abc"),
    ("white space of every kind", " ( a\t\n b ) ", b"(1:a1:b)"),
]
SYNTAX = "SEXP_SYNTAX"
UNREADABLE = [
    ("text after the expression", "a b", SYNTAX),
    ("a quoted string without its end", '"abc', SYNTAX),
    ("an unknown escape", '"\\q"', SYNTAX),
    ("an octal escape beyond one octet", '"\\400"', SYNTAX),
    ("an odd number of hexadecimal digits", "#616#", SYNTAX),
    ("a declared length that differs", '2"abc"', SYNTAX),
    ("a transport form of something not canonical", "{MDM6YWJj}", NOT),
]
