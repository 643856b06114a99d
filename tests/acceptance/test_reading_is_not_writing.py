"""One symmetric key gives reading and writing alike; the origin's signature and its right tell them apart."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import maia
from maia.encryption import KeyGroupId, Parcel, ParcelHeader, open_parcel, seal, sign_parcel, verify_parcel
from maia.errors import DeniedError, MaiaError, SealError, SignatureError, VerificationError
from maia.events import AttributeType, EncryptionMode
from maia.principals import Signer
from maia.testing import ATTRIBUTES, TYPE_NAME, Command, LaneOf, numberplate_homes, publish_here, read_here, rows_of

PLATE, TIME, PLACE = (uid.encode() for uid in ATTRIBUTES.values())
WHEN = pa.array([datetime(2026, 6, 1, 9, tzinfo=UTC)], pa.timestamp("us", tz="UTC"))
FORGED = {
    PLATE: (AttributeType.STRING, pa.array(["FORGED"])),
    TIME: (AttributeType.TIMESTAMP, WHEN),
    PLACE: (AttributeType.STRING, pa.array(["Kent"])),
}


class Network:
    """The congestion charge service publishes; the police's broker MB may read everything, and holds every key."""

    def __init__(self, root: Path) -> None:
        """Let the camera publish one true sighting."""
        self.homes, self.root = numberplate_homes(root), root
        self.ccs, self.met = (maia.open(path).home for path in (self.homes.ccs, self.homes.met))
        self.at = datetime.now(UTC)
        row = {"numberplate": "AE05 XYZ", "timestamp": WHEN[0].as_py(), "location": "Victoria"}
        publish_here(self.ccs, TYPE_NAME, [row], as_="CCTV", at=self.at)
        [self.true] = maia.open(self.homes.ccs).log.commits()

    def certificates(self, *names: str) -> tuple[bytes, ...]:
        """Give certificates of the network, as evidence of a right."""
        return tuple(self.homes.network.certificates[name].raw for name in names)

    def key_of(self, label: bytes) -> bytes | None:
        """Take a key from the ring of the broker that may read."""
        group, ring = KeyGroupId(self.homes.event_type.type_id, label), self.met.keyring()
        return ring.key(group, ring.epochs(group)[-1])

    def sealed(self, broker: Signer, evidence: bytes, *, claimed: Signer | None = None) -> Parcel:
        """Seal a sighting that nobody saw, under the true keys, perhaps in another's name."""
        self.at += timedelta(milliseconds=1)
        ring = self.met.keyring()
        epoch = max(ring.epochs(KeyGroupId(self.homes.event_type.type_id, label))[-1] for label in FORGED)
        header = ParcelHeader(
            type_id=self.homes.event_type.type_id, origin=broker.public_key.key_id, parcel_id=secrets.token_bytes(16),
            event_base=secrets.token_bytes(16), stamp=int(self.at.timestamp() * 1000), count=1, epoch=epoch,
            mode=EncryptionMode.ATTRIBUTE, evidence=evidence, labels=tuple(FORGED),
        )  # fmt: skip
        parcel = seal(FORGED, header, broker, self.key_of)
        if claimed is None:
            return parcel
        return replace(parcel, header=replace(header, origin=claimed.public_key.key_id))

    def commit(self, name: str, home: Any, evidence: tuple[bytes, ...], *, claimed: Signer | None = None) -> Parcel:
        """Put a forgery into the log, on the lane of a home's broker."""
        broker = home.broker
        lane = LaneOf(self.root / "log", self.true.type_id, broker, home.path / "lanes", evidence=evidence)
        said = replace(self.true, evidence=lane.evidence, origin=broker.public_key.key_id.hex())
        parcel = self.sealed(broker, bytes.fromhex(lane.evidence), claimed=claimed)
        table = rows_of(replace(said, stamp=parcel.header.stamp), parcel.to_bytes())
        file = lane.segment(name, table, at=self.at, compression="none", use_dictionary=False)
        lane.say(name, replace(file, bases=(parcel.header.event_base.hex(),)), at=self.at)
        return parcel

    def plates(self) -> list[Any]:
        """Read as the billing office of the service."""
        return [row["numberplate"] for row in read_here(self.ccs, TYPE_NAME, as_="BO")]

    def refused(self) -> list[str]:
        """List the codes of what the billing office was refused."""
        return [row["reason"] for row in Command(self.homes.ccs).do("audit", "--kind", "refuse")["rows"]]


@pytest.fixture
def network(tmp_path: Path) -> Network:
    """Give the network."""
    return Network(tmp_path)


@pytest.mark.threat("T69")
@pytest.mark.requirement("16.11")
@pytest.mark.requirement("23.02")
def test_who_may_only_read_writes_nothing_with_its_keys(network: Network) -> None:
    """MB forges under the true keys. The keys alone would let it: it opens. Nobody is shown it, whatever it shows."""
    parcel = network.commit("own", network.met, network.certificates("Cap12", "Cap13"))
    base = open_parcel(verify_parcel(parcel), network.key_of)
    assert base[PLATE].to_pylist() == ["FORGED"], "the base mode of the thesis: whoever has the key is believed"
    assert network.plates() == ["AE05 XYZ"]
    network.commit("others", network.met, network.certificates("Cap6", "Cap13b"))
    stolen = network.commit("stolen", network.met, network.certificates("Cap6", "Cap13b"), claimed=network.ccs.broker)
    with pytest.raises(SignatureError):
        verify_parcel(stolen)
    assert network.plates() == ["AE05 XYZ"]
    assert {"ORIGIN_NOT_PROVEN"} <= set(network.refused())


@pytest.mark.requirement("22.08")
def test_a_member_that_exceeds_its_right_is_stopped_at_the_edge_by_keys_and_by_signatures(network: Network) -> None:
    """Who may read publishes nothing through its broker, sees nothing of what is closed, and forges for nobody."""
    row = {"numberplate": "FORGED", "timestamp": WHEN[0].as_py(), "location": "Kent"}
    with pytest.raises(MaiaError) as refused:
        publish_here(network.met, TYPE_NAME, [row], as_="Smith", at=datetime.now(UTC))
    assert isinstance(refused.value, DeniedError | VerificationError)
    (seen,) = read_here(network.ccs, TYPE_NAME, as_="SO")
    assert (seen["numberplate"], seen["location"]) == (None, "Victoria")
    network.commit("own", network.met, network.certificates("Cap12", "Cap13"))
    assert network.plates() == ["AE05 XYZ"]
    assert "ORIGIN_NOT_PROVEN" in network.refused()


@pytest.mark.requirement("16.11")
@pytest.mark.requirement("23.02")
def test_who_may_publish_writes_by_the_same_way(network: Network) -> None:
    """The same octets, sealed by hand and signed by a broker that may publish, are shown: the right is what decides."""
    network.commit("by hand", network.ccs, network.certificates("Cap6", "Cap13b"))
    assert sorted(network.plates()) == ["AE05 XYZ", "FORGED"]


@pytest.mark.threat("T69")
@pytest.mark.requirement("23.02")
def test_a_true_parcel_cannot_be_signed_anew(network: Network) -> None:
    """MB signs what CB sealed: its blocks are bound to CB, so under MB's name they do not open, with all the keys."""
    sealed = network.sealed(network.ccs.broker, bytes(32))
    assert open_parcel(verify_parcel(sealed), network.key_of)[PLATE].to_pylist() == ["FORGED"]
    broker = network.met.broker
    mine = sign_parcel(replace(sealed.header, origin=broker.public_key.key_id), sealed.blocks, broker)
    with pytest.raises(SealError):
        open_parcel(verify_parcel(mine), network.key_of)
