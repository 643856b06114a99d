"""A `maia` process of a network: it ends when the network's own process does, however that ended.

Its standard input is a pipe that nobody writes to. When it ends, the process is told to stop as a person would: a
service by SIGTERM, a link by Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
import threading


def main() -> None:
    """Run the command line that follows, for as long as standard input is open."""
    how = signal.SIGINT if "link" in sys.argv[1:2] else signal.SIGTERM
    threading.Thread(target=_end_with_input, args=(how,), daemon=True).start()
    from maia.cli import main as run

    run()


def _end_with_input(how: signal.Signals) -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), how)


if __name__ == "__main__":
    main()
