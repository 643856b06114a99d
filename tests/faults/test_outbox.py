"""The outbox and its guard: what was lost, damaged, replaced or restored from another time stops the job, by name."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from network import CCS_SUBSCRIPTIONS, Network, ahead, delivered, publish_here, sightings

from maia.authority import Action, type_right
from maia.domain import DeliveryJob, Domain, Wanted, check_log, delivery_job, read_parked
from maia.domain.delivery_work import Group, Report, Work
from maia.encryption import Keyring
from maia.errors import MaiaError, SealError, UnavailableError, UsageError
from maia.home import Home, HomeConfig
from maia.log import Outbox, OutboxCommit, read_audit
from maia.spark import check_start
from maia.testing import ATTRIBUTES, TYPE_NAME, grant


def plates(job: DeliveryJob) -> list[object]:
    """Give what the billing office got, in order."""
    return [row["numberplate"] for row in delivered(job, "billing")]


def make_job(network: Network) -> DeliveryJob:
    """Make the job of the publishing domain."""
    return delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)


def test_subscriber_that_was_away_gets_what_it_missed_once(network: Network) -> None:
    """Away for events 5 to 7: on return it gets 5, 6, 7, once each."""
    for number in range(1, 5):
        publish_here(network, f"event {number}", [sightings([f"P{number}"])])
    make_job(network).run_here()
    for number in range(5, 8):
        publish_here(network, f"event {number}", [sightings([f"P{number}"])])
    job = make_job(network)
    before = job.outbox.latest()
    assert job.run_here() == 3
    assert job.run_here() == 0
    missed = [row for batch in job.outbox.read("billing", job.make_secret(), after=before) for row in batch.to_pylist()]
    assert [row["numberplate"] for row in missed] == ["P5", "P6", "P7"]
    assert plates(job) == [f"P{number}" for number in range(1, 8)]


def test_subscriber_whose_right_ended_while_it_was_away_gets_nothing(network: Network) -> None:
    """What was stored is delivered after a fresh check of the right, not by the right of then."""
    publish_here(network, "a", [sightings(["P1"])])
    revoke_billing(network)
    job = make_job(network)
    job.run_here()
    assert plates(job) == []
    assert len(list(delivered(job, "statistics"))) == 1


def waits(job: DeliveryJob) -> set[str]:
    """Give the codes for which subscriptions wait."""
    head = job.outbox.head()
    return set() if head is None else {code for item in head.waiting for code in item.subscriptions.values()}


def test_every_publisher_reaches_every_subscriber_and_waits_for_none(network: Network) -> None:
    """Two publishers and three subscribers make six deliveries; publishing succeeds with no subscriber there."""
    home = Home.open(network.ccs)
    camera = home.new_key("CAM2")
    uids = list(ATTRIBUTES.values())
    right = type_right(network.people.key("PITO"), TYPE_NAME, actions=[Action.PUBLISH], attributes=uids)
    home.certificates.add(grant(network.people.people["CCS"], camera, right))
    publish_here(
        network, "first", [sightings(["P1"])]
    )  # nobody subscribes yet, and no job runs: it returns all the same
    publish_here(network, "second", [sightings(["P2"])], as_="CAM2")
    third = Wanted(name="billing too", as_="BO", type=TYPE_NAME, where="numberplate = 'P1'")
    nobody = Wanted(name="nobody's", as_="BO", type=TYPE_NAME, where="numberplate = 'P3'")
    job = delivery_job(
        Domain.open(network.ccs), (*CCS_SUBSCRIPTIONS, replace(third, where=""), replace(third, name="one"), nobody)
    )
    job.run_here()
    got = {
        name: len(list(delivered(job, name))) for name in ("billing", "statistics", "billing too", "one", "nobody's")
    }
    assert got == {"billing": 2, "statistics": 2, "billing too": 2, "one": 1, "nobody's": 0}


def test_relay_without_right_sees_ciphertext_and_split_brokers_see_their_part(network: Network) -> None:
    """Kent may connect and has no right to the type; a billing broker of its own has no key of the location."""
    publish_here(network, "a", [sightings(["AE05 XYZ", "BX51 ABC"])])
    certificates = [item.read_bytes() for item in (network.ccs / "certificates").iterdir()]
    for name in ("kent", "billing"):
        home = Home(network.root / name, HomeConfig(name=name, broker="B", log="../log"))
        shutil.copytree(network.ccs / "types", home.path / "types")
        shutil.copytree(network.ccs / "certificates", home.path / "certificates")
        home.new_key("B")
        for who in ("PITO", "SO", "BO"):
            home.add_public_key(who, network.people.key(who))
        (home.path / "maia.toml").write_text(home.config.to_toml(), "utf-8")
    assert certificates
    kent = Home.open(network.root / "kent")
    everything = b"".join(path.read_bytes() for path in network.log.path.rglob("*") if path.is_file())
    for value in (b"AE05 XYZ", b"BX51 ABC", b"Victoria"):
        assert value not in everything
    relay = delivery_job(Domain.open(kent.path), CCS_SUBSCRIPTIONS)
    relay.run_here()
    assert plates(relay) == []
    # Billing holds the keys of what it bills by, and no other: whoever asks there sees no location.
    whole, part = Home.open(network.ccs).keyring(), Keyring()
    assert len(Home.open(network.met).keyring().groups()) == 3
    for group in whole.groups():
        if group.label != ATTRIBUTES["location"].encode():
            for epoch in whole.epochs(group):
                part.add(group, epoch, whole.key(group, epoch) or b"")
    billing = Home.open(network.root / "billing")
    billing.save_keyring(part)
    uids = [ATTRIBUTES[name] for name in ("numberplate", "timestamp")]
    right = type_right(network.people.key("PITO"), TYPE_NAME, actions=[Action.SUBSCRIBE], attributes=uids)
    billing.certificates.add(grant(network.people.people["CCS"], billing.broker, right))
    job = delivery_job(Domain.open(network.root / "billing"), CCS_SUBSCRIPTIONS)
    job.run_here()
    assert plates(job) == ["AE05 XYZ", "BX51 ABC"]
    assert {row["location"] for row in delivered(job, "statistics")} == {None}


def test_publication_committed_twice_counts_once(network: Network) -> None:
    """A retry under the same name adds nothing, whatever it holds."""
    publish_here(network, "same", [sightings(["P1"])])
    publish_here(network, "same", [sightings(["P1"])])
    job = make_job(network)
    job.run_here()
    assert len(list(network.log.commits())) == 1
    assert plates(job) == ["P1"]


@pytest.mark.threat("T48")
def test_parcel_replayed_in_the_log_is_a_dead_letter(network: Network) -> None:
    """A segment that its own broker commits again, at once or later, delivers nothing a second time."""
    publish_here(network, "a", [sightings(["P1", "P2"])])
    lanes = Domain.open(network.ccs).lanes
    [first] = network.log.commits()
    writer = lanes.writer(first.type_id)
    writer.append(writer.kept(0).body, at=datetime.now(UTC))
    job = make_job(network)
    job.run_here()
    writer.append(writer.kept(0).body, at=datetime.now(UTC))
    job.run_here()
    assert plates(job) == ["P1", "P2"]
    assert [(letter.code, letter.events) for letter in job.outbox.dead_letters()] == [("STAMP_BEHIND", 2)] * 2


def test_parcel_under_a_false_name_is_refused(network: Network) -> None:
    """A broker that calls its own parcel by another's name gets it nowhere."""
    publish_here(network, "a", [sightings(["P1"])])
    [mine] = network.log.commits()
    name = mine.files[0].bases[0]
    writer = Domain.open(network.ccs).lanes.writer(mine.type_id)
    body = writer.kept(0).body.replace(bytes.fromhex(name), bytes(16))
    shutil.rmtree(network.ccs / "lanes")
    for record in (network.log.path / writer.lane.folder).glob("*.record"):
        record.unlink()
    Domain.open(network.ccs).lanes.writer(mine.type_id).append(body, at=datetime.now(UTC), stamp=mine.stamp)
    job = make_job(network)
    job.run_here()
    assert plates(job) == []
    assert [letter.code for letter in job.outbox.dead_letters()] == ["EVENTS_MISNAMED"]


def test_two_brokers_with_the_same_publication_name_do_not_meet(network: Network) -> None:
    """A publication belongs to its origin: another broker's of the same name is another one."""
    publish_here(network, "a", [sightings(["P1"])])
    [first] = network.log.commits()
    Domain.open(network.met).lanes.commit("a", first.type_id, (), evidence=first.evidence, at=datetime.now(UTC))
    assert [commit.publication for commit in network.log.commits()] == ["a", "a"]


@pytest.mark.fault("F20")
def test_outbox_holds_no_plaintext_and_opens_for_its_broker_alone(network: Network) -> None:
    """Deliveries rest sealed, bound to their subscription and their place."""
    publish_here(network, "a", [sightings(["CANARY PLATE"])])
    job = make_job(network)
    job.run_here()
    for path in job.outbox.path.rglob("*"):
        assert path.is_dir() or b"CANARY" not in path.read_bytes()
    assert plates(job) == ["CANARY PLATE"]
    with pytest.raises(SealError):
        list(job.outbox.read("billing", bytes(32)))
    head = job.outbox.head()
    assert head is not None
    billing, statistics = head.files
    (job.outbox.path / statistics.path).write_bytes((job.outbox.path / billing.path).read_bytes())
    with pytest.raises(MaiaError, match="OUTBOX_FILE_DAMAGED"):
        list(delivered(job, "statistics" if statistics.events else "billing"))


def flip(path: Path) -> None:
    """Flip one bit in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def cut(path: Path) -> None:
    """Keep the first half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    """Keep nothing."""
    path.write_bytes(b"")


DAMAGE: dict[str, Callable[[Path], None]] = {"flip": flip, "cut": cut, "empty": empty, "delete": Path.unlink}
WAITS = {
    "a file of the log": ("log/type=*/origin=*/date=*/*.parquet", {"LOG_FILE_DAMAGED", "LOG_FILE_MISSING"}),
    "a commit of the log": ("log/type=*/origin=*/000000000002.record", {"LANE_GAP"}),
    "the evidence in the log": ("log/_evidence/*", {"EVIDENCE_MISSING"}),
    "the public key of a client": (
        "ccs/keys/BO.pub",
        {"NO_FILE", "KEY_FILE_SHAPE", "KEY_NOT_ON_CURVE", "CLIENT_KEY_CHANGED"},
    ),
}
STOPS = {
    "a commit of the outbox": ("ccs/outbox/_commits/000000000000.json", {"COMMIT_DAMAGED", "COMMIT_MISSING"}),
}


def damaged(network: Network, pattern: str, damage: str) -> tuple[Path, bytes]:
    """Publish and deliver, publish more, and damage a file; give it and what it held."""
    for name in ("a", "b"):
        publish_here(network, name, [sightings([f"P {name}"])])
        make_job(network).run_here()
    for name in ("c", "d"):
        publish_here(network, name, [sightings([f"P {name}"])])
    path = max(network.root.glob(pattern), key=lambda found: found.stat().st_mtime)
    before = path.read_bytes()
    DAMAGE[damage](path)
    return path, before


@pytest.mark.fault("F08")
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("place", STOPS)
def test_damaged_file_stops_the_job_by_name_and_nothing_is_skipped(network: Network, place: str, damage: str) -> None:
    """Whatever is damaged at home, the job says so, delivers nothing past it, and goes on after the file is back."""
    pattern, codes = STOPS[place]
    path, before = damaged(network, pattern, damage)
    with pytest.raises(MaiaError) as refusal:
        make_job(network).run_here()
    assert refusal.value.code in codes
    path.write_bytes(before)
    make_job(network).run_here()
    assert plates(make_job(network)) == ["P a", "P b", "P c", "P d"]


@pytest.mark.fault("F08")
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("place", WAITS)
def test_damaged_file_of_the_log_parks_its_lane_and_nothing_is_skipped(
    network: Network, place: str, damage: str
) -> None:
    """Whatever is damaged in the log, or of one client, waits, says for what, and goes on after the file is back."""
    pattern, codes = WAITS[place]
    path, before = damaged(network, pattern, damage)
    shutil.rmtree(network.ccs / "lanes")  # as a home has it that published none of this, and cannot put it back
    make_job(network).run_here()
    assert {item.code for item in read_parked(network.ccs)} <= codes
    assert plates(make_job(network)) == ["P a", "P b", "P c"][: len(plates(make_job(network)))]
    path.write_bytes(before)
    make_job(network).run_here()
    assert plates(make_job(network)) == ["P a", "P b", "P c", "P d"]
    assert read_parked(network.ccs) == ()


@pytest.mark.fault("F08")
def test_flipped_bits_never_give_a_wrong_or_missing_delivery(network: Network) -> None:
    """Bits over every committed octet of the log: the job stops by name, or delivers exactly what was published."""
    publish_here(network, "a", [sightings(["P1", "P2"])])
    paths = [path for path in (network.root / "log").rglob("*") if path.is_file()]
    assert len(paths) == 3
    shutil.rmtree(network.ccs / "lanes")  # or it would put back what is damaged
    outbox = network.ccs / "outbox"
    stopped = 0
    for path in paths:
        before = path.read_bytes()
        for position in range(0, len(before), max(1, len(before) // 40)):
            data = bytearray(before)
            data[position] ^= 1 << position % 8
            path.write_bytes(bytes(data))
            shutil.rmtree(outbox, ignore_errors=True)
            make_job(network).run_here()
            found = plates(make_job(network))
            stopped += not found
            assert found in ([], ["P1", "P2"])
        path.write_bytes(before)
    assert stopped >= 100


@pytest.mark.fault("F09")
def test_log_from_another_time_or_place_is_refused(network: Network) -> None:
    """An outbox knows the log that it was made from."""
    publish_here(network, "a", [sightings(["P1"])])
    saved = network.root / "saved"
    shutil.copytree(network.log.path, saved)
    publish_here(network, "b", [sightings(["P2"])])
    make_job(network).run_here()
    shutil.rmtree(network.log.path)
    with pytest.raises(UsageError, match="LOG_BEHIND"):
        check_log(make_job(network).outbox, network.log)
    # Its origin puts back what the log lost, and nothing comes twice.
    shutil.copytree(saved, network.log.path)
    publish_here(network, "other", [sightings(["P3"])])
    make_job(network).run_here()
    assert plates(make_job(network)) == ["P1", "P2", "P3"]


# -- the guard over Spark's checkpoint, with checkpoints written as Spark writes them


class Started:
    """An outbox and a checkpoint after three micro-batches, as a streaming query leaves them."""

    def __init__(self, network: Network, root: Path) -> None:
        self.network = network
        self.checkpoint = root / "checkpoint"
        self.outbox = Outbox(root / "outbox")
        check_start(self.checkpoint, self.outbox, network.log)
        (self.checkpoint / "metadata").write_text('{"id":"query-1"}', "utf-8")
        for folder in ("offsets", "commits"):
            (self.checkpoint / folder).mkdir()
        for batch in range(3):
            publish_here(network, f"publication {batch}", [sightings(["P"])])
            self.plan(batch)
            self.deliver(batch)
            self.finish(batch)

    def plan(self, batch: int) -> None:
        """Do as Spark does before a micro-batch."""
        offset = json.dumps(self.places(batch))
        (self.checkpoint / "offsets" / str(batch)).write_text(f'v1\n{{"conf":{{}}}}\n{offset}', "utf-8")

    def deliver(self, batch: int) -> None:
        """Do as the job does."""
        before = {} if batch == 0 else self.places(batch - 1)
        assert self.outbox.commit(OutboxCommit(batch, "query-1", before, self.places(batch), 1))

    def places(self, number: int) -> dict[str, str]:
        """Give the places after a commit."""
        [commit] = [commit for commit in self.network.log.commits() if commit.sequence == number]
        return {commit.lane: commit.place}

    def finish(self, batch: int) -> None:
        """Do as Spark does after a micro-batch."""
        (self.checkpoint / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}', "utf-8")

    def restore(self, what: Path, saved: Path) -> None:
        """Put a backup in place."""
        shutil.rmtree(what)
        shutil.copytree(saved, what)


def without(*names: str) -> Callable[[Started], None]:
    """Delete parts of the checkpoint."""

    def act(state: Started) -> None:
        for name in names:
            path = state.checkpoint / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return act


def delete_all(state: Started) -> None:
    """Delete the checkpoint."""
    shutil.rmtree(state.checkpoint)


def delete_outbox(state: Started) -> None:
    """Delete the outbox."""
    shutil.rmtree(state.outbox.path)


def lose_last_outbox_commit(state: Started) -> None:
    """Put the outbox back by one micro-batch."""
    (state.outbox.path / "_commits" / "000000000002.json").unlink()


def empty_outbox(state: Started) -> None:
    """Put the outbox back to its beginning."""
    shutil.rmtree(state.outbox.path / "_commits")


def earlier_checkpoint(state: Started) -> None:
    """Put the checkpoint back by two micro-batches."""
    for batch in (1, 2):
        for folder in ("offsets", "commits"):
            (state.checkpoint / folder / str(batch)).unlink()


def other_query(state: Started) -> None:
    """Let Spark have begun a new query in the same place."""
    (state.checkpoint / "metadata").write_text('{"id":"query-2"}', "utf-8")


def other_outbox(state: Started) -> None:
    """Use the checkpoint with the outbox of another job."""
    (state.outbox.path / "_identity.json").write_text('{"outbox":"another"}', "utf-8")


def other_range(state: Started) -> None:
    """Let the checkpoint have planned the last micro-batch over more of the log."""
    (state.checkpoint / "offsets" / "2").write_text('v1\n{}\n{"lane":"7"}', "utf-8")


GUARDED: dict[str, tuple[Callable[[Started], None], str]] = {
    "metadata deleted": (without("metadata"), "CHECKPOINT_DAMAGED"),
    "commits deleted": (without("commits"), "CHECKPOINT_BEHIND"),
    "offsets deleted": (without("offsets"), "CHECKPOINT_BEHIND"),
    "whole checkpoint deleted": (delete_all, "CHECKPOINT_MISSING"),
    "identity of the checkpoint deleted": (without("_identity.json"), "CHECKPOINT_UNKNOWN"),
    "outbox deleted": (delete_outbox, "OUTBOX_UNKNOWN"),
    "outbox restored from an earlier time": (lose_last_outbox_commit, "OUTBOX_BEHIND"),
    "outbox emptied": (empty_outbox, "OUTBOX_BEHIND"),
    "checkpoint restored from an earlier time": (earlier_checkpoint, "CHECKPOINT_BEHIND"),
    "checkpoint of another query": (other_query, "CHECKPOINT_FOREIGN"),
    "outbox of another job": (other_outbox, "CHECKPOINT_FOREIGN"),
    "last batch planned otherwise": (other_range, "CHECKPOINT_FOREIGN"),
}


@pytest.mark.fault("F09")
@pytest.mark.fault("F08")
@pytest.mark.parametrize("case", GUARDED)
def test_guard_refuses_what_does_not_belong_together(network: Network, tmp_path: Path, case: str) -> None:
    """Where plain Spark repeats or drops without a word, the job does not start."""
    state = Started(network, tmp_path)
    act, code = GUARDED[case]
    act(state)
    with pytest.raises(MaiaError) as refusal:
        check_start(state.checkpoint, Outbox(state.outbox.path), network.log)
    assert refusal.value.code == code


@pytest.mark.fault("F09")
def test_guard_lets_go_on_what_is_of_one_time(network: Network, tmp_path: Path) -> None:
    """Unhurt; killed between outbox and checkpoint; both put back to the same time: all may go on."""
    state = Started(network, tmp_path)
    saved = tmp_path / "saved"
    shutil.copytree(state.checkpoint, saved / "checkpoint")
    shutil.copytree(state.outbox.path, saved / "outbox")
    identity = check_start(state.checkpoint, state.outbox, network.log)
    publish_here(network, "more", [sightings(["P"])])
    state.plan(3)
    assert check_start(state.checkpoint, state.outbox, network.log) == identity  # killed before delivering
    state.deliver(3)
    assert check_start(state.checkpoint, state.outbox, network.log) == identity  # killed before Spark's commit
    state.finish(3)
    state.restore(state.checkpoint, saved / "checkpoint")
    state.restore(state.outbox.path, saved / "outbox")
    assert check_start(state.checkpoint, Outbox(state.outbox.path), network.log) == identity


def test_micro_batch_out_of_turn_is_refused(network: Network) -> None:
    """A batch that does not continue where the outbox ends delivers nothing."""
    publish_here(network, "a", [sightings(["P1"])])
    publish_here(network, "b", [sightings(["P2"])])
    job = make_job(network)
    far = dict(ahead(job, 2))
    [lane] = far
    back = {lane: "-1:-1:" + "11" * 32}
    for batch, upto in ((1, far), (0, back)):
        with pytest.raises(UsageError, match="CHECKPOINT_FOREIGN"):
            job.step(batch, upto, lambda work, groups: [work.deliver(group) for group in groups])
    forked = {lane: far[lane][:-2] + "00"}
    with pytest.raises(UnavailableError, match="LANE_PARKED"):
        job.step(0, forked, lambda work, groups: [work.deliver(group) for group in groups])
    assert job.outbox.latest() == -1


class Trap:
    """Does something when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.write_text, (self.path, "sprung"))


@pytest.mark.threat("T66")
def test_pickles_in_place_of_files_are_never_run(network: Network, tmp_path: Path) -> None:
    """Whatever file of log, outbox and checkpoint is replaced by a pickle: it is refused, not loaded."""
    state = Started(network, tmp_path)
    trap = tmp_path / "sprung"
    pickled = pickle.dumps(Trap(trap))
    places = [
        *(path for path in (network.root / "log").rglob("*") if path.is_file()),
        *state.outbox.path.rglob("*.json"),
        state.checkpoint / "metadata",
        state.checkpoint / "_identity.json",
        state.checkpoint / "offsets" / "2",
    ]

    def read_everything() -> None:
        outbox = Outbox(state.outbox.path)
        check_start(state.checkpoint, outbox, network.log)
        outbox.check()
        make_job(network).run_here()

    for place in places:
        before = place.read_bytes()
        place.write_bytes(pickled)
        with suppress(MaiaError):
            read_everything()
        place.write_bytes(before)
        shutil.rmtree(network.ccs / "outbox", ignore_errors=True)
    assert not trap.exists()
    pickle.loads(pickled)  # noqa: S301 - the control: it would have sprung
    assert trap.exists()


def revoke_billing(network: Network) -> None:
    """Take the billing office's right away, for good."""
    right = network.people.certificates["Cap7"]
    [path] = [path for path in (network.ccs / "certificates").iterdir() if right.raw in path.read_bytes()]
    path.unlink()
    Home.open(network.ccs).certificates.give_up(right.certificate_id)


def test_right_that_ended_takes_effect_at_the_next_micro_batch(network: Network) -> None:
    """What was delivered stays; what comes after is not, and the audit says why; others go on."""
    publish_here(network, "a", [sightings(["P1"])])
    make_job(network).run_here()
    revoke_billing(network)
    publish_here(network, "b", [sightings(["P2"])])
    job = make_job(network)
    job.run_here()
    assert plates(job) == ["P1"]
    assert len(list(delivered(job, "statistics"))) == 2
    refused = [row for row in read_audit(network.ccs / "audit") if row.kind == "refuse"]
    assert {row.subject for row in refused} == {"billing"}


@pytest.mark.fault("F18")
def test_batch_repeated_after_a_revocation_delivers_less_and_nothing_twice(network: Network) -> None:
    """The first attempt wrote its files and died; the second has the newer rights, and only it counts."""
    publish_here(network, "a", [sightings(["P1", "P2"])])
    written: list[int] = []

    def die(work: Work, groups: Sequence[Group]) -> list[Report]:
        written.extend(len(work.deliver(group).files) for group in groups)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_job(network).step(0, ahead(make_job(network)), die)
    assert written == [2]
    revoke_billing(network)
    job = make_job(network)
    job.run_here()
    assert plates(job) == []
    assert len(list(delivered(job, "statistics"))) == 2
    before = datetime.now(UTC)
    assert job.outbox.sweep(keep_newer_than=before - timedelta(days=1)) == []
    assert len(job.outbox.sweep(keep_newer_than=before + timedelta(days=1))) == 2
