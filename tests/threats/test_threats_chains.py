"""Attacks on chains: mixing, widening, forbidden delegation, stale caches, faked thresholds, names, blow-ups."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations, product

import pytest

import maia.authority.case as case_module
import maia.authority.pool as pool_module
import maia.principals.certificate as certificate_module
from maia.authority import (
    EVERYTHING,
    Action,
    CertificatePool,
    Constraint,
    Decision,
    Presentation,
    Root,
    Verifier,
    VerifierLimits,
    ask,
    ask_network,
    ask_type,
    decide_presentation,
    intersect,
    is_nothing,
    network_right,
    parse_tag,
    permits,
    type_right,
)
from maia.encoding import Sexp, encode
from maia.encoding import parse_advanced as parse_exactly
from maia.errors import EncodingError, ExpiredError, UncheckedError, VerificationError
from maia.principals import (
    Certificate,
    KeyHash,
    KeySigner,
    Kind,
    Name,
    Naming,
    TestKind,
    Threshold,
    check_nonce_proof,
    prove_by_nonce,
    unsafe_seal_certificate,
    unsafe_sign_certificate,
)
from maia.testing import NETWORK_NAME, People, at, book, grant, listing, naming, numberplate_network, online

NOW = at("2026-06-01T09:00:00")
READ: Sexp = (b"read",)
P = People("root", "other", "a", "b", "c", "d", "e", "smith", "jones", "lister")
ROOT = P.root.public_key


def decide(
    evidence: Iterable[Certificate | bytes], who: KeySigner = P.smith, asked: Sexp = READ, **known: object
) -> Decision:
    """Decide with one configured root."""
    verifier = Verifier([Root(subject=ROOT)], **known)
    return verifier.decide(ask(asked), principal=who.public_key, evidence=evidence, at=NOW)


def parse_advanced(text: str) -> Sexp:
    """Read the advanced form, numbers without quotes included."""
    return parse_exactly(re.sub(r"(?<= )([0-9][^ ()]*)", r'"\1"', text))


# ------------------------------------------------------------------ T2


def reachable(owner: str, who: str, name: str, links: list[tuple[str, str, bool, str]]) -> bool:
    """Decide by walking every simple path: the oracle, which shares no code with the verifier."""

    def walk(holder: str, seen: frozenset[str]) -> bool:
        for issuer, subject, delegate, pattern in links:
            if issuer != holder or subject in seen or pattern not in ("*", name):
                continue
            if subject == who or (delegate and walk(subject, seen | {subject})):
                return True
        return False

    return who == owner or walk(owner, frozenset({owner}))


@pytest.mark.threat("T2")
def test_links_of_two_owners_never_add_up():
    """All 1024 subsets of ten certificates of two owners, ten requests each, against an oracle."""
    people = People("o1", "o2", "x", "y", "z")
    links = [
        ("o1", "x", True, "t"), ("o2", "x", True, "u"), ("x", "y", True, "t"), ("x", "y", False, "u"),
        ("y", "z", False, "*"), ("o1", "y", False, "*"), ("o2", "z", True, "*"), ("z", "x", True, "t"),
        ("y", "o1", True, "u"), ("o2", "y", True, "t"),
    ]  # fmt: skip
    certificates = [
        grant(people[issuer], people[subject], type_right(None, name), delegate=delegate)
        for issuer, subject, delegate, name in links
    ]
    requests = [
        (owner, who, name)
        for owner, name in (("o1", "t"), ("o1", "u"), ("o2", "t"), ("o2", "u"))
        for who in ("x", "y", "z")
    ][:10]
    verifier = Verifier()
    different, granted = [], 0
    for size in range(len(links) + 1):
        for chosen in combinations(range(len(links)), size):
            pool = CertificatePool(certificates[index] for index in chosen)
            for owner, who, name in requests:
                asked = ask_type(Action.SUBSCRIBE, people[owner].public_key, name, "1")
                answer = bool(verifier.decide(asked, principal=people[who].public_key, evidence=pool, at=NOW))
                granted += answer
                if answer is not reachable(owner, who, name, [links[index] for index in chosen]):
                    different.append((owner, who, name, chosen))
    assert different == []
    assert granted > 1000


# ------------------------------------------------------------------ T3, T4


@pytest.mark.threat("T3")
def test_the_chain_of_one_is_worth_nothing_to_another():
    """Jones proves Jones's key and shows Smith's chain: no, and not merely a warning."""
    audience, challenge = P.lister.public_key.key_id, b"c" * 16
    evidence = [grant(P.root, P.smith, READ).raw]
    proof = prove_by_nonce(P.jones, audience=audience, challenge=challenge, own_nonce=b"j" * 16)
    shown = Presentation(
        authenticated=check_nonce_proof(proof, audience=audience, challenge=challenge),
        evidence=evidence,
        request=ask(READ),
    )
    denial = decide_presentation(shown, Verifier([Root(subject=ROOT)]), at=NOW)
    assert not denial
    assert isinstance(denial.error, VerificationError)
    with pytest.raises(VerificationError):
        check_nonce_proof(replace(proof, key=P.smith.public_key), audience=audience, challenge=challenge)


@pytest.mark.threat("T4")
@pytest.mark.parametrize("action", [Action.CONNECT, Action.INSTALL, Action.PUBLISH, Action.SUBSCRIBE, Action.MANAGE])
def test_a_broker_lends_nobody_its_authority(action: Action):
    """The broker has the right, its chain is in the evidence, and the client still has none; the denial names it."""
    broker, client = P.a, P.smith
    evidence = [
        grant(P.root, broker, network_right(ROOT, NETWORK_NAME, None)),
        grant(P.root, broker, type_right(ROOT)),
    ]
    asked = ask_network(action, ROOT, NETWORK_NAME) if action.on_network else ask_type(action, ROOT, "T", "1")
    verifier = Verifier()
    assert verifier.decide(asked, principal=broker.public_key, evidence=evidence, at=NOW)
    denial = verifier.decide(asked, principal=client.public_key, evidence=evidence, at=NOW)
    assert not denial
    assert client.public_key.fingerprint in denial.error.message


# ------------------------------------------------------------------ T5, T6


WIDENING = {
    "everything below something": ("(ftp read)", "(*)", "(ftp write)"),
    "a shorter list below a longer": ("(ftp read a)", "(ftp read)", "(ftp read b)"),
    "a set below a member": ("(ftp read)", "(ftp (* set read write))", "(ftp write)"),
    "a shorter prefix": ("(ftp (* prefix /a/b))", "(ftp (* prefix /a))", "(ftp /a/c)"),
    "a wider range": ("(n (* range numeric ge 5 le 9))", "(n (* range numeric ge 0 le 99))", "(n 10)"),
    "no range": ("(n (* range numeric le 9))", "(n)", "(n 10)"),
    "a wider glob": ('(t (* glob "a*b"))', '(t (* glob "*"))', "(t aXc)"),
}


@pytest.mark.threat("T5")
@pytest.mark.parametrize("case", WIDENING.values(), ids=WIDENING.keys())
def test_a_lower_link_never_widens(case: tuple[str, str, str]):
    """Whatever the second link claims, a request that the first does not permit is denied, in either order."""
    upper, lower, request = case
    asked = parse_advanced(request)
    for first, second in ((upper, lower), (lower, upper)):
        chain = [grant(P.root, P.a, parse_advanced(first), delegate=True), grant(P.a, P.smith, parse_advanced(second))]
        assert decide(chain, asked=asked).reason == "NOT_PERMITTED"
    common = intersect(parse_tag(parse_advanced(upper)), parse_tag(parse_advanced(lower)))
    assert not permits(common, asked)


@pytest.mark.threat("T6")
def test_only_the_last_link_may_forbid_delegation():
    """All 32 patterns of D over a chain of five: ttttt and ttttf grant, nothing else."""
    signers = [P.root, P.a, P.b, P.c, P.d, P.smith]
    granted = []
    for pattern in product((True, False), repeat=5):
        links = [
            grant(signers[index], signers[index + 1], READ, delegate=delegate) for index, delegate in enumerate(pattern)
        ]
        if decide(links):
            granted.append("".join("t" if delegate else "f" for delegate in pattern))
    assert granted == ["ttttt", "ttttf"]


# ------------------------------------------------------------------ T7, T8, T9


@pytest.mark.threat("T7")
def test_a_middle_link_that_expires_under_a_warm_cache_denies():
    """Granted and remembered until not-after; one second later no, whatever was cached, and again from cold."""
    chain = [
        grant(P.root, P.a, READ, delegate=True, valid=(0, 1000)),
        grant(P.a, P.b, READ, delegate=True, valid=(0, 100)),
        grant(P.b, P.smith, READ, valid=(0, 1000)),
    ]
    warm = Verifier([Root(subject=ROOT)])
    cold = Verifier([Root(subject=ROOT)])
    for verifier, instants in ((warm, range(90, 104)), (cold, (101,))):
        for when in instants:
            decision = verifier.decide(ask(READ), principal=P.smith.public_key, evidence=chain, at=at(when))
            assert decision.allowed is (when <= 100)
            assert decision.allowed or isinstance(decision.error, ExpiredError)


@pytest.mark.threat("T8")
def test_windows_without_a_common_instant_never_grant():
    """Each link is valid sometime; the chain never is."""
    chain = [
        grant(P.root, P.a, READ, delegate=True, valid=(0, 100)),
        grant(P.a, P.smith, READ, valid=(101, 200)),
    ]
    verifier = Verifier([Root(subject=ROOT)])
    for when in range(-1, 203):
        assert not verifier.decide(ask(READ), principal=P.smith.public_key, evidence=chain, at=at(when))
    named = [
        grant(P.root, Name(ROOT, ("staff",)), READ, delegate=True, valid=(0, 100)),
        naming(P.root, "staff", P.smith, valid=(101, 200)),
    ]
    for when in (0, 100, 101, 200):
        assert not verifier.decide(ask(READ), principal=P.smith.public_key, evidence=named, at=at(when))
        assert verifier.clauses(ask(READ), principal=P.smith.public_key, evidence=named, at=at(when)) == ()


@pytest.mark.threat("T9")
def test_a_result_on_one_path_of_a_diamond_serves_no_other():
    """Root->A->C and Root->B->C: C's certificate was checked under A; that says nothing about B, nor after A fell."""
    tests = [online(TestKind.CRL, P.lister)]
    by_a = grant(P.root, P.a, "(* set (read) (list))", delegate=True, tests=tests)
    by_b = grant(P.root, P.b, (b"write",), delegate=True)
    a_c, b_c = grant(P.a, P.c, "(*)", delegate=True), grant(P.b, P.c, "(*)", delegate=True)
    last = grant(P.c, P.smith, "(*)")
    known = book(listing(TestKind.CRL, P.lister, sequence=1))
    verifier = Verifier([Root(subject=ROOT)], statements=known)

    def allowed(*evidence: Certificate, asked: Sexp = READ) -> bool:
        return bool(verifier.decide(ask(asked), principal=P.smith.public_key, evidence=evidence, at=NOW))

    everything = (by_a, by_b, a_c, b_c, last)
    assert allowed(*everything)
    assert allowed(*everything, asked=(b"write",))
    assert not allowed(by_b, a_c, b_c, last)  # read was never B's to give
    known.accept(listing(TestKind.CRL, P.lister, [by_a], sequence=2))
    assert not allowed(*everything)
    assert allowed(*everything, asked=(b"write",))


# ------------------------------------------------------------------ T10, T11, T12


@pytest.mark.threat("T10")
def test_loops_and_doublings_of_names_end():
    """Self-links, cycles and names that double with each step are answered within a small budget."""
    here = P.root.public_key
    loops = [
        naming(P.root, "self", Name(here, ("self",))),
        naming(P.root, "ping", Name(here, ("pong",))),
        naming(P.root, "pong", Name(here, ("ping",))),
        naming(P.root, "grow", Name(here, ("grow", "grow"))),
        naming(P.root, "me", P.root),
        *(naming(P.root, f"n{index}", Name(here, (f"n{index + 1}", f"n{index + 1}"))) for index in range(30)),
        naming(P.root, "n30", P.root),
    ]
    limits = VerifierLimits(max_steps=1_000)
    for name, member in (("self", False), ("ping", False), ("grow", False), ("n0", True)):
        last = naming(P.root, "friend", Name(here, (name, "friend")))
        evidence = [*loops, last, naming(P.root, "friend", P.smith), grant(P.root, Name(here, (name, "friend")), READ)]
        assert bool(decide(evidence, limits=limits)) is member
    in_the_loop = [*loops, naming(P.root, "ping", P.smith), grant(P.root, Name(here, ("pong",)), READ)]
    assert decide(in_the_loop, limits=limits)


@pytest.mark.threat("T10")
def test_a_budget_that_runs_out_is_a_denial():
    """More steps than allowed: not proven, with a code that says so."""
    many = [naming(P.root, "staff", People(f"m{n}", seed="many")[f"m{n}"]) for n in range(50)]
    many += [grant(People(f"m{n}", seed="many")[f"m{n}"], P.smith, (b"other",)) for n in range(50)]
    evidence = [*many, naming(P.root, "staff", P.smith), grant(P.root, Name(ROOT, ("staff",)), READ)]
    assert decide(evidence)
    tight = VerifierLimits(max_steps=10, octets_per_step=1 << 20)
    assert decide(evidence, limits=tight).reason == "LIMIT_EXCEEDED"


@pytest.mark.threat("T10")
def test_groups_that_lead_back_to_their_issuer_still_end_at_the_principal():
    """A member of the group, or of the threshold, passes the right back to the root; a proof is found and ends."""
    for first, second in ((P.a, P.b), (P.b, P.a)):
        evidence = [
            naming(P.root, "staff", first), naming(P.root, "staff", second),
            grant(first, P.root, READ, delegate=True), grant(second, P.smith, READ),
        ]  # fmt: skip
        by_name = grant(P.root, Name(ROOT, ("staff",)), READ, delegate=True)
        by_threshold = grant(P.root, Threshold(1, (first.public_key, second.public_key)), READ, delegate=True)
        for start in (by_name, by_threshold):
            decision = decide([start, *evidence])
            assert decision.allowed
            assert len(decision.grant.proof.links()) == 2


@pytest.mark.threat("T11")
def test_nobody_names_in_another_namespace():
    """A name of the root signed by Jones has no effect; a name certificate with two parts is refused."""
    forged = unsafe_sign_certificate(Naming(issuer=ROOT, name="staff", subject=P.jones.public_key), P.jones)
    own = naming(P.jones, "staff", P.jones)
    start = grant(P.root, Name(ROOT, ("staff",)), READ)
    for evidence in ([start, forged], [start, own], [start, forged, own]):
        assert not decide(evidence, who=P.jones)
    body: Sexp = (
        b"cert",
        (b"issuer", (b"name", ROOT.to_sexp(), b"staff", b"night")),
        (b"subject", P.jones.public_key.to_sexp()),
    )
    raw = unsafe_seal_certificate(body, ROOT, P.root.sign(Kind.CERTIFICATE, encode(body)))
    pool = CertificatePool([raw])
    assert len(pool) == 0
    assert isinstance(pool.refused[0], EncodingError)
    assert pool.refused[0].code == "CERT_ISSUER"


A_KEY, B_KEY = P.a.public_key, P.b.public_key
FAKES: dict[str, tuple[tuple[object, ...], list[Certificate]]] = {
    "the same key twice": ((A_KEY, A_KEY, B_KEY), []),
    "a key and its hash": ((A_KEY, KeyHash(A_KEY.key_id), B_KEY), []),
    "two names of one key": (
        (Name(ROOT, ("x",)), Name(ROOT, ("y",)), B_KEY),
        [naming(P.root, "x", P.a), naming(P.root, "y", P.a)],
    ),
    "a key and a name of it": ((A_KEY, Name(ROOT, ("x",)), B_KEY), [naming(P.root, "x", P.a)]),
    "a key outside and inside": ((A_KEY, Threshold(1, (A_KEY, B_KEY)), B_KEY), []),
    "a threshold twice": ((Threshold(1, (A_KEY, B_KEY)), Threshold(1, (A_KEY, B_KEY))), []),
}


@pytest.mark.threat("T12")
@pytest.mark.parametrize("case", FAKES.values(), ids=FAKES.keys())
def test_one_key_is_one_member_of_a_threshold(case: tuple[tuple[object, ...], list[Certificate]]):
    """A signs, in whatever guise and however often: one member. A and B sign: two."""
    members, names = case
    start = grant(P.root, Threshold(2, members), READ, delegate=True)
    by_a = [grant(P.a, P.smith, READ), grant(P.a, P.smith, "(*)"), grant(P.a, P.smith, READ, valid=(0, None))]
    denial = decide([start, *names, *by_a, by_a[0]])
    assert denial.reason == "THRESHOLD_NOT_MET"
    assert decide([start, *names, by_a[0], grant(P.b, P.smith, READ)])
    assert (
        Verifier([Root(subject=ROOT)]).clauses(
            ask(READ), principal=P.smith.public_key, evidence=[start, *names, *by_a], at=NOW
        )
        == ()
    )


@pytest.mark.threat("T12")
def test_members_may_meet_in_one_principal():
    """A share is delegated like any right: A and B may both pass theirs through C (C36)."""
    start = grant(P.root, Threshold(2, (A_KEY, B_KEY)), READ, delegate=True)
    links = [grant(P.a, P.c, READ, delegate=True), grant(P.b, P.c, READ, delegate=True), grant(P.c, P.smith, READ)]
    assert decide([start, *links])
    assert decide([start, links[0], links[2]]).reason == "THRESHOLD_NOT_MET"


# ------------------------------------------------------------------ T15, T17, T18


@pytest.mark.threat("T15")
def test_roots_come_from_configuration_only():
    """An ACL in the evidence, a certificate of "Self" and one of the principal itself: ignored, and counted."""
    acl = encode((b"acl", (b"entry", (b"subject", P.jones.public_key.to_sexp()), (b"propagate",), (b"tag", (b"*",)))))
    body: Sexp = (b"cert", (b"issuer", b"Self"), (b"subject", P.jones.public_key.to_sexp()), (b"tag", (b"*",)))
    from_self = unsafe_seal_certificate(body, P.jones.public_key, P.jones.sign(Kind.CERTIFICATE, encode(body)))
    own = grant(P.jones, P.jones, "(*)", delegate=True)
    pool = CertificatePool([acl, from_self, own])
    assert (len(pool), len(pool.refused)) == (1, 2)
    for asked in (ask(READ), ask_type(Action.MANAGE, ROOT, "T", "1"), ask_network(Action.CONNECT, ROOT, "N")):
        for verifier in (Verifier(), Verifier([Root(subject=ROOT)])):
            assert not verifier.decide(asked, principal=P.jones.public_key, evidence=pool, at=NOW)


EMPTY = (
    "(* set)", "(a (* set))", "(* range numeric g 5 l 5)", "(* range numeric g 4 l 5)", "(* range numeric ge 6 le 5)",
    "(* range alpha g b l b)", '(* range alpha l "")', "(* range binary l #00#)", "(* range time g 12:00 l 12:00)",
    "(* range date ge 2027 l 2026)", "(* range decimal g 1.5 l 1.5)", '(* where ("7" (* set)))',
    "(* and (* prefix a) (* prefix b))", '(* and (* glob "a*") (* range alpha ge b))', "(a (* set) (* set b))",
    '(* and (* glob "*a") (* glob "*b"))',
)  # fmt: skip


@pytest.mark.threat("T17")
@pytest.mark.parametrize("text", EMPTY)
def test_an_empty_tag_is_no_authority(text: str):
    """Empty sets and ranges admit nothing: as a right, in a chain below everything, and as what is left."""
    tag = parse_tag(parse_advanced(text))
    assert is_nothing(tag)
    for request in (READ, (b"a",), (b"a", b"b"), b"5", b"", (b"row",), (b"row", (b"7", b"1"))):
        assert not permits(tag, request)
        assert not decide([grant(P.root, P.smith, parse_advanced(text))], asked=request)
    everything = grant(P.root, P.a, "(*)", delegate=True)
    assert not decide([everything, grant(P.a, P.smith, parse_advanced(text))], asked=(b"a",))


EXACT = {
    "beyond a double": ("(* range numeric ge 9007199254740993)", b"9007199254740992", False),
    "beyond a double, inside": ("(* range numeric ge 9007199254740993)", b"9007199254740993", True),
    "forty digits": (f"(* range numeric l 1{'0' * 40})", b"1" + b"0" * 39 + b"1", False),
    "forty nines": (f"(* range numeric l 1{'0' * 40})", b"9" * 40, True),
    "negative": ("(* range numeric l 0)", b"-1", True),
    "negatives by value": ("(* range numeric ge -5)", b"-10", False),
    "numbers are not text": ("(* range numeric le 9)", b"10", False),
    "no float": ("(* range numeric ge 1)", b"2.0", False),
    "no exponent": ("(* range numeric ge 1)", b"1e3", False),
    "no infinity": ("(* range numeric ge 1)", b"inf", False),
    "no hexadecimal": ("(* range numeric ge 1)", b"0x10", False),
    "no space": ("(* range numeric ge 1)", b" 5", False),
    "no other digits": ("(* range numeric ge 1)", "٥".encode(), False),
    "decimals exactly": ("(* range decimal le 0.1)", b"0.1000000000000000000001", False),
    "octets are unsigned": ("(* range binary g #7f#)", b"\x80", True),
    "octets by value, not by length": ("(* range binary g #00ff#)", b"\x01\x00", True),
    "capitals before small letters": ("(* range alpha le Z)", b"a", False),
    "no locale": ("(* range alpha le z)", "é".encode(), False),
    "octet by octet": ('(* range alpha g "a")', b"a\x00", True),
    "an hour out of range": ("(* range time ge 00)", b"24:00", False),
    "a day on no calendar": ("(* range date ge 2026)", b"2026-02-30", False),
}


@pytest.mark.threat("T18")
@pytest.mark.parametrize("case", EXACT.values(), ids=EXACT.keys())
def test_ranges_are_exact(case: tuple[str, bytes, bool]):
    """Numbers of any length, octets unsigned, text octet by octet."""
    text, value, expected = case
    assert permits(parse_tag(parse_advanced(text)), value) is expected
    assert bool(decide([grant(P.root, P.smith, parse_advanced(f"(n {text})"))], asked=(b"n", value))) is expected


# ------------------------------------------------------------------ T20, T50


@pytest.mark.threat("T20")
def test_every_way_to_ask_gives_one_answer():
    """`decide`, `verify` and the clauses agree, with caches cold and warm, in any order of evidence."""
    network = numberplate_network()
    warm = Verifier()
    order = random.Random(20)
    asked = [
        network.connect(),
        network.install(),
        *(network.on_type(action) for action in Action if not action.on_network),
    ]
    later = network.certificates["N1"].body.period.not_after.replace(year=2027)
    answers = []
    for _ in range(2):  # the second time everything is warm
        for who, request, when in product(network.people, asked, (network.now, later)):
            key = network.key(who)
            evidence = list(network.certificates.values())
            given = {"principal": key, "at": when}
            order.shuffle(evidence)
            one = bool(warm.decide(request, evidence=evidence, **given))
            answers.append(one)
            try:
                two = Verifier(signatures=warm.signatures).verify(request, evidence=evidence, **given) is not None
            except VerificationError:
                two = False
            three = bool(Verifier().clauses(request, evidence=evidence, **given))
            assert (one, two, three) == (one, one, one), (who, str(request))
    assert answers[: len(answers) // 2] == answers[len(answers) // 2 :]
    assert 20 < sum(answers) < len(answers)


@pytest.mark.threat("T50")
def test_alternatives_in_every_link_do_not_multiply():
    """Twenty links with two alternatives each are 2^20 sums; the decision looks at each link once."""
    signers = [P.root, *(People(f"s{n}", seed="t50")[f"s{n}"] for n in range(19)), P.smith]
    rights = [f"(* set (x (* prefix a{n})) (x (* prefix a) y{n}))" for n in range(20)]
    chain = [
        grant(signers[n], signers[n + 1], right.replace(f"a{n}", "a"), delegate=True) for n, right in enumerate(rights)
    ]
    verifier = Verifier([Root(subject=ROOT)], limits=VerifierLimits(max_steps=200))
    assert verifier.decide(ask((b"x", b"abc")), principal=P.smith.public_key, evidence=chain, at=NOW)
    assert not verifier.decide(ask((b"x", b"b")), principal=P.smith.public_key, evidence=chain, at=NOW)


@pytest.mark.threat("T50")
def test_a_sum_that_grows_beyond_bounds_is_a_limit_error():
    """Summing the same chain up symbolically stops with a limit, never a long wait, and never a grant."""
    owner = ROOT
    signers = [P.root, *(People(f"s{n}", seed="t50")[f"s{n}"] for n in range(19)), P.smith]

    def right(n: int) -> object:
        return type_right(
            owner, "T", actions=[Action.SUBSCRIBE], constraints=[Constraint(str(n), "!=", 5), Constraint("x", "!=", n)]
        )

    chain = [grant(signers[n], signers[n + 1], right(n), delegate=True) for n in range(20)]
    asked = ask_type(Action.SUBSCRIBE, owner, "T", "1")
    # Constraints on different attributes stay apart, and those on one become its ranges.
    assert Verifier().decide(asked, principal=P.smith.public_key, evidence=chain, at=NOW)
    many = " ".join(f"(* prefix a{n})" for n in range(300))
    wide = [
        grant(P.root, P.a, f"(maia-type (*) T (*) subscribe (* set {many}))", delegate=True),
        grant(P.a, P.smith, f"(maia-type (*) T (*) subscribe (* set {many}))"),
    ]
    denial = Verifier().decide(asked, principal=P.smith.public_key, evidence=wide, at=NOW)
    assert denial.reason == "LIMIT_EXCEEDED"
    with pytest.raises(UncheckedError):
        Verifier().clauses(asked, principal=P.smith.public_key, evidence=wide, at=NOW)


# ------------------------------------------------------------------ T74


def deep(flaw: str) -> tuple[list[bytes], dict[str, object]]:
    """Build a chain of three whose only flaw is below the first link."""
    first = grant(P.root, P.a, READ, delegate=True)
    second = grant(P.a, P.b, READ, delegate=True)
    third = grant(P.b, P.smith, READ)
    known = book(listing(TestKind.CRL, P.lister, [], sequence=1))
    if flaw == "forged signature":
        forged = third.raw[:-3] + bytes((third.raw[-3] ^ 1,)) + third.raw[-2:]
        return [first.raw, second.raw, forged], {}
    if flaw == "expired link":
        third = grant(P.b, P.smith, READ, valid=(0, 1))
    elif flaw == "expired name":
        named = grant(P.a, Name(A_KEY, ("staff",)), READ, delegate=True)
        return [first.raw, named.raw, naming(P.a, "staff", P.b, valid=(0, 1)).raw, third.raw], {}
    elif flaw == "revoked link":
        second = grant(P.a, P.b, READ, delegate=True, tests=[online(TestKind.CRL, P.lister)])
        known = book(listing(TestKind.CRL, P.lister, [second], sequence=1))
    elif flaw == "forbidden delegation":
        second = grant(P.a, P.b, READ)
    elif flaw == "narrower right":
        third = grant(P.b, P.smith, (b"write",))
    elif flaw == "link of another":
        third = grant(P.other, P.smith, READ)
    return [first.raw, second.raw, third.raw], {"statements": known}


def forget(monkeypatch: pytest.MonkeyPatch, check: str) -> None:
    """Remove one check for every link below the root's own, as a careless second code path would."""
    root = ROOT.key_id
    in_force, verify = case_module.Case._check_in_force, certificate_module.verify_signature
    to_tuple = pool_module.five_tuple

    def skipping(*errors: type[Exception]) -> Callable[..., None]:
        def check_in_force(case: object, certificate: object) -> None:
            try:
                in_force(case, certificate)
            except errors:
                if certificate.body.issuer_id == root:
                    raise

        return check_in_force

    def altered(**changes: object) -> Callable[..., object]:
        def five_tuple(certificate: object, *options: object) -> object:
            link = to_tuple(certificate, *options)
            return link if link.issuer == root else replace(link, **changes)

        return five_tuple

    def unsigned(kind: object, body: bytes, signature: bytes, key: object) -> None:
        if key.key_id == root:
            verify(kind, body, signature, key)

    def as_if_linked(certificate: object, *options: object) -> object:
        link = to_tuple(certificate, *options)
        return replace(link, issuer=B_KEY.key_id) if link.issuer == P.other.public_key.key_id else link

    mutations: dict[str, tuple[object, str, object]] = {
        "forged signature": (certificate_module, "verify_signature", unsigned),
        "expired link": (case_module.Case, "_check_in_force", skipping(ExpiredError)),
        "expired name": (case_module.Case, "_check_in_force", skipping(ExpiredError)),
        "revoked link": (case_module.Case, "_check_in_force", skipping(VerificationError)),
        "forbidden delegation": (pool_module, "five_tuple", altered(delegate=True)),
        "narrower right": (pool_module, "five_tuple", altered(tag=EVERYTHING)),
        "link of another": (pool_module, "five_tuple", as_if_linked),
    }
    monkeypatch.setattr(*mutations[check])


CHECKS = (
    "forged signature", "expired link", "expired name", "revoked link", "forbidden delegation", "narrower right",
    "link of another",
)  # fmt: skip


@pytest.mark.threat("T74")
@pytest.mark.parametrize("check", CHECKS)
def test_a_check_left_out_below_the_first_link_would_be_noticed(check: str, monkeypatch: pytest.MonkeyPatch):
    """The flaw is refused; with the check removed for deeper links alone it would be granted, so this test bites."""
    evidence, known = deep(check)
    assert not decide(evidence, **known)
    forget(monkeypatch, check)
    assert decide(evidence, **known), "the case does not depend on the check that it is about"
