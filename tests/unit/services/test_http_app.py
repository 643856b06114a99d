"""What every service does with a request: limits on the way in, refusals that reveal nothing, signed answers."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from echo_service import Echo, free_port, send
from maia import wire
from maia.errors import (
    DeniedError,
    MalformedError,
    NotFoundError,
    UnavailableError,
    UsageError,
    VerificationError,
)
from maia.principals import KeySigner
from maia.services import http

ALICE, EVE = KeySigner(b"a" * 32), KeySigner(b"e" * 32)


@pytest.fixture
def echo(tmp_path: Path) -> Iterator[Echo]:
    """Give a running service."""
    service = Echo(str(tmp_path / "store.db"))
    with service.running():
        yield service


def problem(answer: httpx2.Response) -> tuple[int, str]:
    """Read a refusal: it is problem details, and says what its status says."""
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert set(body) <= {"type", "title", "status", "code", "detail"}
    assert body["status"] == answer.status_code
    return answer.status_code, body["code"]


def test_a_signed_request_is_answered(echo: Echo) -> None:
    """From the handshake to the verified answer."""
    with echo.client() as client:
        assert client.call("POST", "/v1/echo", body={"word": "hé"}) == {"word": "hé"}
        assert client.call("GET", "/v1/things/gold", query={"a": "b c&d"}) == {"word": "gold"}


def test_errors_keep_their_kind_over_http(echo: Echo) -> None:
    """Who must act is the same on both sides."""
    with echo.client() as client:
        for path, kind, code in (
            ("/v1/things/none", DeniedError, "DENIED"),
            ("/v1/things/taken", UsageError, "TAKEN"),
            ("/v1/nowhere", NotFoundError, "NO_PATH"),
            ("/v1/echo", MalformedError, "NO_METHOD"),
            ("/v1/things/failing", UnavailableError, "INTERNAL"),
        ):
            with pytest.raises(kind) as refusal:
                client.call("GET", path)
            assert refusal.value.code == code
        with pytest.raises(MalformedError) as refusal:
            client.call("POST", "/v1/echo", body={"word": 1, "more": 2})
        assert (refusal.value.code, refusal.value.message) == ("FIELDS", "`body.more`, `body.word`")


@pytest.mark.threat("T57")
def test_what_is_unknown_and_what_is_denied_look_alike(echo: Echo) -> None:
    """Byte for byte, but for what is signed: nobody learns by asking whether the gold exists."""
    session = echo.handshake(EVE)
    answers = [send(echo.sign(EVE, session, "GET", f"/v1/things/{name}")) for name in ("gold", "none")]
    assert answers[0].content == answers[1].content
    assert {problem(answer) for answer in answers} == {(403, "DENIED")}
    fields = [
        {k: v for k, v in answer.headers.items() if not k.startswith(("signature", "date"))} for answer in answers
    ]
    assert fields[0] == fields[1]


@pytest.mark.threat("T60")
def test_a_request_counts_once_also_after_a_restart(tmp_path: Path) -> None:
    """The same request again is refused: at once, and by the next process, which has no session either."""
    echo = Echo(str(tmp_path / "store.db"))
    with echo.running():
        request = echo.sign(ALICE, echo.handshake(ALICE), "POST", "/v1/echo", b'{"word":"hi"}')
        assert send(request).status_code == 200
        assert problem(send(request)) == (401, "REPLAY")
    with echo.running():
        assert problem(send(request)) == (401, "NO_SESSION")


@pytest.mark.threat("T60")
@pytest.mark.parametrize("change", ["method", "host", "path", "query", "body", "late"])
def test_a_request_serves_nothing_else(echo: Echo, change: str) -> None:
    """Another method, host, path, query, body or time: denied."""
    request = echo.sign(ALICE, echo.handshake(ALICE), "POST", "/v1/echo", b'{"word":"hi"}')
    match change:
        case "method":
            request.method = "PUT"
        case "host":
            request.headers["host"] = f"localhost:{echo.port}"  # the same service by another name
        case "path":
            request.url = request.url.replace("/v1/echo", "/v1/things/gold")
        case "query":
            request.url += "?more=1"
        case "body":
            request.body = b'{"word":"ho"}'
        case _:
            echo.clock.now += timedelta(seconds=31)
    answer = send(request)
    assert answer.status_code in (401, 405)
    assert answer.status_code == 401 or change in ("method", "path")


@pytest.mark.threat("T61")
def test_a_clock_that_steps_back_revives_no_request(echo: Echo) -> None:
    """What was too late stays too late: the service's time has a floor."""
    session = echo.handshake(ALICE)
    early = echo.sign(ALICE, session, "POST", "/v1/echo", b'{"word":"early"}')
    echo.clock.now += timedelta(hours=1)
    session = echo.handshake(ALICE)
    assert send(echo.sign(ALICE, session, "POST", "/v1/echo", b'{"word":"late"}')).status_code == 200
    assert problem(send(early)) == (401, "STALE_REQUEST")
    echo.clock.now -= timedelta(hours=1)
    assert problem(send(early)) == (401, "STALE_REQUEST")
    stale = echo.sign(ALICE, session, "POST", "/v1/echo", b'{"word":"by the wrong clock"}')
    assert problem(send(stale)) == (401, "STALE_REQUEST")


@pytest.mark.threat("T3")
def test_a_session_of_one_key_serves_no_other(echo: Echo) -> None:
    """Eve signs with her key in Alice's session: denied."""
    session = echo.handshake(ALICE)
    assert problem(send(echo.sign(EVE, session, "GET", "/v1/things/gold"))) == (401, "WRONG_KEY")


def test_a_session_ends(echo: Echo) -> None:
    """After ten minutes a session is none, and a client shakes hands again by itself."""
    session = echo.handshake(ALICE)
    with echo.client() as client:
        client.call("GET", "/v1/things/gold")
        echo.clock.now += timedelta(minutes=11)
        assert problem(send(echo.sign(ALICE, session, "GET", "/v1/things/gold"))) == (401, "NO_SESSION")
        assert client.call("GET", "/v1/things/gold") == {"word": "gold"}


def test_a_key_has_so_many_sessions_and_the_oldest_gives_way(echo: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of handshakes of one key costs that key its oldest session, and nobody else's."""
    monkeypatch.setattr("maia.services.http.sessions.MAX_SESSIONS_OF_KEY", 2)
    other = echo.handshake(ALICE)
    first, second, third = (echo.handshake(EVE) for _ in range(3))
    for session, status in ((first, 401), (second, 403), (third, 403)):
        assert send(echo.sign(EVE, session, "GET", "/v1/things/gold")).status_code == status
    assert send(echo.sign(ALICE, other, "GET", "/v1/things/gold")).status_code == 403


def test_a_handshake_counts_once(echo: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof of a handshake cannot be shown again."""
    sent = []
    post = httpx2.post
    monkeypatch.setattr(httpx2, "post", lambda url, json: sent.append((url, json)) or post(url, json=json))
    echo.handshake(ALICE)
    url, body = sent[1]
    assert problem(post(url, json=body)) == (401, "REPLAY")


def test_an_unsigned_request_is_not_authenticated(echo: Echo) -> None:
    """And is told how to become so."""
    answer = httpx2.post(f"{echo.url}/v1/echo", json={"word": "hi"})
    assert problem(answer) == (401, "NOT_SIGNED")
    assert answer.headers["www-authenticate"] == "Maia-Session"
    assert "signature" not in answer.headers


def test_refusals_of_signed_requests_are_signed(echo: Echo) -> None:
    """Nobody in between can say no in the service's name."""
    for path, status in (("/v1/echo", 405), ("/v1/none", 404), ("/v1/things/gold", 403), ("/v1/things/failing", 500)):
        request = echo.sign(EVE, echo.handshake(EVE), "GET", path)
        answer = send(request)
        assert answer.status_code == status
        fields = wire.Fields(answer.headers.multi_items())
        whole = wire.Answer(status_code=answer.status_code, headers=fields, body=answer.content, request=request)
        wire.verify_answer(whole, echo.server.public_key)


def test_a_failure_says_nothing_of_its_cause(echo: Echo) -> None:
    """A bug is answered, without its traceback."""
    answer = send(echo.sign(ALICE, echo.handshake(ALICE), "GET", "/v1/things/failing"))
    assert problem(answer) == (500, "INTERNAL")
    assert "ZeroDivision" not in answer.text


BAD_BODIES = {
    "a name twice": (b'{"word":"a","word":"b"}', {}, 400, "JSON"),
    "NaN": (b'{"word":NaN}', {}, 400, "JSON"),
    "text": (b"hi", {"content-type": "text/plain"}, 415, "CONTENT_TYPE"),
    "a form": (b"word=hi", {"content-type": "application/x-www-form-urlencoded"}, 415, "CONTENT_TYPE"),
    "no kind": (b'{"word":"a"}', {"content-type": ""}, 415, "CONTENT_TYPE"),
    "a bomb": (gzip.compress(bytes(10 << 20)), {"content-encoding": "gzip"}, 415, "CONTENT_CODING"),
    "too long": (b'"' + b"a" * (256 << 10) + b'"', {}, 413, "BODY_TOO_LARGE"),
    "no body": (b"", {}, 422, "FIELDS"),
    "another shape": (b"[]", {}, 422, "FIELDS"),
}


@pytest.mark.threat("T25")
@pytest.mark.threat("T53")
@pytest.mark.parametrize("body, fields, status, code", BAD_BODIES.values(), ids=BAD_BODIES)
def test_a_bad_body_is_refused(echo: Echo, body: bytes, fields: dict[str, str], status: int, code: str) -> None:
    """Before anything is inflated, parsed or kept."""
    sent = {"content-type": "application/json", **fields}
    answer = httpx2.post(f"{echo.url}/v1/challenge", content=body, headers=sent)
    assert problem(answer) == (status, code)


def test_a_body_in_pieces_has_the_same_limit(echo: Echo) -> None:
    """Without a stated length, reading stops at the limit."""
    pieces = (b"[" + b"1," * 10_000 for _ in range(10_000))
    fields = {"content-type": "application/json"}
    try:
        answer = httpx2.post(f"{echo.url}/v1/challenge", content=pieces, headers=fields)
    except httpx2.TransportError:
        return  # the service answered and closed while we were still sending
    assert problem(answer) == (413, "BODY_TOO_LARGE")


@pytest.mark.parametrize("length", ["262145", "99999999999999999"])
def test_a_body_that_says_it_is_too_long_is_not_read(echo: Echo, length: str) -> None:
    """The stated length is enough."""
    with socket.create_connection(("127.0.0.1", echo.port)) as peer:
        start = f"POST /v1/challenge HTTP/1.1\r\nhost: 127.0.0.1:{echo.port}\r\ncontent-length: {length}\r\n\r\n"
        peer.sendall(start.encode())
        assert peer.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_a_request_must_arrive_in_time(tmp_path: Path) -> None:
    """A body that never comes costs a place for so long and no longer."""
    echo = Echo(str(tmp_path / "store.db"), limits=http.HttpLimits(seconds=0.05))
    with echo.running(), socket.create_connection(("127.0.0.1", echo.port)) as peer:
        start = f"POST /v1/challenge HTTP/1.1\r\nhost: 127.0.0.1:{echo.port}\r\ncontent-type: application/json\r\n"
        peer.sendall(start.encode() + b"content-length: 10\r\n\r\n{")
        assert peer.recv(65536).startswith(b"HTTP/1.1 408 ")


def test_so_many_requests_run_at_once(tmp_path: Path) -> None:
    """One more is told to come back, health is told all the same, and a request that is not whole takes no place."""
    echo = Echo(str(tmp_path / "store.db"), limits=http.HttpLimits(unsigned=0))
    with echo.running():
        answer = httpx2.get(f"{echo.url}/v1/server")
        assert problem(answer) == (429, "TOO_MANY_REQUESTS")
        assert answer.headers["retry-after"] == "1"
        assert httpx2.get(f"{echo.url}/healthz").status_code == 200
        assert httpx2.get(f"{echo.url}/readyz").status_code == 200
    echo = Echo(str(tmp_path / "store.db"), limits=http.HttpLimits(concurrent=1, seconds=30))
    with echo.running(), socket.create_connection(("127.0.0.1", echo.port)) as peer:
        start = f"POST /v1/challenge HTTP/1.1\r\nhost: 127.0.0.1:{echo.port}\r\ncontent-length: 9\r\n\r\n{{"
        peer.sendall(start.encode())
        for _ in range(20):
            assert httpx2.get(f"{echo.url}/v1/server").status_code == 200


def test_a_request_for_another_host_is_refused(echo: Echo) -> None:
    """A name that was rebound to this address is not this service; a prober may call it what it likes."""
    fields = {"host": "evil.example"}
    assert problem(httpx2.get(f"{echo.url}/v1/server", headers=fields)) == (400, "WRONG_HOST")
    assert httpx2.get(f"{echo.url}/healthz", headers=fields).status_code == 200


def test_health_and_readiness_are_told_apart(echo: Echo) -> None:
    """A standby lives, and is not ready."""
    assert httpx2.get(f"{echo.url}/readyz").json() == {"state": "ready"}
    echo.ready = False
    assert problem(httpx2.get(f"{echo.url}/readyz")) == (503, "NOT_READY")
    assert httpx2.get(f"{echo.url}/healthz").json() == {"state": "alive"}


def test_no_page_loads_anything_from_elsewhere(echo: Echo) -> None:
    """There is no page at all, and a browser would run nothing."""
    for path in ("/docs", "/redoc"):
        assert problem(httpx2.get(f"{echo.url}{path}")) == (404, "NO_PATH")
    answer = httpx2.get(f"{echo.url}/openapi.json")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert "server" not in answer.headers


def test_every_signed_path_declares_its_refusals(echo: Echo) -> None:
    """OpenAPI lists every status, as problem details."""
    paths = httpx2.get(f"{echo.url}/openapi.json").json()["paths"]
    responses = paths["/v1/echo"]["post"]["responses"]
    assert {"200", "400", "401", "403", "404", "409", "413", "415", "422", "429", "503"} <= set(responses)
    assert all(set(r["content"]) == {"application/problem+json"} for s, r in responses.items() if s != "200")


def test_an_unavailable_logic_is_503_and_the_client_leaves_it_alone(echo: Echo) -> None:
    """And is asked again later, not at once."""
    with echo.client() as client:
        with pytest.raises(UnavailableError) as refusal:
            client.call("GET", "/v1/things/resting")
        assert refusal.value.code == "RESTING"
        with pytest.raises(UnavailableError) as refusal:
            client.call("GET", "/v1/things/gold")
        assert refusal.value.code == "PEER_RESTS"


def test_several_clients_at_once_are_each_answered_with_their_own(echo: Echo) -> None:
    """Threads of one process and of the service do not mix answers up."""
    words: dict[int, object] = {}

    def ask(number: int) -> None:
        with echo.client(KeySigner.generate()) as client:
            words[number] = [client.call("POST", "/v1/echo", body={"word": f"{number}.{i}"}) for i in range(3)]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert words == {number: [{"word": f"{number}.{i}"} for i in range(3)] for number in range(4)}


def test_without_tls_a_service_is_for_this_machine() -> None:
    """Another address needs a certificate, and a certificate its key."""
    for host in ("0.0.0.0", "192.0.2.1", "::"):  # noqa: S104 - refused
        with pytest.raises(UsageError) as refusal:
            http.Listening(host=host, port=1)
        assert refusal.value.code == "TLS_REQUIRED"
    with pytest.raises(UsageError):
        http.Listening(port=1, certificate=Path("x"))


def test_a_port_that_is_taken_is_unavailable(echo: Echo, tmp_path: Path) -> None:
    """The second service does not start, and says so."""
    second = Echo(str(tmp_path / "other.db"), port=echo.port)
    with pytest.raises(UnavailableError) as refusal, second.running():
        pytest.fail("two services on one port")
    assert refusal.value.code == "ADDRESS_UNAVAILABLE"


def test_a_client_without_a_proof_gets_no_session(echo: Echo) -> None:
    """A wrong proof is refused by the service as well."""
    key = wire.encode_key(EVE.public_key)
    body = {"key": key, "nonce": wire.encode_octets(b"r" * 32)}
    offer = httpx2.post(f"{echo.url}/v1/challenge", json=body).json()
    fake = {"challenge": offer["challenge"], "own_nonce": wire.encode_octets(b"o" * 32), "proof": "A" * 85 + "A"}
    assert problem(httpx2.post(f"{echo.url}/v1/session", json={**body, **fake})) == (401, "BAD_SIGNATURE")
    fake["challenge"] = wire.encode_octets(bytes(72))
    assert problem(httpx2.post(f"{echo.url}/v1/session", json={**body, **fake})) == (401, "UNKNOWN_CHALLENGE")
    assert json.loads(httpx2.get(f"{echo.url}/v1/server").text)["key"] == wire.encode_key(echo.server.public_key)


def test_a_client_that_expects_another_server_asks_nothing(tmp_path: Path) -> None:
    """The handshake fails before the first request."""
    echo = Echo(str(tmp_path / "store.db"), port=free_port())
    with echo.running(), echo.client(server_key=EVE.public_key) as client, pytest.raises(VerificationError):
        client.call("GET", "/v1/things/gold")
