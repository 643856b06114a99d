"""Names: which keys a name stands for."""

from __future__ import annotations

from builders import Case, advanced, case, key, naming, signed

from maia.principals import KeyHash, Name, Naming

ABOUT = "SDSI names as a least fixpoint: local and linked names, groups, hashes, loops."


def cases() -> list[Case]:
    """List the cases."""
    alice, bob, carol = key("alice"), key("bob"), key("carol")
    staff = Name(alice, ("staff",))
    loop = [naming("alice", "a", Name(alice, ("b",))), naming("alice", "b", Name(alice, ("a",)))]
    doubled = [naming("alice", "n", Name(alice, ("a",))), naming("alice", "a", "alice"), naming("alice", "a", "bob")]
    by_hash = Naming(issuer=KeyHash(alice.key_id), name="staff", subject=KeyHash(bob.key_id))
    chain = [
        naming("alice", "met", "bob"),
        naming("bob", "brokers", "carol"),
        naming("bob", "brokers", Name(carol, ("deputy",))),
        naming("carol", "deputy", "dave"),
    ]
    return [
        _resolve("a name for one key", [naming("alice", "staff", "bob")], staff, ["bob"]),
        _resolve("a group", [naming("alice", "staff", one) for one in ("bob", "carol")], staff, ["bob", "carol"]),
        _resolve("a key by its hash is the key", [by_hash], staff, ["bob"]),
        _resolve("a linked name, part by part", chain, Name(alice, ("met", "brokers")), ["carol", "dave"]),
        _resolve("a loop with a way out", [*loop, naming("alice", "b", "bob")], Name(alice, ("a",)), ["bob"]),
        _resolve("one certificate that gives two facts", doubled, Name(alice, ("n", "n")), ["alice", "bob"]),
        _resolve("the same certificate twice", [naming("alice", "staff", "bob")] * 2, staff, ["bob"]),
        _resolve("a loop without a way out stands for nobody", loop, Name(alice, ("a",)), []),
        _resolve("a name nobody defined", [], staff, []),
        _resolve("the same word in another's namespace", [naming("bob", "staff", "carol")], staff, []),
        _resolve("a name for itself", [naming("alice", "staff", staff)], staff, []),
        _resolve("a linked name with a missing part", chain[1:], Name(alice, ("met", "brokers")), []),
        _resolve("words differ in case", [naming("alice", "Staff", "bob")], staff, []),
    ]


def _resolve(says: str, bodies: list[Naming], name: Name, keys: list[str]) -> Case:
    given = {"certificates_hex": [signed(body).hex() for body in bodies], "name": advanced(name.to_sexp())}
    return case(
        says, "name.resolve", given, {"key_ids_hex": sorted(key(one).key_id.hex() for one in keys)}, must_fail=not keys
    )
