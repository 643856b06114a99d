"""`maia network up|status|graph`: domains on one machine as a file describes them, each with processes of its own."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.instants import now
from maia.cli.read.options import examples, new_app
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import note, printable, screen, write_json, write_line
from maia.cli.show.progress import interruptible
from maia.encoding import counted
from maia.errors import UsageError

if TYPE_CHECKING:
    import threading

    from maia.cli.network.children import Children, PartChange
    from maia.cli.network.description import NetworkDescription
    from maia.cli.network.standing import NetworkStanding

app = new_app("Run several domains on this machine as processes.")
_File = Annotated[Path, typer.Argument(metavar="FILE", help="The network file: domains, their ports, and links.")]
_EVERY = 0.2
_LOOK = 1.0


@app.command(
    epilog=examples("maia network up police.toml", "maia network up police.toml --json", "maia network up lab.toml -q")
)
def up(
    file: _File,
    *,
    restarts: Annotated[
        int, typer.Option("--restarts", metavar="N", min=0, max=100, help="Start a process again so often a minute.")
    ] = 3,
    seconds: Annotated[
        float | None, typer.Option("--seconds", metavar="S", min=0, help="End after so long; until Ctrl-C without it.")
    ] = None,
    json: options.Json = False,
) -> int:
    """Start what a network takes, watch it, and end it all with Ctrl-C.

    Each service of a domain and each link is a process of its own, and each domain has its home, log and output: the
    latter beside FILE, in NAME.running. A process that dies is named and started again; one that dies too often stays
    down, and the others go on. It gives nobody a right: homes and rights are made before. Exit code 1 when a process
    stayed down or had to be killed.
    """
    from maia.cli.network.children import Children, parts_of
    from maia.cli.network.description import read_network
    from maia.cli.network.linking import lay_links
    from maia.cli.network.running import holding, write_state
    from maia.cli.network.view import tell_change

    network, since = read_network(file), now()
    with holding(network.folder), _stopping() as pressed:
        for line in lay_links(network):
            note(line)
        children = Children(parts_of(network), network.folder, restarts=restarts)

        def keep(changes: list[PartChange], *, quiet: bool = False) -> None:
            if changes:
                write_state(network.folder, children.all, since=since)
            for change in changes:
                if not quiet:
                    tell_change(change, most=restarts, json=json)

        try:
            keep(children.start(), quiet=True)
            note(f"{counted(len(children.all), 'process', 'processes')} started; Ctrl-C ends them")
            last = _watch(network, children, keep, pressed, seconds=seconds, json=json)
        finally:
            failed = [child.part.name for child in children.all if child.state == "failed"]
            ended = children.end()
            write_state(network.folder, children.all, since=since)
    killed = [change.part.name for change in ended if change.what == "killed"]
    code = ExitCode.FAILED if failed or killed else ExitCode.DONE
    behind = {f"{link.source} ──▶ {link.target}": link.lag for link in last.links if link.lag}
    if json:
        write_json(
            {"change": "over", "ended": len(ended) - len(killed), "killed": killed, "failed": failed, "behind": behind},
            code=code,
        )
        return code
    note(f"ended {counted(len(ended) - len(killed), 'process', 'processes')}; what was acknowledged is in the logs")
    for name in killed:
        note(f"{name} did not end, and was killed")
    for name in failed:
        note(f"{name} had stayed down")
    for name, lag in behind.items():
        note(f"{name}: {counted(lag, 'record')} not copied yet; `maia network up {file}` goes on there")
    return code


@app.command(epilog=examples("maia network status police.toml", "maia network status police.toml --json"))
def status(file: _File, *, json: options.Json = False) -> int:
    """Tell how a network stands: processes, links, what they copied, how far behind they are, and what was refused.

    Exit code 1 when not every process is ready, a link's last round failed, or a lane is parked.
    """
    from maia.cli.network.view import standing_json, standing_lines

    found = _look(file)
    code = ExitCode.DONE if found.well else ExitCode.FAILED
    if json:
        write_json(standing_json(found), code=code)
    else:
        for line in standing_lines(found):
            write_line(printable(line))
    return code


@app.command(
    epilog=examples(
        "maia network graph police.toml",
        "maia network graph police.toml --format mermaid",
        "maia network graph police.toml --format svg --out police.svg",
    )
)
def graph(
    file: _File,
    *,
    format_: Annotated[str, typer.Option("--format", metavar="FORMAT", help="text, mermaid or svg.")] = "text",
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write it there.")] = None,
    json: options.Json = False,
) -> None:
    """Draw a network: domains, what they serve and know, and links the way that events go; running or not."""
    from maia.cli.network.graph import graph_lines, graph_mermaid, graph_svg

    draw: dict[str, Callable[[NetworkStanding], str]] = {
        "text": lambda found: "\n".join(graph_lines(found)) + "\n",
        "mermaid": lambda found: "\n".join(graph_mermaid(found)) + "\n",
        "svg": graph_svg,
    }
    if format_ not in draw:
        raise UsageError(f"`{format_}` is none of text, mermaid and svg", code="GRAPH_FORMAT")
    drawn = draw[format_](_look(file))
    if out is not None:
        out.write_text(drawn, "utf-8")
        note(f"drawn: {out}")
    if json:
        write_json({"format": format_, "graph": drawn, "file": None if out is None else str(out)})
    elif out is None:
        write_line(drawn.rstrip("\n"))


def _look(file: Path) -> NetworkStanding:
    from maia.cli.network.description import read_network
    from maia.cli.network.standing import Watcher

    return Watcher(read_network(file)).look()


def _watch(
    network: NetworkDescription,
    children: Children,
    keep: Callable[..., None],
    pressed: threading.Event,
    *,
    seconds: float | None,
    json: bool,
) -> NetworkStanding:
    """Look at the processes all the time, and at the rest now and then, until somebody stops it."""
    from maia.cli.network.standing import Watcher
    from maia.cli.network.view import picture, rates_of, tell_progress

    watcher, before, looked, due = Watcher(network), None, float("-inf"), 0.0
    begun = time.monotonic()
    drawn = sys.stdout.isatty() and not json
    with _drawing(drawn) as draw:
        while not pressed.wait(_EVERY) and (seconds is None or time.monotonic() - begun < seconds):
            keep(children.look(), quiet=drawn)
            if time.monotonic() < due:
                continue
            started = time.monotonic()
            found, passed, looked = watcher.look(), started - looked, started
            # Looking costs time of the processes that are looked at: a tenth of it at most.
            due = started + max(_LOOK, 10 * (time.monotonic() - started))
            if drawn:
                draw(picture(found, rates_of(before, found, passed)))
            else:
                tell_progress(before, found, json=json)
            before = found
    return watcher.look()


@contextmanager
def _drawing(wanted: bool) -> Iterator[Callable[..., None]]:
    """Draw over what was drawn before, on a terminal."""
    if not wanted:
        yield lambda _what: None
        return
    from rich.live import Live

    with Live(console=screen(), auto_refresh=False) as live:
        yield lambda what: live.update(what, refresh=True)


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Turn Ctrl-C and SIGTERM into an event, so that what was started is ended."""
    with interruptible() as pressed:
        before = signal.signal(signal.SIGTERM, lambda *_: pressed.set())
        try:
            yield pressed
        finally:
            signal.signal(signal.SIGTERM, before)
