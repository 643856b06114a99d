"""A clinic with results, and St Mary's, which would read some of them: two homes that share a log and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maia.testing import Command

GIVE = "researcher |- subscribe Result(ward, value)"
DEFINE = ("--attribute", "patient:string:1", "--attribute", "ward:string:2", "--attribute", "value:float:3")


def home_of(folder: Path, name: str, *more: str) -> Command:
    """Make the home of a domain."""
    command = Command(folder)
    command.do("domain", "init", str(folder), "--name", name, "--key", *more)
    return command


class Peers:
    """The two homes, before they know each other."""

    def __init__(self, root: Path, *, log: bool = True, place: str = "") -> None:
        """Make the homes; St Mary's has a reader, and another person who has no role."""
        self.root, self.log = root, root / "shared"
        self.place = place or str(self.log)
        self.clinic = home_of(root / "clinic", "clinic", *(("--log", self.place) if log else ()))
        self.clinic.do("type", "define", "domain/Result@1", *DEFINE)
        self.clinic.keys("lab")
        self.clinic.grant("--from", "domain", "--to", "lab", "--type", "domain/Result", "--action", "publish")
        self.mary = home_of(root / "mary", "St Mary's")
        self.mary.keys("ann", "bob")

    def invite(self, *more: str, give: str = GIVE) -> Path:
        """Let the clinic make an invitation."""
        made = self.clinic.do("domain", "invite-peer", "--for", "St Mary's", "--give", give, *more)
        path = self.root / "peer.maia"
        path.write_text(str(made["invitation"]), "utf-8")
        return path

    def answer(self, invitation: Path, *more: str, by: Command | None = None) -> Path:
        """Let St Mary's, or somebody else, answer it."""
        said = (by or self.mary).do("domain", "connect", str(invitation), "--yes", *more)
        path = self.root / "answer.maia"
        path.write_text(str(said["answer"]), "utf-8")
        return path

    def admit(self, answer: Path, *more: str) -> dict[str, Any]:
        """Let the clinic admit whoever answered."""
        return self.clinic.do("domain", "connect", str(answer), "--yes", *more)

    def connect(self, *more: str) -> dict[str, Any]:
        """Go the whole way, with Ann as a reader."""
        return self.admit(self.answer(self.invite(*more), "--reader", "ann"))

    def members(self, attribute: str) -> int:
        """Tell how many brokers are in the key group of an attribute."""
        groups = self.clinic.do("keys", "groups")["groups"]
        (found,) = [item for item in groups if str(item["group"]).endswith(f"/{attribute}")]
        return int(found["members"])
