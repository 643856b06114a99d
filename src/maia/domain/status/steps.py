"""What to do next in a domain, told from how it stands."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from maia.domain.peers.records import Joining, all_joining
from maia.domain.peers.welcomes import is_ended, is_welcome
from maia.domain.status.values import DomainStatus, ListStatus, Step, TypeStatus
from maia.domain.types import find_type
from maia.home import Folder, Home
from maia.log import NoticeLog
from maia.principals import TestKind

_OWN_SHARE = 5
"""A person who has to open a key is told when a fifth of its list is left."""
_OTHERS_SHARE = 25
"""Homes that renew by themselves do so an hour before a list of a day ends; until then there is nothing to say."""


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
    givers = {}
    for joining in all_joining(home):
        giver = givers[joining.title] = folder.names.get(joining.giver.key_id, joining.giver.fingerprint)
        yield _joining_step(status, home, joining, giver)
    if not status.types:
        yield Step(why="this home knows no event type", command="maia type from-schema FILE OWNER/NAME")
    if status.connect is not None and not status.connect.held and status.network is not None:
        owner = status.network.partition("/")[0]
        if " of (" in owner:  # several own it: each gives its share
            owner = owner.partition("(")[2].partition(",")[0].rstrip(")")
        grant = f"maia grant --from {owner} --to {broker} --network '{status.network}' --action connect"
        yield _asked(folder, owner, f"the broker may not connect to `{status.network}`: {status.connect.code}", grant)
    for item in status.types:
        if item.type.partition("/")[0] not in givers.values():  # else its rights are on their way
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


def _joining_step(status: DomainStatus, home: Home, joining: Joining, giver: str) -> Step:
    """Say who has to act for a join: the other domain, which takes the answer, or this one, which it has admitted."""
    if not is_welcome(home, joining, NoticeLog(home.log_store)):
        return Step(
            why=f"`{giver}` has not admitted this domain yet (agreement `{joining.title}`); it takes your answer",
            command="maia domain connect answer.maia", where=f"the home of `{giver}`",
        )  # fmt: skip
    if is_ended(home, joining, NoticeLog(home.log_store), at=status.at):
        return Step(
            why=f"`{giver}` had admitted this domain (agreement `{joining.title}`), and has withdrawn all since; "
            "it may invite anew",
            command="maia domain invite-peer", where=f"the home of `{giver}`",
        )  # fmt: skip
    types = [item.type for item in status.types if item.type.startswith(f"{giver}/")]
    return Step(
        why=f"`{giver}` has admitted this domain (agreement `{joining.title}`): "
        "its welcome is in the log, and the first read takes it up",
        command=f"maia subscribe --type {types[0].rpartition('@')[0] if types else 'TYPE'} --as NAME",
    )


def _type_steps(item: TypeStatus, home: Home, folder: Folder) -> Iterator[Step]:
    whole = item.type.rpartition("@")[0]
    owner = whole.partition("/")[0]
    if not item.verified:
        yield Step(why=f"`{item.type}` does not verify", command=f"maia type show {item.type}")
        return
    if not item.publish.held and item.publishers:
        yield publish_step(home, folder, whole, code=item.publish.code)
    if not item.publishers and not item.readers:
        why = f"no client of this home may publish or read `{whole}`"
        yield _asked(folder, owner, why, f"maia grant --from {owner} --to NAME --type {whole} --action subscribe")
    if item.missing and item.managed:
        name = find_type(home, item.type).name
        why = f"this home holds no key for {', '.join(f'`{name}`' for name in item.missing)} of `{whole}`"
        yield Step(why=why, command=f"maia keys join {name}")


def publish_step(home: Home, folder: Folder, type_: str, *, code: str) -> Step:
    """Say how the broker of a home gets the right to publish a type: `owner/name`, without a version."""
    owner = type_.partition("/")[0]
    grant = f"maia grant --from {owner} --to {home.config.broker} --type {type_} --action publish"
    return _asked(folder, owner, f"the broker may not publish `{type_}`: {code}", grant)


def _list_steps(held: ListStatus, at: datetime, folder: Folder) -> Iterator[Step]:
    """Warn of lists that nobody renews by itself, in time; of others only when they are over.

    The command names no end: the next list is as long as the last one, and starts where that ends.
    """
    signer = held.signer.partition(" ")[0]
    first = " --until +1d" if held.ends is None and held.kind != TestKind.CRL.value else ""
    names = "".join(f" {name}" for name in held.names)
    command = f"maia statement {held.kind}{names} --from {signer}{first}"
    here = _here(folder, signer)
    if held.number is None:
        why = f"certificates here need a {held.kind} of `{held.signer}`, and none is in force"
        yield _asked(
            folder, signer, why if held.ends is None else f"{why}: the last one ended {_at(held.ends)}", command
        )
    elif held.ends is not None and not held.renews and held.due(at, share=_OWN_SHARE if here else _OTHERS_SHARE):
        who = "its key is here" if here else f"`{signer}` signs the next one"
        yield _asked(folder, signer, f"the {held.kind} of `{held.signer}` ends {_at(held.ends)}; {who}", command)


def _at(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _here(folder: Folder, who: str) -> bool:
    return who in folder.keys and folder.key_path(who).is_file()


def _asked(folder: Folder, who: str, why: str, command: str) -> Step:
    """Make a step of somebody: here when that key is here, else where it is."""
    return Step(why=why, command=command, where="" if _here(folder, who) else f"the home of `{who}`")
