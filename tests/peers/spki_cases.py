"""Reads the public SPKI reduction cases and runs them against the reduction itself.

The cases carry no signatures and use symbolic keys, relative names, and md5 or sha1 key hashes; all of that is turned
into Maia's tuples here and accepted nowhere else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from maia.authority import (
    DEFAULT_VERIFIER_LIMITS,
    EVERYTHING,
    FiveTuple,
    FourTuple,
    Graph,
    NameNode,
    Tag,
    ThresholdNode,
    derive,
    intersect,
    is_nothing,
    parse_tag,
    reach,
    walk,
)
from maia.encoding import Sexp, encode, parse_canonical
from maia.principals import ALWAYS, CertificateId, KeyId, Period

Entry = tuple[KeyId, bool, bytes, str, str]


@dataclass(frozen=True)
class CaseRoot:
    """An ACL entry of a case; stands in for `maia.authority.Root`, whose subjects are real keys."""

    node: object
    tag: Tag
    delegate: bool
    period: Period


@dataclass(frozen=True)
class Case:
    """One reduction case."""

    roots: tuple[CaseRoot, ...]
    links: tuple[FiveTuple, ...]
    namings: tuple[FourTuple, ...]
    keys: frozenset[KeyId]
    tag: Tag
    period: Period
    subject: KeyId | None


class Reader:
    """Turns the expressions of one case into tuples."""

    def __init__(self, expression: Sexp) -> None:
        self.hashes: dict[bytes, KeyId] = {}
        self.keys: set[KeyId] = set()
        self._collect(expression)
        self._collect_hashes(expression)

    def _collect_hashes(self, expression: Sexp) -> None:
        """A key that only its hash names is a principal too."""
        if isinstance(expression, tuple):
            if expression[:1] == (b"hash",):
                self.keys.add(self.node(expression))
            for item in expression:
                self._collect_hashes(item)

    def _collect(self, expression: Sexp) -> None:
        if isinstance(expression, tuple):
            if expression[:1] == (b"public-key",):
                octets = encode(expression)
                identity = KeyId(hashlib.sha256(octets).digest())
                self.keys.add(identity)
                for algorithm in ("md5", "sha1"):
                    self.hashes[hashlib.new(algorithm, octets, usedforsecurity=False).digest()] = identity
            for item in expression:
                self._collect(item)

    def node(self, expression: Sexp, issuer: KeyId | None = None) -> object:
        match expression:
            case (b"public-key", *_):
                return KeyId(hashlib.sha256(encode(expression)).digest())
            case (b"hash", _, bytes() as digest):
                return self.hashes.get(digest) or KeyId(hashlib.sha256(digest).digest())
            case (b"name", tuple() as base, *parts):
                return NameNode(self.node(base), tuple(part.decode() for part in parts))
            case (b"name", *parts):
                assert issuer is not None
                return NameNode(issuer, tuple(part.decode() for part in parts))
            case (b"k-of-n", k, n, *members):
                assert number(n) == len(members)
                return ThresholdNode(number(k), tuple(self.node(member, issuer) for member in members))
        raise AssertionError(expression)


def number(octets: bytes) -> int:
    """Thresholds are written as digits in some cases and as one octet in others."""
    return int(octets) if octets.isdigit() else int.from_bytes(octets, "big")


def instant(text: bytes) -> datetime:
    """Read an instant with an optional fraction; what is left out is the earliest."""
    whole, _, fraction = text.decode().partition(".")
    digits = [int(part) for part in whole.replace("_", "-").replace(":", "-").split("-")]
    digits += [1, 1, 1, 0, 0, 0][len(digits) :]
    return datetime(*digits, int(fraction.ljust(6, "0")), tzinfo=UTC)


def period(fields: Iterable[Sexp]) -> Period:
    """Read the fields of a validity."""
    start = end = None
    for field in fields:
        match field:
            case (b"not-before", bytes() as text):
                start = instant(text)
            case (b"not-after", bytes() as text):
                end = instant(text)
            case bytes() as text:
                start = end = instant(text)
            case _:
                raise AssertionError(field)
    return Period(start, end)


def fields(expression: Iterable[Sexp]) -> dict[bytes, tuple[Sexp, ...]]:
    """Index the lists of an expression by their first word."""
    return {item[0]: item[1:] for item in expression if isinstance(item, tuple)}


def validity(found: dict[bytes, tuple[Sexp, ...]]) -> Period:
    """Read the validity of a certificate or an entry, in either spelling."""
    inner = list(found.get(b"valid", ()))
    inner += [(name, *found[name]) for name in (b"not-before", b"not-after") if name in found]
    return period(inner)


def read_case(data: bytes) -> Case:
    """Read one input."""
    expression = parse_canonical(data.strip(b"\n\r "))
    reader = Reader(expression)
    top = fields(expression[1:])
    roots = []
    for entry in top.get(b"acl", ()):
        found = fields(entry[1:])
        roots.append(
            CaseRoot(
                reader.node(found[b"subject"][0]),
                parse_tag(found[b"tag"][0]) if b"tag" in found else EVERYTHING,
                b"propagate" in found,
                validity(found),
            )
        )
    links, namings = [], []
    for index, item in enumerate(top.get(b"sequence", ())):
        if item[0] != b"cert":
            continue
        found = fields(item[1:])
        issuer = reader.node(found[b"issuer"][0])
        base = issuer.base if isinstance(issuer, NameNode) else issuer
        subject = reader.node(found[b"subject"][0], base)
        source = CertificateId(b"%04d" % index)
        if isinstance(issuer, NameNode):
            assert len(issuer.parts) == 1
            namings.append(FourTuple(issuer.base, issuer.parts[0], subject, validity(found), source))
        else:
            tag = parse_tag(found[b"tag"][0]) if b"tag" in found else EVERYTHING
            links.append(FiveTuple(issuer, subject, b"propagate" in found, tag, validity(found), (), source))
    subject = reader.node(top[b"subject"][0]) if b"subject" in top else None
    tag = parse_tag(top[b"tag"][0]) if b"tag" in top else EVERYTHING
    wanted = period(top[b"valid"]) if b"valid" in top else ALWAYS
    return Case(tuple(roots), tuple(links), tuple(namings), frozenset(reader.keys), tag, wanted, subject)


def read_acl(data: bytes) -> set[Entry]:
    """Read one expected output."""
    expression = parse_canonical(data.strip(b"\n\r "))
    reader = Reader(expression)
    out = set()
    for entry in expression[1:]:
        found = fields(entry[1:])
        tag = parse_tag(found[b"tag"][0]) if b"tag" in found else EVERYTHING
        out.add(entry_of(reader.node(found[b"subject"][0]), b"propagate" in found, tag, validity(found)))
    return out


def entry_of(key: KeyId, delegate: bool, tag: Tag, valid: Period) -> Entry:
    """Bring an entry into a form that compares."""
    return (key, delegate, encode(tag.to_sexp()), str(valid.not_before), str(valid.not_after))


def prove(case: Case) -> set[Entry]:
    """Compute the ACL that the certificates prove, restricted to what the case asks."""
    by_issuer: dict[KeyId, list[FiveTuple]] = {}
    for link in case.links:
        by_issuer.setdefault(link.issuer, []).append(link)
    by_name: dict[tuple[KeyId, str], list[FourTuple]] = {}
    for naming in case.namings:
        by_name.setdefault((naming.issuer, naming.name), []).append(naming)
    out = set()
    for key in [case.subject] if case.subject is not None else case.keys:
        for root in case.roots:
            graph = Graph(by_issuer, by_name, lambda _: True, DEFAULT_VERIFIER_LIMITS)
            found = reach(graph, [root], key, lambda link: not is_nothing(intersect(link.tag, case.tag)))
            for right in derive(graph, [root], found, case.tag):
                valid = right.period.intersect(case.period)
                for naming in [n for held in walk(right.proof.tree) for n in held.namings]:
                    valid = valid and valid.intersect(naming.period)
                if valid is not None:
                    out.add(entry_of(key, right.delegate, right.tag, valid))
    return out


def shuffled(case: Case, order) -> Case:
    """Put certificates and entries into another order."""
    links, namings, roots = list(case.links), list(case.namings), list(case.roots)
    for items in (links, namings, roots):
        order.shuffle(items)
    return replace(case, links=tuple(links), namings=tuple(namings), roots=tuple(roots))
