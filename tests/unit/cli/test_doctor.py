"""`maia doctor`: what is there, what is missing, and what is wrong."""

from __future__ import annotations

import re
import tomllib

import pytest

from maia.cli.doctor import findings as doctor


def findings(ran):
    """Index the findings by name."""
    return {item["name"]: item for item in ran.data["findings"]}


def test_a_sound_home_is_ok(maia):
    """Python and the packages are there; sealed keys that are closed to others are in order."""
    maia("key", "new", "met", MAIA_PASSPHRASE="secret")
    found = findings(maia("doctor", "--json"))
    assert found["Python"]["status"] == "ok"
    assert all(found[name]["status"] == "ok" for name in doctor._PACKAGES)
    assert found["home"] == {"name": "home", "status": "ok", "detail": "1 private key, closed to others"}
    assert "ok" in maia("doctor").out


def test_open_key_files_are_a_problem(maia):
    """A private key that others may read fails the check, with the command that mends it."""
    maia.keys("met", "smith")
    path = maia.home / "keys" / "met.key"
    path.chmod(0o640)
    ran = maia("doctor", "--json")
    assert ran.code == 1
    assert findings(ran)["met.key"]["status"] == "problem"
    assert findings(ran)["met.key"]["hint"] == f"chmod 600 {path}"
    assert findings(ran)["smith.key"] == {
        "name": "smith.key", "status": "warning", "detail": "not sealed by a passphrase",
    }  # fmt: skip
    assert "home" not in findings(ran)


def test_missing_things_are_warnings(maia, monkeypatch):
    """Without Java, sexp-conv and keys Maia still works; the hint says how to get them."""
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    ran = maia("doctor", "--json", JAVA_HOME=None)
    assert ran.code == 0
    found = findings(ran)
    assert {found[name]["status"] for name in ("Java", "sexp-conv", "home")} == {"warning"}
    assert "openjdk-17" in found["Java"]["hint"]
    assert "nettle-bin" in found["sexp-conv"]["hint"]
    assert "maia key new" in found["home"]["hint"]


def test_java_home_is_looked_at(maia, tmp_path):
    """A JAVA_HOME without java is said; one with java is used."""
    assert "holds no java" in findings(maia("doctor", "--json", JAVA_HOME=str(tmp_path)))["Java"]["detail"]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    assert findings(maia("doctor", "--json", JAVA_HOME=str(tmp_path)))["Java"]["status"] == "ok"


def test_what_cannot_be_read_is_reported(police):
    """Files that are no certificates and lost public keys are warnings, a damaged book of statements is a problem."""
    (police.home / "certificates" / "junk.cert").write_bytes(b"junk")
    (police.home / "statements").write_bytes(b"junk")
    (police.home / "keys" / "mb.pub").unlink()
    ran = police("doctor", "--json")
    assert ran.code == 1
    found = [(item["name"], item["status"], item["detail"]) for item in ran.data["findings"]]
    assert ("certificates", "warning", "1 file is no certificate") in found
    assert ("mb.key", "warning", "its public key is missing") in found
    assert [status for name, status, _ in found if name == "statements"] == ["problem"]


def test_an_old_python_and_a_missing_package_are_problems(monkeypatch):
    """What Maia cannot run without is a problem."""
    monkeypatch.setattr(doctor, "_OLDEST", (99, 0))
    monkeypatch.setattr(doctor, "_PACKAGES", ("no-such-package",))
    assert doctor._python().status == "problem"
    [finding] = doctor._packages()
    assert (finding.status, finding.hint) == ("problem", "install the package `no-such-package`")


@pytest.mark.parametrize("name", doctor._PACKAGES)
def test_the_packages_are_those_of_the_project(repository, name):
    """Every package that is looked for is a dependency."""
    assert f'"{name}>=' in (repository / "pyproject.toml").read_text("utf-8")


def test_no_dependency_is_forgotten(repository):
    """Every dependency is looked for."""
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["project"]
    assert sorted(re.split(r"[<>=]", text)[0] for text in project["dependencies"]) == sorted(doctor._PACKAGES)
