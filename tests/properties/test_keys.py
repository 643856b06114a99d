"""Keys and signatures: the curve computed from its equation, and pyca/cryptography, as independent oracles."""

from __future__ import annotations

import pickle
import random

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st
from strategies_trust import SIGNERS, expressions

from maia.encoding import Sexp, encode, parse_canonical
from maia.errors import KeyFormatError, MaiaError, SignatureError
from maia.principals import (
    KeyHash,
    KeySigner,
    Kind,
    Name,
    Principal,
    PublicKey,
    Threshold,
    parse_principal,
    parse_subject,
    principal_id,
    verify_signature,
)

# The curve of RFC 8032, from its equation: -x² + y² = 1 + d x² y² over the integers modulo P.
P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
ORDER = 2**252 + 27742317777372353535851937790883648493
Point = tuple[int, int]
ZERO: Point = (0, 1)


def add(a: Point, b: Point) -> Point:
    """Add two points by the complete addition law."""
    t = D * a[0] * b[0] * a[1] * b[1] % P
    x = (a[0] * b[1] + b[0] * a[1]) * pow(1 + t, -1, P) % P
    y = (a[1] * b[1] + a[0] * b[0]) * pow(1 - t, -1, P) % P
    return x, y


def times(n: int, point: Point) -> Point:
    """Add a point to itself n times."""
    result = ZERO
    while n:
        if n & 1:
            result = add(result, point)
        point = add(point, point)
        n >>= 1
    return result


def root_of(square: int) -> int | None:
    """Take a square root modulo P, if there is one."""
    root = pow(square, (P + 3) // 8, P)
    if root * root % P != square % P:
        root = root * pow(2, (P - 1) // 4, P) % P
    return root if root * root % P == square % P else None


def point_with(y: int) -> Point | None:
    """Find a point with this y coordinate, if the curve has one."""
    x = root_of((y * y - 1) * pow(D * y * y + 1, -1, P) % P)
    return None if x is None else (x, y % P)


def small_order_points() -> set[Point]:
    """Compute the eight points whose order divides 8: what is left of any point after ORDER additions."""
    found: set[Point] = set()
    y = 2
    while len(found) < 8:
        point = point_with(y)
        if point is not None:
            found |= {times(n, times(ORDER, point)) for n in range(8)}
        y += 1
    return found


def encodings(point: Point) -> set[bytes]:
    """List every 32-octet spelling of a point: both signs where x is 0, and y + P where that still fits."""
    signs = (0, 1) if point[0] == 0 else (point[0] & 1,)
    return {(y | sign << 255).to_bytes(32, "little") for y in (point[1], point[1] + P) if y < 2**255 for sign in signs}


def test_no_spelling_of_a_small_order_point_is_a_key() -> None:
    """All encodings, canonical and not, of all eight points are refused."""
    points = small_order_points()
    assert len(points) == 8
    spellings = set().union(*map(encodings, points))
    assert len(spellings) == 14
    for raw in spellings:
        with pytest.raises(KeyFormatError) as caught:
            PublicKey(raw)
        assert caught.value.code in {"KEY_SMALL_ORDER", "KEY_NOT_CANONICAL"}


@pytest.mark.parametrize("y", range(P, 2**255), ids=lambda y: f"P+{y - P}")
def test_no_non_canonical_y_is_a_key(y: int) -> None:
    """Each of the nineteen coordinates at or above the prime is refused, with either sign."""
    for sign in (0, 1):
        with pytest.raises(KeyFormatError, match="KEY_NOT_CANONICAL"):
            PublicKey((y | sign << 255).to_bytes(32, "little"))


def test_import_accepts_exactly_the_main_subgroup() -> None:
    """PublicKey.import_ agrees with the curve's own arithmetic on random and on mixed-order points."""
    rng = random.Random(7)
    torsion = sorted(small_order_points())
    accepted = 0
    for _ in range(30):
        point = point_with(rng.randrange(2, P))
        if point is None:
            continue
        for candidate in (times(8, point), add(times(8, point), rng.choice(torsion)), point):
            raw = (candidate[1] | (candidate[0] & 1) << 255).to_bytes(32, "little")
            in_subgroup = times(ORDER, candidate) == ZERO and candidate != ZERO
            assert _imports(raw) is in_subgroup
            accepted += in_subgroup
    assert accepted > 10


def _imports(raw: bytes) -> bool:
    try:
        PublicKey.import_(raw)
    except KeyFormatError:
        return False
    return True


def test_import_refuses_what_is_off_the_curve() -> None:
    """A y coordinate without an x is no key to a person who brings it in."""
    y = next(y for y in range(2, 100) if point_with(y) is None)
    with pytest.raises(KeyFormatError, match="KEY_NOT_ON_CURVE"):
        PublicKey.import_(y.to_bytes(32, "little"))


@given(st.binary(max_size=40))
def test_any_octets_are_a_key_or_refused(raw: bytes) -> None:
    """Only KeyFormatError comes out; a key keeps its octets, its identity and its place in a set."""
    try:
        key = PublicKey(raw)
    except KeyFormatError:
        return
    assert len(raw) == 32
    assert parse_principal(parse_canonical(encode(key.to_sexp()))) == key
    assert pickle.loads(pickle.dumps(key)) == key  # noqa: S301 - our own bytes
    assert principal_id(KeyHash(key.key_id)) == principal_id(key)


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=60), st.sampled_from(Kind))
def test_signatures_are_plain_ed25519_over_prefix_and_body(seed: bytes, body: bytes, kind: Kind) -> None:
    """Another library makes the same signature and accepts ours: nothing is hidden but the prefix."""
    signer = KeySigner(seed)
    other = Ed25519PrivateKey.from_private_bytes(seed)
    assert other.public_key().public_bytes_raw() == signer.public_key.raw
    signature = signer.sign(kind, body)
    assert other.sign(kind.value + body) == signature
    verify_signature(kind, body, signature, signer.public_key)
    Ed25519PublicKey.from_public_bytes(signer.public_key.raw).verify(signature, kind.value + body)


@given(st.binary(max_size=30), st.binary(max_size=64), st.sampled_from(Kind), st.sampled_from(Kind))
def test_one_kind_never_verifies_as_another(body: bytes, noise: bytes, kind: Kind, other: Kind) -> None:
    """A signature over one kind of object is worth nothing for another kind, body, key, or as random octets."""
    signature = SIGNERS[0].sign(kind, body)
    if other is not kind:
        with pytest.raises(SignatureError):
            verify_signature(other, body, signature, SIGNERS[0].public_key)
    for wrong in (noise, signature[:-1], signature + b"\x00"):
        with pytest.raises(SignatureError):
            verify_signature(kind, body, wrong, SIGNERS[0].public_key)
    with pytest.raises(SignatureError):
        verify_signature(kind, body + b"\x00", signature, SIGNERS[0].public_key)
    with pytest.raises(SignatureError):
        verify_signature(kind, body, signature, SIGNERS[1].public_key)


def test_kinds_are_prefix_free() -> None:
    """No kind's prefix starts another's, so no body can make one kind look like another."""
    prefixes = [kind.value for kind in Kind]
    assert not any(a != b and b.startswith(a) for a in prefixes for b in prefixes)


def test_the_malleable_second_signature_is_refused() -> None:
    """S + L satisfies the equation of Ed25519 too; whoever accepts it gives one message two signatures."""
    signature = SIGNERS[0].sign(Kind.CERTIFICATE, b"body")
    s = int.from_bytes(signature[32:], "little") + ORDER
    assert s < 2**256
    with pytest.raises(SignatureError):
        verify_signature(Kind.CERTIFICATE, b"body", signature[:32] + s.to_bytes(32, "little"), SIGNERS[0].public_key)
    with pytest.raises(InvalidSignature):
        Ed25519PublicKey.from_public_bytes(SIGNERS[0].public_key.raw).verify(
            signature[:32] + s.to_bytes(32, "little"), Kind.CERTIFICATE.value + b"body"
        )


keys = st.sampled_from([signer.public_key for signer in SIGNERS])
bases = st.one_of(keys, keys.map(lambda key: KeyHash(key.key_id)))
names = st.builds(
    Name,
    bases,
    st.lists(
        st.text(st.characters(codec="utf-8", min_codepoint=32), min_size=1, max_size=8), min_size=1, max_size=4
    ).map(tuple),
)
principals = st.recursive(
    st.one_of(bases, names),
    lambda inner: st.lists(inner, min_size=1, max_size=4).flatmap(
        lambda members: st.integers(1, len(members)).map(lambda k: Threshold(k, tuple(members)))
    ),
    max_leaves=8,
)


@given(principals)
def test_principals_are_read_as_they_were_written(principal: Principal) -> None:
    """Keys, hashes, names and nested thresholds survive their canonical bytes."""
    assert parse_principal(parse_canonical(encode(principal.to_sexp()))) == principal
    assert parse_subject(principal.to_sexp()) == principal
    assert len(principal_id(principal)) == 32


heads = st.sampled_from([b"public-key", b"hash", b"name", b"k-of-n", b"object-hash", b"ed25519", b"sha256", b"1", b"2"])


@given(
    st.one_of(
        expressions,
        st.recursive(
            st.one_of(heads, st.binary(min_size=32, max_size=32)), lambda inner: st.lists(inner, max_size=5).map(tuple)
        ),
    )
)
def test_any_expression_is_a_principal_or_refused(expression: Sexp) -> None:
    """parse_principal raises nothing but Maia's errors; what it reads it writes back alike."""
    try:
        principal = parse_principal(expression)
    except MaiaError:
        return
    assert principal.to_sexp() == expression
