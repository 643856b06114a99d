"""Spark's errors as Maia's: one error with a code, and no stack of the Java machine.

Rules kept here: an error that Maia raised inside Spark leaves as that error, by class and code; any other leaves as one
line that names Spark's own condition and holds no value of an event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

import maia.errors
from maia.errors import MaiaError, UnavailableError

SPARK_KINDS = (PySparkException, Py4JError)
"""What Spark raises: its own errors, and those of its bridge to Java, which comes with it."""
_RAISED = re.compile(r"(?:^|(?<=[\s:]))maia\.(?:\w+\.)*(\w+): \[([A-Z][A-Z0-9_]*)\] (.*)$", re.MULTILINE)
"""Maia's error wherever Spark puts it: on a line of its own, or behind words of Spark's."""
_CONDITION = re.compile(r"(?:\A\s*|^(?:Caused by)?: (?:[\w$]+\.)+[\w$]+: )\[([A-Z][A-Z0-9_.]*)\]", re.MULTILINE)
"""Spark's own condition: what its text starts with, or behind the name of the error of Java."""
_JAVA = re.compile(r"^: (?:[\w$]+\.)+([\w$]+)", re.MULTILINE)


@contextmanager
def spark_errors() -> Iterator[None]:
    """Let errors leave as what they are: Maia's own by class and code, Spark's as ``SPARK_FAILED``."""
    try:
        yield
    except SPARK_KINDS as error:
        raise unwrap(str(error)) from error


def unwrap(text: str) -> MaiaError:
    r"""Find the error that Maia raised in what Spark says about it.

    >>> unwrap("Traceback\nmaia.errors.ChainError: [NOT_PERMITTED] no `x`\n SQLSTATE: 38000")
    ChainError('no `x`')
    >>> unwrap("[PYTHON_DATA_SOURCE_ERROR] Failed: maia.errors.UsageError: [NOT_A_CLIENT] `broker` is none")
    UsageError('`broker` is none')
    >>> unwrap("An error occurred while calling o8.load.\n: org.x.SparkError: [DATA_SOURCE_NOT_FOUND] no `y`").message
    'Spark failed: DATA_SOURCE_NOT_FOUND; `maia -v` shows more, and in Python the `__cause__` of this error'
    """
    found = _RAISED.findall(text)
    if found:
        name, code, message = found[-1]
        kind = getattr(maia.errors, name, MaiaError)
        known = isinstance(kind, type) and issubclass(kind, MaiaError)
        return (kind if known else MaiaError)(message.strip(), code=code)
    first = text.strip().splitlines()[0] if text.strip() else "no reason given"
    # The bridge to Java names first what it called, which helps nobody; a Java error may have values behind its name.
    reason = _CONDITION.search(text) or _JAVA.search(text)
    return UnavailableError(
        f"Spark failed: {reason[1] if reason else first[:200]}; `maia -v` shows more, and in Python the `__cause__` of "
        "this error",
        code="SPARK_FAILED",
    )
