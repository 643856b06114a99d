"""`maia conformance`: the adapter for independent test suites, on standard input and output."""

from __future__ import annotations

import sys

from maia.cli.options import examples, new_app

app = new_app()


@app.command(epilog=examples("""echo '{"id": 1, "verb": "sexp.parse", "text": "(1:a)"}' | maia conformance"""))
def conformance() -> None:
    """Answer one JSON object a line with one JSON object a line, until the input ends.

    Every line is answered, also one that makes no sense.
    """
    from maia.cli.conformance import run

    run(sys.stdin.buffer, sys.stdout.buffer)
