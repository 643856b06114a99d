"""A certificate says where it is renewed: what has ended is fetched anew there, for any link of the chain (13.09)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import Service, free_port, serving

import maia
from maia.clients import AccessControlClient
from maia.errors import MaiaError
from maia.principals import KeySigner
from maia.testing import Command

RULES = """\
partner(self)  <-  contract(self)*
partner(d)     |-  subscribe Result(value)
"""
LIFE = {"short": 1, "long": 86_400}


class Chain:
    """The lab owns a type and gives a clinic the right to it for a second (C1); the clinic gives Ann hers (C2)."""

    def __init__(self, root: Path, *, fetch: bool = True) -> None:
        """Make both homes; C1 says where it is renewed, and has ended when this returns."""
        self.port = free_port()
        self.lab, self.clinic = Command(root / "lab"), Command(root / "clinic")
        for home in (self.lab, self.clinic):
            home.do("domain", "init", str(home.home), "--key")
        if fetch:
            with (self.clinic.home / "maia.toml").open("a", encoding="utf-8") as file:
                file.write(f'\n[services]\nfetch = "127.0.0.1:{self.port}"\n')
        self.clinic.keys("ann")
        self.lab.do("type", "define", "domain/Result@1", "--attribute", "value:float")
        shutil.copytree(self.lab.home / "types", self.clinic.home / "types", dirs_exist_ok=True)
        self.clinic.do("key", "import", "lab", str(self.lab.home / "keys" / "domain.pub"))
        (self.lab.home / "policy" / "lab.rules").write_text(RULES, "utf-8")
        self.lab.do("policy", "apply")
        self._live("short")
        self.old = self._obtain(root)
        for to in ("ann", "broker"):
            self.clinic.do(
                *("grant", "--from", "domain", "--to", to, "--type", "lab/Result", "--action", "subscribe"),
                *("--blanket", "--yes"),
            )
        self._live("long")
        self.waits_for("EXPIRED")

    def _live(self, how: str) -> None:
        """Say how long what the lab issues lives, and where it is renewed."""
        text = f'life = {LIFE[how]}\ntests = []\nrenew = "http://127.0.0.1:{self.port}"\n'
        (self.lab.home / "policy" / "domain.toml").write_text(text, "utf-8")

    def _obtain(self, root: Path) -> str:
        """Let the clinic become a partner of the lab, over HTTP, and keep C1."""
        with self.serving() as service, self.client(service) as clinic:
            code = self.lab.do("domain", "invite", "clinic", "--kind", "domain", "--appoint", "contract(clinic)")
            clinic.enrol(invitation=code["invitation"])
            clinic.activate("partner(clinic)")
            (right,) = [raw for raw in clinic.capabilities().certificates if b"Result" in raw]
        file = root / "c1.cert"
        file.write_bytes(right)
        return str(self.clinic.do("cert", "add", str(file))["id"])

    def client(self, service: Service) -> AccessControlClient:
        with maia.open(self.clinic.home) as opened:
            signer: KeySigner = opened.home.signer("domain")
            return service.client(signer, opened.home.key("lab"))

    @contextmanager
    def serving(self) -> Iterator[Service]:
        """Run the lab's service at the address that its certificates name."""
        with serving("acs", self.lab.home, port=self.port) as service:
            yield service

    def reads(self) -> str:
        """Say whether the clinic's broker delivers to Ann: `yes`, or the code of the refusal."""
        with maia.open(self.clinic.home) as clinic:
            try:
                clinic.deliver_plan("Result", client=clinic.prove("ann"), commits=())
            except MaiaError as error:
                return str(error.code)
        return "yes"

    def waits_for(self, answer: str) -> None:
        """Ask until this is the answer: an address may take longer than a home waits; the test's own limit ends it."""
        while self.reads() != answer:
            time.sleep(0.1)

    def links(self) -> list[str]:
        """List the clinic's certificates that are renewed by the lab."""
        shown = self.clinic.do("cert", "show")["certificates"]
        return [item["id"] for item in shown if item.get("renew")]


@pytest.mark.slow
@pytest.mark.requirement("13.09")
def test_a_link_that_ended_is_fetched_anew_and_the_same_request_is_granted(tmp_path: Path) -> None:
    """C1 has ended and names an address: the home obtains C1' there, and Ann's old C2 serves again."""
    chain = Chain(tmp_path)
    assert chain.links() == [chain.old]
    with chain.serving():
        chain.waits_for("yes")
    assert len(chain.links()) == 2
    assert chain.reads() == "yes"  # and it stays, without the service


@pytest.mark.slow
@pytest.mark.requirement("13.09")
def test_an_issuer_that_declines_renews_nothing(tmp_path: Path) -> None:
    """The contract is over: the same address answers, and the answer is no. Given again, the link is renewed."""
    chain = Chain(tmp_path)
    chain.lab.do("role", "revoke", "contract(clinic)")
    with chain.serving() as service:
        assert chain.reads() == "EXPIRED"
        assert chain.links() == [chain.old]
        chain.lab.do("role", "appoint", "contract(clinic)")
        with chain.client(service) as clinic:
            clinic.activate("partner(clinic)")
        chain.waits_for("yes")


@pytest.mark.slow
@pytest.mark.requirement("13.09")
def test_no_address_is_asked_that_the_home_does_not_allow(tmp_path: Path) -> None:
    """The certificate names the address, the service answers there, and the home was not told to ask it."""
    chain = Chain(tmp_path, fetch=False)
    with chain.serving():
        assert chain.reads() == "EXPIRED"
        assert chain.links() == [chain.old]
