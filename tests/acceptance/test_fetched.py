"""Lists, one-time answers and renewals come from the addresses in certificates, where the home allows it."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import Service, free_port, serving

import maia
from maia.errors import MaiaError
from maia.principals import KeySigner, prove_by_stamp
from maia.testing import Command

TYPE = "domain/Result"
RULES = """\
reader(self)  <-  hired(self)*
reader(self)  |-  subscribe Result(test, value)
"""
KINDS = ("crl", "revalidation", "one-time")


class Clinic:
    """A clinic that owns a type, and an insurer with a log of its own, whose service lets the ward read it."""

    def __init__(self, root: Path, *, tests: str, port: int, life: int = 86_400, fetch: str | None = None) -> None:
        """Make both homes, and carry the certificates over; no list and no answer is carried."""
        self.port = port
        self.clinic, self.office = Command(root / "clinic"), Command(root / "office")
        for home in (self.clinic, self.office):
            home.do("domain", "init", str(home.home), "--key")
        with (self.clinic.home / "maia.toml").open("a", encoding="utf-8") as file:
            file.write(f'\n[services]\nfetch = "{f"127.0.0.1:{port}" if fetch is None else fetch}"\n')
        self.clinic.keys("lab", "ward")
        self.clinic.do("type", "define", f"{TYPE}@1", "--attribute", "test:string", "--attribute", "value:float")
        self.clinic.do("key", "import", "office", str(self.office.home / "keys" / "domain.pub"))
        for who, action in (("broker", "publish,subscribe"), ("lab", "publish")):
            self.clinic.grant("--from", "domain", "--to", who, "--type", TYPE, "--action", action, "--irrevocable")
        self.clinic.grant(
            *("--from", "domain", "--to", "office", "--type", TYPE, "--action", "subscribe", "--delegate"),
            "--irrevocable",
        )
        self._hire(tests, life)

    def _hire(self, tests: str, life: int) -> None:
        office, clinic = self.office, self.clinic
        period = 20 if tests == "revalidation" else 60  # what is issued waits for the next list that names it
        for folder in ("types", "certificates"):
            shutil.copytree(clinic.home / folder, office.home / folder, dirs_exist_ok=True)
        office.do("key", "import", "clinic", str(clinic.home / "keys" / "domain.pub"))
        for name in ("ward.key", "ward.pub"):
            shutil.copy(clinic.home / "keys" / name, office.home / "keys" / name)
        settings = (
            f'life = {life}\ntests = ["{tests}"]\nperiod = {period}\nlead = 5\nrenew = "http://127.0.0.1:{self.port}"\n'
        )
        (office.home / "policy" / "domain.toml").write_text(settings, "utf-8")
        (office.home / "policy" / "office.rules").write_text(RULES, "utf-8")
        office.do("policy", "apply")
        code = office.home.with_name("code")
        code.write_text(office.do("domain", "invite", "ward")["invitation"], "utf-8")
        office.do("domain", "join", str(office.home), "--as", "ward", "--invitation-file", str(code))
        office.do("role", "appoint", "hired(ward)")
        office.do("role", "activate", "reader(ward)", "--as", "ward")
        shutil.copytree(office.home / "certificates", clinic.home / "certificates", dirs_exist_ok=True)

    def serving(self) -> AbstractContextManager[Service]:
        """Run the insurer's service."""
        return serving("acs", self.office.home, port=self.port)

    def reads(self, at: datetime | None = None) -> str:
        """Say whether the clinic's broker delivers to the ward: `yes`, or the code of the refusal."""
        with maia.open(self.clinic.home) as clinic:
            try:
                clinic.deliver_plan("Result", client=clinic.prove("ward"), commits=(), at=at)
            except MaiaError as error:
                return error.code
        return "yes"

    def publish(self, root: Path, value: float) -> None:
        """Let the lab publish one row."""
        file = root / "rows.parquet"
        pq.write_table(pa.table({"test": ["glucose"], "value": [value]}), file)
        self.clinic.do("publish", str(file), "--type", "Result", "--as", "lab")

    @staticmethod
    def follow(frame: Any, checkpoint: Path) -> list[float]:
        """Follow the log from a checkpoint to its end, with a frame that was made before."""
        found: list[float] = []
        writer = frame.writeStream.foreachBatch(lambda rows, _: found.extend(row[0] for row in rows.collect()))
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        return found


@pytest.mark.requirement("13.06")
@pytest.mark.requirement("13.07")
@pytest.mark.requirement("13.08")
@pytest.mark.fault("F17")
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_fetched_from_its_address_and_a_revocation_with_it(tmp_path: Path, kind: str) -> None:
    """Without the issuer's word nothing is delivered; with it, what holds; after a revocation, nothing again."""
    world = Clinic(tmp_path, tests=kind, port=free_port())
    assert world.reads() == "NO_STATEMENT"
    with world.serving():
        if kind == "revalidation":
            wait(lambda: world.reads() == "yes")
        assert [world.reads(), world.reads()] == ["yes", "yes"]
        world.office.do("role", "revoke", "hired(ward)")
        if kind == "revalidation":  # a list of the good cannot be said early: the next one names it no more
            wait(lambda: world.reads() != "yes")
        assert world.reads() == "REVOKED"


def test_a_plan_that_rests_on_an_answer_is_over_when_the_question_is(tmp_path: Path) -> None:
    """An answer serves one plan: it can be worked by at once, and no longer than the question is open."""
    world = Clinic(tmp_path, tests="one-time", port=free_port())
    with world.serving(), maia.open(world.clinic.home) as clinic:
        term = clinic.deliver_plan("Result", client=clinic.prove("ward"), commits=()).term
    term.check(term.made + timedelta(minutes=1))
    with pytest.raises(MaiaError) as raised:
        term.check(term.made + timedelta(minutes=2, seconds=30))
    assert raised.value.code == "PLAN_OVER"


def test_a_broker_whose_right_demands_answers_publishes_nothing_and_is_told_why(tmp_path: Path) -> None:
    """No reader could judge it later by an answer; with a right that a list confirms it publishes."""
    home = Command(tmp_path / "clinic")
    home.do("domain", "init", str(home.home), "--key")
    home.keys("lab")
    home.do("type", "define", f"{TYPE}@1", "--attribute", "test:string", "--attribute", "value:float")
    right = ("--type", TYPE, "--action", "publish")
    answered = ("--test", "one-time:domain@http://127.0.0.1:1")
    home.do("grant", "--from", "domain", "--to", "lab", *right)
    assert home.do("grant", "--from", "domain", "--to", "broker", *right, *answered)["warnings"] == []
    to_domain = home.do("grant", "--from", "domain", "--to", "lab", *right, *answered, "--delegate")
    assert to_domain["warnings"] == ["ONE_TIME_ORIGIN", "BROKER_LACKS_RIGHT"]
    [seen] = home.do("status")["types"]
    assert seen["publish"]["code"] == "ONE_TIME_ORIGIN"
    rows = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"test": ["glucose"], "value": [5.4]}), rows)
    assert home.refused("publish", str(rows), "--type", "Result", "--as", "lab") == (3, "ONE_TIME_ORIGIN")
    home.do("grant", "--from", "domain", "--to", "broker", *right)
    with maia.open(home.home) as clinic:
        assert clinic.publish_plan("Result", client=clinic.prove("lab"), publication="p").own


@pytest.mark.timeout(900)  # three starts of Spark's workers a kind
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_works_on_a_batch_and_on_a_stream(tmp_path: Path, kind: str, spark: Any) -> None:
    """The ward reads a batch, follows the log, and is delivered nothing when its right is gone."""
    world = Clinic(tmp_path, tests=kind, port=free_port())
    with world.serving():
        wait(lambda: world.reads() == "yes")
        world.publish(tmp_path, 5.4)
        ward = maia.open(world.clinic.home).client("ward")
        assert [row[0] for row in ward.read("Result", attributes=["value"]).collect()] == [5.4]
        stream = ward.subscribe("Result", attributes=["value"])
        assert world.follow(stream, tmp_path / "checkpoint") == [5.4]
        world.office.do("role", "revoke", "hired(ward)")
        wait(lambda: world.reads() == "REVOKED")
        world.publish(tmp_path, 7.2)
        assert world.follow(stream, tmp_path / "checkpoint") == []


@pytest.mark.requirement("13.09")
def test_a_certificate_that_ends_is_renewed_at_its_address(tmp_path: Path) -> None:
    """The home asks with the subject's key before the end, and keeps what lasts longer; nobody else gets it."""
    world = Clinic(tmp_path, tests="crl", port=free_port(), life=600)
    with world.serving():
        assert world.reads() == "yes"
        mine = [item for item in world.clinic.do("cert", "show")["certificates"] if "value" in str(item)]
        fresh = [item for item in world.office.do("cert", "show")["certificates"] if "value" in str(item)]
        assert len(mine) > len(fresh)
        assert len({str(item["valid"]) for item in mine}) > 1


@pytest.mark.requirement("13.09")
@pytest.mark.threat("T41")
def test_nobody_gets_the_certificate_of_somebody_else_renewed(tmp_path: Path) -> None:
    """A stranger who knows the address and the certificate asks with its own key, with none, and with an old proof."""
    world = Clinic(tmp_path, tests="crl", port=free_port(), life=600)
    shown = world.office.do("cert", "show")["certificates"]
    (right,) = [item for item in shown if item.get("delegate") is False and item["tests"] and "value" in str(item)]
    office = maia.open(world.office.home).home.key("domain")
    ward, eve = KeySigner(bytes(32)), KeySigner.generate()
    now = datetime.now(UTC)
    with world.serving():
        for key, signer, at in ((eve, eve, now), (ward, eve, now), (eve, eve, now - timedelta(hours=1))):
            proof = prove_by_stamp(signer, audience=office.key_id, at=at)
            query = urlencode({
                "certificate": right["id"], "key": key.public_key.raw.hex(), "stamp": at.isoformat(),
                "proof": proof.signature.hex(),
            })  # fmt: skip
            with pytest.raises(HTTPError) as refused:
                urlopen(f"http://127.0.0.1:{world.port}/v1/open/renewal?{query}")
            assert refused.value.code in {401, 403}
            refused.value.close()


@pytest.mark.threat("T41")
@pytest.mark.parametrize("fetch", ["", "acs.example", "127.0.0.1:1"], ids=["nothing", "a name", "another port"])
def test_only_hosts_that_the_home_allows_are_asked(tmp_path: Path, fetch: str) -> None:
    """Whoever writes an address into a certificate sends nobody anywhere."""
    asked = Asked()
    with asked.listening() as port:
        world = Clinic(tmp_path, tests="crl", port=port, fetch=fetch)
        assert world.reads() == "NO_STATEMENT"
        assert asked.paths == []


@pytest.mark.threat("T41")
@pytest.mark.parametrize("answer", ["redirect", "junk", "endless", "forged"])
def test_what_an_address_answers_is_no_more_than_an_offer(tmp_path: Path, answer: str) -> None:
    """A redirect is not followed, junk and floods teach nothing, and a list of somebody else is none."""
    asked = Asked(answer)
    with asked.listening() as port:
        world = Clinic(tmp_path, tests="crl", port=port)
        if answer == "forged":
            world.clinic.do("statement", "crl", "--from", "ward", "--until", "+1d", "--out", str(tmp_path / "forged"))
            asked.body = (tmp_path / "forged").read_bytes()
        assert world.reads() == "NO_STATEMENT"
    assert asked.paths
    assert all(path.startswith("/v1/open/") for path in asked.paths)


def wait(condition: Callable[[], object]) -> None:
    """Wait until something is so; the test's own limit of time ends an endless wait."""
    while not condition():
        time.sleep(0.2)


class Asked:
    """A web server that notes what it was asked, and answers what an attacker would."""

    def __init__(self, answer: str = "junk") -> None:
        """Answer in one of four ways."""
        self.answer, self.paths, self.body = answer, list[str](), b"junk"

    @contextmanager
    def listening(self) -> Iterator[int]:
        """Listen on a port until the block ends."""

        class Handler(BaseHTTPRequestHandler):
            asked: ClassVar[Asked] = self

            def do_GET(self) -> None:
                """Note the path and answer."""
                self.asked.paths.append(self.path)
                if self.asked.answer == "redirect":
                    self.send_response(302)
                    self.send_header("Location", f"http://{self.headers['Host']}/elsewhere")
                    self.end_headers()
                    return
                self.send_response(200)
                self.end_headers()
                try:
                    for _ in range(1 << 12 if self.asked.answer == "endless" else 1):
                        self.wfile.write(self.asked.body * (1 << 10 if self.asked.answer == "endless" else 1))
                except OSError:
                    pass  # whoever asked has had enough

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
