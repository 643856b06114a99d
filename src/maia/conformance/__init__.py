"""`maia conformance`: answers one JSON object a line with one JSON object a line, on the real functions."""

from maia.conformance.adapter import FAMILIES, answer_line, run

__all__ = ["FAMILIES", "answer_line", "run"]
