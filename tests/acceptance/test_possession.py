"""Who acts as a client holds its key: through `format("maia")`, SQL, writes, streams, Python and the command."""

from __future__ import annotations

import json
import os
from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest

import maia
from maia.errors import KeyFormatError, MaiaError, UsageError, VerificationError
from maia.principals import KeySigner
from maia.testing import TYPE_NAME, Command, NumberplateHomes, numberplate_homes, served

AT = datetime(2026, 6, 1, 9, tzinfo=UTC)
SCHEMA = pa.schema(
    [("numberplate", pa.string()), ("timestamp", pa.timestamp("us", tz="UTC")), ("location", pa.string())]
)
ROW = [{"numberplate": "AE05 XYZ", "timestamp": AT, "location": "Victoria"}]
SECRET = "correct horse battery"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> NumberplateHomes:
    """Build the homes; billing's private key is sealed, that of statistics is elsewhere, and one name is a broker's."""
    made = numberplate_homes(tmp_path_factory.mktemp("possession"), network=True)
    keys, broker = made.ccs / "keys", maia.open(made.ccs).config.broker
    (keys / "SO.key").rename(made.ccs.parent / "SO.key")
    (keys / "alias.pub").write_bytes((keys / f"{broker}.pub").read_bytes())
    (keys / "alias.key").write_bytes((keys / f"{broker}.key").read_bytes())
    (keys / "alias.key").chmod(0o600)
    return made


@pytest.fixture
def published(spark: Any, world: NumberplateHomes) -> None:
    """Let the camera, whose key lies open in the home, publish one sighting, once for all tests of this file."""
    maia.open(world.ccs).client("CCTV").publish(table(), TYPE_NAME, publication="one")


def table() -> pa.Table:
    """Make a sighting."""
    return pa.Table.from_pylist(ROW, schema=SCHEMA)


def options(world: NumberplateHomes, client: str, **more: str) -> dict[str, str]:
    """Give the options of the data source."""
    return {"home": str(world.ccs), "type": TYPE_NAME, "as": client, **more}


def sql(world: NumberplateHomes, client: str) -> str:
    """Write the options in SQL."""
    return ", ".join(f"{name} '{value}'" for name, value in options(world, client).items())


def follow(spark: Any, world: NumberplateHomes, client: str, folder: Path) -> None:
    """Follow the log as a client, to its end."""
    stream = spark.readStream.format("maia").options(**options(world, client)).load()
    query = stream.writeStream.format("noop").option("checkpointLocation", str(folder / "read"))
    query.trigger(availableNow=True).start().awaitTermination()


def write_stream(spark: Any, world: NumberplateHomes, client: str, folder: Path) -> None:
    """Publish a stream as a client."""
    rows = spark.readStream.format("rate").load().selectExpr("'X' as numberplate", "timestamp", "'Y' as location")
    query = rows.writeStream.format("maia").options(**options(world, client, publication="stream"))
    query.option("checkpointLocation", str(folder / "write")).start().awaitTermination()


DOORS: dict[str, Callable[[Any, NumberplateHomes, str, Path], object]] = {
    "read": lambda spark, world, who, _: spark.read.format("maia").options(**options(world, who)).load(),
    "a temporary view": lambda spark, world, who, _: spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW taken USING maia OPTIONS ({sql(world, who)})"
    ),
    "a table": lambda spark, world, who, _: spark.sql(f"CREATE TABLE taken USING maia OPTIONS ({sql(world, who)})"),
    "write": lambda spark, world, who, _: (
        spark.createDataFrame(table()).write.format("maia").options(**options(world, who)).mode("append").save()
    ),
    "a stream that reads": follow,
    "a stream that publishes": write_stream,
    "Python": lambda _spark, world, who, _folder: maia.open(world.ccs).client(who),
}


@pytest.mark.requirement("1.13")
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())
def test_a_name_alone_is_refused_at_every_door(
    spark: Any, published: None, world: NumberplateHomes, tmp_path: Path, door: Callable[..., object]
) -> None:
    """Without its private key nobody acts as statistics, although the home knows its name and its rights."""
    with pytest.raises(Exception, match="the private key of `SO` is not in this home") as raised:
        door(spark, world, "SO", tmp_path)
    assert "[NO_SUCH_KEY]" in str(raised.value)


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())
def test_the_services_of_a_domain_are_no_clients(
    spark: Any, published: None, world: NumberplateHomes, tmp_path: Path, door: Callable[..., object]
) -> None:
    """The broker reads for everybody and as nobody, under its name and under any other."""
    for name in (maia.open(world.ccs).config.broker, "alias"):
        with pytest.raises(Exception, match="are no clients") as raised:
            door(spark, world, name, tmp_path)
        assert "[NOT_A_CLIENT]" in str(raised.value)


def test_the_command_refuses_names_too(world: NumberplateHomes) -> None:
    """Publish, subscribe and a kept subscription want the key of the one they act as."""
    command = Command(world.ccs)
    for verb in (
        ("subscribe", "--type", TYPE_NAME),
        ("publish", "-", "--type", TYPE_NAME),
        ("deliver", "add", "mine", "--type", TYPE_NAME),
    ):
        assert command.refused(*verb, "--as", "SO") == (5, "NO_SUCH_KEY"), verb
        assert command.refused(*verb, "--as", maia.open(world.ccs).config.broker) == (2, "NOT_A_CLIENT"), verb


def test_a_private_key_of_somebody_else_proves_nothing(spark: Any, world: NumberplateHomes) -> None:
    """Another's private key put under a client's name is not the key that the home knows under it."""
    keys = world.ccs / "keys"
    planted = keys / "SO.key"
    planted.write_bytes((keys / "CCTV.key").read_bytes())
    planted.chmod(0o600)
    try:
        with pytest.raises(VerificationError, match="KEY_PAIR"):
            maia.open(world.ccs).client("SO")
        with pytest.raises(Exception, match="is not the private key of"):
            spark.read.format("maia").options(**options(world, "SO")).load()
    finally:
        planted.unlink()


def test_who_does_not_prove_a_key_is_in_the_audit(world: NumberplateHomes, sealed: Path) -> None:
    """With the name and the file by which it was tried, and with nothing of a key or a passphrase."""
    command = Command(world.ccs)
    wrong = sealed.with_name("wrong")
    wrong.write_text("another secret\n", "utf-8")
    tried = {("SO", "keys/SO.key", "NO_SUCH_KEY"), ("BO", "keys/BO.key", "KEY_PASSPHRASE")}
    assert command("subscribe", "--type", TYPE_NAME, "--as", "SO").code != 0
    assert command("subscribe", "--type", TYPE_NAME, "--as", "BO", "--passphrase-file", str(wrong)).code != 0
    agent = sealed.with_name("agent")
    with pytest.raises(MaiaError) as raised:
        maia.open(world.ccs).prove("CCTV", agent=agent)
    tried.add(("CCTV", str(agent), raised.value.code))
    rows = command.do("audit", "--kind", "refuse")["rows"]
    assert tried <= {(row["subject"], row["source"], row["reason"]) for row in rows}
    known = maia.open(world.ccs).home.folder.keys
    assert {row["principal"] for row in rows if row["subject"] == "SO"} == {known["SO"].fingerprint}
    told = b"".join(path.read_bytes() for path in (world.ccs / "audit" / "journal").iterdir())
    assert b"another secret" not in told


def post(port: int, path: str, body: dict[str, str]) -> dict[str, Any]:
    """Ask a service something, unsigned; give what it answers."""
    data = json.dumps(body).encode()
    asked = Request(f"http://127.0.0.1:{port}{path}", data, {"content-type": "application/json"})
    try:
        with urlopen(asked) as answer:  # noqa: S310 - this machine
            return json.load(answer)
    except HTTPError as refused:
        with refused:
            return {"status": refused.code, **json.load(refused)}


def test_who_does_not_prove_a_key_to_a_service_is_in_its_audit(world: NumberplateHomes) -> None:
    """Whoever speaks for billing to the access control service; a flood is told once, and strangers as one."""
    known = maia.open(world.ccs).home.folder.keys
    keys = [known["BO"], *(KeySigner.generate().public_key for _ in range(5))]
    with served("acs", world.ccs) as port:
        for key in keys * 3:
            body = {"key": octets(key.raw), "nonce": octets(bytes(32))}
            offer = post(port, "/v1/challenge", body)
            fake = {"challenge": offer["challenge"], "own_nonce": octets(bytes(32)), "proof": octets(bytes(64))}
            assert post(port, "/v1/session", {**body, **fake})["status"] == 401
    rows = [row for row in Command(world.ccs).do("audit", "--kind", "refuse")["rows"] if row["source"] == "/v1/session"]
    assert sorted((row["subject"], row["principal"], row["reason"]) for row in rows) == [
        ("", "", "BAD_SIGNATURE"), ("BO", known["BO"].fingerprint, "BAD_SIGNATURE"),
    ]  # fmt: skip


def octets(data: bytes) -> str:
    """Write octets as the services read them."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.fixture
def sealed(world: NumberplateHomes, tmp_path: Path) -> Path:
    """Seal the key of billing; give the file that holds its passphrase."""
    file = tmp_path / "passphrase"
    file.write_text(f"{SECRET}\n", "utf-8")
    keys = world.ccs / "keys"
    plain = keys / "BO.key"
    if not (world.ccs / "sealed").exists():
        (world.ccs / "sealed").touch()
        other = Command(tmp_path / "other")
        other.do("key", "import", "BO", str(plain), "--private", "--passphrase-file", str(file))
        plain.unlink()
        plain.write_bytes((other.home / "keys" / "BO.key").read_bytes())
        plain.chmod(0o600)
    return file


def test_a_sealed_key_is_unlocked_by_its_passphrase_and_proven_by_an_agent(
    spark: Any, published: None, world: NumberplateHomes, sealed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked for, from a descriptor that the environment names, or from a file; never an option that holds it."""
    domain = maia.open(world.ccs)
    with pytest.raises(UsageError, match="PASSPHRASE_MISSING"):
        domain.client("BO")
    with pytest.raises(KeyFormatError, match="KEY_PASSPHRASE"):
        domain.client("BO", passphrase=lambda: "wrong")
    with pytest.raises(Exception, match="there is no terminal to ask at"):
        spark.read.format("maia").options(**options(world, "BO")).load()
    billing = domain.client("BO", passphrase=lambda: SECRET)
    assert billing.read(TYPE_NAME).count() == 1
    agent = billing.agent
    assert spark.read.format("maia").options(**options(world, "BO", agent=agent)).load().count() == 1
    by_file = spark.read.format("maia").options(**options(world, "BO", passphraseFile=str(sealed))).load()
    assert by_file.count() == 1
    reading, writing = os.pipe()
    os.write(writing, f"{SECRET}\n".encode())
    os.close(writing)
    monkeypatch.setenv("MAIA_PASSPHRASE_FD", str(reading))
    assert maia.open(world.ccs).client("BO").name == "BO"
    os.close(reading)
    monkeypatch.delenv("MAIA_PASSPHRASE_FD")
    with pytest.raises(Exception, match="unknown option"):
        spark.read.format("maia").options(**options(world, "BO", passphrase=SECRET)).load()
    domain.close()
    with pytest.raises(Exception, match="no agent answers"):
        spark.read.format("maia").options(**options(world, "BO", agent=agent)).load()


def test_an_agent_proves_its_own_key_only(spark: Any, published: None, world: NumberplateHomes, sealed: Path) -> None:
    """The agent of billing does not make anybody statistics."""
    domain = maia.open(world.ccs)
    billing = domain.client("BO", passphrase=lambda: SECRET)
    with pytest.raises(Exception, match="BAD_SIGNATURE"):
        spark.read.format("maia").options(**options(world, "SO", agent=billing.agent)).load()
    domain.close()
