"""A release, done: what a client may read of a type goes through the rules, and out as the released type or as a file.

Rules kept here:

- the rules of the home decide, all of them sound; a destination without a rule gets nothing;
- the reader's own right holds as everywhere: what is closed to it is null before a rule sees it, so the stricter wins;
- what the last release for the destination covered is not read again, nor counted as another type that is read there.
  A release that was begun is done first, as it was begun; one that was given up counts as released;
- rows leave in an order of the destination's own, so that the places of two rows say nothing about who they are;
- the ledger has the release before anything leaves, and the audit when it did: for whom, what, and how much.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from maia.domain.log_parts import begin_read, parts_of, scan
from maia.domain.operations import audit_of
from maia.domain.possession import ProvenClient
from maia.domain.publication import commit_publication, publication_operation, write_partition
from maia.domain.releases.files import known_rules
from maia.domain.releases.output import write_release
from maia.domain.releases.released_type import find_released, released_name
from maia.domain.stretches import Stretch, type_stretch
from maia.domain.types import show_type
from maia.encoding import counted
from maia.errors import DeniedError, EncodingError, NotFoundError, UnavailableError
from maia.events import EventType, TypeName
from maia.home import ReleaseEntry, ReleaseLedger, release_secret
from maia.kernel import DeliverPlan, PublishPlan
from maia.log import BEGINNING, EVENT, OK, AuditRow, read_audit, read_place
from maia.policy import release

if TYPE_CHECKING:
    from maia.domain.domain import Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """What became of a release.

    Attributes:
        entry: What the ledger says of it; none when there was nothing new to release.
        to: For whom.
        type: The type that was read.
        read: How many events were read.
        waiting: Lanes of the log that are in doubt, whose events come with a later release.
    """

    entry: ReleaseEntry | None
    to: str
    type: str
    read: int = 0
    waiting: int = 0

    @property
    def rows(self) -> int:
        """How many rows or counts left."""
        return 0 if self.entry is None else self.entry.rows

    def lines(self) -> list[str]:
        """Say it, one fact a line."""
        if self.entry is None:
            out = [f"nothing new of {self.type} for {self.to}"]
        else:
            what = "row" if self.entry.form == "rows" else "count"
            out = [f"released {counted(self.rows, what)} of {self.type} to {self.to}: {self.entry.target}"]
            if self.entry.groups:
                out.append(f"kept back {counted(self.entry.groups, 'group')}, too small to leave")
            out += [f"`{name}` is closed to {self.entry.reader}, so it is null" for name in self.entry.withheld]
        if self.waiting:
            out.append(f"{counted(self.waiting, 'lane')} of the log in doubt: what they hold comes later")
        return out

    def __str__(self) -> str:
        """Say it."""
        return "\n".join(self.lines())

    def to_json(self) -> dict[str, object]:
        """Write it for machines."""
        own = {} if self.entry is None else entry_to_json(self.entry)
        return {"to": self.to, "type": self.type, "rows": 0, **own, "read": self.read, "waiting": self.waiting}


def entry_to_json(entry: ReleaseEntry) -> dict[str, object]:
    """Describe a release for machines."""
    return {
        "number": entry.number, "at": entry.at.isoformat(), "to": entry.to, "type": entry.type, "form": entry.form,
        "attributes": list(entry.attributes), "withheld": list(entry.withheld), "by": entry.reader,
        "target": entry.target, "rows": entry.rows, "groups_kept_back": entry.groups, "state": entry.state,
    }  # fmt: skip


def release_trees(
    domain: Domain, name: TypeName, event_type: EventType, to: release.Destination
) -> tuple[release.ReleaseTree, ...]:
    """Compile what the rules of a home release of a version to a destination.

    Raises:
        DeniedError: No rule does: ``NO_RELEASE_RULE``.
        PolicySyntaxError: The rules have an error.
    """
    mine = [item.rule for item in known_rules(domain.home) if name in item.types]
    kinds = {item.name: item.type for item in event_type.attributes}
    trees = release.compile_releases(mine, to, kinds)
    if not trees:
        raise DeniedError(f"no rule releases `{show_type(domain.home, name)}` to {to}", code="NO_RELEASE_RULE")
    return trees


def apply_release(
    domain: Domain, name: TypeName, to: release.Destination, client: ProvenClient, *, out: Path | None, at: datetime
) -> tuple[Released, ...]:
    """Release what is new of a type to a destination: as the released type, or to a file.

    Raises:
        DeniedError: No rule does (``NO_RELEASE_RULE``), or the client has no right.
        NotFoundError: The released type is not defined: ``RELEASE_UNDEFINED``.
        UnavailableError: The log holds nothing that can be read, since all of it is in doubt.
    """
    moment = domain.follow(at=at)
    # Refused before anything is begun: the reader's right, and the rules.
    plan = domain.deliver_plan(name, client=client, commits=(), at=moment, followed=True)
    trees = release_trees(domain, name, plan.subscriptions[0].event_type, to)
    if out is not None and len(trees) > 1:
        raise DeniedError(f"rows and counts are released to {to}; a file holds one of them", code="RELEASE_FILE")
    works = [_Work(domain, name, tree, client, out=out, at=moment) for tree in trees]
    return tuple(work.run() for work in works)


class _Work:
    """One tree that is applied."""

    def __init__(
        self,
        domain: Domain,
        name: TypeName,
        tree: release.ReleaseTree,
        client: ProvenClient,
        *,
        out: Path | None,
        at: datetime,
    ) -> None:
        self.domain, self.name, self.tree, self.client, self.at = domain, name, tree, client, at
        self.out = out
        self.shown, self.ledger = show_type(domain.home, name), ReleaseLedger(domain.path)
        self.target = None if out is not None else self._target()

    def _target(self) -> str:
        found = find_released(self.domain.home, self.name, self.tree)
        if found is None:
            name = released_name(self.name.name, self.tree)
            raise NotFoundError(
                f"no type `{name}` was defined here with what the rules release now; `maia release define` makes it",
                code="RELEASE_UNDEFINED",
            )
        return show_type(self.domain.home, found)

    def run(self) -> Released:
        """Release what is new."""
        with self.ledger.turn():
            self._check_ledger()
            draft = self._draft()
            pending = self._pending(draft)
            before = self._covered(draft) if pending is None else pending.after
            upto = None if pending is None else pending.upto
            found = type_stretch(self.domain, self.name, after=before, at=self.at, upto=upto)
            waiting = len(found.parked)
            if pending is not None and dict(found.upto) != dict(pending.upto):
                raise UnavailableError("a part of the log that was begun is in doubt again", code="LANE_PARKED")
            if not found.commits:
                return Released(entry=None, to=str(self.tree.to), type=self.shown, waiting=waiting)
            plan = self.domain.deliver_plan(
                self.name, client=self.client, commits=found.commits, at=self.at, followed=True
            )
            draft = replace(draft, withheld=self._withheld(plan), after=dict(before), upto=dict(found.upto))
            if pending is not None and not pending.same_release(draft):
                raise DeniedError(
                    f"release {pending.number} to {pending.to} was begun and may have left: finish it by the same "
                    f"rules, as {pending.reader}, to `{pending.target}`; or give it up with `maia release abandon "
                    f"{pending.number}`, and what it covers is never released there",
                    code="RELEASE_BEGUN",
                )
            draft = replace(draft, publication=self._publication(draft, before))
            into = None if self.target is None else self._publish_plan(draft)
            entry = self.ledger.begin(draft) if pending is None else pending
            rows, groups = self._release(entry, plan, found, into)
            entry = self._finished(entry, rows, groups)
        read = sum(commit.events for commit in found.commits)
        return Released(entry=entry, to=entry.to, type=self.shown, read=read, waiting=waiting)

    def _check_ledger(self) -> None:
        """Refuse to begin anew where the audit tells of releases: a ledger that was lost would release all again."""
        if not self.ledger.entries() and any(row.kind == "release" for row in read_audit(self.domain.home.audit_path)):
            raise EncodingError(
                "the audit tells of releases, and the ledger has none of them; bring `releases/ledger` back",
                code="RELEASE_LEDGER",
            )

    def _pending(self, draft: ReleaseEntry) -> ReleaseEntry | None:
        """Give the release that was begun and has to be done again; one that the log holds already is finished."""
        found = next((item for item in self.ledger.entries() if item.begun and item.same_series(draft)), None)
        known = self.domain.lanes.find(found.publication) if found is not None and found.publication else None
        if found is None or known is None:
            return found
        self._finished(found, known.events, 0)
        return None

    def _covered(self, draft: ReleaseEntry) -> dict[str, str]:
        """Tell up to where lanes were released to the destination; of counts, also as another type, done or begun."""
        read_as = self.domain.known(at=self.at).read_as(self.name.type_id, self.domain.home)
        covered: dict[str, str] = {}
        for item in self.ledger.entries():
            own = item.counts and item.same_series(draft)
            other = self.tree.counts and item.counts_too(draft)
            for lane, place in item.upto.items() if own or other else ():
                if own or lane.partition("/")[0] in read_as:
                    covered[lane] = max(covered.get(lane, BEGINNING), place, key=_number)
        return covered

    def _finished(self, entry: ReleaseEntry, rows: int, groups: int) -> ReleaseEntry:
        done = self.ledger.finish(entry, rows=rows, groups=groups)
        self._tell(done)
        return done

    def _draft(self) -> ReleaseEntry:
        return ReleaseEntry(
            at=self.domain.clock(), to=str(self.tree.to), type=self.shown, type_id=self.name.type_id.hex(),
            form="counts" if self.tree.counts else "rows", attributes=tuple(name for name, _ in self.tree.attributes),
            reader=self.client.name, target=self.target or str(self.out),
            rules=_digest(self.tree),
        )  # fmt: skip

    def _publication(self, draft: ReleaseEntry, before: object) -> str:
        """Name a release by what it covers, so that it counts once."""
        if self.target is None:
            return ""
        covers = [draft.to, draft.type_id, draft.form, draft.target, before, draft.upto]
        what = json.dumps(covers, sort_keys=True)
        return f"release {hashlib.sha256(what.encode()).hexdigest()[:32]}"

    def _withheld(self, plan: DeliverPlan) -> tuple[str, ...]:
        """List what leaves empty, since it is closed to the reader."""
        held = plan.subscriptions[0]
        opened = {
            item.name
            for item in held.event_type.attributes
            if any(clause.counts and clause.opens(item.uid) for clause in held.clauses)
        }
        return tuple(column.name for column in self.tree.columns if column.attribute not in opened)

    def _publish_plan(self, draft: ReleaseEntry) -> PublishPlan:
        """Plan the publication; a client without the right is refused before anything is begun."""
        return self.domain.publish_plan(draft.target, client=self.client, publication=draft.publication)

    def _release(
        self, entry: ReleaseEntry, plan: DeliverPlan, found: Stretch, into: PublishPlan | None
    ) -> tuple[int, int]:
        """Let it out; tell how many rows left, and how many groups did not."""
        columns = self.tree.reads if self.tree.counts else (*self.tree.reads, EVENT)
        made = _Counted(self.tree, self._batches(plan, found, columns), self.domain.path)
        if into is None:
            write_release(Path(entry.target), made.batches(), release.released_schema(self.tree))
        else:
            self._publish(into, made)
        return made.rows, made.kept_back

    def _batches(self, plan: DeliverPlan, found: Stretch, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        domain, read = self.domain, self.tree.reads
        number = begin_read(domain.home, plan, found.commits, self.client, attributes=read, parts=1, at=self.at)
        return scan(
            domain.home, plan, parts_of(found.commits, plan), client=self.client.name, columns=columns,
            with_event_id=EVENT in columns, clock=domain.clock, operation=number,
        )  # fmt: skip

    def _publish(self, plan: PublishPlan, made: _Counted) -> None:
        domain, home = self.domain, self.domain.home
        operation = publication_operation(home, plan, client=self.client.name, at=domain.clock())
        with operation.failing():
            written = write_partition(home, plan, 0, made.batches(), at=domain.clock())
        done = commit_publication(
            home, domain.lanes, plan, [written], client=self.client.name, operation=operation.number, at=domain.clock()
        )
        made.rows = done.events

    def _tell(self, entry: ReleaseEntry) -> None:
        row = AuditRow(
            at=self.domain.clock(), kind="release", principal=self.client.key.fingerprint, type_id=entry.type_id,
            source=entry.to, subject=self.client.name, code=OK, events=entry.rows, attributes=entry.attributes,
            closed=entry.withheld,
        )  # fmt: skip
        audit_of(self.domain.home).note([row])


class _Counted:
    """What a tree makes of batches, with how much that is."""

    def __init__(self, tree: release.ReleaseTree, batches: Iterator[pa.RecordBatch], home: Path) -> None:
        self._tree, self._batches, self._home = tree, batches, home
        self.rows = self.kept_back = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Give what leaves."""
        tree = self._tree
        if tree.counts:
            counted_so_far = release.count_batches(tree, self._batches)
            table = release.finish_counts(tree, counted_so_far)
            self.kept_back = release.number_of_groups(tree, counted_so_far) - table.num_rows
            made: Iterator[pa.RecordBatch] = iter(table.to_batches())
        else:
            made = self._in_order(release_secret(self._home))
        for batch in made:
            self.rows += batch.num_rows
            yield batch

    def _in_order(self, secret: bytes) -> Iterator[pa.RecordBatch]:
        """Give rows in the order of the destination: that of the log would link those of two destinations.

        SECURITY: over the whole stretch, by the events and a key that nobody else has.
        """
        keys, key = release.pseudonym_keys(self._tree, secret), release.order_key(secret, self._tree.to)
        batches, places = [], list[bytes]()
        for batch in self._batches:
            batches.append(release.release_rows(self._tree, batch, keys))
            places += release.row_places(key, batch.column(EVENT).to_pylist())
        rows = pa.Table.from_batches(batches, schema=release.released_schema(self._tree))
        order = pa.array(sorted(range(len(places)), key=places.__getitem__), type=pa.int64())
        return iter(rows.take(order).to_batches())


def _digest(tree: release.ReleaseTree) -> str:
    """Tell trees apart by all that decides what leaves."""
    columns = [
        [item.name, item.attribute, item.source.value, item.kind.value, str(item.coarsening), str(item.scope)]
        for item in tree.columns
    ]
    what = json.dumps([str(tree.to), tree.counts, tree.people, tree.minimum, columns])
    return hashlib.sha256(what.encode()).hexdigest()


def _number(place: str) -> int:
    return read_place(place)[0].number
