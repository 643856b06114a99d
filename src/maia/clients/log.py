"""The client of a log that a domain serves: the reading half of a store, over signed requests.

Rules kept here:

- what is given is octets by name, and nothing of it is believed: whoever copies verifies it (`maia.log.copy_lane`);
- records come several at a time, and those that were not asked for yet wait here, so many and no longer than a round;
- an answer of another shape, and the refusal of one object to somebody who is let in, is an object that cannot be read,
  and never stops another lane;
- a listing takes so many answers as its limit has pages, and a part is all that was asked for: who serves holds nobody.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from maia import wire
from maia.clients.addresses import AddressPolicy
from maia.clients.reading import read_blobs, read_number, read_table, read_texts
from maia.clients.service import ClientLimits, ServiceClient
from maia.domain import BrokerCredentials
from maia.errors import DeniedError, EncodingError, MalformedError, UsageError
from maia.principals import PublicKey, Signer

_LIMITS = ClientLimits(seconds=30.0, answer=1 << 20)
_MOST_SHOWN = 64


class LogClient(ServiceClient):
    """Reads the log that a service serves."""

    def __init__(
        self,
        url: str,
        *,
        signer: Signer,
        server_key: PublicKey,
        policy: AddressPolicy | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Know a served log; no connection is made yet.

        Args:
            url: The service's address.
            signer: Who asks: the broker of the domain that copies.
            server_key: The key of the broker whose log it is.
            policy: Where connections may go; public addresses only unless given.
            tls: Which certificate authorities are trusted; the system's unless given.

        Raises:
            MalformedError: The address is refused.
        """
        super().__init__(url, signer=signer, server_key=server_key, policy=policy, limits=_LIMITS, tls=tls)
        self._waiting: dict[str, bytes] = {}

    def introduce(self, shown: BrokerCredentials) -> BrokerCredentials:
        """Show what lets the asking broker connect, and see what lets the other one.

        Raises:
            MaiaError: As `ServiceClient.call` does.
        """
        body = {
            "certificates": [wire.encode_octets(raw) for raw in shown.certificates[:_MOST_SHOWN]],
            "statements": [wire.encode_octets(raw) for raw in shown.statements[:_MOST_SHOWN]],
        }
        answer = read_table(self.call("POST", "/v1/log/introduction", body=body))
        return BrokerCredentials(
            certificates=read_blobs(answer, "certificates"), statements=read_blobs(answer, "statements")
        )

    def get(self, name: str, *, limit: int) -> bytes:
        """Return an object of at most ``limit`` octets.

        Raises:
            NotFoundError: There is none: ``NO_OBJECT``.
            EncodingError: It is larger: ``OBJECT_UNFIT``.
            UnavailableError: The service did not answer.
        """
        place = wire.split_record(name)
        data = None if place is None else self._record(name, *place)
        if data is None:
            with self.open(name, limit=limit) as opened:
                data = opened.get_range(0, opened.size)
        if len(data) > limit:
            raise _unfit(name)
        return data

    def open(self, name: str, *, limit: int) -> ServedObject:
        """Open an object of at most ``limit`` octets, to read parts of it.

        Raises:
            NotFoundError: There is none: ``NO_OBJECT``.
            EncodingError: It is larger: ``OBJECT_UNFIT``.
            UnavailableError: The service did not answer.
        """
        opened = ServedObject(self, name)
        if opened.size > limit:
            raise _unfit(name)
        return opened

    def list_folders(self, folder: str, after: str, *, limit: int, shape: re.Pattern[str] | None = None) -> list[str]:
        """List the folders of lanes that sort after a name, in order, at most so many."""
        found: list[str] = []
        for _ in range(limit // wire.LOG_FOLDERS + 2):
            answer = self.call("GET", "/v1/log/folders", query={"folder": folder, "after": after})
            page = read_texts(read_table(answer), "folders")[: wire.LOG_FOLDERS]
            # SECURITY: names go on growing, or who serves could keep us listing for ever.
            fresh = [name for name in page if name > after]
            fitting = [name for name in fresh if shape is None or shape.fullmatch(name)]
            found += fitting
            # SECURITY: what is no lane by its name is not listed by those who mean well, so nothing follows it.
            if len(page) < wire.LOG_FOLDERS or not fitting or len(found) >= limit:
                break
            after = max(fresh)
        return sorted(set(found))[:limit]

    def unwanted(self, name: str, filters: Sequence[bytes]) -> tuple[tuple[str, ...], int]:
        """Ask which segments, from a record on, no filter wants, and which record was the last one looked at.

        Raises:
            MaiaError: As `ServiceClient.call` does: a filter is refused.
        """
        body = {"name": name, "filters": [wire.encode_octets(raw) for raw in filters]}
        answer = read_table(self.call("POST", "/v1/log/unwanted", body=body))
        return read_texts(answer, "segments"), read_number(answer, "last")

    def part(self, name: str, start: int, length: int) -> tuple[int, bytes]:
        """Ask for a part of an object; give how large the whole is, too."""
        query: dict[str, str | int] = {"name": name, "start": start, "length": min(length, wire.LOG_PART)}
        size, data = wire.read_part(self.fetch("/v1/log/objects", query=query))
        if len(data) != max(0, min(length, wire.LOG_PART, size - start)):
            raise _unfit(name)
        return size, data

    def fetch(self, path: str, *, query: Mapping[str, str | int]) -> bytes:
        """Ask for octets, as `ServiceClient.fetch` does.

        Raises:
            EncodingError: This object is refused, to somebody who is let in: ``OBJECT_UNFIT``.
            MaiaError: As `call` does.
        """
        try:
            return super().fetch(path, query=query)
        except (DeniedError, MalformedError, UsageError) as error:
            # SECURITY: one refusal ends no round, or it would hide all that other lanes wait for. Who may not connect
            # is refused this as well.
            self.call("GET", "/v1/log/folders", query={"folder": "", "after": "~"})
            text = f"`{query['name']}` is refused by who serves it: {error.code}"
            raise EncodingError(text, code="OBJECT_UNFIT") from error

    def _record(self, name: str, lane: str, number: int) -> bytes | None:
        """Give a record, with those behind it on the same way; nothing when it is too large for that."""
        waiting = self._waiting.pop(name, None)
        if waiting is not None:
            return waiting
        found = wire.read_records(self.fetch("/v1/log/records", query={"name": name}))
        self._waiting = {f"{lane}/{number + step:012d}.record": data for step, data in enumerate(found)}
        return self._waiting.pop(name, None)


class ServedObject:
    """An object of a served log, read in parts; that they are of one object is for its digest to tell."""

    def __init__(self, client: LogClient, name: str) -> None:
        """Ask for its beginning."""
        self._client, self._name = client, name
        self.size, self._begin = client.part(name, 0, wire.LOG_PART)

    def get_range(self, start: int, length: int) -> bytes:
        """Return so many octets from a place on; fewer where the object ends."""
        parts, end = [], start + length
        while start < min(end, self.size):
            data = self._begin[start : min(end, len(self._begin))]
            if not data:
                _, data = self._client.part(self._name, start, min(end, self.size) - start)
            if not data:
                break
            parts.append(data)
            start += len(data)
        return b"".join(parts)

    def close(self) -> None:
        """Let go of it."""
        self._begin = b""

    def __enter__(self) -> Self:
        """Use it for a while."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of it."""
        self.close()


def _unfit(name: str) -> EncodingError:
    return EncodingError(f"`{name}` is no object that can be read here", code="OBJECT_UNFIT")
