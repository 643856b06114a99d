"""`maia handler deliver`: the stream of a type to several clients, each through the handlers that it is due."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.handler.limits import Handlers, Within
from maia.cli.read import options
from maia.cli.read.bundles import unpacked
from maia.cli.read.options import principal_option
from maia.cli.show.output import answer, note
from maia.encoding import counted, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maia.domain import ImageChannel, Sink
    from maia.kernel import Frame

EXAMPLES = (
    "maia handler deliver --type met/met.CameraA --through operator --as basic --as premium --out seen",
    "maia handler deliver --type met/met.CameraA --through operator --as x --handler mirror --out seen --json",
)


@unpacked
def deliver(
    *,
    type_: Annotated[str, typer.Option("--type", metavar="TYPE", help="The event type whose events are frames.")],
    through: Annotated[str, principal_option("--through", help="Who opens the stream: a client that may subscribe.")],
    as_: Annotated[list[str], principal_option("--as", help="Who gets the frames; repeatable.")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="A file of frames for each goes there.")],
    handler: Handlers = None,
    target: Annotated[
        str | None, typer.Option("--to", metavar="TYPE", help="The event type that --handler makes; --type by default.")
    ] = None,
    batch: Annotated[
        int, typer.Option("--batch", min=1, max=4096, help="Frames that go through handlers together.")
    ] = 16,
    within: Within,
    passphrase_file: options.PassphraseFile = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Hand the frames of a stream to clients, each through what the home's policies force on it.

    The source published each frame once, and knows nobody. The client that --through names opens the stream. Each that
    --as names needs the right route on the type, and sees what the policies in `policy/*.xml` of the home leave it,
    where camera and channel are the name of the type. With --handler it installs handlers behind those that are forced,
    which takes the rights transformFrom, transformTo and installHandler as well. Who is refused at the beginning ends
    the command; who may not see any more while it runs is closed, and the others go on.
    """
    from maia.cli.read.passphrases import passphrase_source
    from maia.domain import Domain

    domain = Domain.open(home)
    for name in dict.fromkeys((through, *as_)):
        domain.prove(name, passphrase=passphrase_source(passphrase_file, what=f"`{name}`"))
    channel = domain.channel(type_, operator=through, budget=within.budget(), strikes=within.strikes, batch=batch)
    for name in dict.fromkeys(as_):
        channel.bind(name, handler or (), target=target)
    _write(channel, out)
    data: dict[str, object] = {
        "type": type_, "camera": channel.camera, "events": channel.read, "malformed": channel.malformed,
        "sinks": [_told(sink) for sink in channel.sinks],
    }  # fmt: skip
    lines = [
        f"{printable(sink.client.name)}: {sink.written} of {counted(channel.read, 'frame')}, {sink.octets:,} octets"
        for sink in channel.sinks
    ]
    answer(data, *lines, json=json)
    for sink in channel.sinks:
        if sink.closed is not None:
            note(f"`{printable(sink.client.name)}` was closed: [{sink.closed.code}] {sink.closed.message}")
        for post in sink.posts:
            if post.off:
                note(f"`{post.handler.name}` was taken off; installed for `{printable(sink.client.name)}`")


def _write(channel: ImageChannel, out: Path) -> None:
    """Pump until there is nothing more, and write what each sink gets into a file of its own."""
    import pyarrow.parquet as pq

    from maia.kernel import FRAME_SCHEMA, batch_of

    out.mkdir(parents=True, exist_ok=True)
    made = {sink.client.name: out / f".{sink.client.name}.part" for sink in channel.sinks}
    try:
        with ExitStack() as stack:
            files = {
                name: stack.enter_context(pq.ParquetWriter(path, FRAME_SCHEMA, compression="zstd"))
                for name, path in made.items()
            }

            def take(sink: Sink, frames: Sequence[Frame]) -> None:
                files[sink.client.name].write_batch(batch_of(frames))

            while channel.pump(take):
                pass
        for name, path in made.items():
            path.replace(out / f"{name}.parquet")
    finally:
        for path in made.values():
            path.unlink(missing_ok=True)


def _told(sink: Sink) -> dict[str, object]:
    return {
        "client": sink.client.name, "written": sink.written, "octets": sink.octets, "lost": sink.lost,
        "dead": [{"frame": item.number, "handler": item.handler, "reason": item.reason.value} for item in sink.dead],
        "handlers": [
            {"handler": post.handler.name, "forced": post.forced, "seen": post.seen, "off": post.off}
            for post in sink.posts
        ],
        "verifications": sink.verifications, "closed": None if sink.closed is None else sink.closed.code,
    }  # fmt: skip
