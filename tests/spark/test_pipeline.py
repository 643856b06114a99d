"""The same scenario from the kernel alone and from Spark, batch and streaming, however tasks fail and are repeated."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from network import (
    CCS_SUBSCRIPTIONS,
    MET_SUBSCRIPTIONS,
    START,
    Network,
    add_type,
    delivered,
    publish_here,
    sightings,
)
from tasks import fail_once

from maia.domain import Domain, DomainPlans, HomeKeys, Wanted, delivery_job, read_parked
from maia.encryption import parse_parcel
from maia.events import EncryptionMode
from maia.log import COUNT, REFUSED, read_audit
from maia.spark import deliver, start_job
from maia.testing import TYPE_NAME

COMMITMENT = 32
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    # pyspark leaves sockets to the garbage collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PLATES = ["AE05 XYZ", "BX51 ABC", *(f"PLATE {number}" for number in range(10))]
View = tuple[Any, ...]
VIEWS: dict[str, list[View]] = {
    "billing": sorted((plate, START + timedelta(seconds=at), None) for at, plate in enumerate(PLATES)),
    "statistics": sorted((None, START + timedelta(seconds=at), "Victoria") for at in range(len(PLATES))),
    "detective": [("AE05 XYZ", START, "Victoria")],
}


def view(rows: Iterator[dict[str, Any]]) -> list[View]:
    """Leave out which event a row is."""
    return sorted(
        ((row["numberplate"], row["timestamp"], row["location"]) for row in rows),
        key=lambda item: (str(item[0]), item[1]),
    )


def views(network: Network) -> dict[str, list[View]]:
    """Open the outboxes of both domains."""
    ccs, met = (
        delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS),
        delivery_job(Domain.open(network.met), MET_SUBSCRIPTIONS),
    )
    found = {
        name: list(delivered(job, name)) for job, name in ((ccs, "billing"), (ccs, "statistics"), (met, "detective"))
    }
    for rows in found.values():
        assert len({row["_event"] for row in rows}) == len(rows)
    return {name: view(iter(rows)) for name, rows in found.items()}


def expected() -> dict[str, list[View]]:
    """Sort the expected views as `view` does."""
    return {name: sorted(rows, key=lambda item: (str(item[0]), item[1])) for name, rows in VIEWS.items()}


def options(network: Network, **more: str) -> dict[str, str]:
    """Publish as the camera."""
    return {"home": str(network.ccs), "type": TYPE_NAME, "as": "CCTV", **more}


def write_input(folder: Path, rows: pa.RecordBatch, *, files: int = 2) -> Path:
    """Lay rows down as the plain input of a stream, in files of their own order."""
    folder.mkdir(parents=True, exist_ok=True)
    size = -(-rows.num_rows // files)
    for start in range(0, rows.num_rows, size):
        table = pa.Table.from_batches([rows.slice(start, size)])
        pq.write_table(table, folder / f"{start:05d}-{secrets.token_hex(4)}.parquet")
    return folder


def deliver_all(spark: Any, network: Network, checkpoints: Path) -> None:
    """Run the delivery jobs of both domains on Spark until the log is read."""
    for home, wanted in ((network.ccs, CCS_SUBSCRIPTIONS), (network.met, MET_SUBSCRIPTIONS)):
        query = start_job(delivery_job(Domain.open(home), wanted), spark, checkpoints / home.name, once=True)
        query.awaitTermination()


def sealings(network: Network) -> list[Any]:
    """Read all parcels, also of files that no commit names, and find that no key and nonce met two ciphertexts.

    The key of a block is derived from the epoch's key by the parcel id and the label, and used with one nonce: these
    name a key and nonce without knowing the key. The same holds of parcels and the commitments to their keys.
    """
    found: list[Any] = []
    ciphertexts: dict[tuple[Any, ...], bytes] = {}
    commitments: dict[bytes, bytes] = {}
    for path in network.log.path.glob("type=*/origin=*/date=*/*.parquet"):
        try:
            column = pq.read_table(path).column("parcel")
        except pa.ArrowInvalid:
            continue  # a killed task left a part of a file
        for parcel in map(parse_parcel, column.to_pylist()):
            header = parcel.header
            found.append(header)
            for label, block in zip(header.labels, parcel.blocks, strict=True):
                octets = bytes(block)
                use = (header.type_id, header.epoch, header.parcel_id, label)
                assert ciphertexts.setdefault(use, octets) == octets
                assert commitments.setdefault(octets[:COMMITMENT], octets) == octets
    assert len({header.parcel_id for header in found}) == len(found)
    assert len({(header.origin, header.stamp) for header in found}) == len(found)
    return found


def test_kernel_alone_delivers_the_views(network: Network) -> None:
    """Without Spark: the views that every engine must give."""
    publish_here(network, "kernel", [sightings(PLATES)])
    for home, wanted in ((network.ccs, CCS_SUBSCRIPTIONS), (network.met, MET_SUBSCRIPTIONS)):
        delivery_job(Domain.open(home), wanted).run_here()
    assert views(network) == expected()


@pytest.mark.threat("T44")
@pytest.mark.fault("F03")
@pytest.mark.parametrize("partitions", [1, 2])
def test_batch_delivers_the_same_views_although_workers_die(
    spark: Any, network: Network, tmp_path: Path, partitions: int
) -> None:
    """Published and delivered by Spark; each publishing worker is killed once, after it had sealed its rows."""
    folder = write_input(tmp_path / "in", sightings(PLATES), files=partitions)
    frame = spark.read.parquet(str(folder)).repartition(partitions)
    failing = frame.mapInArrow(partial(fail_once, str(tmp_path / "failed")), frame.schema)
    failing.write.format("maia").options(**options(network)).mode("append").save()
    assert len(list(tmp_path.glob("failed-*"))) >= 1
    [commit] = network.log.commits()
    assert commit.events == len(PLATES)
    assert len(sealings(network)) >= sum(file.parcels for file in commit.files)
    deliver_all(spark, network, tmp_path / "checkpoints")
    assert views(network) == expected()


@pytest.mark.fault("F02")
@pytest.mark.fault("F09")
def test_stream_restarted_from_its_checkpoint_neither_loses_nor_doubles(
    spark: Any, network: Network, tmp_path: Path
) -> None:
    """Publish as a stream in three runs; a micro-batch is repeated; a lost checkpoint is refused."""
    rows = sightings(PLATES)
    folder, checkpoint = tmp_path / "in", tmp_path / "checkpoint"

    def run(cut: slice) -> None:
        write_input(folder, rows.slice(cut.start, cut.stop - cut.start), files=2)
        again(checkpoint)

    def again(place: Path) -> None:
        frame = spark.readStream.schema(spark.read.parquet(str(folder)).schema).parquet(str(folder))
        writer = frame.writeStream.format("maia").options(**options(network, publication="cameras"))
        writer.option("checkpointLocation", str(place)).trigger(availableNow=True).start().awaitTermination()

    run(slice(0, 4))
    run(slice(4, 8))
    # Killed between the log's commit and Spark's: the micro-batch comes again under its number.
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "commits" / ".1.crc").unlink()
    run(slice(8, len(PLATES)))
    assert [commit.batch for commit in network.log.commits()] == [0, 1, 2]
    sealings(network)
    deliver_all(spark, network, tmp_path / "checkpoints")
    assert views(network) == expected()
    # Without its checkpoint, plain Spark would begin at batch 0 and the log would take it for a repetition.
    with pytest.raises(Exception, match="PUBLICATION_TAKEN"):
        again(tmp_path / "new checkpoint")
    assert len(list(network.log.commits())) == 3


@pytest.mark.fault("F02")
@pytest.mark.fault("F08")
def test_delivery_query_repeats_nothing_and_refuses_a_lost_checkpoint(
    spark: Any, network: Network, tmp_path: Path
) -> None:
    """The job as a streaming query: restart, repeated micro-batch, damage, lost metadata."""
    checkpoint = tmp_path / "checkpoint"

    def run() -> None:
        start_job(
            delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS), spark, checkpoint, once=True
        ).awaitTermination()

    publish_here(network, "a", [sightings(PLATES[:6])])
    run()
    publish_here(network, "b", [sightings(PLATES[6:])])
    run()
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "commits" / ".1.crc").unlink()
    run()
    job = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)
    assert [row["numberplate"] for row in delivered(job, "billing")] == PLATES
    assert job.outbox.latest() == 1
    publish_here(network, "c", [sightings(["later"])])
    path = max(network.log.path.glob("type=*/origin=*/date=*/*"), key=lambda path: path.stat().st_mtime_ns)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    run()
    assert {item.code for item in read_parked(network.ccs)} == {"LOG_FILE_DAMAGED"}
    assert [row["numberplate"] for row in delivered(job, "billing")] == PLATES
    path.write_bytes(data)
    run()
    assert [row["numberplate"] for row in delivered(job, "billing")] == [*PLATES, "later"]
    (checkpoint / "metadata").unlink()
    with pytest.raises(Exception, match="CHECKPOINT_DAMAGED"):
        run()


@pytest.mark.threat("T56")
@pytest.mark.fault("F11")
def test_poison_rows_are_refused_with_a_reason_and_stop_nothing(spark: Any, network: Network, tmp_path: Path) -> None:
    """A value of ten megabytes and one that is no text among others: each is accounted for, the others delivered."""
    from pyspark.sql import functions

    rows = spark.createDataFrame(
        [(plate, START, "Victoria") for plate in (*PLATES[:5], "huge", "no text", *PLATES[5:])],
        "numberplate string, timestamp timestamp, location string",
    )
    plate = functions.col("numberplate")
    poisoned = rows.withColumn(
        "numberplate",
        functions.when(plate == "huge", functions.repeat(functions.lit("x"), 10 << 20))
        .when(plate == "no text", functions.unhex(functions.lit("FFFE")).cast("string"))
        .otherwise(plate),
    ).coalesce(1)
    poisoned.write.format("maia").options(**options(network)).mode("append").save()
    [commit] = network.log.commits()
    assert (commit.events, commit.refused) == (len(PLATES), 2)
    refused = {row.code: row.events for row in read_audit(network.ccs / "audit") if row.kind == "refuse"}
    assert refused == {"VALUE_TOO_LARGE": 1, "VALUE_TYPE": 1}
    letters = pq.read_table(network.ccs / "refused").to_pylist()
    assert [(row["partition"], row["row"], row["code"]) for row in letters] == [
        (0, 5, "VALUE_TOO_LARGE"), (0, 6, "VALUE_TYPE"),
    ]  # fmt: skip
    assert {row["publication"] for row in letters} == {commit.publication}
    deliver_all(spark, network, tmp_path / "checkpoints")
    job = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)
    assert sorted(row["numberplate"] for row in delivered(job, "billing")) == sorted(PLATES)


def test_broker_without_keys_sees_ciphertext_alone(spark: Any, network: Network, tmp_path: Path) -> None:
    """A domain that carries the log for others reads it with plain Spark: types, stamps and counts, and no value."""
    publish_here(network, "a", [sightings(PLATES)])
    seen = spark.read.parquet(
        *(str(network.log.path / file.path) for commit in network.log.commits() for file in commit.files)
    )
    [row] = seen.collect()
    assert row["events"] == len(PLATES)
    for plate in (*PLATES, "Victoria"):
        assert plate.encode() not in bytes(row["parcel"]), plate


@pytest.mark.threat("T66")
def test_session_opens_no_port_beyond_loopback_and_no_console(spark: Any) -> None:
    """No web interface; every socket that this process tree listens on is bound to loopback."""
    import subprocess

    assert spark.sparkContext.uiWebUrl is None
    listening = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout.splitlines()
    java = [line for line in listening if '"java"' in line and f"pid={jvm_pid(spark)}," in line]
    assert java
    for line in java:
        address = line.split()[3].rsplit(":", 1)[0]
        assert address in {"127.0.0.1", "[::ffff:127.0.0.1]", "[::1]"}, line


def jvm_pid(spark: Any) -> int:
    """Ask the JVM for its process id."""
    return int(spark._jvm.java.lang.ProcessHandle.current().pid())


@pytest.mark.threat("T64")
@pytest.mark.threat("T65")
def test_attribute_names_are_never_code_and_case_keeps_columns_apart(spark: Any, network: Network) -> None:
    """A filter or a name with quotes, dots and backticks is read as data; `Numberplate` is no `numberplate`."""
    publish_here(network, "a", [sightings(PLATES)])
    reader = spark.read.format("maia").options(home=str(network.ccs), type=TYPE_NAME).option("as", "BO")
    for text in ("numberplate = 'x' or 1 = 1", "`numberplate`; drop table x", "a.b = 1", "Numberplate = 'AE05 XYZ'"):
        with pytest.raises(Exception, match=r"FILTER_|UNKNOWN_ATTRIBUTE"):
            reader.option("where", text).load().count()
    literal = "'; drop table x; --"
    escaped = literal.replace("'", "''")
    assert reader.option("where", f"numberplate = '{escaped}'").load().count() == 0
    frame = spark.read.format("maia").options(home=str(network.ccs), type=TYPE_NAME).option("as", "BO").load()
    with pytest.raises(Exception, match="Numberplate"):
        frame.select("Numberplate").count()
    assert frame.select("numberplate").count() == len(PLATES)


def test_count_column_says_how_many_events_a_refusal_stands_for(spark: Any, network: Network, tmp_path: Path) -> None:
    """Refusals of a stage are rows too, so input equals output plus refused."""
    publish_here(network, "a", [sightings(PLATES)])
    [commit] = network.log.commits()
    table = pq.read_table(network.log.path / commit.files[0].path)
    forged = bytearray(table.column("parcel")[0].as_py())
    forged[-1] ^= 1
    position = table.schema.get_field_index("parcel")
    table = table.set_column(position, table.schema.field(position), pa.array([bytes(forged)], type=pa.binary()))
    pq.write_table(table, tmp_path / "forged.parquet")
    [made] = DomainPlans(Domain.open(str(network.ccs)), CCS_SUBSCRIPTIONS)([commit], datetime.now(UTC)).plans
    rows = deliver(spark.read.parquet(str(tmp_path / "forged.parquet")), made, HomeKeys(str(network.ccs))).collect()
    assert [(row[REFUSED], row[COUNT]) for row in rows] == [("BAD_SIGNATURE", len(PLATES))]


@pytest.mark.fault("F09")
def test_reader_of_a_stream_resumes_after_what_it_saw_and_knows_its_log(
    spark: Any, network: Network, tmp_path: Path
) -> None:
    """`readStream.format("maia")`: each event once over restarts; a log that was put back adds and repeats nothing."""
    seen: list[Any] = []

    def run() -> None:
        reader = spark.readStream.format("maia").options(
            home=str(network.ccs), type=TYPE_NAME, maxCommitsPerTrigger="1"
        )
        frame = reader.option("as", "BO").option("withEventId", "true").load()
        writer = frame.writeStream.foreachBatch(lambda rows, _: seen.extend(rows.collect()))
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
            availableNow=True
        ).start().awaitTermination()

    publish_here(network, "a", [sightings(PLATES[:4])])
    publish_here(network, "b", [sightings(PLATES[4:8])])
    saved = tmp_path / "saved"
    shutil.copytree(network.log.path, saved)
    run()
    publish_here(network, "c", [sightings(PLATES[8:])])
    run()
    run()
    assert [row["numberplate"] for row in seen] == PLATES
    assert len({row["_event"] for row in seen}) == len(PLATES)
    shutil.rmtree(network.log.path)
    shutil.copytree(saved, network.log.path)
    run()
    assert len(seen) == len(PLATES)
    publish_here(network, "other", [sightings(["X"])])
    run()
    assert [row["numberplate"] for row in seen] == [*PLATES, "X"]


def test_three_types_in_three_modes_share_one_network(spark: Any, network: Network, tmp_path: Path) -> None:
    """The owner chose a mode for each type; one log and one job carry all, and none that is sealed shows values."""
    rows = spark.read.parquet(str(write_input(tmp_path / "in", sightings(PLATES), files=1)))
    names = {mode: f"uk.gov.pito.{mode.value}" for mode in EncryptionMode}
    for mode, name in names.items():
        add_type(network, name, mode)
        rows.write.format("maia").options(**{**options(network), "type": name}).mode("append").save()
    commits = dict(zip(names, network.log.commits(), strict=True))
    for mode, commit in commits.items():
        data = (network.log.path / commit.files[0].path).read_bytes()
        assert mode is EncryptionMode.PLAIN or b"AE05 XYZ" not in data
    wanted = tuple(Wanted(name=mode.value, as_="BO", type=name) for mode, name in names.items())
    job = delivery_job(Domain.open(network.ccs), wanted)
    start_job(job, spark, tmp_path / "checkpoint", once=True).awaitTermination()
    for mode in names:
        assert sorted(row["numberplate"] for row in delivered(job, mode.value)) == sorted(PLATES)
    assert not list(job.outbox.dead_letters())
