"""`maia link add|pull|status|remove`: copy logs that other domains serve into the own one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import answer, note, printable, write_json, write_line
from maia.cli.show.progress import interruptible, watching
from maia.encoding import counted

if TYPE_CHECKING:
    import threading

    from maia.domain import Domain, Link, LinkRound, LinkStatus

app = new_app("Copy logs that other domains serve into the own one.")
_Name = Annotated[str, typer.Argument(metavar="NAME", help="What this home calls the link.")]
_LONGEST_WAIT = 30.0


@app.command(
    epilog=examples(
        "maia link add relay https://relay.example:8474 --key relay",
        "maia link add relay http://127.0.0.1:8474 --key relay --type uk.gov.pito.Numberplate",
        'maia link add relay https://relay.example:8474 --key relay --type Quote --filter "price > 100"',
        "maia link add mirror https://mirror.example/log",
        "maia link add bucket s3://logs/relay",
    )
)
def add(
    name: _Name,
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS", help="A served log (https://host[:port], with --key), a web server, or a store."
        ),
    ],
    *,
    key: Annotated[
        str, principal_option("--key", help="The neighbour's broker, a key of this home; it must prove that it is.")
    ] = "",
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type", metavar="TYPE", help="Copy events of this type only, by name or by id in hex; may be repeated."
        ),
    ] = None,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="FILTER",
            help="Leave out what cannot match; sent sealed. Of several, one has to match.",
        ),
    ] = None,
    ca: Annotated[
        str, typer.Option("--ca", metavar="FILE", help="Certificate authorities to trust for TLS, PEM.")
    ] = "",
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Keep where another log is served; nothing is copied yet.

    Without --key it is a web server that shows the files of a log, or a store. All that is copied is checked by the
    signatures of those who published it, whoever serves it.
    """
    import maia
    from maia.domain import Link, add_link, seal_filters

    domain = maia.open(home)
    if key:
        domain.home.key(key)
    link = Link(
        name=name, address=address, key=key, ca=str(Path(ca).resolve()) if ca else "",
        types=tuple(dict.fromkeys(found for text in types or () for found in _ids(domain, text))),
        filters=tuple(filters or ()),
    )  # fmt: skip
    if link.filters:
        seal_filters(domain, link.types[0], link.filters)  # what cannot be sealed is told now
    add_link(domain.home, link)
    answer(_shown(link), f"{name}: {printable(address)}{_scope(link)}", json=json)


@app.command(
    epilog=examples("maia link pull relay", "maia link pull relay --follow", "maia link pull relay --json"),
)
def pull(
    name: _Name,
    *,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until Ctrl-C.")] = False,
    every: Annotated[
        float, typer.Option("--every", metavar="S", min=0.05, help="With --follow: how often to look for more.")
    ] = 1.0,
    home: options.Home = Path(),
    json: options.Json = False,
) -> int:
    """Copy all that the served log has and the own one has not; with --follow, go on.

    Interrupted or killed, it goes on where it ended, and copies nothing twice. A lane that cannot be copied on is
    parked and named, and the others go on. Exit code 4 when one is parked, or the neighbour is not who it must be.
    """
    import maia
    from maia.domain import find_link

    domain = maia.open(home)
    link = find_link(domain.home, name)
    code = ExitCode.DONE
    with interruptible() as pressed:
        if follow:
            _follow(domain, link, pressed, every=every, json=json)
            return ExitCode.INTERRUPTED
        done = _round(domain, link, pressed)
        code = ExitCode.NOT_VERIFIED if done.parked else code
        code = ExitCode.INTERRUPTED if done.stopped else code
    if json:
        write_json({"link": name, **done.counts, "more": done.more, "parked": _parked(done.parked)}, code=code)
    else:
        _say(link, done)
    return code


@app.command(epilog=examples("maia link status", "maia link status relay --json"))
def status(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One link; all when it is left out.")] = None,
    *,
    home: options.Home = Path(),
    json: options.Json = False,
) -> int:
    """Tell how links stand: when they were pulled last, what waits, and what is kept against whom.

    Exit code 4 when a lane is parked.
    """
    import maia
    from maia.domain import find_link, link_status, read_links

    opened = maia.open(home).home
    links = read_links(opened) if name is None else (find_link(opened, name),)
    found = [link_status(opened, link) for link in links]
    code = ExitCode.NOT_VERIFIED if any(item.parked for item in found) else ExitCode.DONE
    if json:
        write_json(
            {"links": [
                {**_shown(item.link), "lanes": item.lanes, "last": item.last or None, "parked": _parked(item.parked),
                 "contrary": list(item.contrary)}
                for item in found
            ]},
            code=code,
        )  # fmt: skip
        return code
    if not found:
        note("this home has no links: `maia link add NAME ADDRESS --key NEIGHBOUR` makes one")
    for item in found:
        _tell(item)
    return code


@app.command(epilog=examples("maia link remove relay"))
def remove(name: _Name, *, home: options.Home = Path(), json: options.Json = False) -> None:
    """Forget a link. What it copied stays in the log, and evidence against its neighbour stays in `links`."""
    import maia
    from maia.domain import remove_link

    domain = maia.open(home)
    remove_link(domain.home, name, at=domain.clock())
    answer({"link": name}, f"{name} is removed; what it copied stays", json=json)


def _round(domain: Domain, link: Link, pressed: threading.Event) -> LinkRound:
    """Do one round, with progress on a terminal."""
    from maia.clients import opened_link
    from maia.domain import note_failure, pull_link
    from maia.errors import MaiaError

    begun = time.monotonic()
    with watching(f"pulling {link.name}") as watch:

        def tell(done: LinkRound) -> None:
            rate = done.octets / 1e6 / max(time.monotonic() - begun, 0.001)
            watch.say(
                f"{link.name}: {counted(done.records, 'record')}, {counted(done.events, 'event')}, "
                f"{done.octets / 1e6:,.1f} MB, {rate:,.1f} MB/s"
            )

        try:
            with opened_link(domain, link) as source:
                return pull_link(domain, link, source, tell=tell, stop=pressed.is_set)
        except MaiaError as error:
            note_failure(domain, link, error)
            raise


def _follow(domain: Domain, link: Link, pressed: threading.Event, *, every: float, json: bool) -> None:
    """Go on until somebody stops it; a neighbour that is away is asked again, at longer and longer intervals."""
    from maia.errors import UnavailableError

    wait, parked, said = every, None, ""
    note(f"{link.name}: following {printable(link.address)}; Ctrl-C ends it")
    while not pressed.is_set():
        try:
            done = _round(domain, link, pressed)
        except UnavailableError as error:
            if said != error.code:
                note(f"{link.name}: {error.message}; trying again")
            said, wait = error.code, min(wait * 2, _LONGEST_WAIT)
        else:
            if done.records or done.parked != parked:
                if json:
                    write_json({"link": link.name, **done.counts, "more": done.more, "parked": _parked(done.parked)})
                else:
                    _say(link, done)
            wait, parked, said = every, done.parked, ""
        pressed.wait(wait)


def _ids(domain: Domain, text: str) -> tuple[str, ...]:
    """Give the ids of a type under which its events may be in a log; an id in hex is one."""
    if len(text) == 64 and all(letter in "0123456789abcdef" for letter in text):
        return (text,)
    return tuple(sorted(item.hex() for item in domain.home.wire_ids(domain.find_type(text).type_id)))


def _scope(link: Link) -> str:
    served = f", served by {link.key}" if link.key else ""
    wanted = f", {counted(len(link.filters), 'filter')}" if link.filters else ""
    return served + (f", {counted(len(link.types), 'type')}" if link.types else ", all types") + wanted


def _shown(link: Link) -> dict[str, Any]:
    return {"link": link.name, "address": link.address, "key": link.key or None, "types": list(link.types) or None,
            "filters": list(link.filters) or None}  # fmt: skip


def _parked(items: Any) -> list[dict[str, str]]:  # noqa: ANN401 - what `keep_parked` and `link_status` give
    return [{"lane": item.lane, "code": item.code, "since": item.since, "waits": item.waits} for item in items]


def _say(link: Link, done: LinkRound) -> None:
    write_line(
        f"{link.name}: {counted(done.records, 'record')} of {counted(done.lanes, 'lane')}, "
        f"{counted(done.events, 'event')}, {done.octets:,} octets"
    )
    if done.expired:
        write_line(f"  {counted(done.expired, 'record')} had expired before they were copied")
    if done.left:
        write_line(f"  {counted(done.left, 'event')} left out, which no filter wants")
    if done.ignored:
        write_line(f"  {counted(done.ignored, 'object')} in the place of records that nobody signed")
    if done.more:
        write_line("  there is more: pull again, or go on with `--follow`")
    for item in done.parked:
        write_line(_parked_line(item))


def _tell(item: LinkStatus) -> None:
    write_line(f"{item.link.name}: {printable(item.link.address)}{_scope(item.link)}; {counted(item.lanes, 'lane')}")
    if not item.last:
        write_line("  never pulled")
    elif "error" in item.last:
        write_line(printable(f"  last pulled {item.last['at'][:19]}: {item.last['error']}, {item.last['message']}"))
    else:
        write_line(f"  last pulled {item.last['at'][:19]}: {counted(item.last['records'], 'record')}")
    for one in item.parked:
        write_line(_parked_line(one))
    for folder in item.contrary:
        write_line(printable(f"  evidence: {folder}"))


def _parked_line(item: Any) -> str:  # noqa: ANN401 - a lane that waits
    topic, _, origin = item.lane.partition("/")
    return printable(f"  parked: {topic[:16]} of {origin[:16]}: {item.code}, waits for {item.waits}")
