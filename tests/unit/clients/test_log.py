"""The client of a served log against a service that answers as it likes: it is bounded, and one lane stops no other."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest

from maia import wire
from maia.clients.log import LogClient
from maia.errors import DeniedError, EncodingError, NotFoundError, VerificationError
from maia.principals import KeySigner

SERVER = KeySigner.generate()
LANE = f"type={'ab' * 32}/origin={'cd' * 32}"
RECORD, HEAD = f"{LANE}/000000000000.record", f"{LANE}/head"
SHAPE = re.compile(r"type=[0-9a-f]{64}")


class Served(LogClient):
    """A client whose service is a function: it gets a path and a query, and gives a status and octets."""

    def __init__(self, answer: Callable[[str, dict[str, str]], tuple[int, bytes]]) -> None:
        super().__init__("https://evil.example", signer=KeySigner.generate(), server_key=SERVER.public_key)
        self.answer, self.asked = answer, 0

    def _answer(self, method: str, target: str, content: bytes) -> wire.Answer:
        self.asked += 1
        assert self.asked < 100, "it is asked for ever"
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        status, body = self.answer(parts.path, query)
        request = wire.ServiceRequest(method=method, url=f"https://evil.example{target}", body=content)
        return wire.Answer(status_code=status, headers=wire.Fields([]), body=body, request=request)


def _page(names: list[str]) -> tuple[int, bytes]:
    return 200, json.dumps({"folders": names}).encode()


def test_names_that_are_no_lanes_end_a_listing() -> None:
    """However many of them there are: an honest service gives none."""
    client = Served(lambda _path, query: _page([f"{query['after']}z{number:04d}" for number in range(1000)]))
    assert client.list_folders("", "type=", limit=4096, shape=SHAPE) == []
    assert client.asked == 1


def test_a_listing_takes_so_many_answers_as_its_limit_has_pages() -> None:
    """One name of the shape in each page is not enough to go on for ever."""

    def answer(_path: str, _query: dict[str, str]) -> tuple[int, bytes]:
        name = f"type={client.asked:064x}"
        return _page([name, *(f"{name}{number:04d}" for number in range(999))])

    client = Served(answer)
    assert len(client.list_folders("", "type=", limit=4096, shape=SHAPE)) == client.asked == 6


@pytest.mark.parametrize("status", [400, 403, 409])
@pytest.mark.parametrize("name", [RECORD, HEAD])
def test_a_refusal_of_one_object_is_an_object_that_cannot_be_read(name: str, status: int) -> None:
    """Who is let in is not refused one lane: the lane is in doubt, and the others go on."""
    client = Served(lambda path, _query: _page([]) if path == "/v1/log/folders" else (status, b'{"code": "REFUSED"}'))
    with pytest.raises(EncodingError, match=r"OBJECT_UNFIT.*REFUSED"):
        client.get(name, limit=1 << 20)


def test_who_is_not_let_in_is_told() -> None:
    """And so are sessions that end."""
    for status, kind in ((403, DeniedError), (401, VerificationError), (404, NotFoundError)):
        with pytest.raises(kind):
            Served(lambda _path, _query, status=status: (status, b"{}")).get(HEAD, limit=1 << 20)  # type: ignore[misc]


def test_a_part_is_all_that_was_asked_for() -> None:
    """Who gives an octet at a time is asked once."""
    client = Served(lambda _path, _query: (200, wire.write_part(1 << 30, b"x")))
    with pytest.raises(EncodingError, match="OBJECT_UNFIT"):
        client.open(f"{LANE}/date=2026-01-01/a.parquet", limit=1 << 30)
