"""`maia domain invite-peer|connect|disconnect`: sharing events with another organisation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.answers import confirm
from maia.cli.read.bundles import unpacked
from maia.cli.read.instants import show_instant, span_of
from maia.cli.read.options import examples
from maia.cli.read.services import Served
from maia.cli.show.output import note, printable, write_json, write_line
from maia.encoding import counted
from maia.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from maia.domain import PeerState

app = typer.Typer()
"""These commands, which `maia domain` has beside its own."""
_ALL = "all"


@app.command(
    epilog=examples(
        'maia domain invite-peer --for "St Mary\'s" \\',
        "    --give 'researcher |- subscribe Result(ward, test)' > peer.maia",
        "maia domain invite-peer --for Met --give 'tracker |- subscribe Numberplate' --history 30d > peer.maia",
    )
)
@unpacked
def invite_peer(
    *,
    peer: Annotated[str, typer.Option("--for", metavar="NAME", help="What people call the other organisation.")],
    give: Annotated[
        list[str],
        typer.Option("--give", metavar="ROW", help="`role |- right`: what a role of the other may do. Repeatable."),
    ],
    history: Annotated[
        str | None,
        typer.Option(
            "--history", metavar="SINCE",
            help="Open events from before as well: `all`, `30d`, or an instant; else those from the admission on.",
        ),
    ] = None,
    key: Annotated[
        str | None, options.principal_option("--key", help="The other's key, when only that may answer.")
    ] = None,
    log: Annotated[
        str | None,
        typer.Option("--log", metavar="PLACE", help="Where the other finds the log, when not where this home does."),
    ] = None,
    until: options.Until = None,
    served: Served,
) -> None:  # fmt: skip
    """Invite another organisation: one signed file with all it needs to know, which works once.

    The file goes to standard output. It holds a one-time secret: send it to the other organisation alone. Nothing is
    given before it has answered and you have admitted it, both with `maia domain connect`.
    """
    from maia.domain import OwnKeyManager
    from maia.domain import invite_peer as make_invitation

    home, at = served.opened, _now(served)
    own = OwnKeyManager(home)
    try:
        made = make_invitation(
            home, served.signer, own, peer, give=give, at=at, until=served.moment(until),
            peer_key=None if key is None else served.folder.key(key), history=_since(history, served), log=log,
        )  # fmt: skip
    finally:
        own.close()
    ends = show_instant(made.invitation.ends)
    if served.json:
        write_json({"for": peer, "title": made.invitation.title, "until": ends, "invitation": made.text})
        return
    write_line(made.text.rstrip("\n"))
    for row in made.invitation.rows:
        note(printable(f"offers {row.role} |- {row.words}"))
    note(printable(f"for {peer}, until {ends}; it holds a one-time secret, so send it to them alone"))
    note(printable(f"next: {peer} runs `maia domain connect FILE > answer.maia` and sends the answer back"))


@app.command(
    epilog=examples(
        "maia domain connect peer.maia --reader ann > answer.maia",
        "maia domain connect answer.maia",
    )
)
@unpacked
def connect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An invitation, or the answer to one.")],
    *,
    readers: Annotated[
        list[str] | None,
        options.principal_option(
            "--reader", help="With an invitation: a key of this home that has the agreed roles at once. Repeatable."
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option("--log", metavar="PLACE", help="With an invitation: where the shared log is for this home."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Sign without asking.")] = False,
    served: Served,
) -> None:
    """Connect with another organisation: take up its invitation, or admit the one that answered yours.

    With an invitation this home learns keys, network, types, log and key manager, signs the agreement, and asks for
    keys; the answer goes to standard output. With an answer the agreed rights are issued and the other's broker gets
    keys; the log carries them, and there is nothing to send.
    """
    from maia.domain import OwnKeyManager, connect_peer

    def ask(state: PeerState) -> None:
        _show_offer(state)
        if not yes:
            what = "Connect to" if state.did == "offered" else "Admit"
            confirm(f"{what} {state.peer}, whose key is {state.key.fingerprint}?", otherwise="nothing was signed")

    home = served.opened
    own = OwnKeyManager(home)
    try:
        state = connect_peer(
            home, served.signer, own, file, at=_now(served), readers=readers or (), log=log, confirm=ask
        )
    finally:
        own.close()
    if served.json:
        write_json(state.to_json())
        return
    if state.text is not None:
        write_line(state.text.rstrip("\n"))
        note(printable(f"{state.peer} is known here as `{state.known_as}`; its types and its log are at hand"))
        note(printable(f"next: send the answer to {state.peer}, who runs `maia domain connect FILE`; then read"))
    else:
        given, places = counted(state.certificates, "certificate"), counted(state.groups, "place")
        write_line(printable(f"{state.peer} is connected, known here as `{state.known_as}`"))
        note(f"issued {given} and gave {places} in key groups; the log carries them")
    if state.join_at is not None:
        note(f"the key manager at {state.join_at} gives the keys: `maia keys join TYPE` there asks it")


@app.command(epilog=examples('maia domain disconnect "St Mary\'s"', "maia domain disconnect st-marys --yes"))
@unpacked
def disconnect(
    peer: Annotated[str, typer.Argument(metavar="NAME", help="What the peer, or its key, is called here.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Revoke without asking.")] = False,
    served: Served,
) -> None:
    """End a connection: revoke everything that was issued to a peer, put its broker out, and change the keys.

    It counts at once where it is heard; the other's consent is not needed.
    """
    from maia.cli.show.revocations import revocation_lines, revocation_to_json
    from maia.domain import disconnect_peer

    if not yes:
        confirm(f"Revoke all that {peer} was given?", otherwise="nothing was revoked")
    state, revoked = disconnect_peer(served.opened, served.service, peer, at=served.instant)
    if served.json:
        write_json({**state.to_json(), "revocation": revocation_to_json(revoked, at=served.instant)})
        return
    for row in state.rows:
        write_line(printable(f"{state.peer} loses {row.words}, which its {row.role} had"))
    for line in revocation_lines(revoked, at=served.instant):
        write_line(printable(line))
    windows = [item.exposure.window for item in revoked.certificates]
    latest = max((window for window in windows if window is not None), default=None)
    by = "never" if latest is None or None in windows else f"by {show_instant(served.instant + latest)}"
    note(printable(f"{state.peer} is disconnected: {counted(state.certificates, 'certificate')} revoked"))
    note(f"it ends at once where the list is heard, {by} where it is not; new events are sealed with new keys")


def _show_offer(state: PeerState) -> None:
    for row in state.rows:
        note(printable(f"{row.role} |- {row.words}"))
    if state.history is not None:
        note(f"with events since {show_instant(state.history)}")
    if state.log is not None:
        note(printable(f"over the log in {state.log}"))
    if state.join_at is not None:
        note(printable(f"with keys of the key manager at {state.join_at}"))


def _since(text: str | None, served: Served) -> datetime | None:
    from datetime import UTC, datetime

    if text == _ALL:
        return datetime.fromtimestamp(0, UTC)
    span = None if text is None else span_of(text)
    try:
        return served.moment(text) if span is None else served.instant - span
    except UsageError as error:
        raise UsageError(f"{error.message}, and here also `all` or `30d`", code=error.code) from error


def _now(served: Served) -> datetime:
    """Read the clock to the millisecond: a key manager takes a broker's requests in the order of their stamps."""
    from maia.home import now

    return now() if served.at is None else served.instant
