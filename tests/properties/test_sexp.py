"""Canonical S-expressions: laws of our reader and writer, and nettle's `sexp-conv` as an independent peer.

`sexp-conv` reads the advanced form, several expressions in a row, so one process takes a batch. Where it is laxer than
Maia's canonical reader is written down in `LAXER`.
"""

from __future__ import annotations

import base64
import hashlib
import random
import subprocess
from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies_trust import LONG, expressions, random_expression

from maia.encoding import Hinted, Sexp, SexpLimits, encode, format_advanced, parse_advanced, parse_canonical
from maia.errors import EncodingError, MaiaError

BATCHES, BATCH = (200, 250) if LONG else (20, 250)

# sexp-conv 3.8 reads these; a canonical reader must not.
LAXER = {
    "a space before the expression": b" 3:abc",
    "a space inside a list": b"(3:abc )",
    "a new line after the expression": b"3:abc\n",
    "two expressions": b"3:abc3:def",
    "a token": b"abc",
    "a quoted string": b'"abc"',
    "hexadecimal": b"#616263#",
    "base64": b"|YWJj|",
    "the transport form": b"{MzphYmM=}",
}
REFUSED_BY_BOTH = {
    "a leading zero": b"03:abc",
    "a string past the end": b"4:abc",
    "a list without an end": b"(3:abc",
    "a list without a start": b"3:abc)",
    "a hint on a list": b"[1:a](1:b)",
    "a hint without a string": b"[1:a]",
    "a huge length": b"99999999:a",
}


@pytest.fixture(scope="module")
def convert(require_tool: Callable[[str], str]) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Give a function that runs sexp-conv on some input."""
    tool = require_tool("sexp-conv")

    def run(data: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([tool, *options], input=data, capture_output=True, check=False)

    return run


def batches(seed: int) -> list[list[Sexp]]:
    """Draw thousands of expressions, in batches."""
    rng = random.Random(seed)
    return [[random_expression(rng) for _ in range(BATCH)] for _ in range(BATCHES)]


def test_nettle_reads_what_we_write(convert: Callable[..., subprocess.CompletedProcess[bytes]]) -> None:
    """Thousands of random expressions come back from sexp-conv with exactly the bytes we wrote."""
    for batch in batches(1):
        written = b"".join(map(encode, batch))
        run = convert(written, "-s", "canonical")
        assert run.returncode == 0, run.stderr
        assert run.stdout == written


def test_nettle_reads_our_advanced_form(convert: Callable[..., subprocess.CompletedProcess[bytes]]) -> None:
    """What we write for people means the same to sexp-conv."""
    for batch in batches(2):
        run = convert("\n".join(map(format_advanced, batch)).encode(), "-s", "canonical")
        assert run.returncode == 0, run.stderr
        assert run.stdout == b"".join(map(encode, batch))


def test_we_read_nettles_advanced_form(convert: Callable[..., subprocess.CompletedProcess[bytes]]) -> None:
    """What sexp-conv writes for people, quoted strings with escapes included, means the same to us."""
    for batch in batches(3)[:4]:
        whole: Sexp = tuple(batch)
        run = convert(encode(whole), "-s", "advanced")
        assert run.returncode == 0, run.stderr
        assert parse_advanced(run.stdout.decode("latin-1").encode("latin-1").decode("utf-8", "strict")) == whole


def test_identities_are_what_nettle_hashes(convert: Callable[..., subprocess.CompletedProcess[bytes]]) -> None:
    """SHA-256 over our canonical bytes is sexp-conv's fingerprint of the expression."""
    for expression in batches(4)[0][:25]:
        run = convert(encode(expression), "--hash=sha256")
        assert run.stdout.split()[0].decode() == hashlib.sha256(encode(expression)).hexdigest()


@pytest.mark.parametrize("data", LAXER.values(), ids=LAXER.keys())
def test_nettle_is_laxer_than_us(convert: Callable[..., subprocess.CompletedProcess[bytes]], data: bytes) -> None:
    """sexp-conv accepts these spellings; one value has one spelling here, so we refuse them."""
    assert convert(data, "-s", "canonical").returncode == 0
    with pytest.raises(EncodingError):
        parse_canonical(data)


@pytest.mark.parametrize("data", REFUSED_BY_BOTH.values(), ids=REFUSED_BY_BOTH.keys())
def test_nettle_and_we_refuse(convert: Callable[..., subprocess.CompletedProcess[bytes]], data: bytes) -> None:
    """Neither reads these; sexp-conv may print a prefix first, so its exit code counts."""
    assert convert(data, "-s", "canonical").returncode != 0
    with pytest.raises(EncodingError):
        parse_canonical(data)


def test_mutated_bytes_are_canonical_to_both_or_to_neither(
    convert: Callable[..., subprocess.CompletedProcess[bytes]],
) -> None:
    """For bytes near a canonical expression: we read them exactly when sexp-conv gives the same bytes back, as one."""
    rng = random.Random(5)
    read = refused = 0
    for _ in range(2000 if LONG else 250):
        data = mutate(rng, encode(random_expression(rng, 2)))
        try:
            parse_canonical(data)
            ours = True
        except EncodingError:
            ours = False
        run, first = convert(data, "-s", "canonical"), convert(data, "-s", "canonical", "--once")
        theirs = run.returncode == 0 and run.stdout == data == first.stdout and data != b""
        assert ours is theirs, data
        read, refused = read + ours, refused + (not ours)
    assert read > 20
    assert refused > 20


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Change, add or drop one octet, or leave the data alone."""
    place = rng.randrange(len(data) + 1)
    octet = rng.choice((bytes([rng.randrange(256)]), b"(", b")", b"[", b"]", b":", b"0", b"1", b"9", b" "))
    kind = rng.randrange(4)
    if kind == 0:
        return data[:place] + octet + data[place:]
    if kind == 1:
        return data[:place] + data[place + 1 :]
    return data[:place] + octet + data[place + 1 :] if kind == 2 else data


@given(expressions)
def test_reading_undoes_writing(expression: Sexp) -> None:
    """parse∘encode is the identity, in both forms."""
    assert parse_canonical(encode(expression)) == expression
    assert parse_advanced(format_advanced(expression)) == expression
    assert parse_advanced("{" + base64.b64encode(encode(expression)).decode() + "}") == expression


@given(st.binary(max_size=200))
@example(b"(" * 100)
@example(b"00:")
@example(b"[1:a][1:b]1:c")
def test_any_bytes_are_canonical_or_refused(data: bytes) -> None:
    """Only EncodingError comes out; whatever is read is written back octet for octet."""
    try:
        expression = parse_canonical(data)
    except EncodingError:
        return
    assert encode(expression) == data


@given(
    st.lists(
        st.sampled_from([b"(", b")", b"[", b"]", b"1:a", b"0:", b"2:ab", b"3:a", b"1:", b"01:a", b" "]), max_size=12
    )
)
def test_any_sequence_of_pieces_is_canonical_or_refused(pieces: Sequence[bytes]) -> None:
    """The same for bytes that look like expressions."""
    data = b"".join(pieces)
    try:
        expression = parse_canonical(data)
    except EncodingError:
        return
    assert encode(expression) == data


@given(st.one_of(st.text(max_size=80), st.text(alphabet='()[]{}|#"\\:0123abx= \n', max_size=40)))
@example('"\\x41"')
@example('"\\400"')
@example("{KDE6YQ==}")
@example("\ud800")
@example("99999999:a")
def test_any_text_is_advanced_or_refused(text: str) -> None:
    """parse_advanced raises nothing but Maia's errors, and what it reads has canonical bytes."""
    try:
        expression = parse_advanced(text)
    except MaiaError:
        return
    assert parse_canonical(encode(expression)) == expression


@given(expressions, st.integers(1, 60), st.integers(1, 5), st.integers(1, 12))
def test_limits_are_kept_exactly(expression: Sexp, size: int, depth: int, atom: int) -> None:
    """An expression is read exactly when its size, depth and longest string are within the limits."""
    data = encode(expression)
    fits = len(data) <= size and nesting(expression) <= depth and longest(expression) <= atom
    limits = SexpLimits(max_bytes=size, max_depth=depth, max_atom=atom)
    if fits:
        assert parse_canonical(data, limits=limits) == expression
    else:
        with pytest.raises(EncodingError, match=r"SEXP_TOO_LARGE|SEXP_TOO_DEEP"):
            parse_canonical(data, limits=limits)


def nesting(expression: Sexp) -> int:
    """Count the levels of lists."""
    return 1 + max(map(nesting, expression), default=0) if isinstance(expression, tuple) else 0


def longest(expression: Sexp) -> int:
    """Measure the longest string, hints included."""
    if isinstance(expression, tuple):
        return max(map(longest, expression), default=0)
    return max(len(expression.hint), len(expression.octets)) if isinstance(expression, Hinted) else len(expression)
