"""Canonical S-expressions (RFC 9804): the one form that Maia signs, hashes and stores."""

from maia.encoding.advanced import format_advanced, parse_advanced
from maia.encoding.canonical import encode, parse_canonical
from maia.encoding.html_table import html_table
from maia.encoding.printable import counted, did_you_mean, duration, printable
from maia.encoding.sexp import DEFAULT_LIMITS, Hinted, Sexp, SexpLimits

__all__ = [
    "DEFAULT_LIMITS",
    "Hinted",
    "Sexp",
    "SexpLimits",
    "counted",
    "did_you_mean",
    "duration",
    "encode",
    "format_advanced",
    "html_table",
    "parse_advanced",
    "parse_canonical",
    "printable",
]
