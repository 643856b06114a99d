"""Evidence, names, thresholds and tuples: what the search works on."""

from __future__ import annotations

import pytest

from maia.authority import (
    CertificatePool,
    Graph,
    Held,
    Joined,
    NameClosure,
    NameNode,
    ObjectNode,
    Root,
    ThresholdNode,
    Verifier,
    VerifierLimits,
    ask,
    derive,
    describe_node,
    find_proof,
    five_tuple,
    four_tuple,
    parse_statement,
    parse_tag,
    principal_node,
    reach,
    reduce_chain,
    walk,
)
from maia.authority.budget import Budget
from maia.authority.thresholds import choose_members, met_slots
from maia.encoding import Sexp
from maia.errors import ChainError, UncheckedError, UsageError
from maia.principals import KeyId, Name, ObjectHash, TestKind, Threshold, parse_certificate
from maia.testing import People, at, book, grant, listing, naming

P = People("root", "a", "b", "c", "d", "smith")
ROOT, A, B, C, SMITH = (P[name].public_key for name in ("root", "a", "b", "c", "smith"))
READ: Sexp = (b"read",)
NOW = at(1000)


def test_a_pool_counts_what_it_reads_and_leaves_out_what_it_cannot():
    """Bytes, unverified and verified certificates; doubles count once; malformed ones are kept apart."""
    first, second = grant(P.root, P.a, READ), naming(P.root, "n", P.a)
    pool = CertificatePool([first.raw, parse_certificate(first.raw), first, second, b"junk", second.raw])
    assert len(pool) == 2
    assert [item.certificate_id for item in pool] == [first.certificate_id, second.certificate_id]
    assert first.certificate_id in pool
    assert b"junk" not in pool
    assert [error.code for error in pool.refused] == ["SEXP_NOT_CANONICAL"]
    assert pool.get(first.certificate_id).body == first.body
    assert len(pool.spellings(first.certificate_id)) == 1


def test_a_tag_that_cannot_be_read_leaves_its_certificate_out():
    """The certificate is signed and well-formed; what it grants is not understood, so it grants nothing."""
    pool = CertificatePool([grant(P.root, P.a, (b"*", b"unknown"))])
    assert (len(pool), pool.refused[0].code) == (0, "TAG_FORM")


def test_a_pool_has_a_limit():
    """Too much evidence, or too large a certificate, is not looked at."""
    certificates = [grant(P.root, P.a, (b"%d" % n,)) for n in range(4)]
    limits = VerifierLimits(max_certificates=3)
    with pytest.raises(UncheckedError, match="LIMIT_EXCEEDED"):
        CertificatePool(certificates, limits=limits)
    denial = Verifier([Root(subject=ROOT)], limits=limits).decide(
        ask((b"0",)), principal=A, evidence=iter(certificates), at=NOW
    )
    assert denial.reason == "LIMIT_EXCEEDED"
    small = CertificatePool(certificates, limits=VerifierLimits(max_certificate_bytes=100))
    assert {error.code for error in small.refused} == {"SEXP_TOO_LARGE"}


def test_evidence_without_end_is_not_read_to_its_end():
    """A generator that never stops is cut at the limit."""

    def endless() -> object:
        while True:
            yield b"junk"

    verifier = Verifier([Root(subject=ROOT)], limits=VerifierLimits(max_certificates=10))
    assert verifier.decide(ask(READ), principal=A, evidence=endless(), at=NOW).reason == "LIMIT_EXCEEDED"


@pytest.mark.parametrize("name", ["max_certificates", "max_chain_length", "max_memory"])
def test_limits_that_allow_nothing_are_refused(name: str):
    """A limit is at least one."""
    with pytest.raises(UsageError):
        VerifierLimits(**{name: 0})


def test_looking_names_up_does_not_change_the_pool():
    """Names nobody defined leave no trace."""
    pool = CertificatePool([grant(P.root, Name(ROOT, ("ghost", "of", "none")), READ)])
    Verifier([Root(subject=ROOT)]).decide(ask(READ), principal=A, evidence=pool, at=NOW)
    assert dict(pool.namings) == {}


# ------------------------------------------------------------------ names


def closure(*certificates: object, steps: int = 1000) -> NameClosure:
    """Close over name certificates."""
    grouped: dict[tuple[object, str], list[object]] = {}
    for found in map(four_tuple, certificates):
        grouped.setdefault((found.issuer, found.name), []).append(found)
    return NameClosure(grouped, Budget(steps=steps, signatures=1))


def test_support_lists_the_certificates_that_give_a_meaning():
    """Each once, also when a name leads through the same certificate twice."""
    me = naming(P.root, "me", P.root)
    friend = naming(P.root, "friend", Name(ROOT, ("me", "me", "pal")))
    pal = naming(P.root, "pal", P.a)
    other = naming(P.root, "pal", P.b)
    names = closure(me, friend, pal, other)
    asked = NameNode(ROOT.key_id, ("friend",))
    assert names.resolve(asked) == {A.key_id, B.key_id}
    support = {naming.source for naming in names.support(asked, A.key_id)}
    assert support == {item.certificate_id for item in (me, friend, pal)}
    linked = NameNode(ROOT.key_id, ("me", "pal"))
    assert names.resolve(linked) == names.resolve(linked) == {A.key_id, B.key_id}
    assert {naming.source for naming in names.support(linked, B.key_id)} == {me.certificate_id, other.certificate_id}


def test_a_key_that_is_reached_on_two_ways_counts_once():
    """Two friends with one friend in common."""
    names = closure(
        naming(P.root, "x", P.a), naming(P.root, "x", P.b), naming(P.a, "y", P.c), naming(P.b, "y", P.c),
        naming(P.c, "z", P.d),
    )  # fmt: skip
    asked = NameNode(ROOT.key_id, ("x", "y", "z"))
    assert names.resolve(asked) == {P.d.public_key.key_id}
    assert len(names.support(asked, P.d.public_key.key_id)) == 3


def test_a_closure_has_a_budget():
    """Resolving beyond it is no answer."""
    chain = [naming(P.root, f"n{n}", Name(ROOT, (f"n{n + 1}",))) for n in range(20)]
    with pytest.raises(UncheckedError, match="LIMIT_EXCEEDED"):
        closure(*chain, steps=5).resolve(NameNode(ROOT.key_id, ("n0",)))


# ------------------------------------------------------------------ thresholds


def key(letter: str) -> KeyId:
    """Make a short identity."""
    return KeyId(letter.encode())


def everybody(leaf: object) -> frozenset[KeyId]:
    """Be willing as every key."""
    return frozenset({leaf})


CHOICES = {
    "enough": (ThresholdNode(2, (key("a"), key("b"), key("c"))), "ab"),
    "the same twice": (ThresholdNode(2, (key("a"), key("a"), key("a"))), None),
    "nested": (ThresholdNode(2, (ThresholdNode(1, (key("a"), key("b"))), key("a"))), "ba"),
    "nested without room": (ThresholdNode(2, (ThresholdNode(2, (key("a"), key("b"))), key("a"))), None),
}


@pytest.mark.parametrize("case", CHOICES.values(), ids=CHOICES.keys())
def test_members_are_chosen_without_using_a_key_twice(case: tuple[ThresholdNode, str | None]):
    """Choosing looks back: the first key that fits a slot may be needed elsewhere."""
    node, expected = case
    choice = choose_members(node, everybody, Budget(steps=1000, signatures=1))
    assert (None if choice is None else b"".join(found for _, found in choice).decode()) == expected


def test_choosing_members_has_a_budget():
    """Many names of few keys are a hard puzzle; it is given up, not guessed."""
    names = tuple(NameNode(key("r"), (f"n{n}",)) for n in range(12))
    few = frozenset(key(letter) for letter in "abcdefghijk")
    with pytest.raises(UncheckedError, match="LIMIT_EXCEEDED"):
        choose_members(ThresholdNode(12, names), lambda _: few, Budget(steps=5000, signatures=1))


def test_met_slots_count_distinct_keys_and_whole_groups():
    """For explanations: how many of the members are ready."""
    inner = ThresholdNode(2, (key("b"), key("c")))
    node = ThresholdNode(3, (key("a"), key("a"), inner))
    assert met_slots(node, everybody) == 2
    assert met_slots(node, lambda leaf: frozenset({leaf} - {key("c")})) == 1
    assert met_slots(node, lambda _: frozenset()) == 0


# ------------------------------------------------------------------ tuples and proofs


def test_tuples_keep_to_their_kind():
    """A name holds no right, a right defines no name."""
    with pytest.raises(UsageError):
        five_tuple(naming(P.root, "n", P.a))
    with pytest.raises(UsageError):
        four_tuple(grant(P.root, P.a, READ))


def test_a_chain_needs_links_and_something_to_pass():
    """Nothing reduces to nothing."""
    with pytest.raises(UsageError):
        reduce_chain([])
    with pytest.raises(ChainError, match="EMPTY_AUTHORITY"):
        reduce_chain([five_tuple(grant(P.root, P.a, (b"*", b"set")))])


def test_nodes_are_described_for_people():
    """Keys by fingerprint, names with their parts, groups with their members, objects by digest."""
    assert describe_node(A.key_id) == A.fingerprint
    group = principal_node(Threshold(1, (A, Name(B, ("x", "y")))))
    assert describe_node(group) == f"1 of 2 ({A.fingerprint}, {B.fingerprint}: x y)"
    assert describe_node(ObjectNode(b"\xab" * 32)) == "object " + "ab" * 8


def search(evidence: list[object], who: object = SMITH, roots: tuple[Root, ...] = (Root(subject=ROOT),)) -> tuple:
    """Search without a verifier: no signatures, no periods."""
    pool = CertificatePool(evidence)
    graph = Graph(pool.links, pool.namings, lambda _: True, VerifierLimits())
    return graph, roots, reach(graph, roots, who.key_id, lambda link: True)


def test_a_proof_lists_its_certificates_once_root_first():
    """Also when the branches of a threshold share the rest of their way."""
    start = grant(P.root, Threshold(2, (A, B)), READ, delegate=True)
    links = [grant(P.a, P.c, READ, delegate=True), grant(P.b, P.c, READ, delegate=True), grant(P.c, P.smith, READ)]
    graph, roots, found = search([*links, start])
    proof = find_proof(graph, roots, found)
    assert proof.certificate_ids()[0] == start.certificate_id
    assert len(proof.certificate_ids()) == len(proof.links()) == 4
    assert isinstance(proof.tree, Held)
    assert isinstance(proof.tree.then, Joined)
    graph, roots, found = search([grant(P.root, P.smith, READ)])
    assert find_proof(graph, roots, found).tree.then.then is None


def test_objects_hold_rights_and_never_act():
    """A link to an object leads nowhere, in searches and in sums."""
    graph, roots, found = search([grant(P.root, ObjectHash(bytes(32)), READ, delegate=True)])
    assert find_proof(graph, roots, found) is None
    graph, roots, found = search([grant(P.root, ObjectHash(bytes(32)), READ, delegate=True)], who=ROOT)
    assert [right.proof.links() for right in derive(graph, roots, found, parse_tag(READ))] == [()]


def test_a_sum_ends_where_names_are_never_valid_together():
    """Where nobody checked the periods before, the sum still does."""
    evidence = [
        grant(P.root, Name(ROOT, ("n",)), READ, delegate=True, valid=(0, 10)),
        naming(P.root, "n", P.smith, valid=(11, 20)),
    ]
    graph, roots, found = search(evidence)
    assert find_proof(graph, roots, found) is not None
    assert list(derive(graph, roots, found, parse_tag(READ))) == []
    later = [grant(P.root, P.a, READ, delegate=True, valid=(0, 10)), grant(P.a, P.smith, READ, valid=(11, 20))]
    graph, roots, found = search(later)
    assert list(derive(graph, roots, found, parse_tag(READ))) == []


def test_the_shares_of_a_threshold_are_joined():
    """What is left is what all shares leave: rights, time, conditions; nothing if they have nothing in common."""
    start = grant(P.root, Threshold(2, (A, B)), "(*)", delegate=True)
    share_a = grant(P.a, P.smith, "(* set (read) (write))", valid=(0, 50), delegate=True, conditions=["x", "y"])
    share_b = grant(P.b, P.smith, "(* set (read) (list))", valid=(20, 90), conditions=["y", "z"])
    graph, roots, found = search([start, share_a, share_b])
    [right] = derive(graph, roots, found, parse_tag((b"*",)))
    assert (right.tag, right.delegate, right.conditions) == (parse_tag(READ), False, ("x", "y", "z"))
    assert (right.period.not_before, right.period.not_after) == (at(20), at(50))
    for other in (grant(P.b, P.smith, "(list)"), grant(P.b, P.smith, READ, valid=(60, 90))):
        graph, roots, found = search([start, share_a, other])
        assert list(derive(graph, roots, found, parse_tag((b"*",)))) == []


def test_nested_thresholds_are_summed_up():
    """Every way to meet them is a clause of its own."""
    start = grant(P.root, Threshold(2, (A, Threshold(1, (B, C)))), "(*)", delegate=True)
    shares = [grant(P[name], P.smith, (name.encode(),)) for name in "bc"]
    graph, roots, found = search([start, grant(P.a, P.smith, "(*)"), *shares])
    assert {right.tag for right in derive(graph, roots, found, parse_tag((b"*",)))} == {
        parse_tag((b"b",)),
        parse_tag((b"c",)),
    }


def test_a_principal_may_narrow_its_own_right():
    """Both the right as it came and the narrowed one are found."""
    evidence = [grant(P.root, P.smith, "(*)", delegate=True), grant(P.smith, P.smith, READ)]
    graph, roots, found = search(evidence)
    assert {right.tag for right in derive(graph, roots, found, parse_tag((b"*",)))} == {
        parse_tag((b"*",)),
        parse_tag(READ),
    }


def test_roots_bound_what_they_start():
    """A root without delegation, or for other rights, starts no chain; its own subject still has what it says."""
    evidence = [grant(P.root, P.smith, READ)]
    for root in (Root(subject=ROOT, delegate=False), Root(subject=ROOT, tag=parse_tag((b"write",)))):
        graph, roots, found = search(evidence, roots=(root,))
        assert list(derive(graph, roots, found, parse_tag(READ))) == []
    alone = Root(subject=SMITH, delegate=False)
    graph, roots, found = search([], roots=(alone,))
    [right] = derive(graph, roots, found, parse_tag(READ))
    assert (right.delegate, [held.key for held in walk(right.proof.tree)]) == (False, [SMITH.key_id])


def test_a_phase_is_a_stretch_of_time_in_which_nothing_starts_or_ends():
    """Two instants of one phase see the same certificates valid and the same lists in force."""
    certificates = [
        grant(P.root, P.a, READ, valid=(10, 20)),
        grant(P.root, P.b, READ, valid=(15, None)),
        naming(P.root, "n", P.a, valid=(None, 20)),
    ]
    pool = CertificatePool(certificates)
    known = book(listing(TestKind.CRL, P.c, valid=(12, 18)), listing(TestKind.CRL, P.c, sequence=2, valid=(18, 22)))

    def valid(when: int) -> list[bool]:
        lists = [parse_statement(raw).body.in_force(at(when)) for raw in known.raw_statements()]
        return [item.body.period.contains(at(when)) for item in certificates] + lists

    for when in range(5, 30):
        same = pool.phase(at(when)) == pool.phase(at(when + 1)) and known.phase(at(when)) == known.phase(at(when + 1))
        assert same is (valid(when) == valid(when + 1)), when
    before = pool.phase(at(100))
    pool.add(grant(P.root, P.d, READ, valid=(50, 60)))
    assert pool.phase(at(100)) != before
