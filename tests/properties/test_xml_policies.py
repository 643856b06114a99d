"""XML policies against an oracle of their own: another parser, rows of attributes, and the words of the page."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, time
from xml.etree import ElementTree as ET  # the oracle reads only what this file wrote
from xml.sax.saxutils import quoteattr

from hypothesis import given
from hypothesis import strategies as st

from maia.errors import DeniedError
from maia.policy import Occasion, PolicySyntaxError, compile_condition, xml

NAMES = st.sampled_from(["ann", "bob", "R&D team", "*"])
CAMERAS = st.sampled_from(["A", "B", "*"])
WORDS = st.sampled_from(["C", "D", "E", "*"])
CHANNELS = st.sampled_from(["c1", "c2", "*"])
EFFECTS = st.sampled_from(["allow", "deny"])
CLOCKS = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.sampled_from([0, 1, 30, 59]))
NS = "{urn:maia:policy:1}"


def element(name: str, inner: str = "", **values: str) -> str:
    """Write an element."""
    told = "".join(f" {key.rstrip('_')}={quoteattr(value)}" for key, value in values.items())
    return f"<{name}{told}>{inner}</{name}>"


BETWEEN = st.builds(lambda start, end: element("between", from_=start, to=end), CLOCKS, CLOCKS)
HANDLERS = st.sampled_from(
    ["<greyscale/>", "<half-size/>", "<mirror/>", "<edges/>", '<blur region="whole"/>', '<blur region="lower-half"/>',
     '<frame-rate keep-one-in="2"/>']
)  # fmt: skip
RULES = st.one_of(
    st.builds(
        lambda user, camera, effect, hours: element("access", hours, user=user, camera=camera, effect=effect),
        NAMES, CAMERAS, EFFECTS, st.lists(BETWEEN, max_size=3).map("".join),
    ),
    st.builds(
        lambda user, camera, handlers: element("image", "".join(handlers), user=user, camera=camera),
        NAMES, CAMERAS, st.lists(HANDLERS, min_size=1, max_size=3),
    ),
    st.builds(
        lambda user, word, channel, effect: element("install", user=user, filter=word, channel=channel, effect=effect),
        NAMES, WORDS, CHANNELS, EFFECTS,
    ),
    st.builds(
        lambda channel, words: element("install", channel=channel, only=" ".join(words)),
        CHANNELS, st.lists(st.sampled_from(["C", "D", "E"]), max_size=3),
    ),
)  # fmt: skip
POLICIES = st.lists(RULES, max_size=6).map(
    lambda rules: f'<policies xmlns="urn:maia:policy:1">{"".join(rules)}</policies>'
)
SEEN = st.tuples(st.sampled_from(["ann", "bob", "R&D team", "eve", "*", ""]), st.sampled_from(["A", "B", "F", "*"]))
PUT = st.tuples(
    st.sampled_from(["ann", "bob", "eve"]),
    st.sampled_from(["C", "D", "E", "F", "*"]),
    st.sampled_from(["c1", "c2", "c3"]),
)


def names(rule: ET.Element, attribute: str, value: str) -> bool:
    """Tell whether an attribute of a rule is a value, a star, or left out."""
    return rule.get(attribute, "*") in ("*", value)


def minutes(clock: str) -> int:
    """Count the minutes since midnight."""
    return int(clock[:2]) * 60 + int(clock[3:])


def in_hours(rule: ET.Element, at: str) -> bool:
    """Walk from the first minute of each of a rule's hours, round the clock, to before the last."""
    found = rule.findall(f"{NS}between")
    ends = [(minutes(hours.get("from", "")), minutes(hours.get("to", ""))) for hours in found]
    return not ends or any((minutes(at) - start) % 1440 < ((end - start) % 1440 or 1440) for start, end in ends)


def oracle(texts: list[str], asked: tuple[str, ...], at: str) -> tuple[bool, int]:
    """Say whether a request is allowed, and through how many different handlers."""
    rules = [rule for text in texts for rule in ET.fromstring(text)]  # noqa: S314 - written above
    access = [
        rule for rule in rules if rule.tag == f"{NS}access" and names(rule, "user", asked[0]) and in_hours(rule, at)
    ]
    if len(asked) == 2:
        access = [rule for rule in access if names(rule, "camera", asked[1])]
        effects = {rule.get("effect") for rule in access}
        images = [rule for rule in rules if rule.tag == f"{NS}image" and names(rule, "user", asked[0])]
        forced = {(item.tag, *item.items()) for rule in images if names(rule, "camera", asked[1]) for item in rule}
        return (True, len(forced)) if effects == {"allow"} else (False, 0)
    allowed = any(rule.get("effect") == "allow" for rule in access)
    for rule in rules:
        if rule.tag == f"{NS}install" and names(rule, "user", asked[0]) and names(rule, "channel", asked[2]):
            only, effect = rule.get("only"), rule.get("effect")
            allowed &= (
                asked[1] in only.split()
                if only is not None
                else not (effect == "deny" and names(rule, "filter", asked[1]))
            )
    return allowed, 0


def request(asked: tuple[str, ...]) -> xml.See | xml.Install:
    """Make the request."""
    if len(asked) == 2:
        return xml.See(user=asked[0], camera=asked[1])
    return xml.Install(user=asked[0], filter=asked[1], channel=asked[2])


@given(st.lists(POLICIES, max_size=3), st.one_of(SEEN, PUT), CLOCKS)
def test_decisions_are_those_of_the_oracle(texts: list[str], asked: tuple[str, ...], at: str) -> None:
    """Allowed and through as many handlers as another reading of the page says; the order of policies is irrelevant."""
    policies = [xml.parse_xml(text) for text in texts]
    found = xml.decide(policies, request(asked), at=time.fromisoformat(at))
    assert (found.allowed, len(found.handlers)) == oracle(texts, asked, at)
    turned = xml.decide(policies[::-1], request(asked), at=time.fromisoformat(at))
    assert (turned.allowed, set(turned.handlers)) == (found.allowed, set(found.handlers))


@given(st.lists(POLICIES, max_size=2), POLICIES, st.one_of(SEEN, PUT), CLOCKS)
def test_a_further_denial_never_gives_anything(texts: list[str], more: str, asked: tuple[str, ...], at: str) -> None:
    """Of a policy without an access rule that allows, nothing is gained, whatever it says."""
    policies = [xml.parse_xml(text) for text in texts]
    taking = xml.XmlPolicy(
        rules=tuple(
            rule for rule in xml.parse_xml(more).rules
            if not (isinstance(rule, xml.AccessRule) and rule.effect is xml.Effect.ALLOW)
        )
    )  # fmt: skip
    clock = time.fromisoformat(at)
    before, after = (xml.decide(found, request(asked), at=clock) for found in (policies, [*policies, taking]))
    assert before.allowed or not after.allowed
    if after.allowed:
        assert set(before.handlers) <= set(after.handlers)


@given(st.lists(POLICIES, max_size=2), SEEN, st.integers(0, 1439))
def test_a_capability_holds_exactly_when_the_policies_allow(
    texts: list[str], asked: tuple[str, str], minute: int
) -> None:
    """The condition that is signed is true in the minutes in which the decision is yes, and in no others."""
    policies, wanted = [xml.parse_xml(text) for text in texts], xml.See(user=asked[0], camera=asked[1])
    allowed = bool(xml.decide(policies, wanted, at=time(*divmod(minute, 60))))
    try:
        right = xml.entitle(policies, wanted)
    except DeniedError:
        assert not allowed
        return
    at = datetime(2026, 11, 17, *divmod(minute, 60), tzinfo=UTC)
    occasion = Occasion(action="subscribe", at=at, principal="ab")
    assert allowed == (right.condition is None or compile_condition(right.condition).holds(occasion))


def refusal(text: str | bytes) -> str:
    """Read a text; say with which code and where it is refused, or nothing."""
    try:
        xml.parse_xml(text)
    except PolicySyntaxError as error:
        return f"{error.code} {error.line >= 1 and error.column >= 1}"
    return ""


REFUSALS = {"", *(f"XML_{word} True" for word in ("SYNTAX", "FORBIDDEN", "LIMIT", "ELEMENT", "ATTRIBUTE", "VALUE"))}


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
def test_the_reader_raises_nothing_but_its_own_error(text: str | bytes) -> None:
    """Whatever comes, it is a policy or a `PolicySyntaxError` with a place."""
    assert refusal(text) in REFUSALS


@given(POLICIES, st.data())
def test_one_changed_octet_raises_nothing_but_its_own_error(text: str, data: st.DataObject) -> None:
    """A policy with one octet changed is a policy, or refused with a code and a place."""
    octets = bytearray(text.encode())
    octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    assert refusal(text) == ""
    assert refusal(bytes(octets)) in REFUSALS


CELLS = st.lists(
    st.one_of(
        st.sampled_from(["", "allow", "deny", "greyscale", "blur whole", "frame-rate one in 3"]),
        st.builds("{} {}-{}".format, EFFECTS, CLOCKS, CLOCKS),
    ),
    max_size=3,
).map("; ".join)


@given(st.lists(st.tuples(CELLS, CELLS, st.sampled_from(["", "allow", "deny"])), max_size=3), CLOCKS)
def test_a_matrix_decides_as_its_cells(rows: list[tuple[str, str, str]], at: str) -> None:
    """The policy of a matrix says of every user and camera what the cell says, and of others nothing."""
    out = io.StringIO()
    csv.writer(out).writerows([["user", "A", "B", "filter:C"], *([f"u{n}", *row] for n, row in enumerate(rows))])
    policies = [xml.parse_xml(xml.import_matrix(out.getvalue()))]
    for user, row in enumerate([*rows, ("", "", "allow")]):
        for camera, cell in zip("AB", row, strict=False):
            words = [word for word in cell.split("; ") if word]
            said = [word.partition(" ")[::2] for word in words if word.startswith(("allow", "deny"))]
            held = {effect for effect, span in said if not span or _held(span, at)}
            always = bool(words) and not any(effect == "allow" for effect, _ in said)
            decision = xml.decide(policies, xml.See(user=f"u{user}", camera=camera), at=time.fromisoformat(at))
            assert bool(decision) == ((always or "allow" in held) and "deny" not in held)
        put = xml.decide(policies, xml.Install(user=f"u{user}", filter="C", channel="c"), at=time.fromisoformat(at))
        if put:
            assert row[2] == "allow"


def _held(span: str, at: str) -> bool:
    start, end = (minutes(clock) for clock in span.split("-"))
    return (minutes(at) - start) % 1440 < ((end - start) % 1440 or 1440)


@given(st.text(max_size=120))
def test_a_matrix_makes_a_policy_or_an_error(text: str) -> None:
    """Whatever table comes, what is made of it can be read; else there is an error with a line."""
    try:
        made = xml.import_matrix(text)
    except PolicySyntaxError:
        return
    assert refusal(made) == ""
