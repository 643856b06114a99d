"""The demonstration as a person sees it: tree, matrix, reductions, versions."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from maia.authority import Action
from maia.cli import screen
from maia.demo.trust import ACTIONS, Branch, cells, delegation_tree, matrix, reductions
from maia.demo.type_evolution import VersionStory
from maia.demo.types import in_transit, version_views
from maia.home import Folder
from maia.testing import NETWORK_NAME, TYPE_NAME, NumberplateNetwork


def draw_demo(network: NumberplateNetwork, home: Folder, story: VersionStory) -> None:
    """Draw everything, from the certificates to the versions."""
    out = screen()
    _title(out, "Who gave what to whom", f"PITO coordinates {NETWORK_NAME} and owns {TYPE_NAME}")
    tree = Tree(Text("PITO", style="bold"))
    for branch in delegation_tree(network, home):
        _add(tree, branch)
    out.print(tree)
    _title(out, "Who may do what", "each cell is a verifier's decision over all certificates")
    out.print(_matrix(network, home))
    _title(out, "Certificates put together", "rights only ever shrink along a chain")
    out.print(_reductions(network, home))
    _title(out, "One event, three versions", "names change, uids do not")
    out.print(_versions(story))


def _title(out: Console, title: str, remark: str) -> None:
    out.print(Text().append(f"\n{title}", style="bold underline").append(f"  {remark}", style="dim"))


def _add(tree: Tree, branch: Branch) -> None:
    label = Text().append(f"{branch.name:<11}", style="cyan").append(f"{branch.subject}  ", style="bold")
    label.append(branch.right)
    label.append("  may pass it on" if branch.delegate else "", style="green")
    for name in branch.via:
        label.append(f"\n{'':<11}by {name}", style="cyan")
    node = tree.add(label)
    for following in branch.then:
        _add(node, following)


def _matrix(network: NumberplateNetwork, home: Folder) -> Table:
    table = Table("principal", *ACTIONS, box=None, pad_edge=False)
    table.add_column("attributes", overflow="fold")
    for who, row in matrix(network).items():
        marks = [Text("yes", style="green") if row[action] else Text("no", style="dim") for action in ACTIONS]
        shown = [
            f"{word} {line}"
            for action, word in (("publish", "sets"), ("subscribe", "reads"))
            if row[action]
            for line in cells(network, home, who, Action.parse(action))
        ]
        table.add_row(Text(who, style="bold"), *marks, "\n".join(shown))
    return table


def _reductions(network: NumberplateNetwork, home: Folder) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for item in reductions(network, home):
        if item.error is None:
            answer = Text().append(f"{item.holder}: ", style="bold").append(str(item.result))
        else:
            answer = Text().append(f"[{item.error}] ", style="bold red").append(str(item.message))
        table.add_row(Text(" + ".join(item.certificates), style="cyan"), Text("->"), answer)
    return table


def _versions(story: VersionStory) -> Table:
    table = Table("version", "how it came", "attributes (uid)", "the event", box=None, pad_edge=False)
    for view in version_views(story):
        attributes = ", ".join(f"{name} ({uid})" for name, uid, _ in view.attributes)
        shown = ", ".join(f"{name} = {'null' if value is None else value}" for name, value in view.seen.items())
        table.add_row(view.version, view.change, attributes, shown)
    travelling = ", ".join(f"{uid} = {value}" for uid, value in in_transit(story).items())
    table.add_row(Text("in transit", style="dim"), Text("uids only", style="dim"), "", travelling)
    return table
