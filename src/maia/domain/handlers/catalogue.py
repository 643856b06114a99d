"""Which handlers there are: those of Maia, by name, and files of others, by the digest of their code.

A policy that names filters means code, not what somebody calls it: a file is known as ``sha256:`` and the digest of its
octets, so that nobody gets a filter installed by giving another its name.
"""

from __future__ import annotations

import hashlib
import re
from importlib import resources
from pathlib import Path

from maia.domain.handlers.child import MAX_SOURCE, PythonHandler
from maia.domain.handlers.wasm import MAX_MODULE, WasmHandler
from maia.encoding import did_you_mean, printable
from maia.errors import MalformedError, NotFoundError, UsageError
from maia.kernel import FrameHandler
from maia.policy import xml

BUILT_IN_HANDLERS = ("greyscale", "half-size", "mirror", "edges", "blur", "frame-rate")
_REGIONS = {region.value: place for place, region in enumerate(xml.Region)}
_MAX_RATE = 10_000


def open_handler(text: str) -> FrameHandler:
    """Find a handler: ``greyscale``, ``blur:lower-half``, ``frame-rate:3``, or a file of code, which is not opened yet.

    >>> open_handler("blur:lower-half").name
    'blur'

    Args:
        text: The name of a handler of Maia, perhaps with what it is told; or a path that ends in ``.wasm``, ``.wat`` or
            ``.py``.

    Raises:
        UsageError: There is none of that name, or it is told something else: ``HANDLER_NAME``.
        NotFoundError: There is no such file: ``NO_FILE``.
        MalformedError: The file is too large for a handler: ``HANDLER_CODE``.
    """
    path = Path(text)
    if path.suffix in (".wasm", ".wat", ".py"):
        return _from_file(path)
    name, _, told = text.partition(":")
    if name not in BUILT_IN_HANDLERS:
        raise UsageError(
            f"there is no handler `{printable(name)}`{did_you_mean(name, BUILT_IN_HANDLERS)}", code="HANDLER_NAME"
        )
    return _built_in(name, _parameter(name, told))


def forced_handler(forced: xml.ForcedHandler) -> FrameHandler:
    """Give the handler that a policy forces."""
    place = 0 if forced.region is None else _REGIONS[forced.region.value]
    return _built_in(forced.kind.value, forced.keep_one_in or place)


def _parameter(name: str, told: str) -> int:
    if name == "blur" and told in _REGIONS:
        return _REGIONS[told]
    if name == "frame-rate" and re.fullmatch("[0-9]{1,5}", told) and 2 <= int(told) <= _MAX_RATE:
        return int(told)
    if name not in ("blur", "frame-rate") and not told:
        return 0
    wanted = {"blur": f"a region: {', '.join(_REGIONS)}", "frame-rate": f"a number from 2 to {_MAX_RATE}"}
    raise UsageError(f"`{name}` is told {wanted.get(name, 'nothing')}", code="HANDLER_NAME")


def _built_in(name: str, parameter: int) -> FrameHandler:
    code = resources.files("maia.domain.handlers").joinpath("images.wat").read_bytes()
    return WasmHandler(name, code, export=name, parameter=parameter, own=True)


def _from_file(path: Path) -> FrameHandler:
    try:
        with path.open("rb") as file:
            code = file.read(max(MAX_MODULE, MAX_SOURCE) + 1)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotFoundError(f"there is no `{path}`", code="NO_FILE") from error
    name = f"sha256:{hashlib.sha256(code).hexdigest()}"
    if path.suffix != ".py":
        return WasmHandler(name, code)
    try:
        return PythonHandler(name, code.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise MalformedError(f"`{path}` is not UTF-8", code="HANDLER_CODE") from error
