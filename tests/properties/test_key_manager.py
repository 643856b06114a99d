"""A key manager over random lives of its brokers: who holds a key was authorised when it began, and all inside do."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent.parent / "unit" / "key_manager"))

from key_manager_world import PLATE, Broker, World, definition, moment, ms

from maia.errors import MaiaError

NAMES = ("ann", "bob", "cat", "dan")
windows = st.tuples(st.none() | st.integers(-20, 15), st.none() | st.integers(16, 60))
deeds = st.tuples(
    st.sampled_from(("join", "join", "leave", "revoke", "refresh", "tick", "restart")),
    st.sampled_from(NAMES),
    st.integers(1, 4),
)


@cache
def template() -> Path:
    """Give a database with empty tables, made once."""
    root = Path(tempfile.mkdtemp(prefix="maia-keys-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    made = World(root)
    made.engine.dispose()
    return root / "store.db"


class Life:
    """Brokers with windows of authority, and what became of them."""

    def __init__(self, root: Path, spans: list[tuple[int | None, int | None]]) -> None:
        shutil.copy(template(), root / "store.db")
        self.world = World(root, migrate=False)
        self.world.versions = [definition(uids=("1",))]
        self.world.open()
        self.spans = dict(zip(NAMES, spans, strict=True))
        self.brokers = {
            name: Broker(name, valid=(None if a is None else moment(a), None if b is None else moment(b)))
            for name, (a, b) in self.spans.items()
        }
        self.revoked: dict[str, float] = {}

    def authorised(self, name: str, instant: int) -> bool:
        """Tell by the windows alone whether a broker was authorised at an instant."""
        start, stop = self.spans[name]
        return (
            (start is None or ms(start) <= instant)
            and (stop is None or instant <= ms(stop))
            and (name not in self.revoked or instant < ms(self.revoked[name]))
        )

    def do(self, what: str, name: str, second: int) -> None:
        """Do one thing; what is refused changes nothing."""
        broker, manager, at = self.brokers[name], self.world.manager, moment(second)
        if what == "restart":
            self.world.manager = self.world.make()
            self.world.manager.start(at=at)
        elif what == "refresh":
            manager.refresh(PLATE, at=at)
        elif what == "tick":
            manager.tick(at=at)
        elif what == "revoke":
            manager.revoke([broker.chain[1].certificate_id], at=at)
            self.revoked.setdefault(name, second)
        else:
            try:
                broker.join(manager, at) if what == "join" else broker.leave(manager, at)
            except MaiaError:
                assert what == "leave" or not self.authorised(name, ms(second))

    def check(self) -> None:
        """Compare what brokers hold with what they may."""
        self.world.follow(*self.brokers.values())
        starts = {record.number: record.start for record in self.world.manager.history(PLATE)}
        assert self.world.published() == sorted(starts) == list(range(1, len(starts) + 1))
        keys: dict[int, bytes] = {}
        for name, broker in self.brokers.items():
            for number, key in broker.keys.get(PLATE, {}).items():
                assert keys.setdefault(number, key.key) == key.key, "one key for each epoch"
                assert key.start == starts[number]
                assert self.authorised(name, key.start), (name, number)
        picture = self.world.manager.picture(PLATE)
        inside = {member for _, member in picture.places} | set(picture.waiting)
        for broker in self.brokers.values():
            assert (broker.newest() == max(starts, default=0)) >= (broker.name in inside)


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(windows, min_size=4, max_size=4), st.lists(deeds, min_size=4, max_size=16))
def test_whoever_holds_a_key_was_authorised_when_it_began(
    spans: list[tuple[int | None, int | None]], life: list[tuple[str, str, int]]
) -> None:
    """Joins, leaves, revocations, ends, refreshes and restarts in any order."""
    with tempfile.TemporaryDirectory() as folder:
        lives = Life(Path(folder), spans)
        second = 0
        for what, name, later in life:
            second += later
            lives.do(what, name, second)
        lives.check()
        lives.world.manager.tick(at=moment(second + 100))
        lives.check()
        lives.world.engine.dispose()
