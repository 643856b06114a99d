"""`maia release check|format|preview|define|apply|abandon|list`: what leaves to whom, by the rules of a home."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.checked import tell_findings, tell_formatted
from maia.cli.show.output import answer, note, write_json
from maia.encoding import counted

if TYPE_CHECKING:
    from maia.domain import ReleasePreview

app = new_app(
    "Check, format, preview and apply the rules by which events leave the domain.",
    "maia release check",
    "maia release apply --type uk.nhs.path_report --to 'study(\"bladder-7\")' --as registrar",
)
_Files = Annotated[
    list[Path] | None, typer.Argument(metavar="FILE", help="Files of release rules; those of the home when left out.")
]
_Type = Annotated[str, typer.Option("--type", metavar="TYPE", help="The type that is released: OWNER/NAME@VERSION.")]
_To = Annotated[str, typer.Option("--to", metavar="DESTINATION", help='For whom: a domain, or study("NAME").')]
_MAX_SAMPLE = 1 << 24


@app.command(epilog=examples("maia release check", "maia release check policy/research.release --json"))
@unpacked
def check(files: _Files = None, *, place: CommandPlace) -> int:
    """Say what is wrong with release rules, with file, line and column; exits 1 when there is an error.

    Inside a home, the rules are compared with the event types that it knows.
    """
    from maia.domain import check_release_files, release_texts
    from maia.home import Home

    texts = release_texts(place.home, files or ())
    opened = Home.open(place.home) if (place.home / "maia.toml").is_file() else None
    found = check_release_files(texts, opened)
    return tell_findings(found, files=len(texts), json=place.json)


@app.command("format", epilog=examples("maia release format", "maia release format --check"))
def format_(
    files: _Files = None,
    *,
    check_only: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 when something would.")] = False,
    home: options.Home = Path(),
    json: options.Json = False,
) -> int:
    """Write release rules in the one canonical spelling, keeping comments; what cannot be read is not touched."""
    from maia.domain import format_release_file, release_paths

    paths = files or release_paths(home)
    changed = [path for path in paths if format_release_file(path, write=not check_only)]
    return tell_formatted(changed, files=len(paths), check_only=check_only, json=json)


@app.command(
    epilog=examples(
        "maia release preview --type uk.nhs.path_report --to registry --rows sample.jsonl",
        "maia release preview --type uk.nhs.path_report --to 'study(\"bladder-7\")' --as registrar --limit 3",
    )
)
def preview(
    *,
    type_: _Type,
    to: _To,
    rows: Annotated[
        Path | None, typer.Option("--rows", metavar="FILE", help="Sample rows, one JSON object a line.")
    ] = None,
    client: Annotated[
        str | None, principal_option("--as", help="In place of a file: the first events, as this client reads them.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many rows.")] = 5,
    passphrase_file: options.PassphraseFile = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Show what the rules make of sample rows, before and after, side by side; nothing leaves.

    Pseudonyms are made up here, so that nobody can link them with those that were released. An attribute that does not
    leave shows `-`.
    """
    import maia
    from maia.cli.read.passphrases import passphrase_source

    with maia.open(home) as domain:
        ask = None if client is None else passphrase_source(passphrase_file, what=f"`{client}`")
        sample = None if rows is None else _sample(rows)[:limit]
        found = domain.preview_release(type_, sample, to=to, by=client, limit=limit, passphrase=ask)
    if json:
        write_json({"previews": [item.to_json() for item in found]})
        return
    for item in found:
        _draw(item)


@app.command(
    epilog=examples("maia release define --type uk.nhs.path_report --to 'study(\"bladder-7\")' --as registrar")
)
def define(
    *,
    type_: _Type,
    to: _To,
    clients: Annotated[
        list[str], principal_option("--as", help="Who will release: a key of this home, by name. Repeatable.")
    ],
    owner: Annotated[
        str | None,
        principal_option("--owner", help="Whose key signs; the type's owner unless named, else the domain's key."),
    ] = None,
    passphrase_file: options.PassphraseFile = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Define the type of what is released, and let the broker and the clients publish it.

    A release is a type of its own, with an owner: who reads it is a matter of rights on it, as with any other type.
    Done again after the rules changed, it makes a new version.
    """
    import maia
    from maia.cli.read.passphrases import passphrase_source

    with maia.open(home) as domain:
        ask = passphrase_source(passphrase_file, what="the owner's key")
        made = domain.define_release(type_, to=to, by=clients, owner=owner, passphrase=ask)
    rows: list[object] = [
        {"type": item.type, "new": item.made, "certificates": item.certificates} for item in made
    ]  # fmt: skip
    answer(
        {"types": rows},
        *(
            f"{item.type}{'' if item.made else ' is there'}, {counted(item.certificates, 'right')} given"
            for item in made
        ),
        json=json,
    )


@app.command(
    epilog=examples(
        "maia release apply --type uk.nhs.path_report --to 'study(\"bladder-7\")' --as registrar",
        "maia release apply --type uk.nhs.path_report --to registry --as registrar --out counts.jsonl",
    )
)
def apply(
    *,
    type_: _Type,
    to: _To,
    client: Annotated[str, principal_option("--as", help="Who reads and releases: a key of this home, by name.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="A file, .parquet or .jsonl, in place of the released type."),
    ] = None,
    passphrase_file: options.PassphraseFile = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Release what is new since the last time: read as the client may, by the rules, out as the released type.

    What was released before is not released again, and no event is counted twice for a destination. With --out it goes
    to a file instead, which Maia does not protect any more. Exit code 3 when no rule lets anything leave.
    """
    from maia.authority import Action
    from maia.cli.read.clients import denial, open_client

    domain, _ = open_client(home, client, passphrase_file)
    with domain, denial(domain, client=client, action=Action.SUBSCRIBE, type_text=type_):
        done = domain.release(type_, to=to, by=client, out=out)
    answer(
        {"releases": [item.to_json() for item in done]}, *(line for item in done for line in item.lines()), json=json
    )


@app.command(epilog=examples("maia release abandon 3 --as registrar", "maia release abandon 3 --json"))
def abandon(
    number: Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="The release, as `maia release list` has it.")],
    *,
    client: Annotated[
        str | None, principal_option("--as", help="The client that began it; else the key of the domain proves itself.")
    ] = None,
    passphrase_file: options.PassphraseFile = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Give up a release that was begun and cannot be finished as it was begun.

    Nobody knows whether it left, so what it covers counts as released, and is never released to that destination. The
    audit tells who gave it up.
    """
    import maia
    from maia.cli.read.passphrases import passphrase_source
    from maia.domain import entry_to_json

    with maia.open(home) as domain:
        ask = passphrase_source(passphrase_file, what="the key of the domain" if client is None else f"`{client}`")
        entry = domain.abandon_release(number, by=client, passphrase=ask)
    told = f"gave up release {entry.number} to {entry.to}; what it covers of {entry.type} is not released there"
    answer(entry_to_json(entry), told, json=json)


@app.command("list", epilog=examples("maia release list", "maia release list --to registry --json"))
def list_(
    *,
    to: Annotated[str | None, typer.Option("--to", metavar="DESTINATION", help="Only what was released to it.")] = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """List what was released to whom: when, of which type, which attributes, how much, and where to."""
    import maia
    from maia.cli.read.instants import show_instant
    from maia.cli.show.tables import draw_table
    from maia.domain import entry_to_json
    from maia.policy import release

    wanted = None if to is None else str(release.parse_destination(to))
    with maia.open(home) as domain:
        found = [item for item in domain.releases() if wanted in (None, item.to)]
    if json:
        write_json({"releases": [entry_to_json(item) for item in found]})
        return
    titles = ("number", "at", "to", "type", "attributes", "rows", "target", "state")
    rows = [
        (
            str(item.number), show_instant(item.at.replace(microsecond=0)) or "", item.to, item.type,
            ", ".join(item.attributes), str(item.rows), item.target, item.state,
        )
        for item in found
    ]  # fmt: skip
    draw_table(titles, rows, right=("number", "rows"))


def _sample(path: Path) -> list[dict[str, object]]:
    """Read sample rows from a file of JSON lines."""
    from maia.errors import MalformedError, UsageError
    from maia.home import read_file
    from maia.wire import read_json

    found = []
    for number, line in enumerate(read_file(path, limit=_MAX_SAMPLE).split(b"\n"), 1):
        if line.strip():
            try:
                row = read_json(line)
            except MalformedError as error:
                raise UsageError(f"`{path}`, line {number}: {error.message}", code="RELEASE_SAMPLE") from error
            if not isinstance(row, dict):
                raise UsageError(f"`{path}`, line {number}: no JSON object", code="RELEASE_SAMPLE")
            found.append(row)
    return found


def _draw(item: ReleasePreview) -> None:
    from maia.cli.show.tables import draw_table

    what = "counts" if item.tree.counts else "rows"
    note(f"{what} of {counted(len(item.before), 'row')} to {item.tree.to}")
    titles, lines = item.table()
    draw_table(titles, lines)
    if item.kept_back:
        note(f"{counted(item.kept_back, 'group')} too small, kept back")
