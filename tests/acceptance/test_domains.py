"""Domains: groups of brokers or of domains, whose brokers serve their own clients, within their own right."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from domains_world import ROW, TYPE, another, police, publish, refusal, seen

import maia
from maia.errors import DeniedError, VerificationError
from maia.testing import TYPE_NAME, Command, deliver_plan, numberplate_homes

BOTH = [(ROW["plate"], ROW["place"])]


@pytest.fixture
def met(tmp_path: Path) -> Command:
    """Give the Met's home, whose broker has all that the Met has."""
    made = police(tmp_path)
    made.grant("--from", "met", "--to", "broker", "--type", "*", "--blanket", "--irrevocable")
    return made


def enrol(home: Command, who: str, kind: str) -> dict[str, object]:
    """Invite somebody to a domain, who joins."""
    code = home.home.with_name(f"{who}.code")
    code.write_text(str(home.do("domain", "invite", who, "--kind", kind)["invitation"]), "utf-8")
    return home.do("domain", "join", str(home.home), "--as", who, "--invitation-file", str(code))


# ---------------------------------------------------------------- what a domain is


@pytest.mark.requirement("4.01")
def test_a_domain_has_sub_domains_or_brokers_and_no_name_makes_it_both(maia_command: Command) -> None:
    """Corp has a sub-domain: a broker and a client of its own are refused. Pay has brokers: a sub-domain is."""
    home = maia_command
    home.keys("corp", "pay", "pb", "ann", "other")
    home.do("name", "add", "domains", "--from", "corp", "--to", "pay")
    home.do("name", "add", "brokers", "--from", "pay", "--to", "pb")
    home.do("name", "add", "clients", "--from", "pay", "--to", "ann")
    before = len(list((home.home / "certificates").iterdir()))
    for word, domain in (("brokers", "corp"), ("clients", "corp"), ("domains", "pay")):
        code, error = home.refused("name", "add", word, "--from", domain, "--to", "other")
        assert (code, error) == (4, "DOMAIN_KIND"), word
    assert home.refused("name", "add", "domains", "--from", "corp", "--to", "corp")[1] == "DOMAIN_LOOP"
    assert len(list((home.home / "certificates").iterdir())) == before, "nothing was signed"
    shown = home.do("domain", "show", "corp")
    assert (shown["kind"], [item["name"] for item in shown["domains"]]) == ("group of domains", ["pay"])
    (pay,) = shown["domains"]
    assert (pay["kind"], pay["brokers"], pay["clients"]) == ("group of brokers", ["pb"], ["ann"])


@pytest.mark.requirement("4.01")
def test_the_service_of_a_domain_admits_no_second_kind(tmp_path: Path) -> None:
    """With a client it takes no sub-domain; with a sub-domain no broker and no client; by hand or in the register."""
    for name, first, refused in (
        ("met", "client", ("domain",)),
        ("corp", "domain", ("broker", "client")),
    ):
        home = Command(tmp_path / name)
        home.do("domain", "init", str(home.home), "--key")
        home.keys("one")
        enrol(home, "one", first)
        for kind in refused:
            assert home.refused("domain", "invite", "two", "--kind", kind)[1] == "DOMAIN_KIND"
        assert home.do("domain", "invite", "two", "--kind", first)["invitation"]
    assert [item["name"] for item in Command(tmp_path / "corp").do("domain", "show")["domains"]] == ["one"]
    by_hand = Command(tmp_path / "by-hand")
    by_hand.do("domain", "init", str(by_hand.home), "--key")
    by_hand.do("name", "add", "brokers", "--from", "domain", "--to", "broker")
    assert by_hand.refused("domain", "invite", "two", "--kind", "domain")[1] == "DOMAIN_KIND"


@pytest.mark.requirement("4.01")
def test_a_domain_that_signed_both_has_no_brokers(met: Command) -> None:
    """Two offices of the Met sign without each other: once the names meet, its broker serves nobody."""
    met.do("name", "add", "brokers", "--from", "met", "--to", "broker")
    publish(met)
    assert seen(met) == BOTH
    office = Command(met.home.with_name("office"))
    (office.home / "keys").mkdir(parents=True)
    for file in (met.home / "keys").iterdir():
        shutil.copy(file, office.home / "keys" / file.name)
    office.do("name", "add", "domains", "--from", "met", "--to", "jones")
    assert refusal(met) == ""
    assert met.do("status")["problems"] == []
    shutil.copytree(office.home / "certificates", met.home / "certificates", dirs_exist_ok=True)
    assert refusal(met) == "DOMAIN_KIND"
    assert refusal(met, "camera", publishing=True) == "DOMAIN_KIND"
    assert met.refused("domain", "show", "met") == (4, "DOMAIN_KIND")
    (problem,) = met.do("status")["problems"]
    assert "DOMAIN_KIND" in problem
    assert met("doctor").code == 1


@pytest.mark.requirement("4.13")
def test_brokers_alone_and_a_firm_with_customers_are_domains(met: Command) -> None:
    """PITO has brokers and no client; a firm's three investors are its clients. Neither serves anybody else's."""
    met.keys("firm", "ib", "ann", "bob", "cyd")
    met.do("name", "add", "brokers", "--from", "pito", "--to", "ib")
    shown = met.do("domain", "show", "pito")
    assert (shown["kind"], shown["brokers"], shown["clients"]) == ("group of brokers", ["ib"], [])
    met.do("name", "add", "brokers", "--from", "firm", "--to", "broker")
    met.grant("--from", "pito", "--to", "firm", "--type", TYPE, "--action", "publish,subscribe", "--delegate")
    met.grant("--from", "firm", "--to", "broker", "--type", "*", "--blanket")
    met.grant("--from", "firm", "--to", "camera", "--type", TYPE, "--action", "publish")
    investors = ("ann", "bob", "cyd")
    for who in investors:
        met.do("name", "add", "clients", "--from", "firm", "--to", who)
        met.grant("--from", "firm", "--to", who, "--type", TYPE, "--action", "subscribe")
    shown = met.do("domain", "show", "firm")
    assert (shown["kind"], shown["clients"]) == ("group of brokers", list(investors))
    met.do("name", "add", "clients", "--from", "firm", "--to", "camera")
    publish(met)
    assert [seen(met, who) for who in investors] == [BOTH] * 3
    met.keys("eve")
    met.grant("--from", "ccs", "--to", "eve", "--type", TYPE, "--action", "subscribe")
    met.do("name", "add", "clients", "--from", "ccs", "--to", "eve")
    assert refusal(met, "eve") == "NOT_LOCAL"
    infrastructure = another(met, "infrastructure")
    infrastructure.do("name", "add", "brokers", "--from", "pito", "--to", "broker")
    infrastructure.grant("--from", "pito", "--to", "broker", "--type", TYPE, "--action", "subscribe")
    assert {refusal(infrastructure, who) for who in investors} == {"NOT_LOCAL"}


@pytest.mark.requirement("4.02")
def test_who_may_pass_a_right_on_cuts_nobody_off_by_names(met: Command) -> None:
    """Mallory gives the broker its own right and calls it its own: all others are served as before."""
    met.keys("mallory")
    met.grant("--from", "met", "--to", "mallory", "--type", TYPE, "--action", "publish,subscribe", "--delegate")
    publish(met)
    assert seen(met) == BOTH
    met.grant("--from", "mallory", "--to", "broker", "--type", TYPE, "--action", "publish,subscribe")
    met.do("name", "add", "brokers", "--from", "mallory", "--to", "broker")
    assert seen(met) == BOTH
    office = Command(met.home.with_name("mallorys"))
    (office.home / "keys").mkdir(parents=True)
    for file in (met.home / "keys").iterdir():
        shutil.copy(file, office.home / "keys" / file.name)
    office.do("name", "add", "domains", "--from", "mallory", "--to", "jones")
    shutil.copytree(office.home / "certificates", met.home / "certificates", dirs_exist_ok=True)
    assert seen(met) == BOTH
    assert refusal(met, "camera", publishing=True) == ""


@pytest.mark.requirement("4.15")
def test_names_of_domains_are_unique_and_children_extend_the_parents_roles(tmp_path: Path) -> None:
    """A second `addenbrookes` is refused; five national roles and two local ones are seven, a sibling sees five."""
    nhs = Command(tmp_path / "nhs")
    nhs.do("domain", "init", str(nhs.home), "--key")
    nhs.keys("addenbrookes", "papworth")
    enrol(nhs, "addenbrookes", "domain")
    assert nhs.refused("domain", "invite", "addenbrookes", "--kind", "domain")[1] == "MEMBER_NAME_TAKEN"
    enrol(nhs, "papworth", "domain")
    national = "".join(f"{role}(self) <- registered(self, '{role}')*\n" for role in
                       ("doctor", "nurse", "pharmacist", "porter", "researcher"))  # fmt: skip
    seen_by = {}
    for child, own in (
        ("addenbrookes", "surgeon(self) <- doctor(self)*\nward(self) <- nurse(self)*\n"),
        ("papworth", ""),
    ):
        home = Command(tmp_path / child)
        home.do("domain", "init", str(home.home), "--key")
        inherited = home.home / "policy" / "inherited"
        inherited.mkdir(parents=True)
        (inherited / "national.rules").write_text(national, "utf-8")
        if own:
            (home.home / "policy" / "local.rules").write_text(own, "utf-8")
        roles = home.do("policy", "roles")["roles"]
        seen_by[child] = (len(roles), sum(item["inherited"] for item in roles))
        home.do("policy", "apply")
    assert seen_by == {"addenbrookes": (7, 5), "papworth": (5, 5)}
    (home.home / "policy" / "local.rules").write_text("doctor(self) <- friend(self)*\n", "utf-8")
    assert home.refused("policy", "roles")[1] == "ROLE_TAKEN"
    assert home.refused("policy", "apply")[1] == "ROLE_TAKEN"


# ---------------------------------------------------------------- whom a broker serves


@pytest.mark.requirement("4.02")
def test_names_that_clients_and_strangers_sign_place_nobody(met: Command, tmp_path: Path) -> None:
    """Smith calls himself a client and the CCS's broker a broker of his; a stranger calls another broker its own."""
    ccs = another(met, "ccs")
    for home, domain in ((met, "met"), (ccs, "ccs")):
        home.do("name", "add", "brokers", "--from", domain, "--to", "broker")
    ccs.grant("--from", "ccs", "--to", "broker", "--type", "*", "--blanket", "--irrevocable")
    publish(met)
    for word, whom in (("clients", "smith"), ("brokers", "broker")):
        ccs.do("name", "add", word, "--from", "smith", "--to", whom)
    assert (seen(met), refusal(ccs)) == (BOTH, "NOT_LOCAL")
    for word, whom in (("clients", "smith"), ("clients", "camera"), ("brokers", "broker")):
        met.do("name", "add", word, "--from", "ccs", "--to", whom)
    assert (seen(met), refusal(met, "camera", publishing=True)) == (BOTH, ""), "nor does another domain take them away"
    (tmp_path / "unnamed").mkdir()
    alone = police(tmp_path / "unnamed")
    for who, actions in (("broker", "publish,subscribe"), ("camera", "publish"), ("smith", "subscribe")):
        alone.grant("--from", "pito", "--to", who, "--type", TYPE, "--action", actions)
    alone.keys("stranger")
    alone.do("name", "add", "brokers", "--from", "stranger", "--to", "broker")
    publish(alone)
    assert seen(alone) == BOTH


@pytest.mark.requirement("4.02")
def test_a_client_uses_the_brokers_of_its_own_domain(met: Command) -> None:
    """Smith of the Met is served by both of its brokers. A broker of the CCS refuses him, with all that he carries."""
    second, ccs = another(met, "second"), another(met, "ccs")
    for home, domain in ((met, "met"), (second, "met"), (ccs, "ccs")):
        home.do("name", "add", "brokers", "--from", domain, "--to", "broker")
        home.do("name", "add", "clients", "--from", "met", "--to", "smith")
        home.do("name", "add", "clients", "--from", "met", "--to", "camera")
        if home is not met:
            home.grant("--from", domain, "--to", "broker", "--type", "*", "--blanket", "--irrevocable")
    shutil.copytree(second.home / "certificates", met.home / "certificates", dirs_exist_ok=True)
    publish(met)
    assert (seen(met), seen(second)) == (BOTH, BOTH)
    assert refusal(ccs) == "NOT_LOCAL"
    assert refusal(ccs, "camera", publishing=True) == "NOT_LOCAL"
    # The CCS's broker may do all of this itself: what is wrong is whose client he is.
    ccs.grant("--from", "ccs", "--to", "jones", "--type", TYPE, "--action", "subscribe")
    ccs.do("name", "add", "clients", "--from", "ccs", "--to", "jones")
    assert seen(ccs, "jones") == BOTH


@pytest.mark.requirement("4.02")
def test_on_a_network_a_client_belongs_to_the_domain_that_let_it_connect(tmp_path: Path) -> None:
    """Nobody is named: Smith's right to connect comes from the Met, CB's from the CCS."""
    world = numberplate_homes(tmp_path, network=True)
    world.add_key(world.ccs, "Smith")
    now = datetime.now(UTC)
    assert deliver_plan(maia.open(world.met).home, TYPE_NAME, as_="Smith", commits=(), at=now).subscriptions
    with pytest.raises(DeniedError, match="NOT_LOCAL"):
        deliver_plan(maia.open(world.ccs).home, TYPE_NAME, as_="Smith", commits=(), at=now)


@pytest.mark.requirement("4.02")
def test_what_is_explained_is_what_is_served(tmp_path: Path) -> None:
    """Smith's right to the type stands, and nobody let him connect: he gets nothing, and no door says otherwise."""
    now = datetime.now(UTC)
    for name, without in (("with", ()), ("without", ("Cap3",))):
        world = numberplate_homes(tmp_path / name, network=True, without=without)
        domain = maia.open(world.met)
        told = domain.explain(TYPE_NAME, principal="Smith", attribute="numberplate")
        assert bool(told) == (without == ()), told
        if without:
            with pytest.raises(VerificationError) as refused:
                deliver_plan(domain.home, TYPE_NAME, as_="Smith", commits=(), at=now)
            assert f"[{refused.value.code}]" in str(told)
        else:
            assert deliver_plan(domain.home, TYPE_NAME, as_="Smith", commits=(), at=now).subscriptions


@pytest.mark.requirement("4.05")
def test_a_broker_shows_no_client_what_it_may_not_open_itself(met: Command) -> None:
    """Whoever asks whichever broker: what a client sees there is what both may. A broker without a right refuses."""
    narrow, empty = another(met, "narrow"), another(met, "empty")
    narrow.grant("--from", "met", "--to", "broker", "--type", TYPE, "--action", "subscribe", "--attribute", "place")
    publish(met)
    views = {(home.home.name, who): seen(home, who) for home in (met, narrow) for who in ("smith", "jones")
             if (home, who) != (narrow, "jones")}  # fmt: skip
    plate, place = ROW["plate"], ROW["place"]
    assert views == {
        ("met", "smith"): [(plate, place)], ("met", "jones"): [(plate, None)], ("narrow", "smith"): [(None, place)],
    }  # fmt: skip
    assert refusal(narrow, "jones") == "BROKER_LACKS_RIGHT"
    opened = maia.open(narrow.home)
    why = {name: str(opened.explain("Sighting", principal="smith", attribute=name)) for name in ("plate", "place")}
    assert ["BROKER_LACKS_RIGHT" in why[name] for name in ("plate", "place")] == [True, False]
    assert {refusal(empty, who) for who in ("smith", "jones")} == {"BROKER_LACKS_RIGHT"}
    asked = ("explain", "--as", "smith", "--type", TYPE, "--action", "subscribe")
    assert "may not open the type itself" in str(empty.do(*asked)["broker_lacks"])
    assert "broker_lacks" not in narrow.do(*asked)
    empty.grant("--from", "met", "--to", "broker", "--type", "*", "--blanket")
    assert seen(empty) == [(plate, place)]


@pytest.mark.requirement("4.05")
def test_what_a_broker_may_show_ends_with_its_own_right(met: Command) -> None:
    """Smith's right stands; the broker's is revoked, and with it what Smith gets from this broker."""
    home = another(met, "revoked")
    own = home.grant("--from", "met", "--to", "broker", "--type", "*", "--blanket", "--test", "crl:met")
    home.do("statement", "crl", "--from", "met")
    publish(met)
    assert seen(home) == BOTH
    home.do("revoke", own[:12], "--yes")
    assert refusal(home) == "BROKER_LACKS_RIGHT"


@pytest.mark.requirement("4.05")
def test_who_can_lists_whom_the_broker_serves_and_explain_says_the_same(met: Command) -> None:
    """A broker that may open `place` alone: nobody of its clients reads `plate` there, whichever door is asked."""
    narrow = another(met, "narrow")
    narrow.grant("--from", "met", "--to", "broker", "--type", TYPE, "--action", "subscribe", "--attribute", "place")
    for home, listed in ((met, {"plate": {"smith", "jones"}, "place": {"smith"}}), (narrow, {"place": {"smith"}})):
        opened = maia.open(home.home)
        for attribute in ("plate", "place"):
            rows = home.do("who-can", TYPE, attribute)["principals"]
            found = {row["principal"].split(" ")[0] for row in rows} & {"smith", "jones"}
            explained = {
                who
                for who in ("smith", "jones")
                if opened.explain("Sighting", principal=who, attribute=attribute)
            }  # fmt: skip
            assert found == explained == listed.get(attribute, set()), (home.home.name, attribute)
    assert narrow.refused("who-can", TYPE, "plate", "--as", "smith") == (3, "BROKER_LACKS_RIGHT")
    assert narrow.refused("who-can", TYPE, "plate", "--as", "jones") == (3, "BROKER_LACKS_RIGHT")
    assert narrow.do("who-can", TYPE, "place", "--as", "smith")["holds"]
    table = {who.split(" ")[0]: can for who, can in narrow.do("who-can", TYPE)["rights"].items()}
    assert table["smith"]["subscribe"] == ["place"]
    assert "jones" not in table


@pytest.mark.requirement("4.02")
def test_who_can_says_that_it_knows_nothing_of_other_brokers(met: Command) -> None:
    """Eve of the CCS is not served by the Met's broker; she reads by one of her own, and an owner must be told so."""
    met.do("name", "add", "brokers", "--from", "met", "--to", "broker")
    met.do("name", "add", "clients", "--from", "met", "--to", "smith")
    said = "clients of other brokers"
    before = met.do("who-can", TYPE, "plate", "--where", "plate = 'A'")
    met.keys("eve")
    met.grant("--from", "ccs", "--to", "eve", "--type", TYPE, "--action", "subscribe")
    met.do("name", "add", "clients", "--from", "ccs", "--to", "eve")
    after = met.do("who-can", TYPE, "plate", "--where", "plate = 'A'")
    news = {row["principal"].split(" ")[0] for row in after["principals"]} - {
        row["principal"].split(" ")[0] for row in before["principals"]
    }
    assert news == {"eve"}
    assert any(said in line for line in after["assumptions"])
    assert met.do("who-can", TYPE, "plate", "--as", "eve")["holds"]
    assert "NOT_LOCAL" in str(maia.open(met.home).explain("Sighting", principal="eve", attribute="plate"))
