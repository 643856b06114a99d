"""Crowds of clients that cost a service something: slow, silent, idle and greedy ones, thousands of each."""

from __future__ import annotations

import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

_HOST = "host: 127.0.0.1\r\n"
_POST = f"POST /v1/challenge HTTP/1.1\r\n{_HOST}content-type: application/json\r\n"
HEALTH = f"GET /healthz HTTP/1.1\r\n{_HOST}\r\n"
"""A whole request, to which every service has an answer."""
CROWDS: dict[str, str] = {
    "slow heads": "POST /v1/challenge HTTP/1.1\r\nx-slow: ",
    "nothing at all": "",
    "slow bodies": f"{_POST}content-length: 1000\r\n\r\n{{",
    "idle after an answer": HEALTH,
    "many at once, never read": HEALTH * 40,
    "an endless head": f"GET /healthz HTTP/1.1\r\n{_HOST}" + "x-more: " + "y" * 20_000,
}
"""What clients of each kind say, and then no more."""
_ROOM = 512


def make_room(many: int) -> None:
    """Let this process have so many connections, as far as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, many + _ROOM)), hard))


@contextmanager
def crowd(port: int, text: str, many: int) -> Iterator[Callable[[], None]]:
    """Open connections that say this and no more; give a way to say it a little further."""
    with ExitStack() as stack:
        peers = []
        for _ in range(many):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            with suppress(OSError):  # cut off already
                peer.sendall(text.encode())
            peers.append(peer)

        def drip() -> None:
            for peer in peers:
                with suppress(OSError):
                    peer.sendall(b"z")

        yield drip
