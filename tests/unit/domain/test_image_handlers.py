"""The image handlers of Maia against Pillow, octet by octet, on images of many sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFilter, ImageOps

from maia.domain.handlers import open_handler
from maia.kernel import DEFAULT_HANDLER_BUDGET, Frame, HandlerFaultError

REGIONS = ("whole", "upper-half", "lower-half", "left-half", "right-half")


def handled(name: str, image: np.ndarray) -> np.ndarray:
    """Give what a handler makes of an image."""
    height, width, channels = image.shape
    frame = Frame(number=0, height=height, width=width, channels=channels, pixels=image.tobytes())
    (made,) = open_handler(name).run([frame], DEFAULT_HANDLER_BUDGET)
    assert made is not None
    found = np.frombuffer(made.pixels, np.uint8).reshape(made.height, made.width, made.channels)
    return found[..., 0] if made.channels == 1 else found


def blurred(image: Image.Image, region: str) -> Image.Image:
    """Blur a part with Pillow."""
    width, height = image.size
    part = {
        "whole": (0, 0, width, height), "upper-half": (0, 0, width, (height + 1) // 2),
        "lower-half": (0, height // 2, width, height), "left-half": (0, 0, (width + 1) // 2, height),
        "right-half": (width // 2, 0, width, height),
    }[region]  # fmt: skip
    made, inner = image.copy(), image.crop(part)
    for _ in range(3):
        inner = inner.filter(ImageFilter.BoxBlur(4))
    made.paste(inner, part[:2])
    return made


@settings(max_examples=15)
@given(st.integers(2, 40), st.integers(2, 40), st.integers(0, 1 << 30))
def test_handlers_equal_pillow(height: int, width: int, seed: int) -> None:
    """Greyscale, half size, mirror, edges and every blur give the octets that Pillow gives."""
    image = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    other = Image.fromarray(image)
    even = other.crop((0, 0, width // 2 * 2, height // 2 * 2))
    wanted = {
        "greyscale": other.convert("L"), "half-size": even.reduce(2), "mirror": ImageOps.mirror(other),
        **{f"blur:{region}": blurred(other, region) for region in REGIONS},
    }  # fmt: skip
    if height > 2 and width > 2:
        wanted["edges"] = other.convert("L").filter(ImageFilter.FIND_EDGES)
    for name, expected in wanted.items():
        assert np.array_equal(handled(name, image), np.asarray(expected)), name


def test_what_a_handler_cannot_do_is_a_fault() -> None:
    """A frame of one row has no half, and four channels have no grey."""
    thin = Frame(number=0, height=1, width=8, channels=3, pixels=bytes(24))
    deep = Frame(number=0, height=2, width=2, channels=4, pixels=bytes(16))
    for name, frame in (("half-size", thin), ("greyscale", deep)):
        with pytest.raises(HandlerFaultError) as caught:
            open_handler(name).run([frame], DEFAULT_HANDLER_BUDGET)
        assert caught.value.code == "HANDLER_CRASHED"
