"""The laws of evolution: what operations do, what the diff says, and which rights allow it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from maia.errors import MalformedError
from maia.events import (
    Add,
    Attribute,
    AttributeType,
    EventType,
    FoldedUids,
    LiveClient,
    ManageAction,
    Operation,
    Remove,
    Rename,
    Retype,
    TypeName,
    Uid,
    Version,
    diff,
    evolve,
    lint,
    parse_event_type,
    sign_event_type,
)
from maia.principals import KeySigner

PITO = KeySigner(bytes([1]) * 32)
NAMES = ["a", "b", "c", "d", "e"]
kinds = st.sampled_from(AttributeType)
names = st.sampled_from(NAMES)
operations = st.lists(
    st.builds(Add, names, kinds)
    | st.builds(Remove, names)
    | st.builds(Rename, names, names)
    | st.builds(Retype, names, kinds),
    max_size=6,
)


@st.composite
def definitions(draw: st.DrawFn, number: str = "0", uids: range = range(8)) -> EventType:
    """Draw a version whose uids have a type of their own, so that any two versions agree."""
    chosen = draw(st.lists(st.sampled_from(uids), unique=True, max_size=5))
    order = draw(st.permutations(NAMES))
    attributes = tuple(
        Attribute(name=name, uid=Uid(str(uid)), type=list(AttributeType)[uid])
        for name, uid in zip(order, chosen, strict=False)
    )
    return EventType(name=TypeName(PITO.public_key, "x.T", Version(number)), attributes=attributes)


def _apply(base: EventType, steps: list[Operation]) -> EventType | None:
    try:
        return evolve(sign_event_type(base, PITO), steps, uids=FoldedUids(octets=4))
    except MalformedError:
        return None


def _model(base: EventType, steps: list[Operation]) -> dict[str, tuple[str | None, AttributeType]] | None:
    """Do the same with a dictionary; a fresh uid is ``None``, an impossible step is no result."""
    state: dict[str, tuple[str | None, AttributeType]] = {a.name: (a.uid, a.type) for a in base.attributes}
    for step in steps:
        if isinstance(step, Add):
            if step.name in state:
                return None
            state[step.name] = (None, step.type)
            continue
        if step.name not in state:
            return None
        if isinstance(step, Remove):
            del state[step.name]
        elif isinstance(step, Rename):
            if step.new_name in state:
                return None
            state[step.new_name] = state.pop(step.name)
        else:
            if state[step.name][1] is step.type:
                return None
            state[step.name] = (None, step.type)
    return state


@given(definitions(), operations)
def test_operations_do_what_their_words_say(base: EventType, steps: list[Operation]) -> None:
    """A rename keeps the uid, a retype or an addition gets a new one, and impossible steps are refused."""
    new, expected = _apply(base, steps), _model(base, steps)
    assert (new is None) is (expected is None)
    if new is None or expected is None:
        return
    found = {a.name: (a.uid if a.uid in base.uids else None, a.type) for a in new.attributes}
    assert found == expected
    assert new.name.version != base.name.version
    assert parse_event_type(sign_event_type(new, PITO).raw).definition == new


@given(definitions(), operations)
def test_diff_applied_to_the_old_version_gives_the_new_one(base: EventType, steps: list[Operation]) -> None:
    """Nothing changes that the diff does not say, and what it says is enough to redo the change."""
    new = _apply(base, steps)
    assume(new is not None)
    assert new is not None
    rest = set(base.attributes)
    for change in diff(base, new).changes:
        rest -= {change.before} if change.before else set()
    for change in diff(base, new).changes:
        rest |= {change.after} if change.after else set()
    assert rest == set(new.attributes)


@given(definitions("1"), definitions("2"))
def test_parts_of_manage_allow_exactly_their_changes(old: EventType, new: EventType) -> None:
    """A set of parts allows a change when an oracle by uid says so."""
    before, after = {a.uid: a for a in old.attributes}, {a.uid: a for a in new.attributes}
    gone = {a.name: a for uid, a in before.items() if uid not in after}
    come = {a.name: a for uid, a in after.items() if uid not in before}
    retyped = {name for name in gone.keys() & come.keys() if gone[name].type is not come[name].type}
    renamed = [uid for uid in before.keys() & after.keys() if before[uid].name != after[uid].name]
    taken = [
        item
        for uid, item in after.items()
        if uid in before
        and item != before[uid]
        and any(other.name == item.name for other in old.attributes if other.uid != uid)
    ]
    found = diff(old, new)
    for mask in range(16):
        held = frozenset(action for n, action in enumerate(ManageAction) if mask >> n & 1)
        add, remove, rename, retype = (action in held for action in ManageAction)
        allowed = (
            bool(held)
            and (remove or not gone.keys() - retyped)
            and (add or not come.keys() - retyped)
            and (rename or not renamed)
            and (retype or (add and remove) or not retyped)
            and not taken  # that needs the whole right
        )
        assert (found.beyond(held) == ()) is allowed


@given(definitions("1"), definitions("2"), st.lists(st.sets(st.integers(0, 7)), max_size=4))
def test_lint_names_exactly_those_who_lose_something(old: EventType, new: EventType, used: list[set[int]]) -> None:
    """A client is named for an attribute when it uses the uid and the new version does not have it."""
    clients = [LiveClient(name=str(n), uids=frozenset(Uid(str(u)) for u in uids)) for n, uids in enumerate(used)]
    found = {finding.attribute.uid: finding.clients for finding in lint(old, new, clients)}
    expected = {
        uid: tuple(client.name for client in clients if uid in (client.uids or ())) for uid in old.uids - new.uids
    }
    assert found == {uid: names for uid, names in expected.items() if names}


@given(definitions(), st.lists(operations, min_size=2, max_size=4))
def test_managers_who_work_apart_never_clash(base: EventType, branches: list[list[Operation]]) -> None:
    """Versions drawn side by side from one base have distinct numbers, and no new uid stands in two of them."""
    made = [new for steps in branches if (new := _apply(base, steps)) is not None]
    assert len({new.name.version for new in made}) == len(made)
    fresh = [uid for new in made for uid in new.uids - base.uids]
    assert len(set(fresh)) == len(fresh)
    for new in made:
        assert diff(base, replace(new, previous=None)).changes == diff(base, new).changes
