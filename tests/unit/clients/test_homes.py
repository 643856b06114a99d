"""A home's settings name its services; what they name is where its clients go, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from maia.clients import connect_access_control, connect_key_manager
from maia.errors import MalformedError, NotFoundError
from maia.home import Home, HomeConfig
from maia.principals import KeySigner

MET = KeySigner(b"m" * 32)


def home(root: Path, url: str | None) -> Home:
    """Make a home with both services at one address."""
    made = Home.create(root / "met", HomeConfig(name="met", domain="Met", key_manager=url, access_control=url))
    for name in ("Met", "key-manager"):
        made.add_public_key(name, MET.public_key)
    made.new_key("smith")
    return made


@pytest.mark.parametrize(
    "url",
    [
        "https://keys.example",
        "http://127.0.0.1:8471",
        "http://localhost:8471",
        "https://10.2.3.4:8471",
        "https://[fd12::1]",
    ],
)
def test_a_home_connects_where_its_settings_say(url: str, tmp_path: Path) -> None:
    """A public name, this machine, or a private address that is written out."""
    made = home(tmp_path, url)
    with connect_key_manager(made) as manager, connect_access_control(made, as_="smith") as acs:
        assert repr(manager) == f"KeyManagerClient({url}, {MET.public_key.fingerprint})"
        assert url in repr(acs)


@pytest.mark.parametrize("url", ["http://10.2.3.4", "ftp://keys.example", "https://2130706433", "http://keys.example"])
def test_what_is_no_address_of_a_service_is_refused(url: str, tmp_path: Path) -> None:
    """Settings open no other door."""
    with pytest.raises(MalformedError):
        connect_key_manager(home(tmp_path, url))


def test_a_home_without_the_service_or_its_key_says_so(tmp_path: Path) -> None:
    """Nothing is guessed."""
    with pytest.raises(NotFoundError) as refusal:
        connect_key_manager(home(tmp_path, None))
    assert refusal.value.code == "NO_SERVICE"
    bare = Home.create(tmp_path / "bare", HomeConfig(name="bare", key_manager="https://keys.example"))
    with pytest.raises(NotFoundError):
        connect_key_manager(bare)
