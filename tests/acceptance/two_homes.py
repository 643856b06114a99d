"""An owner that gives rights by hand, and a reader: two homes over one log, for tests of validity."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

import maia
from maia.errors import MaiaError
from maia.testing import TYPE_NAME, TYPE_VERSION, Command, NumberplateHomes

READ = f"PITO/{TYPE_NAME}@{TYPE_VERSION}"


class TwoHomes:
    """PITO, which gives rights by hand, and the Met, whose broker delivers to those who hold them."""

    def __init__(self, homes: NumberplateHomes, root: Path) -> None:
        """Make the owner's home beside the others, over the same log."""
        self.pito = Command(root / "pito")
        self.pito.do("domain", "init", str(self.pito.home))
        settings = self.pito.home / "maia.toml"
        settings.write_text(settings.read_text("utf-8").replace('log = "log"', 'log = "../log"'), "utf-8")
        homes.add_key(self.pito.home, "PITO")
        homes.define(self.pito.home, homes.event_type, homes.network.people["PITO"])
        self.reader = Command(homes.met)
        self.log = root / "log"
        self.domain = maia.open(homes.met)

    def give(self, who: str, *more: str) -> str:
        """Give somebody of the Met a right by hand; its certificate is carried over, its lists are not."""
        self.reader.keys(who)
        self.pito.do("key", "import", who, str(self.reader.home / "keys" / f"{who}.pub"))
        made = self.pito.do("grant", "--from", "PITO", "--to", who, "--type", READ, "--action", "subscribe", *more)
        shutil.copy(made["file"], self.reader.home / "certificates")
        return str(made["id"])

    def reads(self, who: str, at: datetime | None = None) -> str:
        """Say whether the Met's broker delivers to somebody: `yes`, or the code of the refusal."""
        try:
            self.domain.deliver_plan(READ, client=self.domain.prove(who), commits=(), at=at)
        except MaiaError as error:
            return error.code
        return "yes"
