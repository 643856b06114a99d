"""A shop whose policy bounds who may publish, announce and ask for which offers: the paper's examples."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from maia.testing import Command

TYPE = "domain/shop.Product"
NAME = "shop.Product"
ATTRIBUTES = ("message:string:1", "price:integer:2", "color:string:3", "weather:string:4", "temperature:integer:5")
PRODUCT = "message = 'new_product'"
CHEAP = "message = 'new_product' and price < 100"


def shop(home: Path, rules: Mapping[str, str], *, closed: str = "null") -> Command:
    """Build a shop with a policy of one role a rule: who shows the credential of a role may activate it.

    Args:
        home: Where.
        rules: What each role gives: the text right of ``|-``. Several roles are several credentials.
        closed: What becomes of closed attributes.
    """
    found = Command(home)
    found.do("domain", "init", str(home), "--key")
    fields = (flag for text in ATTRIBUTES for flag in ("--attribute", text))
    found.do("type", "define", f"{TYPE}@1", *fields, "--closed", closed)
    for action in ("publish", "subscribe"):
        found.grant("--from", "domain", "--to", "broker", "--type", TYPE, "--action", action)
    lines = [line for role, right in rules.items()
             for line in (f"{role}(self) <- {role}-credential(self)*", f"{role}(self) |- {right}")]  # fmt: skip
    (home / "policy" / "shop.rules").write_text("\n".join(lines) + "\n", "utf-8")
    found.do("policy", "apply")
    return found


def admit(found: Command, who: str, roles: Iterable[str] = ()) -> None:
    """Let somebody join, and activate the roles whose credentials it was given."""
    if not (found.home / "keys" / f"{who}.pub").exists():
        found.keys(who)
        code = found.home.with_name(f"{found.home.name}-{who}.code")
        code.write_text(found.do("domain", "invite", who)["invitation"] + "\n", "utf-8")
        found.do("domain", "join", str(found.home), "--as", who, "--invitation-file", str(code))
    for role in roles:
        found.do("role", "appoint", f"{role}-credential({who})")
        found.do("role", "activate", f"{role}({who})", "--as", who)


def copy(found: Command, target: Path) -> Command:
    """Give a copy of a shop to change."""
    shutil.copytree(found.home, target)
    return Command(target)


def kept(home: Path) -> dict[str, bytes]:
    """Read what a broker keeps of sessions, rights and events; its audit, clock and heartbeats go on regardless."""
    upkeep = ("audit", "statement", "store.db", "clock", ".")
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and not any(part.startswith(upkeep) for part in path.relative_to(home).parts)
    }
