"""`maia simulate hops|scale|chaos|verify|state`: the overlay with thousands of brokers, in this process.

The brokers are those that route for a domain; the clock and the weather are virtual, and a seed decides everything.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import note, write_json, write_line
from maia.cli.show.progress import watching
from maia.cli.show.tables import draw_table
from maia.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maia.simulator import ChaosReport, LastMatch, Plan

app = new_app("Play the overlay network with thousands of brokers, in this process.")
_MOST_BROKERS = 200_000
_MOST_PRICE = 1_000_000

Seed = Annotated[int, typer.Option("--seed", min=0, help="Decides everything that is drawn: same seed, same history.")]
Leaves = Annotated[int, typer.Option("--leaves", min=2, max=64, help="How many leaves a broker keeps; an even number.")]
Picture = Annotated[Path | None, typer.Option("--picture", metavar="FILE", help="Draw what was found, as an SVG file.")]


@app.command(epilog=examples("maia simulate hops", "maia simulate hops --groups 1,3,10,50 --picture hops.svg --json"))
def hops(
    *,
    brokers: Annotated[int, typer.Option("--brokers", min=2, max=_MOST_BROKERS, help="How many brokers.")] = 2000,
    groups: Annotated[
        str, typer.Option("--groups", help="Numbers of groups of readers, with commas between them.")
    ] = "1,2,3,5,10",
    runs: Annotated[int, typer.Option("--runs", min=1, max=10_000, help="Over how many networks.")] = 10,
    seed: Seed = 1,
    leaves: Leaves = 16,
    picture: Picture = None,
    json: options.Json = False,
) -> None:
    """Count how far events travel: one with protected attributes, or one sub-event for each group of readers.

    This is Figure 7.10 of the thesis. It leaves open whom a sub-event reaches, so both are counted: all groups, which
    is what its figures fit, or its own group alone.
    """
    from maia.simulator import THESIS, line_chart
    from maia.simulator import hops as count

    wanted = _numbers(groups, "groups", most=min(1000, brokers - 1))
    with watching("counting hops") as watch:
        found = count(brokers=brokers, groups=wanted, runs=runs, seed=seed, leaves=leaves, say=watch.say)
    if picture is not None:
        series = {
            "one sub-event a group, to all": [(item.groups, item.emulated_all) for item in found],
            "one sub-event a group, to its own": [(item.groups, item.emulated_own) for item in found],
            "one event, attributes protected": [(item.groups, item.attribute) for item in found],
        }
        title = f"Hops of a publication, {brokers:,} brokers"
        _draw(picture, line_chart(title, "groups of readers", "hops", series, log_y=True))
    if json:
        rows = [
            {
                "groups": item.groups, "attribute": item.attribute, "emulated_all": item.emulated_all,
                "emulated_own": item.emulated_own, "spread": item.spread, "thesis": THESIS.get(item.groups),
            }
            for item in found
        ]  # fmt: skip
        write_json({"brokers": brokers, "runs": runs, "seed": seed, "leaves": leaves, "hops": rows})
        return
    titles = ("groups", "one event", "sub-events to all", "sub-events to own", "thesis")
    draw_table(
        titles,
        [
            (
                str(item.groups),
                f"{item.attribute:.1f} ± {item.spread:.1f}",
                f"{item.emulated_all:.1f}",
                f"{item.emulated_own:.1f}",
                "{:.1f} and {:.1f}".format(*THESIS[item.groups]) if item.groups in THESIS else "",
            )
            for item in found
        ],
        right=titles,
    )


@app.command(epilog=examples("maia simulate scale", "maia simulate scale --brokers 100,10000,100000 --json"))
def scale(
    *,
    brokers: Annotated[
        str, typer.Option("--brokers", help="Numbers of brokers, with commas between them.")
    ] = "100,1000,10000",
    routes: Annotated[int, typer.Option("--routes", min=1, max=1_000_000, help="How many messages to places.")] = 1000,
    subscribers: Annotated[
        int, typer.Option("--subscribers", min=1, max=10_000, help="How many brokers subscribe to one type.")
    ] = 50,
    seed: Seed = 1,
    leaves: Leaves = 16,
    picture: Picture = None,
    json: options.Json = False,
) -> None:
    """Measure how ways, entries and copies grow with the number of brokers.

    Each message must end at the broker that is numerically closest to its place: those that do not are counted.
    """
    from dataclasses import asdict

    from maia.simulator import line_chart
    from maia.simulator import scale as measure

    counts = _numbers(brokers, "brokers", most=_MOST_BROKERS)
    with watching("making brokers") as watch:
        found = measure(brokers=counts, routes=routes, subscribers=subscribers, seed=seed, leaves=leaves, say=watch.say)
    if picture is not None:
        series = {
            "mean hops": [(item.brokers, item.mean) for item in found],
            "log16 n": [(item.brokers, item.model) for item in found],
            "most hops": [(item.brokers, float(item.longest)) for item in found],
        }
        _draw(picture, line_chart("Hops to a place", "brokers", "hops", series, log_x=True))
    if json:
        write_json({"seed": seed, "leaves": leaves, "routes": routes, "sizes": [asdict(item) for item in found]})
        return
    titles = ("brokers", "mean hops", "log16 n", "most hops", "astray", "entries", "fullest", "copies", "delivered")
    draw_table(
        titles,
        [
            (
                f"{item.brokers:,}", f"{item.mean:.2f}", f"{item.model:.2f}", str(item.longest), str(item.astray),
                str(item.entries), str(item.most), str(item.copies), f"{item.delivered} of {item.subscribers}",
            )
            for item in found
        ],
        right=titles,
    )  # fmt: skip


@app.command(
    epilog=examples(
        "maia simulate chaos --seeds 100",
        "maia simulate chaos --seed 17 --seeds 1",
        "maia simulate chaos --line --json",
    )
)
def chaos(
    *,
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=10_000_000, help="How many histories.")] = 20,
    seed: Seed = 1,
    brokers: Annotated[int, typer.Option("--brokers", min=1, max=1000, help="How many brokers to begin with.")] = 6,
    steps: Annotated[int, typer.Option("--steps", min=1, max=100_000, help="How many steps a history has.")] = 40,
    types: Annotated[int, typer.Option("--types", min=1, max=1000, help="How many event types.")] = 2,
    leaves: Leaves = 4,
    line: Annotated[bool, typer.Option("--line", help="Lay fixed links, one broker to the next.")] = False,
    json: options.Json = False,
) -> ExitCode:
    """Play random histories of clients, crashes, partitions and bad weather, and look at the laws after every step.

    No event is lost, none comes twice, nobody gets what it did not ask for, and what brokers keep is bounded. The first
    broken law ends it, with exit code 1 and the command that plays that history again.
    """
    from maia.simulator import Plan
    from maia.simulator import chaos as play

    plan = Plan(brokers=brokers, steps=steps, types=types, leaves=leaves, line=line)
    with watching("playing histories") as watch:
        report = play(range(seed, seed + seeds), plan, say=watch.say)
    return _show_chaos(report, plan, json=json)


def _show_chaos(report: ChaosReport, plan: Plan, *, json: bool) -> ExitCode:
    found = report.violation
    code = ExitCode.DONE if found is None else ExitCode.FAILED
    replay = "" if found is None else _replay(found.seed, plan)
    if json:
        broken = found and {"law": found.law, "seed": found.seed, "step": found.step, "detail": found.detail}
        write_json(
            {
                "histories": report.seeds, "steps": report.steps, "events": report.events,
                "deliveries": report.deliveries, "moves": report.moves, "violation": broken, "replay": replay or None,
            },
            code=code,
        )  # fmt: skip
        return code
    write_line(
        f"{report.seeds:,} histories, {report.steps:,} steps, {report.events:,} events, "
        f"{report.deliveries:,} deliveries"
    )
    if found is None:
        write_line("no law was broken")
    else:
        write_line(f"history {found.seed} broke `{found.law}` after step {found.step}: {found.detail}")
        write_line(f"again: {replay}")
    return code


def _replay(seed: int, plan: Plan) -> str:
    line = " --line" if plan.line else ""
    return (
        f"maia simulate chaos --seed {seed} --seeds 1 --brokers {plan.brokers} --steps {plan.steps} "
        f"--types {plan.types} --leaves {plan.leaves}{line}"
    )


@app.command(
    epilog=examples("maia simulate verify", "maia simulate verify --strategy 0.25 --chain 2 --subscribers 5 --json")
)
def verify(
    *,
    strategy: Annotated[
        str, typer.Option("--strategy", help="What brokers verify: `edge`, `always`, or with a probability.")
    ] = "always",
    brokers: Annotated[int, typer.Option("--brokers", min=2, max=_MOST_BROKERS, help="How many brokers.")] = 1000,
    chain: Annotated[int, typer.Option("--chain", min=1, max=16, help="How many certificates a right takes.")] = 2,
    publishers: Annotated[int, typer.Option("--publishers", min=1, max=100, help="How many brokers publish.")] = 3,
    subscribers: Annotated[int, typer.Option("--subscribers", min=1, max=100, help="How many brokers subscribe.")] = 5,
    seed: Seed = 1,
    json: options.Json = False,
) -> None:
    """Count the signature checks of requests on their way, against the bounds of the model.

    Each request carries a time, a signature and real certificates. At last a broker that verifies nothing lets somebody
    in without a right: with `always`, the next broker refuses it. What neighbours proved at their handshake is kept in
    the routing entry, and what they may not publish is refused whoever signed it.
    """
    from dataclasses import asdict

    from maia.routing import Strategy
    from maia.simulator import RequestPlan, count_checks

    if publishers + subscribers >= brokers:
        raise UsageError("there must be more brokers than publishers and subscribers", code="NUMBERS")
    found, neighbour = count_checks(
        RequestPlan(
            brokers=brokers, chain=chain, publishers=publishers, subscribers=subscribers,
            strategy=Strategy.parse(strategy), seed=seed,
        )
    )  # fmt: skip
    if json:
        checks = [asdict(item) for item in found]
        write_json({"strategy": strategy, "seed": seed, "checks": checks, "neighbour": asdict(neighbour)})
        return
    titles = ("request", "verified", "signatures", "at most", "refused")
    rows = [(item.kind, str(item.requests), str(item.signatures), str(item.bound), str(item.refused)) for item in found]
    draw_table(titles, rows, right=titles[1:])
    write_line(f"a neighbour that may {_rights(neighbour.rights)}: {neighbour.refused} advertisement refused")
    write_line(f"it gained {_rights(neighbour.gained)}: {neighbour.passed[1]} event passed")


def _rights(types: dict[str, dict[str, list[str]]]) -> str:
    each = [f"{action} {name} {' '.join(cells)}" for name, held in types.items() for action, cells in held.items()]
    return ", ".join(each) or "do nothing"


@app.command(
    epilog=examples(
        "maia simulate state",
        "maia simulate state --choice first --late 0 --json",
        "maia simulate state --brokers 60 --filter 'price > 10' --filter 'price < 8' --prices 3,12,7 --then 11,2",
    )
)
def state(
    *,
    brokers: Annotated[int, typer.Option("--brokers", min=2, max=_MOST_BROKERS, help="How many brokers.")] = 500,
    choice: Annotated[
        str, typer.Option("--choice", help="Which of several publishers' answers counts: `newest` or `first`.")
    ] = "newest",
    late: Annotated[
        float,
        typer.Option("--late", min=0, max=60, help="After how many seconds the publisher of the newer list answers."),
    ] = 1.0,
    filters: Annotated[
        list[str] | None, typer.Option("--filter", help="Subscribe with this filter on prices; may be repeated.")
    ] = None,
    prices: Annotated[str, typer.Option("--prices", help="Prices published before.")] = "3,12,7",
    then: Annotated[str, typer.Option("--then", help="Prices published afterwards.")] = "11,2",
    seed: Seed = 1,
    json: options.Json = False,
) -> None:
    """Ask for the state of a validity topic, while caches along the tree forget and publishers go.

    The first broker on the way that holds the signed list answers; without an answer the state is unknown, and access
    is denied. The older list's publisher answers after half a second, and two seconds are waited. With filters, clients
    subscribe to prices instead, and hear the last one that matches, then those that come.
    """
    from dataclasses import asdict

    from maia.kernel import StateChoice
    from maia.simulator import last_matching, state_along_tree

    known = {item.value: item for item in StateChoice}
    if choice not in known:
        raise UsageError(f"`{choice}` is none of {', '.join(f'`{item}`' for item in known)}", code="STATE_CHOICE")
    if filters:
        before, after = (_numbers(text, "prices", most=_MOST_PRICE, once=False) for text in (prices, then))
        found = last_matching(filters, before, after, brokers=brokers, seed=seed)
        _show_matches(found, json=json)
        return
    report = state_along_tree(brokers=brokers, seed=seed, choice=known[choice], late=late)
    if json:
        write_json(asdict(report))
        return
    write_line(f"{report.way} hops to the root; of lists stamped 5 and 9 it serves the one stamped {report.chosen}")
    titles = ("question", "hops", "publishers asked", "decision")
    rows = [
        (item.moment, "-" if item.hops is None else str(item.hops), str(item.publishers_asked), item.decision)
        for item in report.asked
    ]
    draw_table(titles, rows, right=titles[1:3])


def _show_matches(found: Sequence[LastMatch], *, json: bool) -> None:
    from dataclasses import asdict

    if json:
        write_json({"matches": [asdict(item) for item in found]})
        return
    rows = [
        (
            item.filter, "unknown" if item.price is None else str(item.price),
            "-" if item.hops is None else str(item.hops), " ".join(map(str, item.updates)) or "-",
            "unknown" if item.again is None else str(item.again),
        )
        for item in found
    ]  # fmt: skip
    draw_table(("filter", "last", "hops", "then", "asked again"), rows, right=("last", "hops", "asked again"))


def _draw(path: Path, picture: str) -> None:
    path.write_text(picture, "utf-8")
    note(f"drawn: {path}")


def _numbers(text: str, what: str, *, most: int, once: bool = True) -> tuple[int, ...]:
    parts = text.split(",")
    if len(parts) > most or not all(part.strip().isdecimal() and 1 <= int(part) <= most for part in parts):
        raise UsageError(f"`{text}` is no list of {what} from 1 to {most}", code="NUMBERS")
    found = tuple(int(part) for part in parts)
    return tuple(dict.fromkeys(found)) if once else found
