"""`maia prove`, `maia verify`, `maia explain`: proofs that anybody can replay, denials that say what is missing."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.authority import NOTHING, parse_tag, read_proof
from maia.encoding import encode, parse_advanced, parse_canonical
from maia.errors import EncodingError, MaiaError, UsageError
from maia.home import Folder
from maia.home.words import removed
from maia.principals import KeySigner

TYPE = "pito/uk.gov.pito.Numberplate"
SUBSCRIBE = ("--type", f"{TYPE}@1", "--action", "subscribe")
NETWORK = ("--network", "pito/UK Police Network", "--action", "connect")


def test_a_proof_is_drawn_and_replayed_elsewhere(police, tmp_path):
    """Who has only the file, and knows nobody, comes to the same answer."""
    proof = tmp_path / "smith.proof"
    ran = police("prove", "--as", "smith", *SUBSCRIBE, "--out", str(proof))
    assert ran.code == 0
    assert "keeps   subscribe: attributes 3265 = 'AE05 XYZ', 9058" in ran.out
    assert "removes actions publish, manage, extend" in ran.out
    assert "removes all other attributes, rows without 3265 = 'AE05 XYZ'" in ran.out
    assert "may not pass it on" in ran.out
    assert "proven in part: subscribe" in ran.out
    elsewhere = police("verify", str(proof), "--home", str(tmp_path / "empty"), "--json")
    assert elsewhere.data["allowed"] is True
    assert len(elsewhere.data["certificates"]) == 2
    shown = police("verify", str(proof), "--home", str(tmp_path / "empty"))
    assert shown.out.startswith("verified: ")


def test_a_proof_goes_to_a_folder_or_to_stdout(police, tmp_path):
    """An existing folder gets the certificates, `-` the proof's bytes and nothing else."""
    folder = tmp_path / "evidence"
    folder.mkdir()
    assert police("prove", "--as", "smith", *SUBSCRIBE, "--out", str(folder)).code == 0
    assert len(list(folder.glob("*.cert"))) == 2
    assert police("verify", str(folder), "--as", "smith", *SUBSCRIBE).code == 0
    assert police("prove", "--as", "smith", *SUBSCRIBE, "--out", "-").out.startswith("(10:maia-proof")


def test_the_whole_or_a_part(police):
    """Everything that was asked for is told apart from a part of it."""
    whole = ("prove", "--as", "smith", "--type", f"{TYPE}@1", "--action", "subscribe", "--attribute", "3265='AE05 XYZ'")
    assert police(*whole, "--whole", "--json").data["whole"] is True
    assert police("prove", "--as", "smith", *SUBSCRIBE, "--json").data["whole"] is False
    refused = police("prove", "--as", "smith", *SUBSCRIBE, "--whole", "--json")
    assert (refused.code, refused.data["error"]) == (3, "PROVEN_IN_PART")


def test_evidence_may_lie_elsewhere(police, tmp_path):
    """--certificates names another folder; one that is not there is not found."""
    folder = tmp_path / "elsewhere"
    shutil.copytree(police.home / "certificates", folder)
    shutil.rmtree(police.home / "certificates")
    assert police("prove", "--as", "smith", *SUBSCRIBE).code == 3
    assert police("prove", "--as", "smith", *SUBSCRIBE, "--certificates", str(folder)).code == 0
    ran = police("prove", "--as", "smith", *SUBSCRIBE, "--certificates", str(tmp_path / "nowhere"))
    assert (ran.code, "[NO_SUCH_FOLDER]" in ran.err) == (5, True)


DENIED = {
    "nothing names the principal": ("jones", SUBSCRIBE, "NO_EVIDENCE", "reduction"),
    "another action": ("smith", ("--type", f"{TYPE}@1", "--action", "publish"), "NOT_PERMITTED", "request"),
    "another network": ("met", NETWORK, "NOT_PERMITTED", "request"),
    "another owner": ("smith", ("--type", "jones/T@1", "--action", "subscribe"), "WRONG_ROOT", "root"),
}


@pytest.mark.parametrize("who, right, error, stage", DENIED.values(), ids=DENIED)
def test_denials_name_the_stage_and_the_nearest_missing_link(police, who, right, error, stage):
    """`prove` and `explain` exit with 3, `verify` with 4; all say the same."""
    for verb, code in (("prove", 3), ("explain", 3), ("verify", 4)):
        ran = police(verb, "--as", who, *right, "--json")
        assert ran.code == code
        assert (ran.data["error"], ran.data["stage"], ran.data["allowed"]) == (error, stage, False)
        assert ran.data["trace"][-1] == {"stage": stage, "passed": False}
        assert ran.data["hint"]
    drawn = police("explain", "--as", who, *right)
    assert "denied: " in drawn.out
    assert f"✗ {stage}" in drawn.out
    assert f"error: [{error}]" in drawn.err
    assert "hint: " in drawn.err


def test_expiry_is_explained_with_the_certificate(maia):
    """An expired link is named, at the instant asked for."""
    maia.keys("pito", "met")
    identity = maia.grant(
        *("--from", "pito", "--to", "met", *SUBSCRIBE, "--until", "2026-07-01T00:00:00Z", "--at", "2026-01-01"),
        "--irrevocable",
    )
    assert maia("prove", "--as", "met", *SUBSCRIBE, "--at", "2026-07-01T00:00:00Z").code == 0
    late = maia("explain", "--as", "met", *SUBSCRIBE, "--at", "2026-07-01T00:00:01Z", "--json")
    assert (late.data["error"], late.data["stage"]) == ("EXPIRED", "validity")
    assert identity[:16] in late.data["message"]


def test_names_and_thresholds_are_explained(police):
    """A chain through a name shows the name; one through a threshold shows its branches."""
    police("name", "add", "Met Brokers", "--from", "met", "--to", "mb")
    police.grant("--from", "met", "--to", "met: Met Brokers", *SUBSCRIBE)
    named = police("explain", "--as", "mb", *SUBSCRIBE)
    assert "met: Met Brokers" in named.out
    assert "Met Brokers means mb (" in named.out
    police.grant("--from", "pito", "--to", "2 of (smith, jones, mb)", *NETWORK, "--delegate")
    police.grant("--from", "smith", "--to", "met", *NETWORK, "--blanket")
    short = police("explain", "--as", "met", *NETWORK, "--json")
    assert short.data["error"] == "THRESHOLD_NOT_MET"
    assert "2 of 3 needed, 1 present" in short.data["message"]
    police.grant("--from", "jones", "--to", "met", *NETWORK, "--blanket")
    joined = police("explain", "--as", "met", *NETWORK, "--json")
    [top] = joined.data["chains"]
    assert top["then"][0]["holder"].startswith("2 of (smith (")
    assert len(top["then"][0]["then"]) == 2
    assert len(joined.data["certificates"]) == 3


def test_several_chains_are_all_explained(police):
    """Rights add up: a second chain with another attribute is a second tree."""
    police.grant(
        "--from", "met", "--to", "smith", *SUBSCRIBE, "--attribute", "3467", "--condition", "now > timestamp(0)"
    )
    ran = police("explain", "--as", "smith", *SUBSCRIBE, "--json")
    assert len(ran.data["chains"]) == 2
    drawn = police("explain", "--as", "smith", *SUBSCRIBE).out
    assert "by 2 chains that add up" in drawn
    assert "if      now > timestamp(0)" in drawn


def test_the_owner_needs_no_certificate(maia):
    """The root of a right holds it; its chain is empty."""
    maia.keys("pito")
    ran = maia("explain", "--as", "pito", *NETWORK, "--json")
    assert ran.data["allowed"] is True
    assert ran.data["certificates"] == []
    assert ran.data["chains"][0]["then"] == []


def test_foreign_tags_need_a_root(police):
    """What has no owner in its name is decided from the roots of the command line."""
    police.grant("--from", "met", "--to", "smith", "--tag", "(ftp (* prefix r))", "--root", "met")
    assert police("prove", "--as", "smith", "--tag", "(ftp read)").code == 3
    assert police("prove", "--as", "smith", "--tag", "(ftp read)", "--root", "met").code == 0
    assert police("prove", "--as", "smith", "--tag", "(ftp write)", "--root", "met").code == 3
    drawn = police("explain", "--as", "smith", "--tag", "(ftp read)", "--root", "met").out
    assert "removes all but (ftp (* prefix r))" in drawn


def test_a_folder_is_checked_certificate_by_certificate(police, tmp_path):
    """Good ones are ok; forged, unreadable and expired ones fail, each with its reason, and the exit code is 4."""
    assert police("verify").out.count("ok ") == 2
    folder = police.home / "certificates"
    good = next(folder.iterdir())
    data = bytearray(good.read_bytes())
    data[-5] ^= 1
    (folder / "forged.cert").write_bytes(bytes(data))
    (folder / "junk.cert").write_bytes(b"junk")
    ended = ("--until", "2026-01-01T00:00:00Z", "--at", "2025-01-01", "--irrevocable")
    police.grant("--from", "pito", "--to", "jones", *SUBSCRIBE, *ended)
    ran = police("verify", "--at", "2026-06-01", "--json")
    assert (ran.code, ran.data["failed"]) == (4, 3)
    assert {item.get("error") for item in ran.data["certificates"]} == {
        None,
        "BAD_SIGNATURE",
        "EXPIRED",
        "SEXP_NOT_CANONICAL",
    }
    assert "3 of 5 certificates do not verify" in police("verify", "--at", "2026-06-01").err
    assert police("verify", str(good)).code == 0
    assert police("verify", str(folder / "forged.cert")).code == 4
    assert police("verify", str(tmp_path)).code == 5  # nothing checked is nothing proven
    assert police("verify", str(tmp_path / "nothing")).code == 5


def test_verify_refuses_contradicting_options(police, tmp_path):
    """A right without a principal, or a principal for a proof, is unclear."""
    assert "[VERIFY_OPTIONS]" in police("verify", *SUBSCRIBE).err
    (tmp_path / "x.proof").write_bytes(b"x")
    assert "[VERIFY_OPTIONS]" in police("verify", str(tmp_path / "x.proof"), "--as", "smith", *SUBSCRIBE).err
    assert "[NOT_A_KEY]" in police("prove", "--as", "met: x", *SUBSCRIBE).err


@pytest.fixture
def proof(police):
    """Give the bytes of a proof, as an expression."""
    target = police.home / "smith.proof"
    police("prove", "--as", "smith", *SUBSCRIBE, "--out", str(target))
    return parse_canonical(target.read_bytes())


def rewritten(proof, **fields):
    """Replace fields of a proof."""
    return encode(tuple(
        (item[0], *fields[item[0].decode()]) if isinstance(item, tuple) and item[0].decode() in fields else item
        for item in proof
    ))  # fmt: skip


def test_a_proof_cannot_choose_its_root(police, proof):
    """Another owner than the one in the name is refused, and so is a principal who is not the chain's."""
    evil = KeySigner.generate().public_key
    target = police.home / "evil.proof"
    target.write_bytes(rewritten(proof, owner=(evil.to_sexp(),)))
    ran = police("verify", str(target), "--json")
    assert (ran.code, ran.data["error"]) == (1, "PROOF_OWNER")
    target.write_bytes(rewritten(proof, principal=(evil.to_sexp(),)))
    assert police("verify", str(target)).code == 4
    target.write_bytes(rewritten(proof, certificates=()))
    assert police("verify", str(target)).code == 4
    without = tuple(item for item in proof if not (isinstance(item, tuple) and item[0] == b"owner"))
    target.write_bytes(encode(without))
    assert police("verify", str(target)).code == 0


def test_what_is_no_proof_is_refused(proof):
    """Version, order, kinds of fields: anything else is not read."""
    head, _, *rest = proof
    wrong = {
        "PROOF_VERSION": (head, b"2", *rest),
        "PROOF_SHAPE": (head, b"1", *rest, (b"more",)),
    }
    for code, expression in wrong.items():
        with pytest.raises(EncodingError, match=code):
            read_proof(encode(expression))
    for fields in ({"certificates": ((b"x",),)}, {"request": (b"all", b"x")}, {"principal": ((b"name", b"x"),)}):
        with pytest.raises(MaiaError):
            read_proof(rewritten(proof, **fields))


@given(st.binary(max_size=200))
def test_any_bytes_give_a_proof_or_a_maia_error(data):
    """The reader of proofs never fails otherwise."""
    for text in (data, b"(10:maia-proof1:1" + data):
        with pytest.raises(MaiaError):
            read_proof(text)


def test_a_narrower_version_and_name_are_said(police):
    """A link that keeps one version of many, or one name of many, says what it takes away."""
    police.grant("--from", "pito", "--to", "jones", "--type", "pito/uk.*", "--action", "manage", "--delegate")
    police.grant("--from", "jones", "--to", "mb", "--type", "pito/uk.X@7", "--action", "addAttribute")
    drawn = police("explain", "--as", "mb", "--type", "pito/*", "--action", "manage").out
    assert "removes actions publish, subscribe, extend, other names\n" in drawn
    assert "removes actions the rest of manage, other versions\n" in drawn
    assert "manage/addAttribute on uk.X, version 7" in drawn


def test_attributes_taken_away_on_the_way_are_named(police):
    """Of two attributes the second link keeps one; the other is named."""
    police.grant(
        *("--from", "met", "--to", "mb", *SUBSCRIBE, "--delegate", "--attribute", "1", "--attribute", "2"),
    )
    police.grant("--from", "mb", "--to", "jones", *SUBSCRIBE, "--attribute", "2")
    assert "removes attributes 1\n" in police("explain", "--as", "jones", *SUBSCRIBE).out.replace(" \n", "\n")


def test_links_never_widen(tmp_path):
    """The walk refuses to show a link that gives more than came before; nothing left is everything removed."""
    home = Folder(tmp_path)
    narrow, wide = parse_tag(parse_advanced("(a b)")), parse_tag(parse_advanced("(a)"))
    with pytest.raises(UsageError, match="never widens"):
        removed(narrow, wide, home)
    assert removed(wide, NOTHING, home) == ["everything"]
    assert removed(wide, wide, home) == []


def test_more_chains_than_can_be_shown_are_counted(police, monkeypatch):
    """Beyond the limit the rest is counted, not drawn."""
    monkeypatch.setattr("maia.domain.chains.MAX_CHAINS", 1)
    police.grant("--from", "met", "--to", "smith", *SUBSCRIBE, "--attribute", "3467")
    ran = police("explain", "--as", "smith", *SUBSCRIBE)
    assert "showing 1 of 2 chains" in ran.err


def test_a_proof_of_everything_needs_a_root_of_its_reader(police, tmp_path):
    """A request that names no owner is decided from --root alone, whatever the file says."""
    police.grant("--from", "met", "--to", "smith", "--tag", "(ftp read)", "--root", "met")
    proof = str(tmp_path / "ftp.proof")
    assert police("prove", "--as", "smith", "--tag", "(ftp read)", "--root", "met", "--out", proof).code == 0
    assert police("verify", proof).code == 4
    assert police("verify", proof, "--root", "met").code == 0
    assert police("verify", proof, "--root", "pito").code == 4


def test_oversized_input_is_refused(police, monkeypatch, tmp_path):
    """Files are read up to a limit."""
    monkeypatch.setattr("maia.cli.read.files.MAX_INPUT", 10)
    (tmp_path / "big").write_bytes(b"x" * 11)
    ran = police("verify", str(tmp_path / "big"))
    assert (ran.code, "[TOO_LARGE]" in ran.err) == (1, True)


def test_certificates_with_tests_show_and_check_them(police):
    """The demanded statement and the address of renewal are shown; a folder check asks for the statement."""
    police.grant(
        *("--from", "pito", "--to", "jones", *SUBSCRIBE, "--test", "crl:pito@https://pito.example/crl"),
        *("--test", "one-time:pito", "--renew", "https://pito.example/renew"),
    )
    shown = police("cert", "show").out
    assert "crl by pito (" in shown
    assert "at https://pito.example/crl" in shown
    assert "https://pito.example/renew" in shown
    assert police("verify", "--json").data["failed"] == 1
    police("statement", "crl", "--from", "pito")
    assert police("verify", "--json").data["failed"] == 0
