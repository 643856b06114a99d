"""`maia worker new|list|revoke`: the machines that run a domain's tasks, each with a key of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read import options
from maia.cli.read.answers import confirm
from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.read.instants import show_instant
from maia.cli.read.options import examples, new_app
from maia.cli.show.output import answer, note, write_json
from maia.cli.show.tables import draw_table

app = new_app("Name the machines that run the tasks of a domain.", "maia worker new w1 --out w1.worker")
_Name = Annotated[str, typer.Argument(metavar="NAME", help="What the worker's key is called here.")]


@app.command(epilog=examples("maia worker new w1 --out w1.worker", "maia worker new w1 --out w1.worker --until +7d"))
@unpacked
def new(
    name: _Name,
    *,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Where its private key goes, mode 0600, for its machine.")
    ],
    until: Annotated[
        str, typer.Option("--until", metavar="INSTANT", help="Last instant at which it is a worker, or `+90d`.")
    ] = "+30d",
    place: CommandPlace,
) -> None:
    """Make a key for a worker, and name it in the broker's group `workers`.

    The private key is written to FILE and kept nowhere else: bring it to the worker's machine, where MAIA_WORKER_KEY
    names it. From then on plans are sealed to the group, and no task opens the home on another machine.
    """
    from maia.domain import new_worker
    from maia.home import Home

    end = place.moment(until)
    assert end is not None  # noqa: S101 - the text is there
    made = new_worker(Home.open(place.home), name, out, until=end, at=place.instant)
    key = place.folder.key(name)
    data: dict[str, object] = {
        "name": name, "fingerprint": key.fingerprint, "file": str(out), "until": end.isoformat(),
        "certificate": made.certificate_id.hex(),
    }  # fmt: skip
    note(f"the private key of `{name}` is in `{out}`, unsealed; whoever reads the file can do the domain's work")
    answer(data, f"{name} {key.fingerprint}, a worker until {show_instant(end)}", json=place.json)


@app.command("list", epilog=examples("maia worker list", "maia worker list --json"))
@unpacked
def list_(*, place: CommandPlace) -> None:
    """List the workers that the broker named, and whether plans are sealed to them now."""
    from maia.domain import list_workers
    from maia.home import Home

    found = list_workers(Home.open(place.home), at=place.instant)
    if place.json:
        write_json({"workers": [worker.to_json() for worker in found]})
    elif not found:
        note("no workers; `maia worker new NAME --out FILE` makes one")
    else:
        rows = [
            (
                worker.name,
                worker.key.fingerprint,
                "yes" if worker.in_force else "no",
                str(show_instant(worker.until)),
            )
            for worker in found
        ]
        draw_table(("name", "fingerprint", "in force", "until"), rows)


@app.command(epilog=examples("maia worker revoke w1", "maia worker revoke w1 --yes"))
@unpacked
def revoke(name: _Name, *, yes: options.Yes = False, place: CommandPlace) -> None:
    """Put a worker's name on the broker's list.

    The next plan is not for it. A plan that it was given before ends by itself, after the home's `plan_age` at most.
    """
    from maia.domain import revoke_worker
    from maia.home import Home

    if not yes:
        confirm(f"Revoke the worker `{name}`?", otherwise="not revoked")
    done = revoke_worker(Home.open(place.home), name, at=place.instant)
    answer({"revoked": name, "certificate": done.certificate.certificate_id.hex()}, f"revoked {name}", json=place.json)
