"""The frames of one connection to a gateway: questions with their answers, and events for whoever follows them."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection

from maia import wire
from maia.clients.service import error_of, safe_code, safe_text
from maia.errors import MaiaError, MalformedError, UnavailableError

_MAX_IN_FLIGHT = 32


class EventTaker(Protocol):
    """Takes the events of one subscription; called from the thread that reads."""

    @property
    def name(self) -> str:
        """The subscription's name."""
        ...

    def take(self, rows: list[dict[str, Any]], after: str) -> None:
        """Take events, and the place behind them."""
        ...

    def end(self, error: MaiaError) -> None:
        """Hear that no more come."""
        ...


class Conversation:
    """Speaks over a connection; after `start` a thread reads it."""

    def __init__(self, connection: ClientConnection, *, seconds: float) -> None:
        """Take a connection that is open; a question may take so long."""
        self._connection = connection
        self._seconds = seconds
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(_MAX_IN_FLIGHT)
        self._number = 0
        self._waiting: dict[int, queue.SimpleQueue[Mapping[str, Any] | MaiaError]] = {}
        self._followers: dict[str, EventTaker] = {}
        self._over: MaiaError | None = None
        self._reader: threading.Thread | None = None

    def start(self) -> None:
        """Read in a thread from now on."""
        self._reader = threading.Thread(target=self._read, name="maia-gateway", daemon=True)
        self._reader.start()

    def close(self) -> None:
        """End the connection."""
        with suppress(WebSocketException, OSError):
            self._connection.close()
        if self._reader is not None and self._reader is not threading.current_thread():
            self._reader.join(self._seconds)

    def say(self, operation: str, **fields: object) -> None:
        """Send a frame.

        Raises:
            UnavailableError: The connection is gone.
        """
        try:
            self._connection.send(wire.write_frame(operation, **fields))
        except (WebSocketException, OSError) as error:
            raise self._over or _gone() from error

    def hear(self, operation: str, *, seconds: float) -> Mapping[str, Any]:
        """Wait for the one frame that comes next, before a thread reads.

        Raises:
            MaiaError: It is a refusal, another one, or does not come.
        """
        try:
            frame = _parse(self._connection.recv(timeout=max(seconds, 0.001)))
        except TimeoutError as error:
            raise UnavailableError("the gateway took too long", code="PEER_TIMEOUT") from error
        except (WebSocketException, OSError) as error:
            raise _gone() from error
        if frame.get("op") == "problem":
            raise _refusal(frame)
        if frame.get("op") != operation:
            raise MalformedError("the gateway says something else", code="ANSWER")
        return frame

    def ask(self, operation: str, answer: str, **fields: object) -> Mapping[str, Any]:
        """Ask something and wait for its answer.

        Raises:
            MaiaError: The gateway refuses, or does not answer in time; then nobody knows whether it was done.
        """
        with self._room:
            heard: queue.SimpleQueue[Mapping[str, Any] | MaiaError] = queue.SimpleQueue()
            with self._lock:
                if self._over is not None:
                    raise self._over
                self._number += 1
                number = self._number
                self._waiting[number] = heard
            try:
                self.say(operation, id=number, **fields)
                found = heard.get(timeout=self._seconds)
            except queue.Empty as error:
                raise UnavailableError("the gateway took too long", code="PEER_TIMEOUT") from error
            finally:
                with self._lock:
                    self._waiting.pop(number, None)
        if isinstance(found, MaiaError):
            raise found
        if found.get("op") != answer:
            raise MalformedError("the gateway answers something else", code="ANSWER")
        return found

    def follow(self, follower: EventTaker) -> None:
        """Hand a subscription's events to somebody from now on.

        Raises:
            MaiaError: The connection is gone.
        """
        with self._lock:
            if self._over is not None:
                raise self._over
            self._followers.setdefault(follower.name, follower)

    def forget(self, name: str) -> None:
        """Hand them to nobody."""
        with self._lock:
            follower = self._followers.pop(name, None)
        if follower is not None:
            follower.end(UnavailableError("the subscription has ended", code="SUBSCRIPTION_ENDED"))

    def _read(self) -> None:
        over: MaiaError = _gone()
        try:
            while True:
                frame = _parse(self._connection.recv())
                if frame.get("op") == "problem" and "id" not in frame:
                    over = _refusal(frame)
                    break
                self._hand_on(frame)
        except ConnectionClosed:
            pass
        except (WebSocketException, OSError, EOFError):
            pass
        except MaiaError as error:
            over = error
        with self._lock:
            self._over = over
            waiting, followers = list(self._waiting.values()), list(self._followers.values())
        for heard in waiting:
            heard.put(over)
        for follower in followers:
            follower.end(over)
        with suppress(WebSocketException, OSError):
            self._connection.close()

    def _hand_on(self, frame: Mapping[str, Any]) -> None:
        operation, name = frame.get("op"), frame.get("name")
        if operation in ("events", "ended") and isinstance(name, str):
            with self._lock:
                follower = self._followers.get(name)
                if operation == "ended":
                    self._followers.pop(name, None)
            if follower is None:
                return
            rows = frame.get("rows")
            if operation == "ended":
                follower.end(_refusal(frame))
            elif isinstance(rows, list):
                follower.take(rows, str(frame.get("after", "")))
            return
        with self._lock:
            heard = self._waiting.get(frame.get("id", -1))
        if heard is not None:
            heard.put(_refusal(frame) if operation == "problem" else frame)


def _parse(data: str | bytes) -> dict[str, Any]:
    try:
        frame = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedError("the gateway does not speak JSON", code="ANSWER") from error
    if not isinstance(frame, dict):
        raise MalformedError("the gateway says something else", code="ANSWER")
    return frame


def _refusal(frame: Mapping[str, Any]) -> MaiaError:
    status = frame.get("status")
    detail = safe_text(frame.get("detail") or "the gateway refuses")
    return error_of(status if isinstance(status, int) else 500, detail, safe_code(frame.get("code")))


def _gone() -> MaiaError:
    return UnavailableError("the connection to the gateway is gone; connect again", code="PEER_UNAVAILABLE")
