"""Attacks through conditions and through the addresses that certificates and configuration name."""

from __future__ import annotations

import socket
import tracemalloc

import pytest

from maia.errors import DeniedError, MaiaError
from maia.home.providers import FetchLimits, fetch
from maia.policy import ConditionSyntaxError, Occasion, Predicate, compile_condition
from maia.testing import at

NOON = Occasion(action="publish", at=at("2026-07-01T12:00"), principal="ab", event_type="t")
EVENT = {"1": 5, "2": "a" * 26 + "!", "3": "A" * 60_000}
FACTS = (Predicate("on_duty", 1),)

ESCAPES = [
    # imports, builtins, attributes of objects
    '__import__("os").system("id") == 0', "import os", 'eval("1") == 1', 'exec("x")', 'open("/etc/passwd").size() > 0',
    "().__class__.__bases__ == []", "principal.__class__ == 1", "event.__class__ != null", "now.__init__ == 1",
    "principal.constructor('return 1')() == 1", "lambda: true", "[x for x in [1]] == [1]", "globals() == {}",
    "getattr(principal, 'x') == 1", "${jndi:ldap://x}", "{{ 7 * 7 }} == 49", "`id` == ''", "true; true", "true # x",
    # loops
    "[1, 2].all(x, x > 0)", "[1].map(x, x)[0] == 1", "[1].exists(x, x == 1)", "[1].filter(x, true) == [1]",
    "event.exists(k, event[k] == 5)", "['a'].all(a, ['a'].all(b, ['a'].all(c, true)))", "while (true) {}",
    # messages, maps, types, fields
    "google.protobuf.Struct{} == null", "google.protobuf.Any{} != null", "{'a': 1}['a'] == 1", "type(1) == int",
    "event.speed == 5", "has(event.speed)", "dyn(1) == 1", "now.getFullYear() == 2026", "optional.of(1).hasValue()",
    # other inputs than the declared ones
    "event[principal] == 1", "event == event", "size(event) == 3", "env['HOME'] == ''", "on_duty",
    # size
    "true" + " && true" * 1_000_000, "(" * 100_000 + "true" + ")" * 100_000, "'" + "a" * 10**6 + "' == ''",
    "[" * 500 + "]" * 500 + " == []", "!" * 2_000 + "true" + "\x00",
]  # fmt: skip


@pytest.mark.threat("T55")
def test_escapes_are_refused_before_anything_is_evaluated():
    """Loops, imports, attribute access, foreign inputs, a million nodes: refused when read, with a code and a place."""
    assert len(ESCAPES) >= 40
    for source in ESCAPES:
        with pytest.raises(ConditionSyntaxError) as caught:
            compile_condition(source, facts=FACTS)
        assert caught.value.code.startswith("CONDITION_"), source[:40]


COSTLY = {
    "concatenation": "(" + " + ".join(["event['3']"] * 20) + ").size() > 0",
    "division by zero": "1 / (event['1'] - 5) > 0",
    "a pattern that blows up elsewhere": "event['2'].matches('(a+)+$')",
    "a pattern over much text": "event['3'].matches('(A|AA)*B')",
    "nested repetition": "event['3'].matches('((A{1,30}){1,30}){1,30}B')",
    "overflow": "event['1'] * 9223372036854775807 > 0",
}


@pytest.mark.threat("T55")
@pytest.mark.parametrize("source", COSTLY.values(), ids=COSTLY.keys())
def test_an_evaluation_stays_within_its_bounds(source: str):
    """What is legal and tries to cost much ends, in bounded memory, and anything but true denies."""
    condition = compile_condition(source)
    tracemalloc.start()
    answers = {condition.holds(NOON, event=EVENT) for _ in range(3)}
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()
    assert len(answers) == 1


BAD_PATTERNS = [
    *(f"{piece}$" for piece in ("(a+)+", "(a*)*b", "(a|aa)+", "(a|a?)+c", "(.*a){20}", "(a+){10}", "(x+x+)+y")),
    *(f"^{piece}[0-9]$" for piece in ("(a+)+", "(a*)*b", "(([a-z])+.)+[A-Z]", "(a|a)*", "(a|b|ab)*c", r"(\w+\s?)*")),
    *("(" * n + "a" + "+)" * n + "$" for n in range(2, 22)),
    *(f"(a?){{{n}}}a{{{n}}}" for n in range(10, 28)),
]  # fmt: skip


@pytest.mark.threat("T54")
def test_patterns_that_blow_up_elsewhere_end_here():
    """Fifty patterns against a text that makes backtracking explode: each has its answer, a no or a match."""
    assert len(BAD_PATTERNS) >= 50
    text = {"2": "a" * 5_000 + "!"}
    matched = [p for p in BAD_PATTERNS if compile_condition(f"event['2'].matches(r'{p}')").holds(NOON, event=text)]
    assert matched == [p for p in BAD_PATTERNS if p.startswith("(a?)")]


# -- addresses


def canary_urls(port: int) -> list[str]:
    """Addresses that all mean a door of this machine or of its house."""
    return [
        f"http://127.0.0.1:{port}/", f"https://127.0.0.1:{port}/", f"http://localhost:{port}/",
        f"https://LOCALHOST:{port}/", f"http://2130706433:{port}/", f"http://0x7f000001:{port}/",
        f"http://0177.0.0.1:{port}/", f"http://127.1:{port}/", f"http://0:{port}/", f"http://0.0.0.0:{port}/",
        f"http://[::1]:{port}/", f"https://[::ffff:127.0.0.1]:{port}/", f"https://[::ffff:7f00:1]:{port}/",
        f"https://[::]:{port}/", "http://169.254.169.254/latest/meta-data/", "https://169.254.169.254/",
        "http://[fd00:ec2::254]/", "https://10.0.0.1/", "https://192.168.0.1/", "file:///etc/passwd",
        f"gopher://127.0.0.1:{port}/x", f"https://allowed.example@127.0.0.1:{port}/",
        f"https://allowed.example:x@127.0.0.1:{port}/", f"https://127.0.0.1:{port}#@allowed.example/",
        f"https://127.0.0.1:{port}\\@allowed.example/", f"//127.0.0.1:{port}/", f"https:/127.0.0.1:{port}/",
        f"https://allowed.example\r\nHost: 127.0.0.1:{port}/", f"https://allowed.example.:{port}/",
    ]  # fmt: skip


REBOUND = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",  # noqa: S104
    "169.254.169.254", "10.1.2.3", "100.64.0.1", "fe80::1%eth0", "fd00::1", "224.0.0.1", "255.255.255.255",
]  # fmt: skip


@pytest.mark.threat("T58")
def test_no_address_reaches_this_house():
    """URLs and names that resolve to private space: all refused, and the canary hears nothing."""
    limits = FetchLimits(hosts=frozenset({"allowed.example"}), seconds=2)
    with socket.create_server(("127.0.0.1", 0)) as canary:
        canary.settimeout(0.2)
        port = canary.getsockname()[1]
        urls = canary_urls(port)
        assert len(urls) >= 25
        for url in urls:
            with pytest.raises(DeniedError) as caught:
                fetch(url, limits, resolve=lambda host, port: ["127.0.0.1"])
            assert caught.value.code == "FETCH_REFUSED"
        here = FetchLimits(hosts=frozenset({f"allowed.example:{port}"}), seconds=2)
        for address in REBOUND:
            for answer in ([address], ["93.184.215.14", address]):
                with pytest.raises(DeniedError) as caught:
                    fetch(f"https://allowed.example:{port}/", here, resolve=lambda host, port, found=answer: found)
                assert caught.value.code == "FETCH_REFUSED"
        with pytest.raises(TimeoutError):
            canary.accept()


@pytest.mark.threat("T58")
def test_a_name_is_resolved_once_and_pinned():
    """A resolver that answers differently the second time is not asked a second time; loopback is not the world."""
    asked = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["93.184.215.14"] if len(asked) == 1 else ["127.0.0.1"]

    # Allowing this machine allows nothing else: the public address is refused before a connection is made.
    limits = FetchLimits(hosts=frozenset({"allowed.example"}), seconds=2, loopback=True)
    with pytest.raises(MaiaError):
        fetch("https://allowed.example/", limits, resolve=resolve)
    assert asked == ["allowed.example"]
