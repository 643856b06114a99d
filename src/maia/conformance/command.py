"""`maia conformance`: the adapter for independent test suites, on standard input and output."""

from __future__ import annotations

import sys

from maia.cli import examples, new_app

app = new_app()


_QUESTION = '{"id": 1, "verb": "tag.permits", "tag": "(ftp (* prefix r))", "request": "(ftp read)"}'


@app.command(epilog=examples(f"echo '{_QUESTION}' | maia conformance"))
def conformance() -> None:
    """Answer one JSON object a line with one JSON object a line, until the input ends.

    Every line is answered, also one that makes no sense.
    """
    from maia.conformance.adapter import run

    run(sys.stdin.buffer, sys.stdout.buffer)
