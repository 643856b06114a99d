"""Attacks on the objects themselves: bytes, keys, signatures, fields."""

from __future__ import annotations

import hashlib
import random
import tracemalloc

import pytest

from maia.authority import (
    CertificatePool,
    Challenge,
    ListStatement,
    Root,
    Verifier,
    ask,
    parse_statement,
    unsafe_sign_statement,
    verify_statement,
)
from maia.encoding import Hinted, Sexp, encode, parse_canonical
from maia.errors import EncodingError, KeyFormatError, MaiaError, MalformedError, SignatureError
from maia.principals import (
    KeyHash,
    KeyId,
    Kind,
    Name,
    PublicKey,
    TestKind,
    Threshold,
    parse_certificate,
    unsafe_seal_certificate,
    verify_certificate,
    verify_signature,
)
from maia.testing import People, answer, at, grant, listing, naming, online

NOW = at("2026-06-01T09:00:00")
READ: Sexp = (b"read",)
PEOPLE = People("a", "b", "c", "lister")
A, B, C = (PEOPLE[name].public_key for name in "abc")
L = 2**252 + 27742317777372353535851937790883648493
PRIME = 2**255 - 19


def sealed(*fields: Sexp) -> bytes:
    """Sign any list of fields as a certificate of A."""
    body = (b"cert", *fields)
    return unsafe_seal_certificate(body, A, PEOPLE.a.sign(Kind.CERTIFICATE, encode(body)))


ISSUER, SUBJECT = (b"issuer", A.to_sexp()), (b"subject", B.to_sexp())


@pytest.mark.threat("T1")
@pytest.mark.parametrize("kind", ["authorisation", "name", "threshold"])
def test_every_flipped_bit_is_refused(kind: str):
    """Each bit of three certificates, flipped one at a time: never a certificate that verifies, never a grant."""
    certificate = {
        "authorisation": lambda: grant(PEOPLE.a, PEOPLE.b, READ, delegate=True, valid=(0, 10**9)),
        "name": lambda: naming(PEOPLE.a, "brokers", PEOPLE.b),
        "threshold": lambda: grant(PEOPLE.a, Threshold(1, (B, C)), READ, tests=[online(TestKind.CRL, A)]),
    }[kind]()
    refused = 0
    for position in range(len(certificate.raw) * 8):
        altered = bytearray(certificate.raw)
        altered[position // 8] ^= 1 << (position % 8)
        try:
            verify_certificate(parse_certificate(bytes(altered)))
        except (MalformedError, SignatureError):
            refused += 1
    assert refused == len(certificate.raw) * 8


@pytest.mark.threat("T1")
def test_an_altered_certificate_grants_nothing_and_the_good_one_beside_it_does():
    """A forged copy neither helps nor hurts."""
    good = grant(PEOPLE.a, PEOPLE.b, READ).raw
    forged = good[:-3] + bytes((good[-3] ^ 1,)) + good[-2:]
    verifier = Verifier([Root(subject=A)])

    def reason(*evidence: bytes) -> str | None:
        return verifier.decide(ask(READ), principal=B, evidence=evidence, at=NOW).reason

    assert reason(forged) == "BAD_SIGNATURE"
    assert reason(forged, good) is None
    # However many forged copies come first, the good one is still found.
    copies = [good[:-3] + bytes((octet,)) + good[-2:] for octet in range(256) if octet != good[-3]]
    assert reason(*copies, good) is None
    assert reason(*copies) == "BAD_SIGNATURE"


THRESHOLDS = {
    "k is zero": (b"0", b"2"),
    "k above n": (b"3", b"2"),
    "n is wrong": (b"1", b"3"),
    "n is too small": (b"1", b"1"),
    "k padded": (b"01", b"2"),
    "n padded": (b"1", b"02"),
    "k negative": (b"-1", b"2"),
    "k with a sign": (b"+1", b"2"),
    "k as a word": (b"one", b"2"),
    "k empty": (b"", b"2"),
    "k with a space": (b" 1", b"2"),
    "k with a fraction": (b"1.0", b"2"),
    "k as a digit of another script": ("١".encode(), b"2"),
    "k beyond any count": (b"99999", b"2"),
}


@pytest.mark.threat("T14")
@pytest.mark.parametrize("numbers", THRESHOLDS.values(), ids=THRESHOLDS.keys())
def test_a_threshold_with_a_wrong_number_is_no_certificate(numbers: tuple[bytes, bytes]):
    """K and n are plain decimals, 1 <= k <= n, and n is the number of members."""
    subject = (b"subject", (b"k-of-n", *numbers, B.to_sexp(), C.to_sexp()))
    with pytest.raises(EncodingError) as caught:
        parse_certificate(sealed(ISSUER, subject, (b"tag", READ)))
    assert caught.value.code == "THRESHOLD_RANGE"
    parse_certificate(sealed(ISSUER, (b"subject", (b"k-of-n", b"1", b"2", B.to_sexp(), C.to_sexp())), (b"tag", READ)))


@pytest.mark.threat("T16")
def test_a_certificate_without_a_tag_is_no_certificate():
    """Nothing said about rights is no right, not all of them."""
    for fields in ((ISSUER, SUBJECT), (ISSUER, SUBJECT, (b"propagate",)), (ISSUER, SUBJECT, (b"tag",))):
        with pytest.raises(EncodingError) as caught:
            parse_certificate(sealed(*fields))
        assert caught.value.code == "CERT_NO_TAG"
    denial = Verifier([Root(subject=A)]).decide(ask(READ), principal=B, evidence=[sealed(ISSUER, SUBJECT)], at=NOW)
    assert denial.reason == "CERT_NO_TAG"


@pytest.mark.threat("T19")
def test_a_display_hint_makes_another_tag():
    """`[text/plain]foo` and `foo` are two things, in tags and in requests."""
    hinted = (b"ftp", Hinted(b"text/plain", b"foo"))
    plain = (b"ftp", b"foo")
    verifier = Verifier([Root(subject=A)])
    for granted, asked, allowed in (
        (plain, plain, True),
        (hinted, hinted, True),
        (plain, hinted, False),
        (hinted, plain, False),
        ((b"ftp", (b"*", b"prefix", b"f")), hinted, False),
    ):
        evidence = [grant(PEOPLE.a, PEOPLE.b, granted)]
        assert bool(verifier.decide(ask(asked), principal=B, evidence=evidence, at=NOW)) is allowed


@pytest.mark.threat("T21")
def test_a_malleated_signature_is_refused_and_gives_no_second_identity():
    """S + L instead of S, for a hundred certificates."""
    for number in range(100):
        raw = grant(PEOPLE.a, PEOPLE.b, (b"n", b"%d" % number)).raw
        signature = raw[-66:-2]
        scalar = int.from_bytes(signature[32:], "little") + L
        altered = raw[:-66] + signature[:32] + scalar.to_bytes(32, "little") + raw[-2:]
        read = parse_certificate(altered)
        assert read.certificate_id == parse_certificate(raw).certificate_id
        with pytest.raises(SignatureError):
            verify_certificate(read)


SMALL_ORDER = [
    bytes.fromhex(text)
    for text in (
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000080",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    )
]
NOT_CANONICAL = [(PRIME + extra).to_bytes(32, "little") for extra in range(19)]
NOT_CANONICAL += [(PRIME + extra + (1 << 255)).to_bytes(32, "little") for extra in range(19)]


@pytest.mark.threat("T22")
@pytest.mark.parametrize("raw", SMALL_ORDER + NOT_CANONICAL, ids=lambda raw: raw.hex()[:8] + raw.hex()[-2:])
def test_a_universal_key_is_refused_wherever_it_stands(raw: bytes):
    """Points of small order and second spellings of points: as issuer, subject, member, base of a name, signer."""
    key: Sexp = (b"public-key", (b"ed25519", raw))
    places = (
        ((b"issuer", key), SUBJECT, (b"tag", READ)),
        (ISSUER, (b"subject", key), (b"tag", READ)),
        (ISSUER, (b"subject", (b"k-of-n", b"1", b"2", key, B.to_sexp())), (b"tag", READ)),
        (ISSUER, (b"subject", (b"name", key, b"brokers")), (b"tag", READ)),
        ((b"issuer", (b"name", key, b"brokers")), SUBJECT),
        (ISSUER, SUBJECT, (b"tag", READ), (b"valid", (b"online", b"crl", key))),
    )
    for fields in places:
        with pytest.raises(KeyFormatError):
            parse_certificate(sealed(*fields))
    body: Sexp = (b"cert", ISSUER, SUBJECT, (b"tag", READ))
    signed_by_it = encode((b"signed", b"1", body, (b"signature", key, raw[:32] + bytes(32))))
    for call in (PublicKey, PublicKey.import_, lambda _: parse_certificate(signed_by_it)):
        with pytest.raises(KeyFormatError):
            call(raw)


HASHES = {
    "md5": (b"hash", b"md5", bytes(16)),
    "sha1": (b"hash", b"sha1", bytes(20)),
    "sha1 called sha256": (b"hash", b"sha256", bytes(20)),
    "truncated": (b"hash", b"sha256", bytes(31)),
    "empty": (b"hash", b"sha256", b""),
    "overlong": (b"hash", b"sha256", bytes(33)),
    "with an address": (b"hash", b"sha256", bytes(32), b"https://x.example"),
    "no digest": (b"hash", b"sha256"),
}


@pytest.mark.threat("T23")
@pytest.mark.parametrize("expression", HASHES.values(), ids=HASHES.keys())
def test_only_a_whole_sha256_names_a_key(expression: Sexp):
    """Weaker, shorter and longer hashes are refused as issuer, subject and object."""
    for fields in (
        (ISSUER, (b"subject", expression)),
        ((b"issuer", expression), SUBJECT),
        (ISSUER, (b"subject", (b"object-hash", expression))),
    ):
        with pytest.raises(MalformedError):
            parse_certificate(sealed(*fields, (b"tag", READ)))


NOT_CANONICAL_BYTES = [
    b"", b" ", b"3:ab", b"03:abc", b"00:", b"+3:abc", b"-3:abc", b"3 :abc", b"3: abc", b" 3:abc", b"3:abc ", b"3:abc\n",
    b"(3:abc", b"3:abc)", b"(3:abc))", b"( 3:abc)", b"(3:abc )", b"(3:abc 3:abc)", b"abc", b'"abc"', b'3"abc"',
    b"#616263#", b"|YWJj|", b"{MzphYmM=}", b"({MzphYmM=})", b"[3:abc]", b"[3:abc](3:abc)", b"[3:abc][3:abc]3:abc",
    b"[03:abc]3:abc",
    b"[3:abc] 3:abc", b"3:abc3:abc", b"()()", b"3:abc\x00", b"0x3:abc", "３:abc".encode(), b"9999999999:abc",
    b":abc", b"3abc", b"[3:abc", b"[]3:abc", b"[(3:abc)]3:abc", b"(", b")", b"3:", b"[3:abc]03:abc",
]  # fmt: skip


@pytest.mark.threat("T24")
@pytest.mark.parametrize("data", NOT_CANONICAL_BYTES, ids=repr)
def test_a_second_spelling_is_refused(data: bytes):
    """Leading zeros, spaces, other string forms, trailing bytes: none of them is canonical."""
    with pytest.raises(EncodingError) as caught:
        parse_canonical(data)
    assert caught.value.code in {"SEXP_NOT_CANONICAL", "SEXP_TOO_LARGE"}


@pytest.mark.threat("T24")
def test_no_second_spelling_of_a_certificate_is_read():
    """Whatever is read encodes to the very same bytes, so there is one identity."""
    raw = grant(PEOPLE.a, PEOPLE.b, READ).raw
    for altered in (
        raw + b"\n",
        b" " + raw,
        raw.replace(b"(4:read)", b"(04:read)"),
        raw.replace(b"(4:read)", b'("read")'),
    ):
        with pytest.raises(EncodingError):
            parse_certificate(altered)
    assert encode(parse_canonical(raw)) == raw


@pytest.mark.threat("T26")
@pytest.mark.parametrize("signed_as", Kind)
def test_a_signature_of_one_kind_verifies_as_no_other(signed_as: Kind):
    """The same bytes under every pair of kinds: only the diagonal passes."""
    body = encode((b"cert", ISSUER, SUBJECT, (b"tag", READ)))
    signature = PEOPLE.a.sign(signed_as, body)
    passed = []
    for read_as in Kind:
        try:
            verify_signature(read_as, body, signature, A)
        except SignatureError:
            continue
        passed.append(read_as)
    assert passed == [signed_as]


@pytest.mark.threat("T26")
def test_a_signed_object_is_read_as_its_own_kind_only():
    """A list is no certificate and a certificate is no list, even with the other's signature around its body."""
    certificate = grant(PEOPLE.a, PEOPLE.b, READ).raw
    statement = listing(TestKind.CRL, PEOPLE.a).raw
    with pytest.raises(EncodingError):
        parse_statement(certificate)
    with pytest.raises(EncodingError):
        parse_certificate(statement)
    body: Sexp = (b"cert", ISSUER, SUBJECT, (b"tag", READ))
    as_statement = unsafe_seal_certificate(body, A, PEOPLE.a.sign(Kind.STATEMENT, encode(body)))
    with pytest.raises(SignatureError):
        verify_certificate(parse_certificate(as_statement))


@pytest.mark.threat("T51")
@pytest.mark.parametrize(
    "data",
    [b"(" * 1_000_000, b"(" * 65 + b")" * 65, b"99999999:", b"999999999:" + b"x" * 100, b"(" + b"0:" * 600_000 + b")"],
    ids=["deep", "one too deep", "huge length", "longer length", "too large"],
)
def test_deep_and_huge_input_is_refused_without_being_built(data: bytes):
    """A typed error, and no memory beyond the input itself."""
    tracemalloc.start()
    try:
        with pytest.raises(EncodingError):
            parse_canonical(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000


@pytest.mark.threat("T51")
def test_mutated_certificates_raise_typed_errors_only():
    """Random damage: every outcome is the very same certificate or a MaiaError."""
    order = random.Random(51)
    raw = grant(PEOPLE.a, Threshold(1, (B, Name(C, ("x",)))), READ, tests=[online(TestKind.CRL, A, "u")]).raw
    refused = 0
    for _ in range(5_000):
        data = bytearray(raw)
        for _ in range(order.randint(1, 4)):
            spot = order.randrange(len(data))
            choice = order.randrange(3)
            if choice == 0:
                data[spot] = order.randrange(256)
            elif choice == 1:
                del data[spot : spot + order.randint(1, 8)]
            else:
                data[spot:spot] = order.choice(
                    [b"(", b")", b"9", b"[1:a]", b"99999999:", bytes((order.randrange(256),))]
                )
        try:
            same = verify_certificate(parse_certificate(bytes(data))).raw == raw
        except MaiaError:
            same = True
            refused += 1
        assert same
    assert refused > 4_900


@pytest.mark.threat("T73")
@pytest.mark.parametrize(
    "place", ["end", "start", "after the tag", "in the validity", "in the envelope", "in the name"]
)
def test_an_unknown_field_refuses_a_certificate(place: str):
    """A field we do not know may be one that narrows."""
    extra: Sexp = (b"critical", b"1")
    valid = (b"valid", (b"not-after", b"2027-01-01_00:00:00"))
    fields: dict[str, tuple[Sexp, ...]] = {
        "end": (ISSUER, SUBJECT, (b"tag", READ), valid, extra),
        "start": (extra, ISSUER, SUBJECT, (b"tag", READ)),
        "after the tag": (ISSUER, SUBJECT, (b"tag", READ), extra, valid),
        "in the validity": (ISSUER, SUBJECT, (b"tag", READ), (*valid, extra)),
        "in the name": ((b"issuer", (b"name", A.to_sexp(), b"n")), SUBJECT, extra),
        "in the envelope": (ISSUER, SUBJECT, (b"tag", READ)),
    }
    raw = sealed(*fields[place])
    if place == "in the envelope":
        assert parse_certificate(raw)
        raw = raw[:-1] + b"(8:critical1:1))"
    with pytest.raises(EncodingError):
        parse_certificate(raw)
    assert len(CertificatePool([raw])) == 0


@pytest.mark.threat("T73")
@pytest.mark.parametrize("kind", ["list", "timed list", "answer"])
def test_an_unknown_field_refuses_a_statement(kind: str):
    """Statements are as strict as certificates, and a known field twice is unknown the second time."""
    challenge = Challenge(nonce=b"n" * 16, verifier="b", until=NOW)
    made = {
        "list": lambda: listing(TestKind.CRL, PEOPLE.a),
        "timed list": lambda: listing(TestKind.CRL, PEOPLE.a, valid=(0, 60)),
        "answer": lambda: answer(challenge, PEOPLE.a, []),
    }[kind]()
    expression = made.body.to_sexp()
    for extra in ((b"critical", b"1"), expression[-2]):
        for spot in range(1, len(expression) + 1):
            body = (*expression[:spot], extra, *expression[spot:])
            signature = PEOPLE.a.sign(Kind.STATEMENT, encode(body))
            raw = encode((b"signed", body, (b"signature", A.to_sexp(), signature)))
            with pytest.raises(MalformedError):
                parse_statement(raw)


@pytest.mark.threat("T31")
def test_a_statement_names_the_key_that_signed_it():
    """Another key's signature under a list that names the right signer is a bad signature."""
    body = ListStatement(kind=TestKind.CRL, signer=A, sequence=1, certificates=frozenset())
    with pytest.raises(SignatureError, match="WRONG_SIGNER"):
        verify_statement(parse_statement(unsafe_sign_statement(body, PEOPLE.b)))
    by_hash = ListStatement(kind=TestKind.CRL, signer=KeyHash(A.key_id), sequence=1, certificates=frozenset())
    assert verify_statement(parse_statement(unsafe_sign_statement(by_hash, PEOPLE.a))).signer_id == A.key_id


def test_a_key_and_its_hash_are_one_identity():
    """The identity is SHA-256 over the canonical expression, recomputed here by hand."""
    expression = b"(10:public-key(7:ed2551932:" + A.raw + b"))"
    assert A.key_id == KeyId(hashlib.sha256(expression).digest()) == KeyHash(A.key_id).key_id
