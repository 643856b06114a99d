"""An owner gives everything away for good: the certificate travels with every chain, and nothing takes it back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from maia.testing import Command

NAME = "uk.gov.pito.Numberplate"
TYPE = f"pito/{NAME}"
ASKED = ("--as", "client", "--type", f"{TYPE}@8516", "--action")


class Forces:
    """PITO, which made the Met a second root of its type; the Met passes it on to Kent, and Kent to a client."""

    def __init__(self, home: Command) -> None:
        """Issue the chain by hand, no link of which obeys a list."""
        self.home = home
        home.keys("pito", "met", "kent", "client", "ccs")
        home.do("type", "define", f"{TYPE}@8516", "--attribute", "numberplate:string:3265")
        self.root = self.give("pito", "met", "--delegate")
        self.chain = [self.give("met", "kent", "--delegate"), self.give("kent", "client")]

    def give(self, issuer: str, subject: str, *more: str) -> Path:
        """Issue all rights on the type; give the file."""
        made = self.home.do("grant", "--from", issuer, "--to", subject, "--type", TYPE, "--irrevocable", *more)
        return Path(made["file"])


@pytest.fixture
def forces(maia_command: Command) -> Forces:
    """Give the forces."""
    return Forces(maia_command)


@pytest.mark.requirement("5.15")
def test_a_chain_below_a_root_delegation_holds_only_with_it(forces: Forces, tmp_path: Path) -> None:
    """The client shows three certificates and may do everything; the two below alone start at nobody's root."""
    [shown] = forces.home.do("cert", "show", str(forces.root))["certificates"]
    assert (shown["valid"], shown["tests"]) == ({"not_before": None, "not_after": None}, [])
    assert (shown["delegate"], shown["rights"][0]["attributes"]) == (True, None)
    folders = {"whole": [forces.root, *forces.chain], "below": forces.chain, "gap": [forces.root, forces.chain[1]]}
    for name, files in folders.items():
        (tmp_path / name).mkdir()
        for file in files:
            shutil.copy(file, tmp_path / name)
    for action in ("publish", "subscribe", "manage", "addAttribute", "extend"):
        answers = {name: forces.home("verify", str(tmp_path / name), *ASKED, action, "--json") for name in folders}
        assert {name: ran.code for name, ran in answers.items()} == {"whole": 0, "below": 4, "gap": 4}, action
        assert answers["below"].data["error"] == "WRONG_ROOT"
    proof = tmp_path / "client.proof"
    forces.home.do("prove", *ASKED, "subscribe", "--out", str(proof))
    assert forces.home("verify", str(proof)).code == 0
    whole = proof.read_bytes()
    assert forces.root.read_bytes() in whole, "the proof carries it"


@pytest.mark.requirement("5.15")
def test_nobody_revokes_a_root_delegation_and_the_owner_keeps_its_power(forces: Forces) -> None:
    """Revoking it is refused, whoever asks; PITO grants and evolves as before, and what obeys a list is revocable."""
    home = forces.home
    ending = forces.give("pito", "ccs", "--until", "+1d")
    for file in (forces.root, ending):
        for line in ("--yes", "--dry-run"):
            assert home.refused("revoke", str(file), line) == (2, "IRREVOCABLE")
    ending.unlink()
    home("statement", "crl", str(forces.root), "--from", "pito", "--json")
    assert home("explain", *ASKED, "subscribe").code == 0, "a list that names it all the same is one it does not obey"
    for issuer in ("pito", "met"):
        home.keys(f"{issuer}-friend")
        home.grant("--from", issuer, "--to", f"{issuer}-friend", "--type", TYPE, "--action", "subscribe")
        assert home("explain", "--as", f"{issuer}-friend", "--type", f"{TYPE}@8516", "--action", "subscribe").code == 0
    home.do("type", "evolve", f"{TYPE}@8516", "--add", "speed:integer", "--number", "1")
    listed = home.grant("--from", "pito", "--to", "ccs", "--type", TYPE, "--delegate")
    home.do("revoke", listed[:16], "--yes")
    assert home.refused("explain", "--as", "ccs", "--type", f"{TYPE}@8516", "--action", "subscribe")[1] == "REVOKED"
    assert home.refused("grant", "--from", "ccs", "--to", "client", "--type", TYPE)[1] == "ISSUER_LACKS_RIGHT"


@pytest.mark.requirement("5.15")
def test_a_version_below_a_root_delegation_carries_it(forces: Forces, tmp_path: Path) -> None:
    """Kent's version holds PITO->Met and Met->Kent, and verifies where nobody has them; the CCS has nothing to show."""
    home, file = forces.home, tmp_path / "kent.type"
    evolve = ("type", "evolve", f"{TYPE}@8516", "--add", "speed:integer", "--as")
    made = home.do(*evolve, "kent", "--number", "2", "--embed", "--out", str(file))
    ids = [home.do("cert", "show", str(path))["certificates"][0]["id"] for path in (forces.root, forces.chain[0])]
    assert sorted(made["credentials"]) == sorted(ids)
    assert home.refused(*evolve, "ccs", "--number", "3")[0] == 4
    elsewhere = Command(tmp_path / "elsewhere")
    elsewhere.keys("reader")
    elsewhere.do("type", "add", str(file))
    forces.root.unlink()
    assert home.refused(*evolve, "kent", "--number", "3")[0] == 4, "what is not at hand cannot be carried"
