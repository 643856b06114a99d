"""A domain's policy, run with the `maia` command: enrolment, roles, capabilities, and what ends them."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from processes import serving

import maia
from maia.errors import DeniedError, MaiaError
from maia.principals import parse_certificate, verify_certificate
from maia.testing import DETECTIVE_POLICY, TYPE_NAME, Command, numberplate_homes

TYPE = "pito/uk.gov.pito.Numberplate"
ASKED = ("--type", f"{TYPE}@8516", "--action", "subscribe")
ORDER, STATUS, CASE = "courtOrder(c1, 'AE05 XYZ')", "detective(smith)", "caseAssignment(smith, c1)"
ROLE = "npTracker('AE05 XYZ')"
RULES = """\
npTracker(plate)  <-  courtOrder(case, plate)* , detective(self)* , ?caseAssignment(self, case)*
npTracker(plate)  |-  subscribe Numberplate(location, timestamp, numberplate = plate)
"""


def build(home: Path, rules: str = RULES) -> Command:
    """Let PITO own the type and let the Met delegate it; apply the policy; enrol Smith and Jones."""
    met = Command(home)
    met.do("domain", "init", str(home), "--key")
    met.keys("pito", "smith", "jones")
    attributes = ("numberplate:string:3265", "timestamp:timestamp:9058", "location:string:3467")
    met.do("type", "define", f"{TYPE}@8516", *(flag for text in attributes for flag in ("--attribute", text)))
    met.grant("--from", "pito", "--to", "domain", "--type", TYPE, "--action", "subscribe", "--delegate")
    (home / "policy" / "met.rules").write_text(rules, "utf-8")
    met.do("policy", "apply")
    for who in ("smith", "jones"):
        enrol(met, who)
    return met


def enrol(met: Command, who: str) -> None:
    """Invite somebody, who joins by proving a key and showing the code."""
    code = met.home.with_name(f"{met.home.name}-{who}.code")
    code.write_text(met.do("domain", "invite", who)["invitation"] + "\n", "utf-8")
    met.do("domain", "join", str(met.home), "--as", who, "--invitation-file", str(code))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the home once."""
    return build(tmp_path_factory.mktemp("police") / "met").home


@pytest.fixture
def met(template: Path, tmp_path: Path) -> Command:
    """Give a copy of the home."""
    shutil.copytree(template, tmp_path / "met")
    return Command(tmp_path / "met")


def appoint(met: Command, *, without: str = "", until: str = "+1h") -> None:
    """Let the three conditions hold, except one."""
    if without != ORDER:
        met.do("role", "appoint", ORDER, "--until", until)
    if without != STATUS:
        met.do("role", "appoint", STATUS)
    if without != CASE:
        met.do("role", "observe", CASE)


def sees(met: Command, who: str = "smith", *more: str) -> tuple[bool, str]:
    """Tell whether somebody may subscribe, and by what or why not."""
    ran = met("explain", "--as", who, *ASKED, *more, "--json")
    assert ran.code in (0, 3), ran.err
    return ran.code == 0, ran.data["grants"] if ran.code == 0 else ran.data["error"]


@pytest.mark.requirement("12.06")
@pytest.mark.requirement("12.01")
@pytest.mark.requirement("24.05")
@pytest.mark.parametrize("missing", [ORDER, STATUS, CASE])
def test_without_one_of_its_conditions_the_role_is_refused(met: Command, missing: str) -> None:
    """Order, status and assignment: any two are not enough, and nothing is issued."""
    appoint(met, without=missing)
    assert met.refused("role", "activate", ROLE, "--as", "smith") == (3, "ROLE_REFUSED")
    assert met.do("role", "list")["roles"] == []
    assert not sees(met)[0]
    assert met.refused("subscribe", "--type", f"{TYPE}@8516", "--as", "smith")[0] == 3


@pytest.mark.requirement("12.06")
@pytest.mark.requirement("12.07")
@pytest.mark.requirement("24.05")
def test_the_role_gives_the_capability_and_it_ends_with_the_order(met: Command) -> None:
    """Location, timestamp and that one plate, until the last second of the court order; a second later nothing."""
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    appoint(met, until=until.isoformat())
    met.do("role", "activate", ROLE, "--as", "smith")
    allowed = met.do("explain", "--as", "smith", *ASKED)
    assert '(* set "3265" "3467" "9058")' in allowed["effective"]
    assert '("3265" "AE05 XYZ")' in allowed["effective"]
    assert datetime.fromisoformat(allowed["valid"]["not_after"]) == until
    assert sees(met, "smith", "--at", until.isoformat())[0]
    assert sees(met, "smith", "--at", (until + timedelta(seconds=1)).isoformat()) == (False, "EXPIRED")
    assert met.refused("role", "activate", "npTracker('BX51 ABC')", "--as", "smith") == (3, "ROLE_REFUSED")


@pytest.mark.requirement("13.17")
@pytest.mark.requirement("24.05")
@pytest.mark.requirement("12.05")
@pytest.mark.parametrize("loss", [ORDER, STATUS, CASE])
def test_each_of_three_losses_ends_the_access_and_a_new_start_gives_a_new_certificate(met: Command, loss: str) -> None:
    """The role goes, its capability is on the list, the subscription is refused, and the old one stays dead."""
    appoint(met)
    old = set(met.do("role", "activate", ROLE, "--as", "smith")["certificates"])
    assert sees(met)[0]
    ended = met.do("role", "retract", loss)
    assert ended["roles"] == [f"smith: {ROLE}"]
    assert {row["certificate"] for row in ended["certificates"]} <= old
    assert met.do("role", "list")["roles"] == []
    assert sees(met) == (False, "REVOKED")
    assert met.refused("subscribe", "--type", f"{TYPE}@8516", "--as", "smith") == (3, "REVOKED")
    met.do("role", *(("observe", loss) if loss == CASE else ("appoint", loss)))
    assert not sees(met)[0], "what fell does not come back by itself"
    new = set(met.do("role", "activate", ROLE, "--as", "smith")["certificates"])
    assert {row["certificate"] for row in ended["certificates"]}.isdisjoint(new)
    assert sees(met)[0]


@pytest.mark.requirement("12.05")
def test_a_condition_that_is_not_monitored_ends_nothing(tmp_path: Path) -> None:
    """Without the star the assignment is asked at activation only."""
    met = build(tmp_path / "met", RULES.replace("case)*\n", "case)\n"))
    appoint(met)
    met.do("role", "activate", ROLE, "--as", "smith")
    assert met.do("role", "retract", CASE)["roles"] == []
    assert sees(met)[0]
    assert met.do("role", "retract", ORDER)["roles"] == [f"smith: {ROLE}"]


@pytest.mark.requirement("4.12")
def test_the_domain_decides_for_itself_and_the_owner_only_bounds_it(met: Command) -> None:
    """Met lets Smith in and not Jones; PITO's certificate is the same before and after, and bounds both."""
    owned = {path.name: path.read_bytes() for path in (met.home / "certificates").iterdir()}
    appoint(met)
    met.do("role", "activate", ROLE, "--as", "smith")
    assert met.refused("role", "activate", ROLE, "--as", "jones") == (3, "ROLE_REFUSED")
    assert (sees(met)[0], sees(met, "jones")[0]) == (True, False)
    kept = {path.name: path.read_bytes() for path in (met.home / "certificates").iterdir()}
    assert {name: kept[name] for name in owned} == owned
    publishing = met("explain", "--as", "smith", "--type", f"{TYPE}@8516", "--action", "publish", "--json")
    assert publishing.code == 3


@pytest.mark.requirement("23.17")
def test_a_member_enrols_with_a_proof_and_an_invitation_that_serves_once(met: Command) -> None:
    """The code lets one key in, once; another key with the same code, or a wrong code, is refused."""
    met.keys("brown", "eve")
    enrol(met, "brown")
    code = met.home.with_name(f"{met.home.name}-brown.code")
    join = ("domain", "join", str(met.home), "--invitation-file", str(code))
    assert met.refused(*join, "--as", "eve") == (3, "INVITATION_REFUSED")
    code.write_text("0000-0000\n", "utf-8")
    assert met.refused(*join, "--as", "eve")[0] != 0
    assert {row["name"] for row in met.do("domain", "members")["members"]} == {"smith", "jones", "brown"}
    appoint(met)
    assert met.do("role", "activate", ROLE, "--as", "smith")["certificates"]


LAB = """\
lab-publisher(type)  <-  works-at(self, 'lab')* , handles('lab', type)*
lab-publisher(type)  |-  advertise(type)
lab-publisher(type)  |-  publish(type)
ward-reader(type)    <-  works-at(self, 'ward')* , handles('ward', type)*
ward-reader(type)    |-  subscribe(type)
curator(type)        <-  works-at(self, 'registry')* , handles('registry', type)*
curator(type)        |-  define(type)
"""


def methods(home: Path, who: str) -> set[str]:
    """Tell what somebody may do with which type: announce and publish, subscribe, define a version."""
    domain, found = maia.open(home), set()
    for name in ("path_report", "prescription"):
        try:
            domain.publish_plan(name, client=domain.prove(who), publication="asked")
            found.add(f"publish {name}")
        except MaiaError:
            pass
        try:
            domain.deliver_plan(name, client=domain.prove(who), commits=())
            found.add(f"subscribe {name}")
        except MaiaError:
            pass
        evolve = ("type", "evolve", f"nhs/{name}@1", "--add", "note:string", "--as", who, "--out", str(home / "draft"))
        if Command(home)(*evolve).code == 0:
            found.add(f"define {name}")
    return found


@pytest.mark.requirement("7.14")
def test_a_role_with_a_message_type_as_parameter_guards_the_methods_of_that_type(tmp_path: Path) -> None:
    """lab-publisher("path_report") publishes that and no prescription; a reader and a curator have their own method."""
    home = Command(tmp_path / "hospital")
    home.do("domain", "init", str(home.home), "--key")
    home.keys("nhs", "kim", "ward", "cara")
    for name in ("path_report", "prescription"):
        home.do("type", "define", f"nhs/{name}@1", "--encryption", "plain", "--attribute", "text:string:1")
        for action in ("publish", "subscribe", "manage"):
            home.grant("--from", "nhs", "--to", "domain", "--type", f"nhs/{name}", "--action", action, "--delegate")
        home.grant("--from", "nhs", "--to", "broker", "--type", f"nhs/{name}", "--action", "publish")
    (home.home / "policy" / "lab.rules").write_text(LAB, "utf-8")
    home.do("policy", "apply")
    places = {"kim": "lab", "ward": "ward", "cara": "registry"}
    for who, place in places.items():
        enrol(home, who)
        home.do("role", "appoint", f"works-at({who}, '{place}')")
        home.do("role", "appoint", f"handles('{place}', 'path_report')")
    assert [methods(home.home, who) for who in places] == [set()] * 3
    for who, role in (("kim", "lab-publisher"), ("ward", "ward-reader"), ("cara", "curator")):
        home.do("role", "activate", f"{role}('path_report')", "--as", who)
    assert home.refused("role", "activate", "lab-publisher('prescription')", "--as", "kim") == (3, "ROLE_REFUSED")
    assert home.refused("role", "activate", "curator('path_report')", "--as", "kim") == (3, "ROLE_REFUSED")
    found = {who: methods(home.home, who) for who in places}
    assert found == {"kim": {"publish path_report"}, "ward": {"subscribe path_report"}, "cara": {"define path_report"}}


@pytest.mark.slow
@pytest.mark.requirement("13.02")
def test_a_short_life_is_renewed_on_request_and_ended_by_declining(tmp_path: Path) -> None:
    """Life 60 s and no list: after the policy changed the right runs out, and the renewal call returns a refusal."""
    homes = numberplate_homes(tmp_path, without=["Cap10"])  # what Smith has without a role
    people, met = homes.network.people, Command(homes.met)
    (homes.met / "policy").mkdir(exist_ok=True)
    (homes.met / "policy" / "domain.toml").write_text("life = 60\ntests = []\n", "utf-8")
    (homes.met / "policy" / "met.rules").write_text(DETECTIVE_POLICY, "utf-8")
    met.do("policy", "apply")
    code = met.do("domain", "invite", "smith")["invitation"]
    with serving("acs", homes.met) as service:
        chief = service.client(people["Met"], homes.network.key("Met"))
        smith = service.client(people["Smith"], homes.network.key("Met"))
        with chief, smith:
            smith.enrol(invitation=code)
            for fact in (ORDER, STATUS):
                chief.appoint(fact)
            chief.observe(CASE)
            smith.activate(ROLE)
            old = [raw for raw in smith.capabilities().certificates if TYPE_NAME.encode() in raw]
            new = old[0]
            while new == old[0]:  # within one second there is nothing to renew
                [new] = smith.renew(old[0]).certificates
            chief.retract(CASE)
            with pytest.raises(DeniedError) as caught:
                smith.renew(new)
            assert caught.value.code == "DENIED", "a service says no more to whom it refuses"
    right = verify_certificate(parse_certificate(new))
    begins, ends = right.body.period.not_before, right.body.period.not_after
    assert begins is not None
    assert ends is not None
    assert ends - begins <= timedelta(seconds=60)
    homes.add(homes.met, right)
    asked = ("explain", "--as", "Smith", "--type", f"PITO/{TYPE_NAME}@8516", "--action", "subscribe", "--json")
    assert met(*asked, "--at", ends.isoformat()).code == 0
    late = met(*asked, "--at", (ends + timedelta(seconds=1)).isoformat())
    assert (late.code, late.data["error"]) == (3, "EXPIRED")


@pytest.mark.parametrize("name", ["key-manager", "clients", "domains", "Key_Manager", "CLIENTS", "broker", "self"])
def test_nobody_is_invited_under_a_name_that_means_something(met: Command, name: str) -> None:
    """A28: such a name would put its member into a group that rights are given to; nothing is opened for it."""
    before = met.do("domain", "members")
    assert met.refused("domain", "invite", name) == (2, "MEMBER_NAME")
    assert met.do("domain", "members") == before


@pytest.mark.parametrize("command", [("role", "activate"), ("policy", "explain")])
def test_the_missing_premise_is_named_with_file_and_line(met: Command, command: tuple[str, str]) -> None:
    """Whoever runs the domain reads which rule lacks what, and where it stands; a role of no rule has none."""
    appoint(met, without=CASE)
    ran = met(*command, ROLE, "--as", "smith")
    assert ran.code == 3
    [line] = [text for text in ran.err.splitlines() if text.startswith("met.rules:1: ")]
    assert line.endswith("lacks `caseAssignment(smith, case)`"), line
    none = met(*command, "superintendent(smith)", "--as", "smith")
    assert none.code == 3
    assert "no rule of the policy in force activates `superintendent(smith)`" in none.err
