"""`maia handler list|check|run`: code on image streams, in sandboxes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.handler.channel import EXAMPLES as DELIVER_EXAMPLES
from maia.cli.handler.channel import deliver
from maia.cli.handler.limits import Handlers, Within
from maia.cli.read import options
from maia.cli.read.bundles import unpacked
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.output import answer, note
from maia.encoding import counted, printable
from maia.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maia.kernel import FrameHandler, HandlerPost

app = new_app(
    "Run code on image streams, in sandboxes.", "maia handler list", "maia handler run frames.parquet --out o.parquet"
)
app.command("deliver", epilog=examples(*DELIVER_EXAMPLES))(deliver)


@dataclass(frozen=True, kw_only=True)
class _Entitled:
    """For which client frames are handled, under which policies, on which channel; without one nothing is decided."""

    as_: Annotated[
        str | None, principal_option("--as", help="Who sees and installs: a client of this home, which proves its key.")
    ] = None
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", metavar="POLICY", help="An XML policy beside those of the home; repeatable."),
    ] = None
    camera: Annotated[str | None, typer.Option("--camera", metavar="CAMERA", help="Whose frames they are.")] = None
    channel: Annotated[
        str | None, typer.Option("--channel", metavar="CHANNEL", help="Where policies let handlers be installed.")
    ] = None
    zone: Annotated[str, typer.Option("--zone", metavar="ZONE", help="The zone of the hours in --policy.")] = "UTC"
    source: Annotated[
        str | None, typer.Option("--from", metavar="TYPE", help="The event type on whose channel they are installed.")
    ] = None
    target: Annotated[
        str | None, typer.Option("--to", metavar="TYPE", help="The event type that they make; --from when left out.")
    ] = None
    home: options.Home = Path()
    passphrase_file: options.PassphraseFile = None

    def posts(self, own: list[FrameHandler]) -> Sequence[HandlerPost]:
        """Let the home decide what is put up for the client; without one, only what is named.

        Raises:
            UsageError: Options are missing that the home needs to decide; one with policies of its own always does.
        """
        from maia.cli.read.passphrases import passphrase_source
        from maia.domain import CameraView, Domain, TypeChannel, entitled_posts, tried_posts
        from maia.home import Folder

        asked = (self.as_, self.policy, self.camera, self.channel, self.source, self.target)
        if all(item is None or item == [] for item in asked):
            return tried_posts(Folder(self.home), own)
        if self.as_ is None:
            raise UsageError("--as names the client of this home that sees the frames and installs handlers")
        if self.camera is None and (self.policy or self.channel is not None):
            raise UsageError("--policy and --channel go with --camera, whose frames they are")
        if self.target is not None and self.source is None:
            raise UsageError("--to goes with --from, the type on whose channel handlers are installed")
        view = channel = None
        if self.camera is not None:
            view = CameraView(
                policies=tuple(self.policy or ()), camera=self.camera, channel=self.channel, zone=self.zone
            )
        if self.source is not None:
            channel = TypeChannel(source=self.source, target=self.target or self.source)
        domain = Domain.open(self.home)
        client = domain.prove(self.as_, passphrase=passphrase_source(self.passphrase_file, what=f"`{self.as_}`"))
        return entitled_posts(domain, client, own, view=view, channel=channel)


@app.command("list", epilog=examples("maia handler list"))
def list_(*, json: options.Json = False) -> None:
    """List the handlers that Maia brings."""
    from maia.domain import BUILT_IN_HANDLERS

    answer({"handlers": list(BUILT_IN_HANDLERS)}, *BUILT_IN_HANDLERS, json=json)


@app.command(epilog=examples("maia handler check mine.wasm", "maia handler check mine.py --json"))
def check(
    handler: Annotated[str, typer.Argument(metavar="HANDLER", help="A file that ends in .wasm, .wat or .py.")],
    *,
    json: options.Json = False,
) -> None:
    """Say whether a handler can be used, and the name by which policies know it; exits 1 when it cannot.

    It is compiled, and tried on a small grey frame within the default budget.
    """
    from maia.domain import open_handler
    from maia.kernel import DEFAULT_HANDLER_BUDGET, Frame

    found = open_handler(handler)
    frame = Frame(number=0, height=16, width=16, channels=3, pixels=bytes(768))
    made = found.run([frame], DEFAULT_HANDLER_BUDGET)[0]
    told = "drops it" if made is None else f"{made.height}x{made.width}x{made.channels}"
    data: dict[str, object] = {"handler": found.name, "reply": told}
    answer(data, f"{found.name}", f"16x16x3 -> {told}", json=json)


@app.command(
    epilog=examples(
        "maia handler run frames.parquet --handler greyscale --handler half-size --out small.parquet",
        "maia handler run frames.parquet --as x --policy avs.xml --camera A --out seen.parquet --json",
        "maia handler run frames.parquet --as x --from met/met.CameraY@1 --to met/met.GreyY@1 \\",
        "    --handler greyscale --out grey.parquet",
    )
)
@unpacked
def run(
    frames: Annotated[Path, typer.Argument(metavar="FRAMES", help="A Parquet file of frames.")],
    *,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the handled frames go.")],
    handler: Handlers = None,
    entitled: _Entitled,
    within: Within,
    json: options.Json = False,
) -> None:
    """Send frames through handlers: first those that policies force on the client, then those that are named.

    A handler runs in a sandbox, within a budget. A frame on which it fails is lost, with a reason, and no other; after
    --strikes faults it is taken off. Frames go on without one that was installed, and not without one that is forced.

    Under policies, and on a channel, which is the stream of an event type, the home decides for the client that --as
    names, once its key is proven; its roles are those that are active in the home. The home's own policies, in
    `policy/*.xml`, count always; those that --policy names only take away beside them. A channel takes the rights
    transformFrom and installHandler on the type, and transformTo on the type that is made. Without --as a handler is
    tried out: nothing is decided, and the answer says so; a home with policies of its own lets nobody do that.
    """
    from maia.domain import handle_file, open_handler

    posts = entitled.posts([open_handler(text) for text in handler or ()])
    done = handle_file(frames, out, posts, budget=within.budget(), strikes=within.strikes)
    dead = [{"frame": item.number, "handler": item.handler, "reason": item.reason.value} for item in done.dead]
    data: dict[str, object] = {
        "frames": done.read, "written": done.written, "dropped": done.dropped, "lost": done.lost, "dead": dead,
        "octets": {"read": done.octets_read, "written": done.octets_written}, "off": list(done.off),
        "handlers": [{"handler": post.handler.name, "forced": post.forced} for post in posts],
        "installer": entitled.as_, "decided": entitled.as_ is not None,
    }  # fmt: skip
    answer(data, f"{done.written} of {counted(done.read, 'frame')}, {done.octets_written:,} octets", json=json)
    for item in dead[:5]:
        note(f"frame {item['frame']} is lost: {item['reason']} of `{item['handler']}`")
    for name in done.off:
        note(f"`{name}` was taken off after {counted(within.strikes, 'fault')}{_named(entitled.as_)}")
    if entitled.as_ is None:
        note("tried out: nobody was asked who may see these frames or install these handlers")


def _named(user: str | None) -> str:
    return "" if user is None else f"; installed for `{printable(user)}`"
