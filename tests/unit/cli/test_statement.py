"""`maia statement` and `maia revoke`: lists, answers, and what revocation can reach."""

from __future__ import annotations

import pytest

TYPE = "pito/uk.gov.pito.Numberplate"
SUBSCRIBE = ("--type", f"{TYPE}@1", "--action", "subscribe")
PROVE = ("prove", "--as", "met", *SUBSCRIBE)
NONCE = "00112233445566778899aabbccddeeff"


@pytest.fixture
def tested(maia):
    """Give a home where met's capability demands pito's CRL; return the program and the certificate's id."""
    maia.keys("pito", "met", "jones")
    return maia, maia.grant("--from", "pito", "--to", "met", *SUBSCRIBE, "--test", "crl:pito")


def test_absence_of_a_list_denies_and_its_presence_allows(tested):
    """No list, no access; an empty plain list, access; the book survives in the home."""
    maia, _ = tested
    denied = maia(*PROVE, "--json")
    assert (denied.code, denied.data["error"]) == (3, "NO_STATEMENT")
    ran = maia("statement", "crl", "--from", "pito", "--json")
    assert (ran.data["sequence"], ran.data["certificates"], ran.data["ends"]) == (1, [], None)
    assert maia(*PROVE).code == 0
    assert maia("statement", "crl", "--from", "pito", "--json").data["sequence"] == 2
    shown = maia("statement", "show", "--json").data["statements"]
    assert [item["sequence"] for item in shown] == [2]
    assert "counts now" in maia("statement", "show").out


def test_revocation_ends_the_right(tested):
    """A dry run changes nothing; a confirmed one does, and a second is refused."""
    maia, identity = tested
    maia("statement", "crl", "--from", "pito")
    dry = maia("revoke", identity[:8], "--dry-run", "--json")
    assert (dry.data["signed"], dry.data["statement"]["certificates"]) == (False, [identity])
    assert maia(*PROVE).code == 0
    for answer in ("", "n\n"):
        unsure = maia("revoke", identity[:8], stdin=answer)
        assert (unsure.code, "[CONFIRMATION_MISSING]" in unsure.err) == (2, True)
    assert maia(*PROVE).code == 0
    done = maia("revoke", identity[:8], stdin="y\n")
    assert (done.code, done.out.count("\n")) == (0, 1)
    assert "worst case" in done.err
    denied = maia(*PROVE, "--json")
    assert (denied.code, denied.data["error"], denied.data["stage"]) == (3, "REVOKED", "tests")
    again = maia("revoke", identity, "--yes", "--json")
    assert (again.code, again.data["error"]) == (2, "REVOKED_BEFORE")


def test_timed_lists_follow_one_another(tested):
    """Half-open, no overlap, no early successor; a revocation counts at once where it is known, and stays."""
    maia, identity = tested
    at = ("--at", "2026-06-01T00:00:00Z")
    first = maia("statement", "crl", "--from", "pito", "--until", "+1d", *at, "--json").data
    assert (first["starts"], first["ends"]) == ("2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z")
    assert maia(*PROVE, "--at", "2026-06-01T11:59:59Z").code == 0
    revoked = maia("revoke", identity, "--yes", "--at", "2026-06-01T12:00:00Z", "--json").data
    assert (revoked["statement"]["starts"], revoked["statement"]["sequence"]) == (None, 2)
    assert revoked["exposure"].startswith("12 hours ")
    assert revoked["by"] == "2026-06-02T00:00:00Z"
    assert maia(*PROVE, "--at", "2026-06-01T12:00:00Z", "--json").data["error"] == "REVOKED"
    assert maia(*PROVE, "--at", "2026-06-02T00:00:00Z", "--json").data["error"] == "NO_STATEMENT"
    after = maia("statement", "crl", "--from", "pito", "--at", "2026-06-01T12:00:00Z", "--json").data
    assert (after["starts"], after["certificates"]) == ("2026-06-02T00:00:00Z", [identity])
    assert maia(*PROVE, "--at", "2026-06-02T00:00:00Z", "--json").data["error"] == "REVOKED"
    overlap = maia(
        *("statement", "crl", "--from", "pito", "--starts", "2026-06-02T12:00:00Z", "--until", "2026-06-04", "--json"),
    )
    assert (overlap.code, overlap.data["error"]) == (4, "STATEMENT_OVERLAP")


def test_lists_carry_all_that_was_ever_revoked(tested):
    """What was withdrawn stays withdrawn; a number that was taken is not taken again."""
    maia, identity = tested
    maia("statement", "crl", identity, "--from", "pito")
    assert maia("statement", "crl", "--from", "pito", "--json").data["certificates"] == [identity]
    more = maia("statement", "crl", "ab" * 32, "--from", "pito", "--json")
    assert more.data["certificates"] == sorted(["ab" * 32, identity])
    taken = maia("statement", "crl", "--from", "pito", "--sequence", "3", "--json")
    assert (taken.code, taken.data["error"]) == (2, "LIST_NUMBER")
    assert maia("statement", "crl", "--from", "pito", "--sequence", "9", "--json").data["sequence"] == 9


def test_revalidation_confirms_only_what_it_lists(maia):
    """A certificate that the list leaves out is not good; the list needs an end."""
    maia.keys("pito", "met")
    identity = maia.grant("--from", "pito", "--to", "met", *SUBSCRIBE, "--test", "revalidation:pito")
    endless = maia("statement", "revalidation", identity, "--from", "pito")
    assert "[LIST_END]" in endless.err
    at = ("--at", "2026-06-01T00:00:00Z")
    assert maia("statement", "revalidation", identity[:8], "--from", "pito", "--until", "+1d", *at).code == 0
    assert maia(*PROVE, *at).code == 0
    assert maia("statement", "revalidation", "ab" * 32, "--from", "pito", *at).code == 0
    assert maia(*PROVE, "--at", "2026-06-02T00:00:00Z", "--json").data["error"] == "REVOKED"
    assert "[NOT_BY_CRL]" in maia("revoke", identity, "--yes").err


def test_one_time_answers_serve_one_question(maia, tmp_path):
    """The right nonce and verifier pass; another nonce, another verifier or no question fail."""
    maia.keys("pito", "met")
    identity = maia.grant("--from", "pito", "--to", "met", *SUBSCRIBE, "--test", "one-time:pito")
    out = str(tmp_path / "answer")
    question = ("--nonce", NONCE, "--verifier", "broker-1")
    made = maia("statement", "one-time", identity, "--from", "pito", *question, "--out", out, "--json")
    assert made.data["nonce"] == NONCE
    assert maia(*PROVE, *question, "--statement", out).code == 0
    for other in (("--nonce", "ff" * 16, "--verifier", "broker-1"), ("--nonce", NONCE, "--verifier", "broker-2"), ()):
        assert maia(*PROVE, *other, "--statement", out, "--json").data["error"] == "NO_STATEMENT"
    assert "[CHALLENGE_OPTIONS]" in maia(*PROVE, "--nonce", NONCE).err
    assert "[CHALLENGE_OPTIONS]" in maia(*PROVE, "--nonce", "00", "--verifier", "x").err
    assert "[CHALLENGE_OPTIONS]" in maia(*PROVE, "--nonce", "zz", "--verifier", "x").err
    assert "[ONE_TIME_KEPT]" in maia("statement", "add", out).err
    assert "[NOT_BY_CRL]" in maia("revoke", identity, "--yes").err
    assert "one-time answer of pito" in maia("statement", "show", out).out
    assert maia("statement", "show", out, "--json").data["statements"][0]["kind"] == "one-time"


def test_statements_travel_between_homes(tested, tmp_path):
    """A list that pito wrote out is taken in elsewhere; forged and older ones are not."""
    maia, identity = tested
    files = {name: str(tmp_path / name) for name in ("one", "two")}
    maia("statement", "crl", "--from", "pito", "--out", files["one"])
    maia("revoke", identity, "--yes", "--out", files["two"])
    elsewhere = ("--home", str(tmp_path / "elsewhere"))
    assert maia("statement", "add", files["two"], *elsewhere).code == 0
    rollback = maia("statement", "add", files["one"], *elsewhere, "--json")
    assert (rollback.code, rollback.data["error"]) == (4, "STATEMENT_ROLLBACK")
    data = bytearray((tmp_path / "two").read_bytes())
    data[-5] ^= 1
    (tmp_path / "forged").write_bytes(bytes(data))
    assert maia("statement", "add", str(tmp_path / "forged"), *elsewhere).code == 4
    assert maia("statement", "add", str(tmp_path / "nothing"), *elsewhere).code == 5
    assert maia("statement", "show", *elsewhere, "--json").data["statements"][0]["certificates"] == [identity]


def test_a_proof_carries_the_statements_it_rests_on(tested, tmp_path):
    """A third party without any list replays it; one that knows a newer list is not fooled by an older one."""
    maia, identity = tested
    maia("statement", "crl", "--from", "pito")
    maia("statement", "crl", "--from", "jones")
    proof = str(tmp_path / "met.proof")
    maia(*PROVE, "--out", proof)
    assert maia("verify", proof, "--home", str(tmp_path / "empty")).code == 0
    maia("revoke", identity, "--yes")
    ran = maia("verify", proof)
    assert ran.code == 4
    assert "a statement of the proof is left out" in ran.err
    assert "[REVOKED]" in ran.err


IRREVOCABLE = {
    "no test and no end": ([], "IRREVOCABLE"),
    "no test, but an end": (["--until", "+1d"], "IRREVOCABLE"),
}


@pytest.mark.parametrize("options, code", IRREVOCABLE.values(), ids=IRREVOCABLE)
def test_what_no_list_reaches_is_not_revoked(maia, options, code):
    """A root delegation cannot be revoked, and the command says so instead of pretending."""
    maia.keys("pito", "met")
    identity = maia.grant("--from", "pito", "--to", "met", "--type", "pito/*", "--delegate", "--irrevocable", *options)
    ran = maia("revoke", identity, "--yes", "--json")
    assert (ran.code, ran.data["error"]) == (2, code)
    assert not (maia.home / "statements").exists()


def test_revoking_needs_the_key_that_the_certificate_names(maia):
    """A list signed by another key would be ignored, so it is not made."""
    maia.keys("pito", "met")
    maia("key", "import", "watch", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    identity = maia.grant("--from", "pito", "--to", "met", *SUBSCRIBE, "--test", "crl:watch")
    ran = maia("revoke", identity, "--yes")
    assert (ran.code, "[NO_SUCH_KEY]" in ran.err) == (5, True)
    hashed = maia("key", "show", "pito", "--json").data["keys"][0]["hash"]
    by_hash = maia.grant("--from", "pito", "--to", "met", *SUBSCRIBE, "--test", f"crl:hash:{hashed}", "--until", "+1d")
    assert maia("revoke", by_hash, "--yes").code == 0


def test_damaged_statements_are_refused_whole(tested):
    """A book that cannot be read denies everything rather than forgetting a revocation."""
    maia, _ = tested
    maia("statement", "crl", "--from", "pito")
    path = maia.home / "statements"
    path.write_bytes(path.read_bytes()[:-3])
    assert maia(*PROVE).code == 1
    assert maia("statement", "show").code == 1


def test_no_statements_is_said(maia):
    """A note, no data."""
    ran = maia("statement", "show")
    assert (ran.code, ran.out) == (0, "")
    assert "no statements here" in ran.err


def test_long_lists_are_shown_in_part(tested):
    """Fifty ids are drawn, the rest is counted; JSON has them all."""
    maia, _ = tested
    ids = [f"{number:064x}" for number in range(60)]
    assert maia("statement", "crl", *ids, "--from", "pito").code == 0
    assert "and 10 more" in maia("statement", "show").out
    assert len(maia("statement", "show", "--json").data["statements"][0]["certificates"]) == 60
    assert maia("statement", "crl", "z" * 64, "--from", "pito").code == 5


def test_statements_go_to_stdout_alone(tested):
    """With `--out -` nothing but the signed bytes is on standard output."""
    maia, _ = tested
    assert maia("statement", "crl", "--from", "pito", "--out", "-").out.startswith("(6:signed(9:statement")
