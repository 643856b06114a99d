"""One validity statement for people and for machines."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from maia.authority import ListStatement, OneTimeAnswer
from maia.cli.read.instants import show_instant
from maia.cli.show.output import printable, write_json, write_line
from maia.cli.show.principals import subject_to_json
from maia.home import Folder

if TYPE_CHECKING:
    from rich.tree import Tree

_SHOWN = 50


def describe_statement(body: ListStatement | OneTimeAnswer, home: Folder) -> str:
    """Say a statement in one line."""
    who, count = home.show(body.signer.key_id), len(body.certificates)
    if isinstance(body, OneTimeAnswer):
        return f"one-time answer of {who} to {printable(body.verifier)}: {count} good"
    word = "revoked" if body.kind.value == "crl" else "good"
    when = f", in force {show_instant(body.starts)} to {show_instant(body.ends)}" if body.timed else ", plain"
    when += ", only revokes" if body.only_revokes else ""
    return f"{body.kind.value} {body.sequence} of {who}{when}: {count} {word}"


def statement_to_json(body: ListStatement | OneTimeAnswer, *, at: datetime | None = None) -> dict[str, object]:
    """Give a statement for machines."""
    data: dict[str, object] = {
        "signer": subject_to_json(body.signer),
        "certificates": [identity.hex() for identity in sorted(body.certificates)],
    }
    if isinstance(body, OneTimeAnswer):
        return {"kind": "one-time", **data, "nonce": body.nonce.hex(), "verifier": body.verifier}
    data |= {"sequence": body.sequence, "starts": show_instant(body.starts), "ends": show_instant(body.ends)}
    if body.only_revokes:
        data["only_revokes"] = True
    if body.since:
        data["since"] = list(body.since)
    return {"kind": body.kind.value, **data} | ({} if at is None else {"in_force": body.in_force(at)})


def statement_tree(body: ListStatement | OneTimeAnswer, home: Folder, *, at: datetime) -> Tree:
    """Draw a statement with the certificates it lists."""
    from rich.text import Text
    from rich.tree import Tree

    head = Text().append(describe_statement(body, home), style="bold")
    if isinstance(body, ListStatement):
        counts = body.only_revokes or body.in_force(at)
        head.append("  counts now" if counts else "  does not count now", style="green" if counts else "yellow")
    tree = Tree(head)
    for identity in sorted(body.certificates)[:_SHOWN]:
        tree.add(Text(identity.hex()[:16], style="cyan"))
    if len(body.certificates) > _SHOWN:
        tree.add(Text(f"and {len(body.certificates) - _SHOWN} more", style="dim"))
    return tree


def told_words(told: bool | None) -> str:
    """Say where a list is known by now."""
    if told is None:
        return "this folder has no log: hand the list over with --out, for `maia statement add`"
    if told:
        return "it is in the log: whoever follows it knows at its next step"
    return "the log does not take it now; it is durable here, and said again whenever this home is opened"


def tell_statement(body: ListStatement | OneTimeAnswer, home: Folder, *, json: bool, quiet: bool = False) -> None:
    """Say what was signed or taken in."""
    if json and not quiet:
        write_json(statement_to_json(body))
    elif not quiet:
        write_line(describe_statement(body, home))
