"""What the fuzz targets share: starting atheris, and a first corpus from the published vectors."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from maia.encoding import encode, parse_advanced
from maia.errors import MaiaError

VECTORS = Path(__file__).resolve().parents[2] / "vectors"


def seeds(*fields: str) -> Iterator[bytes]:
    """Go through the inputs of the vectors that have one of these fields; expressions become canonical bytes."""
    for path in sorted(VECTORS.glob("*.json")):
        for case in json.loads(path.read_text("utf-8"))["cases"]:
            for field in fields:
                value = case["input"].get(field)
                if value is None:
                    continue
                for text in value if isinstance(value, list) else [value]:
                    yield from seed(field, text)


def seed(field: str, text: str) -> Iterator[bytes]:
    """Turn one input into bytes: hexadecimal, plain text, or an expression."""
    if field.endswith("_hex"):
        yield bytes.fromhex(text)
    elif field == "text":
        yield text.encode()
    else:
        try:
            yield encode(parse_advanced(text))
        except MaiaError:
            return


def run(target: Callable[[bytes], None], *fields: str) -> None:
    """Fuzz one target until atheris stops; every `MaiaError` is an answer, everything else a finding."""
    try:
        import atheris
    except ImportError:
        sys.stdout.write("atheris is not installed; `make test` runs the same parsers under hypothesis\n")
        return

    def one(data: bytes) -> None:
        try:
            target(data)
        except MaiaError:
            return

    with tempfile.TemporaryDirectory() as corpus:
        for number, data in enumerate(seeds(*fields)):
            Path(corpus, f"{number:04d}").write_bytes(data)
        atheris.instrument_all()
        atheris.Setup([*sys.argv, corpus], one)
        atheris.Fuzz()
