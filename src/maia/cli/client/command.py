"""`maia client publish|subscribe`: a client of a domain's gateway, without Spark and without the domain's home."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maia.cli.read import options
from maia.cli.read.bundles import unpacked
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import note, printable, write_json, write_line
from maia.encoding import counted

if TYPE_CHECKING:
    from maia.clients import GatewayClient

app = new_app("Publish and subscribe over a domain's gateway.")
_ROWS = 1000
_MAX_LINE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Reached:
    """Which gateway, by whom, and whom it must be."""

    gateway: Annotated[str, typer.Option("--gateway", metavar="URL", help="The gateway: https://host[:port].")]
    client: Annotated[str, principal_option("--as", help="Who asks: a key of this folder, by name.")]
    broker: Annotated[
        str | None, principal_option("--broker", help="The broker's key; the gateway must prove that it has it.")
    ] = None
    network: Annotated[
        str | None,
        typer.Option("--network", metavar="OWNER/NAME", help="The network that the broker must be allowed in."),
    ] = None
    credential: Annotated[
        list[Path] | None,
        typer.Option("--credential", metavar="FILE", help="A certificate to show with the request; may be repeated."),
    ] = None
    ca: Annotated[
        Path | None, typer.Option("--ca", metavar="FILE", help="Certificate authorities to trust for TLS, PEM.")
    ] = None
    passphrase_file: options.PassphraseFile = None
    home: options.Home = Path()

    def connected(self) -> GatewayClient:
        """Connect.

        Raises:
            MaiaError: The gateway is not who it must be, or does not let this client in.
        """
        import ssl

        from maia.cli.read.signers import open_signer
        from maia.clients import AddressPolicy, connect
        from maia.errors import NotFoundError, UsageError
        from maia.home import Folder, words

        folder = Folder(self.home)
        network = None
        if self.network is not None:
            owner, slash, name = self.network.partition("/")
            if not slash or not name:
                raise UsageError("a network is written OWNER/NAME", code="NETWORK")
            network = (words.parse_principal_text(owner, folder), name)
        if self.ca is not None and not self.ca.is_file():
            raise NotFoundError(f"no file `{self.ca}`", code="NO_SUCH_FILE")
        return connect(
            self.gateway, key=open_signer(folder.key(self.client), folder, self.passphrase_file),
            server=None if self.broker is None else folder.key(self.broker), network=network,
            policy=AddressPolicy(loopback=True),
            tls=None if self.ca is None else ssl.create_default_context(cafile=str(self.ca)),
        )  # fmt: skip

    def shown(self) -> list[bytes]:
        """Read the certificates that go with the request."""
        from maia.home import read_file

        return [read_file(path, limit=_MAX_LINE) for path in self.credential or ()]


@app.command(
    "publish",
    epilog=examples(
        "maia client publish results.jsonl --gateway https://gw.clinic.example --broker broker --as lab "
        "--type clinic.Result",
        "tail -f results.jsonl | maia client publish - --gateway http://127.0.0.1:8473 --broker broker --as lab "
        "--type clinic.Result --json",
    ),
)
@unpacked
def publish(
    source: Annotated[str, typer.Argument(metavar="FILE", help="JSON lines, one event a line; `-` is stdin.")],
    *,
    reached: Reached,
    type_: Annotated[str, typer.Option("--type", metavar="TYPE", help="The type: owner/name@version, shortened.")],
    version: Annotated[
        str | None, typer.Option("--version", metavar="V", help="Which version the rows have, when there are several.")
    ] = None,
    publication: Annotated[
        str | None,
        typer.Option("--publication", metavar="ID", help="Names the publication: published twice it counts once."),
    ] = None,
    json: options.Json = False,
) -> int:
    """Publish the events of a file over a gateway; what is counted as published is in the log.

    Rows that are refused are counted by code and column. Exit code 3 when the client may not publish the type, or none
    of its rows.
    """
    from maia.errors import RowsRefusedError

    events, commits, refused = 0, set[int](), dict[tuple[str, str], int]()
    with ExitStack() as stack:
        stack.enter_context(gateway := reached.connected())
        if reached.credential:
            gateway.advertise(type_, version=version, credentials=reached.shown())
        for number, rows in enumerate(_stretches(source)):
            name = None if publication is None else f"{publication}/{number}"
            try:
                done = gateway.publish(rows, type_, version=version, publication=name)
            except RowsRefusedError as error:
                done = error.published
            events += done.events
            commits |= set() if done.commit is None else {done.commit}
            for item in done.refused:
                key = (item.code, item.column or "")
                refused[key] = refused.get(key, 0) + len(item.rows)
    code = ExitCode.DENIED if refused and not events else ExitCode.DONE
    if json:
        told = [{"code": code_, "column": column or None, "rows": n} for (code_, column), n in sorted(refused.items())]
        write_json({"type": type_, "events": events, "commits": sorted(commits), "refused": told}, code=code)
        return code
    write_line(f"published {counted(events, 'event')} of {printable(type_)} as {reached.client}")
    for (code_, column), count in sorted(refused.items()):
        write_line(printable(f"refused {counted(count, 'row')}: {code_}{f' in `{column}`' if column else ''}"))
    return code


@app.command(
    "subscribe",
    epilog=examples(
        "maia client subscribe --gateway https://gw.clinic.example --broker broker --as doctor --type clinic.Result",
        "maia client subscribe --gateway http://127.0.0.1:8473 --broker broker --as doctor --type clinic.Result "
        "--name ward-a --where \"ward = 'A'\" --place ward-a.place --limit 10 --json",
    ),
)
@unpacked
def subscribe(
    *,
    reached: Reached,
    type_: Annotated[str, typer.Option("--type", metavar="TYPE", help="The type: owner/name@version, shortened.")],
    where: Annotated[
        str, typer.Option("--where", metavar="FILTER", help="Only these events; over attributes it may read.")
    ] = "",
    version: Annotated[
        str | None, typer.Option("--version", metavar="V", help="The version to see them as, when there are several.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="What the broker remembers the subscription as.")
    ] = None,
    place: Annotated[
        Path | None,
        typer.Option("--place", metavar="FILE", help="Keeps how far it got, and goes on from there the next time."),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="End after so many events.")] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", metavar="S", min=0.1, help="End when none came for so long.")
    ] = None,
    json: options.Json = False,  # noqa: ARG001 - events are JSON lines either way
) -> int:
    """Print events as they are delivered, one JSON object a line, until it is interrupted.

    The broker remembers the subscription when the command ends, and delivers to it; with --place the next run goes on
    behind the last event that was printed. Exit code 3 when the client has no right, or loses it.
    """
    from maia.home import PRIVATE_FILE, read_file, write_file

    after = (
        read_file(place, limit=200).decode("ascii", "replace").strip() if place is not None and place.is_file() else ""
    )
    count = 0
    with ExitStack() as stack:
        stack.enter_context(gateway := reached.connected())
        found = gateway.subscribe(
            type_, where=where, version=version, name=name, after=after, credentials=reached.shown()
        )  # fmt: skip
        note(f"subscribed as `{printable(found.name)}`")
        if place is not None:
            write_file(place, found.after.encode(), mode=PRIVATE_FILE)
        try:
            while limit is None or count < limit:
                event = found.next(seconds=seconds)
                if event is None:
                    break
                _print(event)
                count += 1
                if place is not None:
                    write_file(place, found.after.encode(), mode=PRIVATE_FILE)
        except KeyboardInterrupt:
            return ExitCode.INTERRUPTED
    return ExitCode.DONE


def _print(event: dict[str, Any]) -> None:
    import json

    sys.stdout.write(json.dumps(event, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def _stretches(source: str) -> Iterator[list[dict[str, Any]]]:
    """Read the events of a file, so many at a time."""
    from maia.errors import MalformedError, NotFoundError
    from maia.wire import read_json

    if source != "-" and not Path(source).is_file():
        raise NotFoundError(f"no file `{source}`", code="NO_SUCH_FILE")
    with ExitStack() as stack:
        lines = sys.stdin.buffer if source == "-" else stack.enter_context(Path(source).open("rb"))
        number = 0
        while part := list(islice(iter(lambda: lines.readline(_MAX_LINE + 1), b""), 1 if source == "-" else _ROWS)):
            rows = []
            for line in part:
                number += 1
                if not line.strip():
                    continue
                row = read_json(line) if len(line) <= _MAX_LINE else None
                if not isinstance(row, dict):
                    raise MalformedError(f"line {number} is no JSON object", code="ROW_TEXT")
                rows.append(row)
            if rows:
                yield rows
