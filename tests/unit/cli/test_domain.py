"""`maia domain`, `policy`, `role` and `revoke --preview`: a domain run by hand, with an editor and a shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

RULES = """# who may follow whom
npTracker(plate)<-courtOrder(case,plate)*, detective(self)*, ?caseAssignment(self, case)*
npTracker(plate) |- subscribe Numberplate(location, numberplate = plate)
"""
PLATE = "npTracker('AE05 XYZ')"


class Shell:
    """One domain's home and the command line in it."""

    def __init__(self, maia: Any, home: Path) -> None:
        self.maia, self.home = maia, home

    def __call__(self, *args: str, code: int = 0) -> Any:
        ran = self.maia(*args, "--json", MAIA_HOME=str(self.home))
        assert ran.code == code, (args, ran.out, ran.err)
        return ran.data


@pytest.fixture
def met(maia: Any, tmp_path: Path) -> Shell:
    """A domain with a type of its own, a policy file and a key for Smith."""
    shell = Shell(maia, tmp_path / "met")
    maia("domain", "init", str(shell.home), "--key")
    shell("key", "new", "smith", "--no-passphrase")
    fields = {"numberplate": ["3265", "string"], "location": ["3467", "string"]}
    attributes = [f"--attribute={name}:{kind}:{uid}" for name, (uid, kind) in fields.items()]
    define(shell, attributes)
    (shell.home / "policy" / "met.rules").write_text(RULES)
    return shell


def define(shell: Shell, attributes: list[str]) -> None:
    """Install a type owned by the domain's own key, through the library: the command has its own tests."""
    from datetime import UTC, datetime

    from maia.events import EventType, TypeName, attribute, parse_version, sign_event_type
    from maia.home import Home

    home = Home.open(shell.home)
    owner = home.signer("domain")
    made = [attribute(*_split(text)) for text in attributes]
    kind = EventType(name=TypeName(owner.public_key, "Numberplate", parse_version("1")), attributes=tuple(made))
    home.types.put(sign_event_type(kind, owner).raw, at=datetime.now(UTC))


def _split(text: str) -> tuple[str, int, str]:
    name, kind, uid = text.removeprefix("--attribute=").split(":")
    return name, int(uid), kind


def enrol(shell: Shell, tmp_path: Path) -> None:
    """Let Smith join with the code of an invitation."""
    code = shell("domain", "invite", "smith", "--appoint", "detective(smith)")["invitation"]
    (tmp_path / "code").write_text(code + "\n")
    joined = shell("domain", "join", str(shell.home), "--as", "smith", "--invitation-file", str(tmp_path / "code"))
    assert (joined["member"], joined["kind"]) == ("smith", "client")


def test_a_domain_is_run_by_hand(met: Shell, tmp_path: Path) -> None:
    """Check, apply, invite, join, appoint, activate, explain, preview, withdraw: each says what it did."""
    assert met("policy", "check")["findings"] == []
    assert met("policy", "apply")["number"] == 1
    enrol(met, tmp_path)
    assert [row["name"] for row in met("domain", "members")["members"]] == ["smith"]
    met("role", "appoint", "courtOrder(c1, 'AE05 XYZ')", "--until", "+1d")
    refused = met("role", "activate", PLATE, "--as", "smith", code=3)
    assert (refused["error"], refused["message"].endswith("lacks `caseAssignment(smith, case)`")) == (
        "ROLE_REFUSED",
        True,
    ), refused
    met("role", "observe", "caseAssignment(smith, c1)")
    activated = met("role", "activate", PLATE, "--as", "smith")
    assert len(activated["certificates"]) == 2
    assert met("role", "list")["roles"] == [{"member": "smith", "role": PLATE}]
    assert "by line" in met("policy", "explain", PLATE, "--as", "smith")["proof"][0]
    foreseen = met("revoke", "--role", PLATE, "--preview")
    assert (foreseen["withdrawn"], foreseen["roles"], len(foreseen["certificates"])) == (False, [f"smith: {PLATE}"], 1)
    assert len(met("role", "list")["roles"]) == 1
    identity = foreseen["certificates"][0]["certificate"]
    done = met("revoke", identity, "--yes")
    assert [row["certificate"] for row in done["certificates"]] == [identity]
    assert met("revoke", "--principal", "smith", "--yes")["members"] == ["smith"]
    assert met("domain", "members")["members"][0]["gone"] is not None


def test_an_invitation_works_once_from_the_command_line(met: Shell, tmp_path: Path) -> None:
    """The second time it is refused with the exit code of a denial."""
    met("policy", "apply")
    enrol(met, tmp_path)
    met("key", "new", "eve", "--no-passphrase")
    ran = met("domain", "join", str(met.home), "--as", "eve", "--invitation-file", str(tmp_path / "code"), code=3)
    assert ran["error"] == "INVITATION_REFUSED"


def test_a_preview_of_a_policy_names_who_loses_what(met: Shell, tmp_path: Path) -> None:
    """The file is edited; the preview says what it means for Smith, and nothing changes until it is applied."""
    met("policy", "apply")
    enrol(met, tmp_path)
    for command, fact in (("appoint", "courtOrder(c1, 'AE05 XYZ')"), ("observe", "caseAssignment(smith, c1)")):
        met("role", command, fact)
    met("role", "activate", PLATE, "--as", "smith")
    rules = met.home / "policy" / "met.rules"
    rules.write_text(rules.read_text().replace("detective(self)*", "inspector(self)*"))
    (change,) = met("policy", "preview")["changes"]
    assert (change["member"], change["lost_roles"], len(change["ended"])) == ("smith", [PLATE], 1)
    assert len(met("role", "list")["roles"]) == 1
    met("policy", "apply")
    assert met("role", "list")["roles"] == []


def test_policy_files_are_formatted_in_place_and_only_when_asked(met: Shell) -> None:
    """`--check` changes nothing and exits 1; then the file is canonical, comments kept."""
    rules = met.home / "policy" / "met.rules"
    assert met("policy", "format", "--check", code=1)["changed"] == [str(rules)]
    assert rules.read_text() == RULES
    met("policy", "format")
    assert rules.read_text().startswith("# who may follow whom\nnpTracker(plate) <- courtOrder(case, plate)*,")
    assert met("policy", "format", "--check")["changed"] == []


BROKEN = {
    "no policy": ("npTracker(", 1, "POLICY_SYNTAX"),
    "a role of the parent's set": ("doctor(self) <- friend(self)*\n", 1, "ROLE_TAKEN"),
}


@pytest.mark.parametrize("text, code, error", BROKEN.values(), ids=BROKEN)
def test_a_broken_policy_file_is_named(met: Shell, text: str, code: int, error: str) -> None:
    """The message names the file in which the problem stands."""
    (met.home / "policy" / "inherited").mkdir()
    (met.home / "policy" / "inherited" / "national.rules").write_text("doctor(self) <- registered(self)*\n")
    (met.home / "policy" / "local.rules").write_text(text)
    found = met("policy", "check", code=code)
    told = found.get("findings", [found])[0]
    assert error in (told.get("finding"), told.get("error"))
    assert "local.rules" in told.get("file", found.get("message", ""))


def test_findings_carry_file_line_and_column(met: Shell) -> None:
    """An attribute that does not exist is an error with its place, and exit code 1."""
    (met.home / "policy" / "met.rules").write_text(
        "\nspy(self) <- hired(self)*\nspy(x) |- subscribe Numberplate(colour)\n"
    )
    (finding,) = met("policy", "check", code=1)["findings"]
    assert (finding["file"], finding["line"], finding["column"]) == ("met.rules", 3, 33)


def test_what_the_service_refuses_is_placed_in_its_file(met: Shell) -> None:
    """Line and column are those of the file, though the service saw all files as one text."""
    (met.home / "policy" / "also.rules").write_text("# one\n# two\n")
    (met.home / "policy" / "met.rules").write_text(
        "\nspy(self) <- hired(self)*\nspy(x) |- subscribe Numberplate(colour)\n"
    )
    message = met("policy", "apply", code=1)["message"]
    assert message.startswith("`met.rules`, line 3, column 33: ")


def test_facts_are_revoked_and_the_old_word_still_works(met: Shell, tmp_path: Path) -> None:
    """`retract` stays for a release."""
    met("policy", "apply")
    enrol(met, tmp_path)
    for verb in ("revoke", "retract"):
        met("role", "appoint", "courtOrder(c1, 'AE05 XYZ')")
        met("role", "observe", "caseAssignment(smith, c1)")
        met("role", "activate", PLATE, "--as", "smith")
        assert "of met.rules" in met("policy", "explain", PLATE, "--as", "smith")["proof"][0]
        assert met("role", verb, "caseAssignment(smith, c1)")["roles"] == [f"smith: {PLATE}"]


MISSING = {
    "no policy": (("policy", "apply"), 5, "NO_POLICY"),
    "no such role": (("revoke", "--role", "x(y)", "--yes"), 5, "NO_ROLE"),
    "an inactive role": (("policy", "explain", PLATE, "--as", "smith"), 3, "ROLE_INACTIVE"),
    "nothing to revoke": (("revoke",), 2, "NOTHING_NAMED"),
    "a kind nobody knows": (("domain", "invite", "x", "--kind", "king"), 2, "MEMBER_KIND"),
    "no confirmation": (("revoke", "--principal", "smith"), 2, "CONFIRMATION_MISSING"),
}


@pytest.mark.parametrize("args, code, error", MISSING.values(), ids=MISSING)
def test_what_cannot_be_done_is_said(met: Shell, tmp_path: Path, args: tuple[str, ...], code: int, error: str) -> None:
    """Each refusal has its exit code and its stable error."""
    met("policy", "apply")
    enrol(met, tmp_path)
    (met.home / "policy" / "met.rules").unlink()
    assert met(*args, code=code)["error"] == error


def test_a_home_without_the_domains_key_says_how_to_make_it(maia: Any, tmp_path: Path) -> None:
    """The hint is a command."""
    maia("domain", "init", str(tmp_path / "x"))
    ran = maia("domain", "members", "--json", MAIA_HOME=str(tmp_path / "x"))
    assert (ran.code, ran.data["error"]) == (5, "NO_DOMAIN_KEY")
    assert "maia key new domain" in ran.data["message"]


def test_two_domains_agree_by_files(met: Shell, maia: Any, tmp_path: Path) -> None:
    """The giver drafts, the other signs, the giver issues; who is no party signs nothing."""
    other = Shell(maia, tmp_path / "ccs")
    maia("domain", "init", str(other.home), "--key")
    stranger = Shell(maia, tmp_path / "eve")
    maia("domain", "init", str(stranger.home), "--key")
    (met.home / "keys" / "ccs.pub").write_bytes((other.home / "keys" / "domain.pub").read_bytes())
    file = str(tmp_path / "tolls.agreement")
    row = "clerk |- subscribe Numberplate(location)"
    assert met("domain", "agree", file, "--with", "ccs", "--give", row)["signatures"] == 1
    assert met("domain", "agree", file, "--with", "ccs", "--give", row, code=2)["error"] == "AGREEMENT_EXISTS"
    assert stranger("domain", "agree", file, "--yes", code=2)["error"] == "AGREEMENT_PARTIES"
    assert other("domain", "agree", file, code=2)["error"] == "CONFIRMATION_MISSING"
    assert other("domain", "agree", file, "--yes")["signatures"] == 2
    done = met("domain", "agree", file)
    assert (done["did"], done["rows"]) == (
        "issued 2 certificates",
        [{"role": "clerk", "right": "subscribe Numberplate(location)"}],
    )
    assert (met.home / "policy" / "tolls.agreement").is_file()
    assert json.dumps(done)
