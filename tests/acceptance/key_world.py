"""The owner of a type with its key manager as a real process, and another organisation that would have keys."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from maia.testing import Command

TYPE = "pito/Sighting"


class World:
    """PITO's home with its key manager as a real process, and another organisation's home that would join.

    They share no log. Rights are irrevocable, so that the Met's own home can judge them too, or else ``listed``.
    """

    def __init__(self, root: Path, *, listed: bool = False) -> None:
        """Make both homes, with each other's public keys and PITO's type."""
        self.kind = () if listed else ("--irrevocable",)
        self.pito, self.met = Command(root / "pito"), Command(root / "met")
        for command, name in ((self.pito, "pito"), (self.met, "met")):
            command.do("domain", "init", str(command.home), "--name", name, "--key")
        define = ("--attribute", "plate:string:1", "--attribute", "place:string:2")
        self.pito.do("type", "define", "domain/Sighting@1", *define)
        for source, target, name in ((self.pito, self.met, "pito"), (self.met, self.pito, "met")):
            shutil.copy(source.home / "keys" / "domain.pub", target.home / "keys" / f"{name}.pub")
        shutil.copy(self.pito.home / "keys" / "domain.pub", self.met.home / "keys" / "key-manager.pub")
        shutil.copytree(self.pito.home / "types", self.met.home / "types", dirs_exist_ok=True)
        self.met.do("name", "add", "brokers", "--from", "domain", "--to", "broker")
        self.own = self.met.grant("--from", "domain", "--to", "broker", "--type", "*", "--blanket", *self.kind)

    def point_to(self, port: int) -> None:
        """Name the manager in the Met's settings."""
        settings = self.met.home / "maia.toml"
        address = f"http://127.0.0.1:{port}"
        settings.write_text(f'{settings.read_text("utf-8")}\n[services]\nkey_manager = "{address}"\n', "utf-8")

    def give(self, *right: str) -> None:
        """PITO gives the Met a right that it may pass on; the certificate travels to the Met's home."""
        given = ("--to", "met", "--type", "domain/Sighting", *right, "--delegate", *self.kind)
        self.pito.grant("--from", "domain", *given)
        self.travel()

    def travel(self) -> None:
        """Bring PITO's certificates to the Met."""
        shutil.copytree(self.pito.home / "certificates", self.met.home / "certificates", dirs_exist_ok=True)

    def join(self) -> tuple[int, str, set[str]]:
        """Let the Met's broker join: exit code, what was said, and the attributes whose keys it got."""
        ran = self.met("keys", "join", TYPE, "--json")
        groups = ran.data.get("groups", ()) if ran.code == 0 else ()
        return ran.code, str(ran.data.get("message", "")), {str(group["uid"]) for group in groups} - {"None"}

    def history(self, attribute: str) -> dict[str, Any]:
        """List what became of the key group of an attribute: epochs with their causes, and members."""
        return self.pito.do("keys", "history", f"Sighting/{attribute}")
