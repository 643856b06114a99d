"""Lists and answers between two homes: Met signs them by command, and another domain's broker takes them or not."""

from __future__ import annotations

import secrets
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import maia
from maia.authority import Challenge
from maia.encoding import encode
from maia.errors import MaiaError
from maia.principals import KeySigner
from maia.testing import Command, answer

ASKED = ("--as", "smith", "--tag", "(read)", "--root", "met")
NOW = datetime.now(UTC).replace(microsecond=0)
NOT_PROVEN = 4


class Desk:
    """Met, which gives Smith a right and signs lists, and a broker elsewhere that has the right and hears of lists."""

    def __init__(self, root: Path, test: str) -> None:
        """Give the right, which demands one kind of statement of Met's."""
        self.root, self.met, self.broker = root, Command(root / "met"), Command(root / "broker")
        self.met.keys("met", "smith")
        given = ("--from", "met", "--to", "smith", "--tag", "(read)", "--root", "met", "--test", f"{test}:met")
        self.told = self.met.do("grant", *given)
        for name in ("met", "smith"):
            self.broker.do("key", "import", name, str(self.met.home / "keys" / f"{name}.pub"))
        self.broker.do("cert", "add", str(self.told["file"]))

    @property
    def right(self) -> str:
        """The id of the right."""
        return str(self.told["id"])

    def sign(self, *args: str, by: Command | None = None) -> Path:
        """Let Met sign a list; give the file."""
        file = self.root / secrets.token_hex(8)
        (by or self.met).do("statement", "crl", *args, "--from", "met", "--out", str(file))
        return file

    def hear(self, file: Path) -> tuple[int, str]:
        """Let the broker take a list; tell how that ended."""
        ran = self.broker("statement", "add", str(file), "--json")
        return ran.code, "" if ran.code == 0 else str(ran.data["error"])

    def decides(self, when: datetime | None = None) -> str:
        """Tell what the broker decides: `yes`, or the reason."""
        ran = self.broker("explain", *ASKED, *(() if when is None else ("--at", when.isoformat())), "--json")
        return "yes" if ran.code == 0 else str(ran.data["error"])


@pytest.mark.requirement("13.03")
def test_the_plain_list_with_the_highest_number_counts_in_whatever_order_they_come(tmp_path: Path) -> None:
    """Six, which lists nothing, then seven, which revokes: yes, then no. Seven, then six: seven is kept."""
    desk = Desk(tmp_path, "crl")
    six = desk.sign("--sequence", "6")
    seven = desk.sign(desk.right, "--sequence", "7")
    assert desk.decides() == "NO_STATEMENT"
    late = Command(Path(shutil.copytree(desk.broker.home, tmp_path / "late")))
    assert [desk.hear(six), desk.decides()] == [(0, ""), "yes"]
    assert [desk.hear(seven), desk.decides()] == [(0, ""), "REVOKED"]
    desk.broker = late
    assert [desk.hear(seven), desk.decides()] == [(0, ""), "REVOKED"]
    assert [desk.hear(six), desk.decides()] == [(NOT_PROVEN, "STATEMENT_ROLLBACK"), "REVOKED"]
    shown = desk.broker.do("statement", "show")["statements"]
    assert [item["sequence"] for item in shown] == [7]


@pytest.mark.requirement("13.03")
def test_a_right_under_a_plain_list_is_issued_with_a_window_without_a_bound(tmp_path: Path, repository: Path) -> None:
    """Nobody can say when a plain list is heard: the command says so when it issues, and the page says why."""
    desk = Desk(tmp_path, "crl")
    desk.sign("--sequence", "7")
    again = ("--from", "met", "--to", "smith", "--tag", "(write)", "--root", "met", "--test", "crl:met")
    assert desk.met.do("grant", *again)["exposure"].startswith("unbounded")
    timed = Desk(tmp_path / "timed", "crl")
    timed.sign("--until", "+60s")
    assert not timed.met.do("grant", *again)["exposure"].startswith("unbounded")
    page = (repository / "docs/explanation/revocation.md").read_text("utf-8")
    assert "- **Plain lists:** not determined." in page


@pytest.mark.requirement("13.05")
def test_an_overlap_is_refused_and_a_successor_that_came_early_serves_from_its_start(tmp_path: Path) -> None:
    """[0,60) + [50,110) is refused where it is signed and where it is heard; [60,120) serves from 60, and not at 59."""
    desk = Desk(tmp_path, "crl")

    def span(start: int, end: int) -> tuple[str, ...]:
        moments = [(NOW + timedelta(seconds=second)).isoformat() for second in (start, end)]
        return ("--starts", moments[0], "--until", moments[1], "--at", NOW.isoformat())

    twin = Command(Path(shutil.copytree(desk.met.home, tmp_path / "twin")))  # knows of no list
    first = desk.sign(*span(0, 60))
    overlap = ("statement", "crl", "--from", "met", *span(50, 110))
    assert desk.met.refused(*overlap)[1] == "STATEMENT_OVERLAP"
    between = desk.sign(desk.right, *span(50, 110), "--sequence", "9", by=twin)
    second = desk.sign(desk.right, *span(60, 120))
    assert desk.hear(first) == (0, "")
    assert desk.hear(between) == (NOT_PROVEN, "STATEMENT_OVERLAP")
    assert desk.hear(second) == (0, "")
    times = [NOW + timedelta(seconds=second) for second in (40, 59, 60, 119, 120)]
    assert [desk.decides(when) for when in times] == ["yes", "yes", "REVOKED", "REVOKED", "NO_STATEMENT"]


@pytest.mark.requirement("13.08")
def test_an_answer_to_one_nonce_proves_nothing_for_another(tmp_path: Path) -> None:
    """By the command: the answer carries the nonce and the verifier of one decision, and is never kept."""
    desk = Desk(tmp_path, "one-time")

    def answered(nonce: str, *certificates: str) -> Path:
        file = tmp_path / f"{nonce[:8]}.answer"
        question = ("--nonce", nonce, "--verifier", "broker-1", "--out", str(file))
        desk.met.do("statement", "one-time", *certificates, "--from", "met", *question)
        return file

    def proven(nonce: str, file: Path, verifier: str = "broker-1") -> str:
        ran = desk.broker(
            "prove", *ASKED, "--nonce", nonce, "--verifier", verifier, "--statement", str(file), "--json"
        )  # fmt: skip
        return "yes" if ran.code == 0 else str(ran.data["error"])

    first, second = secrets.token_hex(16), secrets.token_hex(16)
    good = answered(first, desk.right)
    assert desk.hear(good)[1] == "ONE_TIME_KEPT"
    assert proven(first, good) == "yes"
    assert proven(second, good) == "NO_STATEMENT", "replayed for a second decision"
    assert proven(first, good, "broker-2") == "NO_STATEMENT", "replayed to another verifier"
    assert desk.decides() == "NO_STATEMENT"


class Issuer:
    """Answers the one-time questions of brokers, until a wire between them gives an old answer once more."""

    def __init__(self, signer: KeySigner) -> None:
        """Sign with a key; nothing is revoked."""
        self.signer, self.revoked, self.replays, self.last = signer, False, False, b""
        self.asked: list[str] = []

    def reply(self, path: str) -> bytes:
        """Answer a question, or give what was said before."""
        query = parse_qs(urlsplit(path).query)
        self.asked.append(query["nonce"][0])
        if not (self.replays and self.last):
            challenge = Challenge(
                nonce=bytes.fromhex(query["nonce"][0]), verifier=query["verifier"][0],
                until=datetime.fromisoformat(query["until"][0]), request=bytes.fromhex(query["request"][0]),
            )  # fmt: skip
            good = [] if self.revoked else [_Named(bytes.fromhex(text)) for text in query["certificate"]]
            self.last = encode((b"statements", answer(challenge, self.signer, good).raw))
        return self.last

    @contextmanager
    def listening(self) -> Iterator[int]:
        """Listen on a port until the block ends."""
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                """Answer."""
                self.send_response(200)
                self.end_headers()
                self.wfile.write(issuer.reply(self.path))

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _Named:
    """A certificate of which the issuer was told the id."""

    def __init__(self, certificate_id: bytes) -> None:
        self.certificate_id = certificate_id


@pytest.mark.requirement("13.08")
def test_a_broker_asks_anew_for_each_decision_and_believes_no_old_answer(tmp_path: Path) -> None:
    """Each plan sends a fresh nonce: asked again it is answered again, a replay opens nothing, a loss is heard."""
    clinic = Command(tmp_path / "clinic")
    clinic.do("domain", "init", str(clinic.home), "--key")
    clinic.keys("ward")
    clinic.do("type", "define", "domain/Result@1", "--encryption", "plain", "--attribute", "value:float")
    with maia.open(clinic.home) as opened:
        issuer = Issuer(opened.home.signer("domain"))
    with issuer.listening() as port:
        with (clinic.home / "maia.toml").open("a", encoding="utf-8") as file:
            file.write(f'\n[services]\nfetch = "127.0.0.1:{port}"\n')
        right = ("--type", "domain/Result", "--action", "subscribe")
        clinic.grant("--from", "domain", "--to", "broker", *right, "--irrevocable")
        address = f"one-time:domain@http://127.0.0.1:{port}"
        clinic.grant("--from", "domain", "--to", "ward", *right, "--test", address)

        def reads() -> str:
            with maia.open(clinic.home) as opened:
                try:
                    opened.deliver_plan("Result", client=opened.prove("ward"), commits=())
                except MaiaError as error:
                    return error.code
            return "yes"

        assert [reads(), reads()] == ["yes", "yes"]
        issuer.replays = True
        assert reads() == "NO_STATEMENT"
        issuer.replays = False
        assert reads() == "yes"
        issuer.revoked = True
        assert reads() == "REVOKED", "a moment after it was good"
    assert len(set(issuer.asked)) == len(issuer.asked) >= 5
