"""Keys, principals and signatures."""

from __future__ import annotations

import hashlib

from builders import Case, advanced, case, key, signer

from maia.encoding import Sexp, encode
from maia.principals import KeyHash, Kind, Name, Principal, Threshold, fingerprint

ABOUT = "Which octets are keys, which expressions are principals, and which signatures verify."
P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493


def cases() -> list[Case]:
    """List the cases."""
    alice = key("alice")
    accepted = {"key_id_hex": alice.key_id.hex(), "fingerprint": fingerprint(alice.key_id)}
    return [
        case("a key", "key.accept", {"key_hex": alice.raw.hex()}, accepted),
        case("a key brought in by hand", "key.import", {"key_hex": alice.raw.hex()}, accepted),
        *(case(says, "key.accept", {"key_hex": raw.hex()}, {"error": code}) for says, raw, code in bad_keys()),
        case(
            "a point that is not on the curve, brought in by hand",
            "key.import",
            {"key_hex": (7).to_bytes(32, "little").hex()},
            {"error": "KEY_NOT_ON_CURVE"},
        ),
        *(_principal(says, one) for says, one in principals()),
        *(
            case(says, "principal.parse", {"expression": advanced(expression)}, {"error": code})
            for says, expression, code in bad_principals()
        ),
        *signatures(),
    ]


def bad_keys() -> list[tuple[str, bytes, str]]:
    """List octets that are no keys."""
    small = "KEY_SMALL_ORDER"
    order_eight = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
    return [
        ("no octets", b"", "KEY_LENGTH"),
        ("31 octets", bytes(31), "KEY_LENGTH"),
        ("33 octets", key("alice").raw + b"\0", "KEY_LENGTH"),
        ("the neutral point", (1).to_bytes(32, "little"), small),
        ("the neutral point with its sign set", (1 | 1 << 255).to_bytes(32, "little"), small),
        ("the point of order 2", (P - 1).to_bytes(32, "little"), small),
        ("a point of order 4", bytes(32), small),
        ("a point of order 8", order_eight.to_bytes(32, "little"), small),
        ("the neutral point in its other spelling", (P + 1).to_bytes(32, "little"), "KEY_NOT_CANONICAL"),
        ("a coordinate equal to the prime", P.to_bytes(32, "little"), "KEY_NOT_CANONICAL"),
        ("the largest coordinate", b"\xff" * 32, "KEY_NOT_CANONICAL"),
    ]


def principals() -> list[tuple[str, Principal]]:
    """List principals."""
    alice, bob = key("alice"), key("bob")
    return [
        ("a key has the identity of its hash", alice),
        ("a hash has the identity of its key", KeyHash(alice.key_id)),
        ("a local name", Name(alice, ("brokers",))),
        ("a linked name", Name(KeyHash(alice.key_id), ("met", "brokers", "london"))),
        (
            "a threshold with a nested one",
            Threshold(2, (alice, bob, Threshold(1, (key("carol"), Name(bob, ("staff",)))))),
        ),
    ]


def _principal(says: str, principal: Principal) -> Case:
    return case(says, "principal.parse", {"expression": advanced(principal.to_sexp())}, {"id_hex": identity(principal)})


def identity(principal: Principal) -> str:
    """Hash a principal's expression with each key replaced by its hash; a lone key is its hash."""

    def hashed(one: Principal) -> Sexp:
        if isinstance(one, Name):
            return (b"name", (b"hash", b"sha256", one.base.key_id), *(part.encode() for part in one.parts))
        if isinstance(one, Threshold):
            return (b"k-of-n", b"%d" % one.k, b"%d" % len(one.members), *map(hashed, one.members))
        return (b"hash", b"sha256", one.key_id)

    if isinstance(principal, (Name, Threshold)):
        return hashlib.sha256(encode(hashed(principal))).hexdigest()
    return principal.key_id.hex()


def bad_principals() -> list[tuple[str, Sexp, str]]:
    """List expressions that are no principals."""
    alice, bob = key("alice").to_sexp(), key("bob").to_sexp()
    wide = "THRESHOLD_RANGE"
    return [
        ("a key of another algorithm", (b"public-key", (b"rsa", bytes(32))), "PRINCIPAL_SHAPE"),
        ("a hash by a weak algorithm", (b"hash", b"md5", bytes(16)), "HASH_ALGORITHM"),
        ("half a hash", (b"hash", b"sha256", bytes(16)), "HASH_LENGTH"),
        ("a name without a part", (b"name", alice), "PRINCIPAL_SHAPE"),
        ("a name with an empty part", (b"name", alice, b""), "NAME_LENGTH"),
        ("a name with a control character", (b"name", alice, b"a\nb"), "NAME_CHARACTER"),
        ("a name that is not UTF-8", (b"name", alice, b"\xff"), "NOT_UTF8"),
        ("a name that starts at a name", (b"name", (b"name", alice, b"a"), b"b"), "NAME_BASE"),
        ("a threshold of none", (b"k-of-n", b"0", b"2", alice, bob), wide),
        ("a threshold of more than there are", (b"k-of-n", b"3", b"2", alice, bob), wide),
        ("a threshold whose n is wrong", (b"k-of-n", b"1", b"3", alice, bob), wide),
        ("a threshold with a leading zero", (b"k-of-n", b"01", b"2", alice, bob), wide),
        ("a threshold with a sign", (b"k-of-n", b"+1", b"2", alice, bob), wide),
        ("a threshold without members", (b"k-of-n", b"0", b"0"), wide),
    ]


def signatures() -> list[Case]:
    """List signatures, one good and several that must not verify."""
    body = b"(4:body)"
    good = signer("alice").sign(Kind.CERTIFICATE, body)
    s = int.from_bytes(good[32:], "little")
    bad = {
        "a signature over another body": (Kind.CERTIFICATE, b"(4:bodx)", good, "alice"),
        "a certificate's signature offered for a statement": (Kind.STATEMENT, body, good, "alice"),
        "a signature by another key": (Kind.CERTIFICATE, body, good, "bob"),
        "a signature of zeros": (Kind.CERTIFICATE, body, bytes(64), "alice"),
        "a signature that is too short": (Kind.CERTIFICATE, body, good[:63], "alice"),
        "the second signature with S + L": (
            Kind.CERTIFICATE, body, good[:32] + (s + ORDER).to_bytes(32, "little"), "alice",
        ),
    }  # fmt: skip
    return [
        case("a signature", "signature.verify", _signature(Kind.CERTIFICATE, body, good, "alice"), {"valid": True}),
        *(
            case(says, "signature.verify", _signature(*given), {"error": "BAD_SIGNATURE"})
            for says, given in bad.items()
        ),
    ]


def _signature(kind: Kind, body: bytes, mark: bytes, by: str) -> dict[str, str]:
    return {
        "kind": kind.name, "body_hex": body.hex(), "signature_hex": mark.hex(), "key_hex": key(by).raw.hex(),
    }  # fmt: skip
