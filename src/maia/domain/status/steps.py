"""What to do next in a domain, told from how it stands."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from maia.domain.peers.records import all_joining
from maia.domain.status.values import DomainStatus, ListStatus, Step, TypeStatus
from maia.domain.types import find_type
from maia.home import Folder, Home
from maia.principals import TestKind


def next_steps(status: DomainStatus, home: Home, folder: Folder) -> Iterator[Step]:
    """Say what to do, the most pressing first."""
    broker = home.config.broker
    if status.log is not None and status.log.ahead:
        yield Step(
            why=f"the stamps of this broker run {status.log.ahead} seconds ahead of the clock; "
            "what it publishes is refused until then",
            command="date",
        )
    for missing in () if status.log is None else status.log.missing:
        yield Step(
            why=f"the right of {missing['clients']} stood on the certificate {missing['certificate'][:16]}, which is "
            "gone from here: put it back (`maia cert add FILE`), or wait for it no longer",
            command=f"maia cert forget {missing['certificate'][:16]}",
        )
    for joining in all_joining(home):
        giver = folder.names.get(joining.giver.key_id, joining.giver.fingerprint)
        yield Step(
            why=f"`{giver}` has not admitted this domain yet (agreement `{joining.title}`); it takes your answer",
            command="maia domain connect answer.maia", where=f"the home of `{giver}`",
        )  # fmt: skip
    if not status.types:
        yield Step(why="this home knows no event type", command="maia type from-schema FILE OWNER/NAME")
    if status.connect is not None and not status.connect.held and status.network is not None:
        owner = status.network.partition("/")[0]
        grant = f"maia grant --from {owner} --to {broker} --network '{status.network}' --action connect"
        yield _asked(folder, owner, f"the broker may not connect to `{status.network}`: {status.connect.code}", grant)
    for item in status.types:
        yield from _type_steps(item, home, folder)
    for held in status.lists:
        yield from _list_steps(held, status.at, folder)
    for renewal in status.renewals:
        state = "has ended" if renewal.over else "ends soon"
        yield Step(
            why=f"the certificate {renewal.certificate} of `{renewal.holder}` {state}; `{renewal.issuer}` renews it",
            command=f"maia cert show {renewal.certificate}",
        )
    if status.log is not None and status.log.lag:
        yield Step(why=f"commits that wait to be delivered: {status.log.lag}", command="maia deliver --once")


def _type_steps(item: TypeStatus, home: Home, folder: Folder) -> Iterator[Step]:
    whole = item.type.rpartition("@")[0]
    owner = whole.partition("/")[0]
    if not item.verified:
        yield Step(why=f"`{item.type}` does not verify", command=f"maia type show {item.type}")
        return
    if not item.publish.held and item.publishers:
        grant = f"maia grant --from {owner} --to {home.config.broker} --type {whole} --action publish"
        yield _asked(folder, owner, f"the broker may not publish `{whole}`: {item.publish.code}", grant)
    if not item.publishers and not item.readers:
        why = f"no client of this home may publish or read `{whole}`"
        yield _asked(folder, owner, why, f"maia grant --from {owner} --to NAME --type {whole} --action subscribe")
    if item.missing and item.managed:
        name = find_type(home, item.type).name
        why = f"this home holds no key for {', '.join(f'`{name}`' for name in item.missing)} of `{whole}`"
        yield Step(why=why, command=f"maia keys join {name}")


def _list_steps(held: ListStatus, at: datetime, folder: Folder) -> Iterator[Step]:
    signer = held.signer.partition(" ")[0]
    until = " --until +1d" if held.ends is not None or held.kind != TestKind.CRL.value else ""
    command = f"maia statement {held.kind} --from {signer}{until}"
    if held.number is None:
        why = f"certificates here need a {held.kind} of `{held.signer}`, and none is in force"
        yield _asked(folder, signer, why, command)
    elif held.ends is not None and held.ends - at < timedelta(days=1):
        yield _asked(folder, signer, f"the {held.kind} of `{held.signer}` ends within a day", command)


def _asked(folder: Folder, who: str, why: str, command: str) -> Step:
    """Make a step of somebody: here when that key is here, else where it is."""
    here = who in folder.keys and folder.key_path(who).is_file()
    return Step(why=why, command=command, where="" if here else f"the home of `{who}`")
