"""A home reads what the log says before each plan; what is wrong there stops the plan, and nothing else is needed."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.authority import Action, type_right
from maia.domain import Domain, DomainPlans, own_lanes
from maia.domain.key_times import retention
from maia.domain.memberships import GroupKeys
from maia.encryption import EpochId, KeyGroupId, Keyring, KeyTree, rekey_topic
from maia.errors import UnavailableError, VerificationError
from maia.events import EncryptionMode, EventType, Options, TypeId, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.kernel import milliseconds
from maia.log import LogDirectory, NoticeKind, NoticeLog
from maia.principals import KeySigner
from maia.testing import deliver_plan, follow, grant, publish_plan

GROUP = KeyGroupId(TypeId(bytes([7]) * 32), b"3265")
MANAGER = KeySigner(b"m" * 32)
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with a type of its own, whose broker follows a key group."""
    made = Home.create(tmp_path / "home", HomeConfig(name="home"))
    owner = made.new_key("owner")
    event_type = EventType(
        name=TypeName(owner.public_key, "Report", parse_version("1")),
        attributes=(attribute("text", "1", "string"),),
        options=Options(encryption=EncryptionMode.ATTRIBUTE),
    )
    made.types.put(sign_event_type(event_type, owner).raw, at=NOW)
    made.certificates.add(grant(owner, made.broker, type_right(owner.public_key, actions=[Action.SUBSCRIBE])))
    GroupKeys(made).join(GROUP, b"i" * 32, manager=MANAGER.public_key)
    return made


def announce(home: Home, at: datetime = NOW) -> NoticeLog:
    """Place the home's broker in an epoch, and say so in its log."""
    notices = NoticeLog(home.log_path, own=home.path.parent / "manager")
    message = KeyTree(GROUP).rekey(
        MANAGER, start=milliseconds(at), joins={home.broker.public_key.key_id: b"i" * 32}
    )  # fmt: skip
    notices.say(NoticeKind.REKEY, MANAGER, rekey_topic(GROUP), message.to_bytes(), at=at)
    return notices


def damage(home: Home) -> None:
    """Flip a bit of a notice."""
    (path,) = home.log_path.glob("_lanes/rekey/*/*/*.record")
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)


PLANS = {
    "publish": lambda home: publish_plan(home, "Report", as_="owner", version=None, publication="p", at=NOW),
    "deliver": lambda home: deliver_plan(home, "Report", as_="owner", commits=(), at=NOW),
    "job": lambda home: DomainPlans(Domain.open(str(home.path)), ())((), NOW),
}


@pytest.mark.parametrize("make", PLANS.values(), ids=PLANS.keys())
def test_every_plan_begins_with_what_the_log_says(home: Home, make: object) -> None:
    """Publishing, delivering, and a delivery job: each has taken the key when its plan is made."""
    announce(home)
    assert home.keyring().epochs(GROUP) == ()
    with suppress(VerificationError):  # the broker may not publish, which is found after the log was read
        make(home)  # type: ignore[operator]
    assert home.keyring().epochs(GROUP) == (milliseconds(NOW),)


@pytest.mark.parametrize("make", PLANS.values(), ids=PLANS.keys())
def test_damage_in_the_log_stops_no_plan_and_brings_no_key(home: Home, make: object) -> None:
    """What is not as its owner signed it is as if it were not there; when it is whole again it counts."""
    notices = announce(home)
    damage(home)
    with suppress(VerificationError):
        make(home)  # type: ignore[operator]
    assert home.keyring().epochs(GROUP) == ()
    assert GroupKeys(home).heard()[GROUP].alarm == "LANE_GAP"
    notices.writer(NoticeKind.REKEY, MANAGER, rekey_topic(GROUP)).reassert(at=NOW)
    with suppress(VerificationError):
        make(home)  # type: ignore[operator]
    assert home.keyring().epochs(GROUP) == (milliseconds(NOW),)
    assert GroupKeys(home).heard()[GROUP].alarm == ""


def test_following_returns_the_instant_to_plan_with(home: Home) -> None:
    """Time does not run back: a little earlier counts as the latest, and much earlier is refused."""
    assert follow(home, at=NOW) == NOW
    assert follow(home, at=NOW - timedelta(seconds=1)) == NOW
    with pytest.raises(UnavailableError, match="CLOCK_BACK"):
        follow(home, at=NOW - timedelta(hours=1))


def test_following_needs_no_database_where_nothing_is_managed(home: Home) -> None:
    """A broker that only follows groups loads no database driver."""
    announce(home)
    code = (
        "import sys; from datetime import datetime, UTC; from maia.home import Home; from maia.testing import follow; "
        f"follow(Home.open({str(home.path)!r}), at=datetime.now(UTC)); print('sqlalchemy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert home.keyring().epochs(GROUP) == (milliseconds(NOW),)


def test_settings_of_keys_survive_the_file(tmp_path: Path) -> None:
    """`history` and `keyed_types` are written when they are set, and read back."""
    plain = HomeConfig(name="plain")
    assert "history" not in plain.to_toml()
    assert HomeConfig.from_toml(plain.to_toml().encode()) == plain
    chosen = HomeConfig(name="chosen", history=0, keyed_types="a.Network", network=("pito", "UKPN"))
    assert HomeConfig.from_toml(chosen.to_toml().encode()) == chosen
    assert Home.create(tmp_path / "chosen", chosen).config.history == 0


RETENTION = {
    "grace alone, when history is 0": (0, 30),
    "history, when it is longer": (3600, 3600),
    "grace, when history is shorter": (10, 30),
}


@pytest.mark.parametrize(("history", "expected"), RETENTION.values(), ids=RETENTION.keys())
def test_keys_are_kept_for_history_and_at_least_for_grace(tmp_path: Path, history: int, expected: int) -> None:
    """What a home says in its settings."""
    home = Home.create(tmp_path / "home", HomeConfig(name="home", grace=30, history=history))
    assert retention(home, at=NOW).grace == expected * 1000


def test_keys_are_kept_as_long_as_the_log_needs_them(tmp_path: Path) -> None:
    """Without a bound: the age of the oldest commit, and the grace; with an empty log the grace alone."""
    home = Home.create(tmp_path / "home", HomeConfig(name="home", grace=30))
    assert retention(home, at=NOW).grace == 30_000
    log, written = LogDirectory(home.log_path), NOW
    own_lanes(home, log).commit("p", "00" * 32, (), evidence="00" * 32, at=written)
    kept = retention(home, at=written + timedelta(hours=1)).grace
    assert 3_629_000 <= kept <= 3_631_000
    ring = Keyring()
    for hour in (0, 1, 2):
        ring.add(GROUP, EpochId(milliseconds(written + timedelta(hours=hour - 2))), bytes([hour]) * 32)
    tolerance = retention(home, at=written)
    assert ring.retire(now=milliseconds(written) + 1, tolerance=tolerance) == 1
