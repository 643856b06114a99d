"""How a network is shown: a picture that is drawn anew on a terminal, lines of what changed elsewhere, and JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from maia.cli.network.children import PartChange
from maia.cli.network.standing import DomainStanding, LinkStanding, NetworkStanding
from maia.cli.show.output import printable, write_json, write_line
from maia.encoding import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {"ready": "green", "failed": "red", "down": "red", "waiting": "yellow", "starts": "yellow"}


def standing_json(found: NetworkStanding) -> dict[str, Any]:
    """Give how a network stands as one object."""
    return {"well": found.well, **asdict(found)}


def standing_lines(found: NetworkStanding) -> list[str]:
    """Tell how a network stands, line by line."""
    lines = [f"runs since {found.since}" if found.runs else "does not run"]
    for domain in found.domains:
        told = [f"{part.what} {part.state}{_again(part.restarts)}{_words(part.said)}" for part in domain.parts]
        lines.append(f"{domain.name}: {', '.join(told) or 'no processes'}{_refused(domain)}")
    return lines + [link_line(link) for link in found.links]


def link_line(link: LinkStanding) -> str:
    """Tell how one link stands."""
    wrong = "".join(f", {code}" for code in ((link.error,) if link.error else ()))
    wrong += "".join(f", parked with {code}" for code in link.parked)
    return (
        f"{link.source} ──▶ {link.target}: {counted(link.records, 'record')}, {counted(link.events, 'event')}, "
        f"lag {link.lag:,}{wrong}"
    )


def change_line(change: PartChange, *, most: int) -> str:
    """Tell what became of a process."""
    words = {
        "started": "started",
        "again": f"started again, the {change.restarts}. time",
        "died": f"ended with {change.code}{_words(change.said)}; it is started again",
        "failed": f"ended with {change.code}{_words(change.said)}; started {most} times, it stays down",
        "ended": "ended",
        "killed": "did not end, and was killed",
    }
    return f"{change.part.name}: {words[change.what]}"


def tell_change(change: PartChange, *, most: int, json: bool) -> None:
    """Write what became of a process."""
    if json:
        data = {"domain": change.part.domain, "part": change.part.what, "change": change.what}
        write_json({**data, "exit": change.code, "restarts": change.restarts, "said": change.said})
    else:
        write_line(printable(change_line(change, most=most)))


def tell_progress(before: NetworkStanding | None, after: NetworkStanding, *, json: bool) -> None:
    """Write what is otherwise than before: who became ready, what was copied, and what was refused."""
    parts = {} if before is None else {(d.name, p.what): p.state for d in before.domains for p in d.parts}
    for domain in after.domains:
        for part in domain.parts:
            if part.state == "ready" and parts.get((domain.name, part.what)) != "ready":
                where = f" on {part.address}" if part.address else ""
                _tell(
                    {"domain": domain.name, "part": part.what, "change": "ready", "address": part.address or None},
                    f"{domain.name} {part.what}: ready{where}", json=json,
                )  # fmt: skip
    old = {} if before is None else {domain.name: domain for domain in before.domains}
    for domain in after.domains:
        if domain.refused and (domain.name not in old or old[domain.name].refused != domain.refused):
            _tell(
                {"domain": domain.name, "change": "refused", "refused": dict(domain.refused)},
                f"{domain.name}{_refused(domain)}", json=json,
            )  # fmt: skip
    for number, link in enumerate(after.links):
        same = None if before is None else before.links[number]
        if same is None or (link.records, link.lag, link.error, link.parked) != (
            same.records, same.lag, same.error, same.parked
        ):  # fmt: skip
            _tell({"change": "link", **asdict(link)}, link_line(link), json=json)


def picture(found: NetworkStanding, rates: dict[tuple[str, str], float]) -> RenderableType:
    """Draw a network for a terminal: domains with their processes and refusals, links with their rates and lag."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    domains, links = Table(box=None, pad_edge=False), Table(box=None, pad_edge=False)
    for title in ("domain", "process", "state", "restarts", "address"):
        domains.add_column(title, justify="right" if title == "restarts" else "left")
    for domain in found.domains:
        for number, part in enumerate(domain.parts):
            state = Text(part.state, style=_STYLES.get(part.state, ""))
            told = part.address or printable(part.said)
            domains.add_row("" if number else domain.name, part.what, state, str(part.restarts), told)
    for title in ("link", "records", "events", "events/s", "lag", "wrong"):
        links.add_column(title, justify="left" if title in ("link", "wrong") else "right")
    for link in found.links:
        wrong = Text(", ".join((*((link.error,) if link.error else ()), *link.parked)), style="red")
        rate = rates.get((link.source, link.target), 0.0)
        links.add_row(
            f"{link.source} ──▶ {link.target}", f"{link.records:,}", f"{link.events:,}", f"{rate:,.1f}",
            f"{link.lag:,}", wrong,
        )  # fmt: skip
    refused = [f"{domain.name}{_refused(domain)}" for domain in found.domains if domain.refused]
    return Group(domains, Text(), links, Text("\n".join(refused), style="yellow"), Text("Ctrl-C ends all of it"))


def rates_of(before: NetworkStanding | None, after: NetworkStanding, seconds: float) -> dict[tuple[str, str], float]:
    """Tell how many events a second came over each link between two looks."""
    if before is None or seconds <= 0:
        return {}
    old = {(link.source, link.target): link.events for link in before.links}
    return {
        (link.source, link.target): max(0, link.events - old.get((link.source, link.target), 0)) / seconds
        for link in after.links
    }


def _tell(data: dict[str, Any], line: str, *, json: bool) -> None:
    if json:
        write_json(data)
    else:
        write_line(printable(line))


def _again(restarts: int) -> str:
    return f" (started again {counted(restarts, 'time')})" if restarts else ""


def _words(said: str) -> str:
    return f": {printable(said)}" if said else ""


def _refused(domain: DomainStanding) -> str:
    return "".join(f"; refused {count} with {code}" for code, count in domain.refused)
