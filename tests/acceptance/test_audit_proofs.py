"""An audit that others can hold its domain to: checkpoints, proofs, cosignatures and tiles, by `maia audit`."""

from __future__ import annotations

import json
import shutil
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from maia.testing import Command

TYPE = "owner/clinic.Result"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a clinic with seven entries in its audit, and its partner, who has its broker's key."""
    folder = tmp_path_factory.mktemp("proofs")
    clinic, partner = Command(folder / "clinic"), Command(folder / "partner")
    for home, name in ((clinic, "clinic"), (partner, "partner")):
        home.do("domain", "init", str(home.home), "--name", name)
    clinic.keys("owner", "visitor")
    clinic.do("type", "define", f"{TYPE}@1", "--attribute", "ward:string")
    partner.keys("judge", "other")
    shutil.copy(clinic.home / "keys" / "broker.pub", partner.home / "keys" / "clinic.pub")
    tell(clinic, 6)
    return folder


@pytest.fixture
def world(made: Path, tmp_path: Path) -> tuple[Command, Command]:
    """Give the clinic and its partner."""
    for name in ("clinic", "partner"):
        shutil.copytree(made / name, tmp_path / name)
    return Command(tmp_path / "clinic"), Command(tmp_path / "partner")


def tell(home: Command, times: int) -> None:
    """Add entries: a client without a right is refused, and that is told."""
    for _ in range(times):
        assert home("subscribe", "--type", "clinic.Result", "--as", "visitor").code == 3


def stated(home: Command, path: Path) -> Path:
    """Write the home's checkpoint to a file."""
    assert home("audit", "checkpoint", "--out", str(path)).code == 0
    return path


def leaf(number: int, home: Command) -> bytes:
    """Hash an entry as RFC 6962 does, from the file itself."""
    journal = sorted((home.home / "audit" / "journal").glob("*.jsonl"))
    entry = b"".join(path.read_bytes() for path in journal).split(b"\n")[number]
    body = entry[: entry.rindex(b',"sig":"')] + b"}"
    return sha256(b"\0" + sha256(body).digest()).digest()


def root(leaves: list[bytes]) -> bytes:
    """Compute a root as RFC 6962 defines it, by recursion."""
    if len(leaves) == 1:
        return leaves[0]
    half = 1 << ((len(leaves) - 1).bit_length() - 1)
    return sha256(b"\1" + root(leaves[:half]) + root(leaves[half:])).digest()


def test_a_checkpoint_is_a_signed_note_over_the_tree_of_rfc_6962(world: tuple[Command, Command]) -> None:
    """Size, root and signature are what the public documents say, computed here without Maia."""
    clinic, partner = world
    text = clinic.do("audit", "checkpoint")["checkpoint"]
    body, _, signature = text.partition("\n\n")
    origin, size, hashed = body.split("\n")
    assert (size, b64decode(hashed)) == ("7", root([leaf(at, clinic) for at in range(7)]))
    name, value = signature.removeprefix("\u2014 ").split(" ")
    raw = bytes.fromhex(partner.do("key", "show", "clinic")["keys"][0]["key"])
    assert name == origin
    assert b64decode(value)[:4] == sha256(f"{name}\n\x01".encode() + raw).digest()[:4]
    Ed25519PublicKey.from_public_bytes(raw).verify(b64decode(value)[4:], (body + "\n").encode())
    tell(clinic, 1)
    assert clinic.do("audit", "checkpoint")["size"] == 8


def rewrite(home: Command, times: int) -> None:
    """Write the audit anew with the broker's key: remove it, and let the home tell something else."""
    shutil.rmtree(home.home / "audit")
    (home.home / "audit-head").unlink()
    tell(home, times)


def put_back(home: Command, times: int) -> None:
    """Put the whole home back to an earlier day, and go on from there."""
    shutil.rmtree(home.home)
    shutil.copytree(home.home.with_name("earlier"), home.home)
    tell(home, times)


FORGED: dict[str, tuple[Callable[[Command, int], None], int, str]] = {
    "the audit is written anew": (rewrite, 8, "AUDIT_FORKED"),
    "the audit is written anew, and shorter": (rewrite, 2, "AUDIT_TRUNCATED"),
    "the home is put back to an earlier day": (put_back, 0, "AUDIT_TRUNCATED"),
    "the home is put back, and goes on": (put_back, 4, "AUDIT_FORKED"),
}


@pytest.mark.threat("T70")
@pytest.mark.parametrize("forge, times, code", FORGED.values(), ids=FORGED)
def test_what_whoever_has_the_key_does_is_found_with_a_kept_checkpoint(
    world: tuple[Command, Command], tmp_path: Path, forge: Callable[[Command, int], None], times: int, code: str
) -> None:
    """The forged audit is whole in itself; a checkpoint that somebody kept shows that it is another one."""
    clinic, _ = world
    shutil.copytree(clinic.home, tmp_path / "earlier")
    tell(clinic, 2)
    kept = stated(clinic, tmp_path / "kept.checkpoint")
    assert clinic.do("audit", "verify", "--checkpoint", str(kept))["sound"]
    tell(clinic, 1)
    assert clinic.do("audit", "verify", "--checkpoint", str(kept))["sound"], "it grew, which is what audits do"
    forge(clinic, times)
    assert clinic.do("audit", "verify")["sound"], "nothing in the home shows it"
    ran = clinic("audit", "verify", "--checkpoint", str(kept), "--json")
    assert ran.code == 4
    assert [item["code"] for item in ran.data["breaks"]] == [code]
    assert clinic.refused("audit", "prove", "--from", str(kept))[1] in ("AUDIT_FORKED", "AUDIT_TRUNCATED")


def test_a_checkpoint_of_another_audit_or_of_nobody_states_nothing(
    world: tuple[Command, Command], tmp_path: Path
) -> None:
    """A checkpoint whose signature, origin or text was changed is refused, not passed over."""
    clinic, partner = world
    kept = stated(clinic, tmp_path / "kept.checkpoint")
    text = kept.read_text("utf-8")
    kept.write_text(text.replace("\n7\n", "\n6\n"), "utf-8")
    assert clinic.refused("audit", "verify", "--checkpoint", str(kept)) == (4, "CHECKPOINT_SIGNATURE")
    kept.write_text(text.replace("\n7\n", "\n07\n"), "utf-8")
    assert clinic.refused("audit", "verify", "--checkpoint", str(kept)) == (1, "CHECKPOINT_FORMAT")
    kept.write_text(text, "utf-8")
    refused = partner.refused("audit", "cosign", str(kept), "--key", "other", "--as", "judge")
    assert refused == (4, "CHECKPOINT_SIGNATURE")


def test_an_entry_is_proven_to_whoever_has_the_brokers_key_and_nothing_else(
    world: tuple[Command, Command], tmp_path: Path
) -> None:
    """The partner checks a proof of every entry in its own home; what was changed in one proves nothing."""
    clinic, partner = world
    proof = tmp_path / "entry.tlog-proof"
    for number in range(7):
        assert clinic("audit", "prove", str(number), "--out", str(proof)).code == 0
        found = partner.do("audit", "check-proof", str(proof), "--key", "clinic")
        assert (found["number"], found["size"], json.loads(found["entry"])["n"]) == (number, 7, number)
    text = proof.read_text("utf-8")
    assert partner.refused("audit", "check-proof", str(proof), "--key", "other") == (4, "CHECKPOINT_SIGNATURE")
    extra = text.split("\n")[1].removeprefix("extra ")
    edited = b64encode(b64decode(extra).replace(b"NO_EVIDENCE", b"ALL_CLEAR__")).decode()
    assert edited != extra
    hashes = text.split("\n\n")[0].split("\n")[3:]
    for wrong in (
        text.replace(extra, edited), text.replace("index 6", "index 5"), text.replace(f"{hashes[0]}\n", "", 1),
        text.replace(f"{hashes[0]}\n", f"{hashes[0]}\n{hashes[0]}\n", 1),
    ):  # fmt: skip
        proof.write_text(wrong, "utf-8")
        assert partner.refused("audit", "check-proof", str(proof), "--key", "clinic") == (4, "AUDIT_NOT_INCLUDED")
    proof.write_text(text + "more", "utf-8")
    assert partner.refused("audit", "check-proof", str(proof), "--key", "clinic")[0] == 1
    assert clinic.refused("audit", "prove", "7") == (5, "NO_SUCH_ENTRY")
    assert clinic.refused("audit", "prove") == (2, "NOTHING_NAMED")
    clinic_file = next((clinic.home / "audit" / "journal").glob("*.jsonl"))
    clinic_file.write_bytes(clinic_file.read_bytes().replace(b"NO_EVIDENCE", b"ALL_CLEAR__", 1))
    said = clinic.refused("audit", "prove", "0")
    assert said == (4, "AUDIT_SIGNATURE"), "nothing is proven from what was not signed"


def test_a_partner_cosigns_one_history_and_refuses_another(world: tuple[Command, Command], tmp_path: Path) -> None:
    """It wants a proof that the audit continues what it cosigned; of a fork it signs one branch, and not the other."""
    clinic, partner = world
    ask = ("audit", "cosign", "--key", "clinic", "--as", "judge")
    first, signed = stated(clinic, tmp_path / "1.checkpoint"), tmp_path / "1.cosigned"
    assert partner(*ask, str(first), "--out", str(signed)).code == 0
    fork = Command(tmp_path / "fork")
    shutil.copytree(clinic.home, fork.home)
    tell(clinic, 5)
    tell(fork, 3)
    second, proof = stated(clinic, tmp_path / "2.checkpoint"), tmp_path / "2.proof"
    assert partner.refused(*ask, str(second)) == (2, "CONSISTENCY_NEEDED")
    assert clinic("audit", "prove", "--from", str(first), "--out", str(proof)).code == 0
    checked = ("audit", "check-proof", str(proof), "--key", "clinic", "--checkpoint")
    assert partner.do(*checked, str(first))["proves"] == "consistency"
    assert partner.refused(*checked, str(second)) == (4, "AUDIT_FORKED")
    assert partner(*ask, str(second), "--proof", str(proof), "--out", str(signed)).code == 0
    other, forked = stated(fork, tmp_path / "3.checkpoint"), tmp_path / "3.proof"
    assert fork("audit", "prove", "--from", str(first), "--out", str(forked)).code == 0
    assert partner.refused(*ask, str(other), "--proof", str(forked))[1] == "AUDIT_TRUNCATED"
    tell(fork, 2)
    as_long = stated(fork, tmp_path / "as-long.checkpoint")
    assert partner.refused(*ask, str(as_long)) == (4, "AUDIT_FORKED"), "as many entries, and others"
    tell(fork, 2)
    other = stated(fork, tmp_path / "3.checkpoint")
    assert fork("audit", "prove", "--from", str(as_long), "--out", str(forked)).code == 0
    assert partner.refused(*ask, str(other), "--proof", str(forked)) == (4, "AUDIT_FORKED")
    assert partner.refused(*ask, str(first)) == (4, "AUDIT_TRUNCATED"), "an older one is no continuation"
    entry = tmp_path / "entry.tlog-proof"
    clinic("audit", "prove", "8", "--checkpoint", str(signed), "--out", str(entry))
    seen = partner.do("audit", "check-proof", str(entry), "--key", "clinic", "--cosigned-by", "judge")
    assert list(seen["cosigned"]) == ["judge"]
    none = partner.refused("audit", "check-proof", str(entry), "--key", "clinic", "--cosigned-by", "other")
    assert none == (4, "NOT_COSIGNED")


def test_tiles_hold_the_tree_for_any_server_of_files(world: tuple[Command, Command], tmp_path: Path) -> None:
    """Level 0 holds the leaves, the checkpoint lies beside; more is added, and another audit is refused."""
    clinic, _ = world
    folder = tmp_path / "www"
    assert clinic.do("audit", "tiles", str(folder))["size"] == 7
    leaves = b"".join(leaf(at, clinic) for at in range(7))
    assert (folder / "tile" / "0" / "000.p" / "7").read_bytes() == leaves
    assert (folder / "checkpoint").read_text("utf-8") == clinic.do("audit", "checkpoint")["checkpoint"]
    assert b"visitor" not in b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    tell(clinic, 1)
    assert clinic.do("audit", "tiles", str(folder))["size"] == 8
    rewrite(clinic, 9)
    assert clinic.refused("audit", "tiles", str(folder)) == (4, "AUDIT_FORKED")


def test_the_edge_of_the_tree_is_believed_only_where_it_was_signed(world: tuple[Command, Command]) -> None:
    """Whoever writes files but has no key cannot make the broker sign another tree than that of its entries."""
    clinic, _ = world
    place = clinic.home / "audit-head"
    head = json.loads(place.read_bytes())
    for edge in (["00" * 32, *head["edge"][1:]], head["edge"][1:], None):
        changed = {name: value for name, value in head.items() if name != "edge"}
        place.write_text(json.dumps(changed if edge is None else {**changed, "edge": edge}), "utf-8")
        tell(clinic, 1)
        assert clinic.do("audit", "verify")["sound"]
        size = clinic.do("audit", "checkpoint")["size"]
        text = clinic.do("audit", "checkpoint")["checkpoint"]
        assert b64decode(text.split("\n")[2]) == root([leaf(at, clinic) for at in range(size)])
        head = json.loads(place.read_bytes())


def test_a_checkpoint_of_another_history_in_the_head_is_found(world: tuple[Command, Command], tmp_path: Path) -> None:
    """One that the broker signed in a copy of the home is signed and says something else than the entries."""
    clinic, _ = world
    fork = Command(tmp_path / "fork")
    shutil.copytree(clinic.home, fork.home)
    tell(clinic, 1)
    tell(fork, 1)
    heads = [json.loads((home.home / "audit-head").read_bytes()) for home in (clinic, fork)]
    changed = heads[0] | {name: heads[1][name] for name in ("checkpoint", "edge")}
    (clinic.home / "audit-head").write_text(json.dumps(changed), "utf-8")
    ran = clinic("audit", "verify", "--json")
    assert (ran.code, [item["code"] for item in ran.data["breaks"]]) == (4, ["AUDIT_CHECKPOINT"])
    assert clinic.refused("audit", "prove", "0") == (4, "AUDIT_FORKED")


def forge(home: Command) -> tuple[int, bytes]:
    """Change who was refused in an entry, without the key, to a name that is as long; tell which, and what it was."""
    [journal] = sorted((home.home / "audit" / "journal").glob("*.jsonl"))
    was = journal.read_bytes()
    lines = was.split(b"\n")
    number = next(at for at, line in enumerate(lines) if b'"subject":"visitor"' in line)
    lines[number] = lines[number].replace(b'"subject":"visitor"', b'"subject":"forgery"')
    journal.write_bytes(b"\n".join(lines))
    return number, was


def without_edge(home: Command) -> None:
    """Take out of the remembered head what the next checkpoint goes on from."""
    place = home.home / "audit-head"
    head = json.loads(place.read_bytes())
    head.pop("checkpoint", None)
    head.pop("edge", None)
    place.write_text(json.dumps(head), "utf-8")


def alarms(home: Command) -> list[str]:
    """Give what the audit says of itself."""
    rows = home.do("audit", "--kind", "alarm")["rows"]
    return [row["reason"] for row in rows]


def test_no_checkpoint_is_signed_over_an_entry_that_the_broker_did_not_sign(
    world: tuple[Command, Command], tmp_path: Path
) -> None:
    """A forged entry becomes no part of a signed tree, is an alarm once, and is proven to nobody."""
    clinic, _ = world
    before = stated(clinic, tmp_path / "before")
    number, was = forge(clinic)
    assert clinic.refused("audit", "prove", str(number)) == (4, "AUDIT_SIGNATURE")
    assert clinic.refused("audit", "tiles", str(tmp_path / "www")) == (4, "AUDIT_SIGNATURE")
    without_edge(clinic)
    tell(clinic, 2)
    assert alarms(clinic) == ["AUDIT_SIGNATURE"]
    assert clinic.refused("audit", "checkpoint")[1] == "NO_CHECKPOINT"
    assert clinic.refused("audit", "prove", str(number))[1] == "NO_CHECKPOINT"
    [journal] = sorted((clinic.home / "audit" / "journal").glob("*.jsonl"))
    journal.write_bytes(was + journal.read_bytes()[len(was) :])
    tell(clinic, 1)
    assert clinic("audit", "prove", "--from", str(before), "--out", str(tmp_path / "grown")).code == 0


def test_an_entry_that_somebody_adds_or_blots_out_is_in_no_signed_tree(world: tuple[Command, Command]) -> None:
    """A line behind the last entry that the broker did not sign is put aside; one that is gone is no loss unsaid."""
    clinic, _ = world
    [journal] = sorted((clinic.home / "audit" / "journal").glob("*.jsonl"))
    whole = journal.read_bytes()
    last = json.loads(whole.splitlines()[-1])
    added = whole.splitlines()[-1].replace(b'"n":%d,' % last["n"], b'"n":%d,' % (last["n"] + 1))
    journal.write_bytes(whole + added + b"\n")
    tell(clinic, 1)
    assert "AUDIT_SIGNATURE" in alarms(clinic)
    assert json.loads(journal.read_bytes().splitlines()[last["n"] + 1])["previous"] != last["previous"]
    assert added not in journal.read_bytes()
    text = clinic.do("audit", "checkpoint")
    assert b64decode(text["checkpoint"].split("\n")[2]) == root([leaf(at, clinic) for at in range(text["size"])])
    lines = journal.read_bytes().split(b"\n")
    lines[3] = b"x" * len(lines[3])
    journal.write_bytes(b"\n".join(lines))
    without_edge(clinic)
    tell(clinic, 1)
    assert clinic.refused("audit", "checkpoint")[1] == "NO_CHECKPOINT"
    assert "AUDIT_GAP" in alarms(clinic)


@pytest.mark.parametrize("name", ["nobody", ""], ids=["of nobody", "in its name"])
def test_no_number_of_lines_makes_a_cosigner_forget_what_it_cosigned(
    world: tuple[Command, Command], tmp_path: Path, name: str
) -> None:
    """A checkpoint with as many lines as one may have is cosigned into one that is read, and is remembered."""
    clinic, partner = world
    ask = ("audit", "cosign", "--key", "clinic", "--as", "judge")
    text = stated(clinic, tmp_path / "bare").read_text("utf-8")
    head, own = text.split("\n\n")
    junk = f"\u2014 {name or text.splitlines()[0]} {b64encode(bytes(40)).decode()}\n" * 63
    full = tmp_path / "full"
    full.write_text(f"{head}\n\n{junk}{own}", "utf-8")
    signed = tmp_path / "signed"
    assert partner(*ask, str(full), "--out", str(signed)).code == 0
    assert partner(*ask, str(signed), "--out", str(signed)).code == 0  # it is read by whoever goes on with it
    assert len(signed.read_text("utf-8").split("\n\n")[1].splitlines()) == 2
    assert partner(*ask, str(tmp_path / "bare"), "--out", str(signed)).code == 0
    rewrite(clinic, 6)
    assert partner.refused(*ask, str(stated(clinic, tmp_path / "other")))[1] == "AUDIT_FORKED"


def test_tiles_follow_no_link_and_are_compared(world: tuple[Command, Command], tmp_path: Path) -> None:
    """Whoever may write where tiles are served from leads the home's owner nowhere, and changes no tile for good."""
    clinic, _ = world
    folder, precious, elsewhere = tmp_path / "www", tmp_path / "precious", tmp_path / "elsewhere"
    precious.write_text("precious", "utf-8")
    elsewhere.mkdir()
    folder.mkdir()
    for name in (".checkpoint.part", "checkpoint"):
        (folder / name).symlink_to(precious)
    (folder / "tile").symlink_to(elsewhere)
    assert clinic.do("audit", "tiles", str(folder))["size"] == 7
    assert precious.read_text("utf-8") == "precious"
    assert list(elsewhere.iterdir()) == []
    assert not (folder / "checkpoint").is_symlink()
    tile = folder / "tile" / "0" / "000.p" / "7"
    good = tile.read_bytes()
    tile.write_bytes(bytes(len(good)))
    clinic.do("audit", "tiles", str(folder))
    assert tile.read_bytes() == good
