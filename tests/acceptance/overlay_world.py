"""A home with a security manager, a directory and a code repository, for the tests of the overlay's credentials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import maia
from maia.testing import Command

RULE = '[[give]]\nobject = "{object}"\nto = "{to}"\nrights = {rights}\nseconds = {seconds}\n'


class OverlayWorld:
    """The domain issues; `met` owns a camera's type; others are given credentials of objects."""

    def __init__(self, home: Path, *people: str) -> None:
        """Make the home, with keys for people and one event type."""
        self.use(Command(home))
        self.command.do("domain", "init", str(home), "--key")
        self.command.keys("met", *people)
        self.command.do("type", "define", "met/CameraA@1", "--attribute", "number:integer")

    @classmethod
    def over(cls, command: Command) -> OverlayWorld:
        """Take a home that is there."""
        world = cls.__new__(cls)
        world.use(command)
        return world

    def use(self, command: Command) -> None:
        """Work with a home."""
        self.command, self.home = command, command.home

    def issue(self, named: str, *rights: str, to: str, issuer: str = "domain", more: tuple[str, ...] = ()) -> str:
        """Issue a credential by hand; give its certificate's id."""
        words = [word for right in rights for word in ("--right", right)]
        made = self.command.do(
            "credential", "issue", "--object", named, *words, "--from", issuer, "--to", to, "--yes", *more
        )
        return str(made["id"])

    def written(self, identity: str, name: str) -> Path:
        """Write a certificate as a credential, in the notation that the file's name says."""
        file = self.home.parent / name
        self.command.do("credential", "show", identity, "--out", str(file))
        return file

    def policy(self, *rules: dict[str, Any]) -> None:
        """Say what the security manager gives."""
        folder = self.home / "policy"
        folder.mkdir(exist_ok=True)
        text = "".join(RULE.format(**{**rule, "rights": json.dumps(rule["rights"])}) for rule in rules)
        (folder / "credentials.toml").write_text(text, "utf-8")

    def key(self, name: str) -> str:
        """Give a key as it stands in a credential."""
        with maia.open(self.home) as domain:
            return domain.home.key(name).raw.hex()

    def certificates(self) -> set[str]:
        """Name the certificates of the home."""
        return {path.name for path in (self.home / "certificates").glob("*.cert")}

    def refusals(self) -> set[tuple[str, str]]:
        """Say who was refused, with which reason, by the audit."""
        rows = self.command.do("audit", "--kind", "refuse")["rows"]
        return {(row["subject"], row["reason"]) for row in rows}
