"""A domain's role server: several processes over one store, its rules from outside, and roles without a name."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from processes import Service, run_maia, serving

from maia.clients import AccessControlClient
from maia.errors import DeniedError, UnavailableError
from maia.testing import Command, NumberplateHomes, numberplate_homes

RULES = """\
npTracker(plate)  <-  courtOrder(self, plate)*
npTracker(plate)  |-  subscribe Numberplate(location, timestamp, numberplate = plate)
"""
MORE = RULES + "archivist(self)  <-  courtOrder(self, plate)*\n"
FIRST, SECOND = "npTracker('AE05 XYZ')", "npTracker('BX51 ABC')"


# ---------------------------------------------------------------------- one role server, two processes (row 12.09)


class Force:
    """The Met, whose service keeps its policy and its roles in PostgreSQL."""

    def __init__(self, root: Path, database: str) -> None:
        """Make the homes; the Met's settings name the database, so that its commands ask the same store."""
        self.homes: NumberplateHomes = numberplate_homes(root, without=["Cap10"])  # what Smith has without a role
        with (self.homes.met / "maia.toml").open("a", encoding="utf-8") as file:
            file.write(f'\n[services]\ndatabase = "{database}"\n')

    @contextmanager
    def serving(self, until: str = "/readyz") -> Iterator[Service]:
        """Run one process of the service."""
        with serving("acs", self.homes.met, until=until) as service:
            yield service

    def client(self, service: Service, who: str) -> AccessControlClient:
        """Give somebody's client of one of the processes."""
        return service.client(self.homes.network.people[who], self.homes.network.key("Met"))

    def roles(self) -> list[str]:
        """List the active roles as a process of its own sees them: `maia role list`."""
        shown = run_maia("role", "list", home=self.homes.met)["roles"]
        return [f"{item['member']}: {item['role']}" for item in shown]


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.requirement("12.09")
def test_the_standby_goes_on_where_the_killed_primary_stopped(tmp_path: Path, postgres: str) -> None:
    """Kill -9: existing roles and certificates remain, and the standby activates a role; before, it did nothing."""
    force = Force(tmp_path, postgres)
    with force.serving() as primary, force.serving(until="/healthz") as standby:
        with force.client(primary, "Met") as chief, force.client(primary, "Smith") as smith:
            chief.apply_policy(RULES)
            smith.enrol(invitation=chief.invite("smith"))
            for plate in ("AE05 XYZ", "BX51 ABC"):
                assert chief.appoint(f"courtOrder(smith, '{plate}')")
            smith.activate(FIRST)
            handed = smith.capabilities().certificates
        assert standby.state("/readyz") == 503
        with force.client(standby, "Smith") as smith, pytest.raises(UnavailableError) as refused:
            smith.activate(SECOND)
        assert refused.value.code == "NOT_LEADER"
        assert force.roles() == [f"smith: {FIRST}"]

        primary.kill()
        standby.wait()
        with force.client(standby, "Met") as chief, force.client(standby, "Smith") as smith:
            assert chief.roles() == (f"smith: {FIRST}",)
            assert set(handed) <= set(smith.capabilities().certificates)
            assert "BX51 ABC" in smith.activate(SECOND)[0]
            with pytest.raises(DeniedError):
                smith.activate("npTracker('CX99 ZZZ')")
            assert set(chief.roles()) == {f"smith: {FIRST}", f"smith: {SECOND}"}
            assert chief.retract("courtOrder(smith, 'AE05 XYZ')").roles == (f"smith: {FIRST}",)
        assert force.roles() == [f"smith: {SECOND}"]


@pytest.mark.slow
@pytest.mark.requirement("12.09")
def test_rules_are_managed_at_the_server_by_whoever_may(tmp_path: Path) -> None:
    """Rules are shown, tried and put in force over HTTP by an administrator; to other members all of it is denied."""
    homes = numberplate_homes(tmp_path, without=["Cap10"])
    with serving("acs", homes.met) as service:
        server = homes.network.key("Met")
        with (
            service.client(homes.network.people["Met"], server) as chief,
            service.client(homes.network.people["Smith"], server) as smith,
        ):
            chief.apply_policy(RULES)
            smith.enrol(invitation=chief.invite("smith"))
            chief.appoint("courtOrder(smith, 'AE05 XYZ')")
            with pytest.raises(DeniedError):
                smith.activate("archivist(smith)")
            for change in (smith.apply_policy, smith.preview_policy):
                with pytest.raises(DeniedError):
                    change(MORE)
            assert chief.policy() == RULES
            assert chief.preview_policy(MORE)["differences"] == []
            assert chief.apply_policy(MORE) == 2
            assert "archivist" in smith.activate("archivist(smith)")[0]
            (lost,) = chief.preview_policy(RULES)["differences"]  # type: ignore[misc]
            assert lost["lost_roles"] == ["archivist(smith)"]
            chief.apply_policy(RULES)
            assert chief.roles() == ()
        assert service.running.poll() is None


# ---------------------------------------------------------------------- anonymous or identified (row 12.12)

WARD = """\
treating-doctor(h, self, p)  <-  assigned(h, self, p)*
treating-doctor(h, d, p)     |-  subscribe Report(text)
"""
PATTERSON, JONES = "treating-doctor('RGT01', ali, patterson)", "treating-doctor('RGT01', ali, jones)"


def ward(root: Path, settings: str) -> Command:
    """Make a hospital with two patients of Ali's."""
    home = Command(root / "hospital")
    home.do("domain", "init", str(home.home), "--key")
    home.keys("ali")
    home.do("type", "define", "domain/Report@1", "--attribute", "text:string")
    (home.home / "policy" / "ward.rules").write_text(WARD, "utf-8")
    (home.home / "policy" / "domain.toml").write_text(settings, "utf-8")
    home.do("policy", "apply")
    code = root / "code"
    code.write_text(home.do("domain", "invite", "ali")["invitation"], "utf-8")
    home.do("domain", "join", str(home.home), "--as", "ali", "--invitation-file", str(code))
    for patient in ("patterson", "jones"):
        home.do("role", "appoint", f"assigned('RGT01', ali, {patient})")
    return home


def lines(home: Command, after: int) -> list[tuple[str, str | None, str]]:
    """Read what the journal says of roles since a line."""
    shown = home.do("domain", "journal", "--after", str(after))["lines"]
    return [(line["action"], line["who"], line["what"]) for line in shown if line["action"] in ("activate", "fall")]


def end(home: Command) -> int:
    """Give the number of the journal's last line."""
    return max(int(line["number"]) for line in home.do("domain", "journal")["lines"])


SAYS = {
    "the domain hides it": ('anonymous = ["treating-doctor(h, *, p)"]\n', (), ("--named",)),
    "its user hides it": ("", ("--anonymous",), ()),
}


@pytest.mark.requirement("12.12")
@pytest.mark.parametrize("settings, hiding, naming", SAYS.values(), ids=SAYS)
def test_a_role_is_used_without_a_name_or_under_one(
    tmp_path: Path, settings: str, hiding: tuple[str, ...], naming: tuple[str, ...]
) -> None:
    """`treating-doctor(h, *, p)` leaves no doctor in the log, also when it falls; the identified one does."""
    home = ward(tmp_path, settings)
    start = end(home)
    home.do("role", "activate", PATTERSON, "--as", "ali", *hiding)
    assert len(home.do("cert", "show")["certificates"]) > 0
    text = str(home.do("domain", "journal", "--after", str(start)))
    assert "ali" not in text
    assert "treating-doctor('RGT01', *, patterson)" in text
    home.do("role", "activate", JONES, "--as", "ali", *naming)
    home.do("role", "deactivate", PATTERSON, "--as", "ali")
    home.do("role", "deactivate", JONES, "--as", "ali")
    assert lines(home, start) == [
        ("activate", None, "treating-doctor('RGT01', *, patterson)"),
        ("activate", "ali", JONES),
        ("fall", None, "treating-doctor('RGT01', *, patterson)"),
        ("fall", "ali", JONES) if not settings else ("fall", None, "treating-doctor('RGT01', *, jones)"),
    ]


@pytest.mark.requirement("12.12")
def test_the_right_is_the_same_without_a_name_and_nobody_else_gets_it(tmp_path: Path) -> None:
    """Anonymous is the log, not the decision: Ali alone may read, and only while assigned; a stranger may not ask."""
    home = ward(tmp_path, 'anonymous = ["treating-doctor(h, *, p)"]\n')
    home.keys("eve")
    asked = ("explain", "--type", "domain/Report@1", "--action", "subscribe", "--json", "--as")
    assert home(*asked, "ali").code == 3
    home.do("role", "activate", PATTERSON, "--as", "ali")
    assert home(*asked, "ali").code == 0
    assert home(*asked, "eve").code == 3
    assert home.refused("role", "activate", PATTERSON, "--as", "eve")[0] == 3
    home.do("role", "revoke", "assigned('RGT01', ali, patterson)")
    assert home(*asked, "ali").code == 3
    assert home.refused("role", "activate", PATTERSON, "--as", "ali") == (3, "ROLE_REFUSED")


@pytest.mark.slow
@pytest.mark.requirement("12.12")
def test_the_service_lets_a_member_choose_and_keeps_the_name_out_of_what_it_writes(tmp_path: Path) -> None:
    """Over HTTP as at the command line; neither the journal nor a refused renewal says who stands behind the role."""
    homes = numberplate_homes(tmp_path, without=["Cap10"])
    people, server = homes.network.people, homes.network.key("Met")
    with (
        serving("acs", homes.met) as service,
        service.client(people["Met"], server) as chief,
        service.client(people["Smith"], server) as smith,
    ):
        chief.apply_policy(RULES.replace("(plate)", "(plate, self)").replace("plate, self)  |-", "plate, who)  |-"))
        smith.enrol(invitation=chief.invite("smith"))
        for plate in ("AE05 XYZ", "BX51 ABC"):
            chief.appoint(f"courtOrder(smith, '{plate}')")
        start = len(chief.journal())
        smith.activate("npTracker('AE05 XYZ', smith)", anonymous=True)
        right = next(raw for raw in smith.capabilities().certificates if b"AE05 XYZ" in raw)
        smith.activate("npTracker('BX51 ABC', smith)", anonymous=False)
        said = chief.journal()[start:]
        with pytest.raises(DeniedError):
            smith.journal()
        smith.deactivate("npTracker('AE05 XYZ', smith)")
        with pytest.raises(DeniedError):
            smith.renew(right)
        after = chief.journal()[start + len(said) :]
    assert [(line["who"], line["what"]) for line in said if line["action"] == "activate"] == [
        (None, "npTracker('AE05 XYZ', *)"),
        ("smith", "npTracker('BX51 ABC', smith)"),
    ]
    assert {line["action"] for line in after} >= {"fall", "refuse"}
    assert all(line["who"] is None and "smith" not in str(line["what"]) for line in after)
    with closing(sqlite3.connect(homes.met / "store.db")) as database:
        rows: list[tuple[Any, ...]] = database.execute("SELECT who, what FROM acs_journal").fetchall()
    assert not [row for row in rows if "AE05 XYZ" in str(row[1]) and "npTracker" in str(row[1]) and "smith" in str(row)]
