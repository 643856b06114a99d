"""docs/reference/parcel.md says what the bytes are: the example is built and walked here, the limits are compared."""

from __future__ import annotations

import hashlib
import hmac
import re
from pathlib import Path

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from maia.bench import Eax
from maia.bench.cache import CachedParcel, open_cached, to_wire
from maia.encoding import encode, format_advanced, parse_canonical
from maia.encryption import (
    DEFAULT_CAP,
    MAX_COUNT,
    MAX_VALUE,
    Compression,
    ParcelHeader,
    Tolerance,
    seal,
    verify_parcel,
)
from maia.encryption.columns import _CODES, _DENSE_FREE, _DENSE_RATIO, MAX_FILL, MAX_PLAINTEXT
from maia.encryption.header import HEADER_LIMITS, MAX_BLOCKS
from maia.encryption.parcel import MAX_PARCEL
from maia.events import AttributeType, EncryptionMode, TypeId
from maia.kernel import MAX_EVENTS
from maia.principals import KeySigner, Kind, verify_signature

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "parcel.md"
BROKER = KeySigner(bytes([1]) * 32)
EPOCH_KEY = bytes([2]) * 32
LABEL = b"3265"


def example():
    """The parcel of the page: one attribute, two events."""
    header = ParcelHeader(
        type_id=TypeId(bytes([3]) * 32), origin=BROKER.public_key.key_id, parcel_id=bytes([4]) * 16,
        event_base=bytes([5]) * 16, stamp=1780304400123, count=2, epoch=1780272000000, mode=EncryptionMode.ATTRIBUTE,
        evidence=bytes([6]) * 32, labels=(LABEL,),
    )  # fmt: skip
    columns = {LABEL: (AttributeType.STRING, pa.array(["AE05 XYZ", None]))}
    return seal(columns, header, BROKER, lambda _: EPOCH_KEY, padding=64)


def walk(data):
    """Go through the octets with nothing but the words of the page, and say what stands where."""
    lines, at = [], 0

    def take(size, meaning):
        nonlocal at
        piece = data[at : at + size]
        assert len(piece) == size
        shown = piece.hex() if size <= 16 else f"{piece[:6].hex()}…{piece[-6:].hex()}"
        lines.append(f"{at:5d} {size:5d}  {meaning:<22}{shown}")
        at += size
        return piece

    assert take(4, "magic") == b"MPC1"
    header = take(int.from_bytes(take(4, "header length"), "big"), "header")
    labels = re.search(rb"\(6:blocks(.*)\)\)$", header).group(1)
    blocks = []
    for _ in re.findall(rb"\d+:[^():]+", labels):
        size = int.from_bytes(take(4, "block length"), "big")
        blocks.append(take(32, "commitment") + take(size - 48, "ciphertext") + take(16, "tag"))
    key, mark = take(32, "origin's public key"), take(64, "signature")
    assert at == len(data)
    return "\n".join(lines), header, blocks, key, mark


def block_of(name):
    """A fenced block of the page, by the comment before it."""
    found = re.search(rf"<!-- {name} -->\n```text\n(.*?)\n```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found, f"the page has no block `{name}`"
    return found.group(1)


def test_the_example_of_the_page_is_this_parcel():
    """Every offset, length and octet that the page shows is that of the parcel it describes."""
    lines, header, _, _, _ = walk(example().to_bytes())
    assert block_of("walk") == lines
    shown = format_advanced(parse_canonical(header)).replace(" (", "\n  (")
    assert block_of("header") == re.sub(r"#([0-9a-f]{4})[0-9a-f]+([0-9a-f]{4})#", r"#\1…\2#", shown)


def test_the_words_of_the_page_open_and_verify_the_example():
    """Key schedule, associated data, plaintext and signature, recomputed from the page without Maia's own code."""
    _, header, [block], key, mark = walk(example().to_bytes())
    info = encode((b"maia/1 block", bytes([3]) * 32, bytes([4]) * 16, b"1780272000000", LABEL))
    block_key = hmac.new(EPOCH_KEY, info + b"\x01", hashlib.sha256).digest()
    assert block[:32] == hmac.new(EPOCH_KEY, block_key + info + b"\x02", hashlib.sha256).digest()
    plain = AESGCM(block_key).decrypt(bytes(12), block[32:], encode((b"block", header, LABEL)))
    assert block_of("plaintext") == "\n".join(
        f"{start:5d} {size:5d}  {meaning:<22}{plain[start : start + size].hex()}"
        for start, size, meaning in (
            (0, 1, "type code"), (1, 1, "compression"), (2, 4, "values"), (6, 4, "length"), (10, 4, "stored length"),
            (14, 1, "validity"), (15, 12, "offsets"), (27, 8, "text"), (35, 29, "padding"),
        )
    )  # fmt: skip
    assert len(plain) == 64
    signed = b"(6:sealed" + header + b"(7:digests32:" + hashlib.sha256(block).digest() + b"))"
    assert key == BROKER.public_key.raw
    verify_signature(Kind.PARCEL, signed, mark, BROKER.public_key)
    assert Kind.PARCEL.value == b"maia/1 parcel\x00"


def table(name):
    """The rows of a table of the page, by its first heading."""
    rows = re.search(rf"^\| {name} \|.*\n\|[-| ]+\n((?:\|.*\n)+)", PAGE.read_text("utf-8"), re.MULTILINE).group(1)
    return dict(re.findall(r"^\| `?([^|`]+?)`? \| ([^|]+?) \|", rows, re.MULTILINE))


def test_the_limits_of_the_page_are_the_limits_of_the_code():
    """Each number in the table is the constant it speaks of."""
    assert table("limit") == {
        "octets of a parcel": f"{MAX_PARCEL:,}",
        "octets of a header": f"{HEADER_LIMITS.max_bytes:,}",
        "blocks": f"{MAX_BLOCKS:,}",
        "events, by the format": f"{MAX_COUNT:,}",
        "events, unless a broker says otherwise": f"{MAX_EVENTS:,}",
        "octets of a column before compression": f"{MAX_PLAINTEXT:,}",
        "octets of one text or binary value": f"{MAX_VALUE:,}",
        "padding": f"{MAX_FILL:,}",
        "growth when inflating": f"{_DENSE_FREE:,} octets and {_DENSE_RATIO} times the stored length",
        "blocks sealed with one epoch key": f"{DEFAULT_CAP:,}",
        "grace": f"{Tolerance().grace:,} ms",
        "skew": f"{Tolerance().skew:,} ms",
    }


def test_the_codes_of_the_page_are_the_codes_of_the_code():
    """Types and compressions have the numbers that the page gives them."""
    assert table("type") == {kind.value: str(code) for kind, code in _CODES.items()}
    names = {Compression.NONE: "none", Compression.LZ4: "LZ4 (raw block)", Compression.ZSTD: "Zstandard"}
    assert table("compression") == {name: str(code.value) for code, name in names.items()}


def test_the_wire_form_of_a_cache_is_the_one_of_the_page():
    """Beside a neighbour's parcel: magic, length, parcel, and per column its uid and its octets."""
    parcel = example()
    data = to_wire(open_cached(CachedParcel(verify_parcel(parcel)), lambda _: EPOCH_KEY), allowed={LABEL})
    octets = parcel.to_bytes()
    assert data[:4] == b"MPX1"
    assert data[4:8] == len(octets).to_bytes(4, "big")
    rest = data[8 + len(octets) :]
    assert rest[:6] == b"\x00\x04" + LABEL
    assert len(rest) == 10 + int.from_bytes(rest[6:10], "big")


@pytest.mark.parametrize("plain", [b"", b"x", bytes(4), bytes(1000)], ids=len)
def test_gcm_keeps_the_length_that_eax_keeps(plain):
    """GCM and EAX add the same 16 octets to any plaintext."""
    assert sum(map(len, Eax(bytes(16)).seal(bytes(16), b"", plain))) == len(plain) + 16
    assert len(AESGCM(bytes(32)).encrypt(bytes(12), plain, b"")) == len(plain) + 16
