"""`maia domain init`: a home with its settings and its broker's key, made once."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from maia.home import Home


def test_init_makes_a_home_that_opens(maia: Any, tmp_path: Path) -> None:
    """Settings and a broker key that only its owner reads; standard error says what to do next."""
    ran = maia("domain", "init", str(tmp_path / "clinic"))
    assert ran.code == 0, ran.err
    home = Home.open(tmp_path / "clinic")
    assert home.config.name == "clinic"
    assert home.broker.public_key.fingerprint in ran.out
    assert stat.S_IMODE((home.path / "keys" / "broker.key").stat().st_mode) == 0o600
    assert "maia grant" in ran.err


def test_init_keeps_name_and_network(maia: Any, tmp_path: Path) -> None:
    """A name with quotes and a network survive the file."""
    ran = maia(
        "domain", "init", str(tmp_path / "met"), "--name", 'Met "Police"', "--network", "pito/UK Police", "--json"
    )
    assert ran.data["name"] == 'Met "Police"'
    config = Home.open(tmp_path / "met").config
    assert (config.name, config.network) == ('Met "Police"', ("pito", "UK Police"))


def test_init_refuses_a_home_that_exists(maia: Any, tmp_path: Path) -> None:
    """Nothing of it changes."""
    assert maia("domain", "init", str(tmp_path / "met")).code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "met").rglob("*") if path.is_file()}
    ran = maia("domain", "init", str(tmp_path / "met"), "--json")
    assert (ran.code, ran.data["error"]) == (2, "HOME_EXISTS")
    assert {path: path.read_bytes() for path in (tmp_path / "met").rglob("*") if path.is_file()} == before


REFUSED = {
    "a network without an owner": (("--network", "Police"), "NETWORK_TEXT"),
    "a network owner that is a path": (("--network", "../x/Police"), "KEY_NAME"),
    "a name of two lines": (("--name", "a\nb"), "DOMAIN_NAME"),
    "a name without end": (("--name", "a" * 300), "DOMAIN_NAME"),
}


@pytest.mark.parametrize("flags, code", REFUSED.values(), ids=REFUSED)
def test_init_refuses(maia: Any, tmp_path: Path, flags: tuple[str, ...], code: str) -> None:
    """What would not survive in the settings makes no home."""
    ran = maia("domain", "init", str(tmp_path / "x"), *flags, "--json")
    assert (ran.code, ran.data["error"]) == (2, code)
    assert not (tmp_path / "x").exists()
