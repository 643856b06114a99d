"""`maia status`: what this domain is, what it has and lacks, and what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from maia.cli.read import options
from maia.cli.read.instants import optional_instant, show_instant
from maia.cli.read.options import examples, new_app
from maia.cli.show.output import answer
from maia.encoding import counted

if TYPE_CHECKING:
    from maia.domain import DomainStatus, LogStatus, TypeStatus

app = new_app()


@app.command(epilog=examples("maia status", "maia status --json | jq '.steps[].command'"))
def status(home: options.Home = Path(), at: options.At = None, json: options.Json = False) -> None:
    """Tell how a domain stands: the broker's rights, keys, lists, what ends soon, the log, deliveries, and what to do.

    Looking changes nothing.
    """
    import maia
    from maia.domain import domain_status

    domain = maia.open(home)
    found = domain_status(domain, at=optional_instant(at, at=domain.clock()))
    answer(found.to_json(), *_lines(found), json=json)


def _lines(found: DomainStatus) -> list[str]:
    key = "not here" if found.domain is None else found.domain
    out = [f"{found.name}, a domain in {found.home}", f"  broker   {found.broker}", f"  domain   {key}"]
    if found.network is not None and found.connect is not None:
        held = "may connect" if found.connect.held else f"may NOT connect: {found.connect.code}"
        out.append(f"  network  {found.network}; the broker {held}")
    if found.structure is not None and found.structure.kind != "empty":
        _, *members = found.structure.lines(2)
        out += [f"  kind     a {found.structure.kind}", *(f"  {line}" for line in members)]
    out += ["", "types"] if found.types else []
    for item in found.types:
        out += _type_lines(item)
    out += ["", "lists"] if found.lists else []
    for held_list in found.lists:
        end = "" if held_list.ends is None else f", until {show_instant(held_list.ends)}"
        end += ", renewed by itself" if end and held_list.renews else ""
        state = "MISSING" if held_list.number is None else f"number {held_list.number}{end}"
        out.append(f"  {held_list.kind} of {held_list.signer}: {state}")
    out += ["", "ends soon"] if found.renewals else []
    for renewal in found.renewals:
        when = f"{'ended' if renewal.over else 'ends'} {show_instant(renewal.ends)}"
        out.append(f"  {renewal.certificate}  {renewal.holder}, by {renewal.issuer}: {when}")
    if found.log is not None:
        out += ["", f"log  {_log_line(found.log)}"]
        out += [
            f"  parked: {item['lane'][:16]} of {item['lane'].partition('/')[2][:16]}, for {item['reader']}, since "
            f"{item['since']}: {item['code']}; waits for {item['waits']}"
            for item in found.log.parked
        ]
        out += [
            f"  missing: certificate {item['certificate'][:16]}, on which the right of {item['clients']} stood"
            for item in found.log.missing
        ]
    out += [f"problem: {text}" for text in found.problems]
    nothing = "nothing else to do" if found.problems else "nothing to do"
    out += ["", "next" if found.steps else nothing]
    for step in found.steps:
        out += [f"  {step.why}", f"    {step.command}{f'    (in {step.where})' if step.where else ''}"]
    return out


def _type_lines(item: TypeStatus) -> list[str]:
    if not item.verified:
        return [f"  {item.type}: does NOT verify"]
    publishes = "publishes" if item.publish.held else f"may NOT publish: {item.publish.code}"
    keys = "none needed" if not item.keys else f"all {len(item.keys)}" if not item.missing else ""
    if item.missing:
        made = "made when it is first published" if item.publish.held else "closed to this domain, or not here yet"
        waits = "join its key groups" if item.managed else made
        keys = f"none for {', '.join(item.missing)} ({waits})"
    writers, readers = (", ".join(names) or "nobody here" for names in (item.publishers, item.readers))
    return [
        f"  {item.type}: the broker {publishes}",
        f"    publish: {writers}; subscribe: {readers}",
        f"    keys: {keys}",
    ]


def _log_line(log: LogStatus) -> str:
    line = counted(log.commits, "commit") + (f" in {log.lanes:,} lanes" if log.lanes > 1 else "")
    line += f", {log.expired:,} of them expired" if log.expired else ""
    if log.subscriptions:
        wait = f"{counted(log.lag, 'commit')} to go" if log.lag else "up to date"
        line += f"; deliveries to {counted(log.subscriptions, 'subscription')}: {wait}"
    return line
