"""The picture of a key group: its tree, and its refreshes against the changes of its membership."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from maia.cli.keys.view import Keys
from maia.encoding import counted
from maia.encryption import KeyGroupId
from maia.errors import UnavailableError, UsageError
from maia.key_manager import TreePicture

_FORMATS = {".svg": "svg", ".png": "png"}
_MAX_NAMED = 32
_MAX_LEAVES = 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COLOURS = {"join": "tab:green", "leave": "tab:orange", "end": "tab:red", "revoke": "tab:red", "repair": "tab:purple"}


def draw_group(keys: Keys, group: KeyGroupId, out: Path) -> None:
    """Draw a group to a file.

    Raises:
        UsageError: The file's name says no format that is drawn, the group is too large to draw, or what draws is not
            installed (``PLOT_MISSING``).
        UnavailableError: The file cannot be written.
    """
    kind = _FORMATS.get(out.suffix.lower())
    if kind is None:
        raise UsageError(f"`{out.name}` is neither .svg nor .png", code="PLOT_FORMAT")
    picture = keys.manager.picture(group)
    if picture.height and 1 << picture.height > _MAX_LEAVES:
        raise UsageError(f"a tree of more than {_MAX_LEAVES} leaves cannot be drawn", code="PLOT_SIZE")
    plt = _pyplot()
    figure, (above, below) = plt.subplots(2, 1, figsize=(8, 6.5), height_ratios=(3, 2))
    try:
        _draw_tree(above, keys, picture)
        above.set_title(keys.name(group))
        _draw_times(below, keys, group)
        figure.tight_layout()
        metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
        figure.savefig(out, format=kind, metadata=metadata)
    except OSError as error:
        raise UnavailableError(f"cannot write `{out}`", code="FILE_UNAVAILABLE") from error
    finally:
        plt.close(figure)


def _pyplot() -> Any:  # noqa: ANN401 - matplotlib has no types of its own
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise UsageError(
            "drawing needs matplotlib, which is not installed: run `pip install maia[plot]`", code="PLOT_MISSING"
        ) from error
    mpl.use("agg")
    mpl.rcParams["svg.hashsalt"] = "maia"
    from matplotlib import pyplot as plt

    return plt


def _draw_tree(axes: Any, keys: Keys, picture: TreePicture) -> None:  # noqa: ANN401 - as above
    """Draw the nodes that have somebody below them; leaves bear names while these can be read."""
    taken = dict(picture.places)
    nodes = {(level, slot >> level) for slot in taken for level in range(picture.height + 1)}
    spots = {(level, index): ((index + 0.5) * (1 << level) - 0.5, level) for level, index in nodes}
    for level, index in nodes:
        if (level + 1, index >> 1) in spots:
            ends = zip(spots[level, index], spots[level + 1, index >> 1], strict=True)
            axes.plot(*ends, color="tab:gray", linewidth=0.8, zorder=1)
    inner = [spot for (level, _), spot in spots.items() if level]
    leaves = [spots[0, slot] for slot in taken]
    for found, colour in ((inner, "tab:gray"), (leaves, "tab:blue")):
        if found:
            axes.scatter(*zip(*found, strict=True), color=colour, s=18, zorder=2)
    if len(taken) <= _MAX_NAMED:
        for slot, member in taken.items():
            axes.annotate(
                keys.broker(member)[:19], spots[0, slot], xytext=(0, -6), textcoords="offset points", rotation=45,
                ha="right", va="top", fontsize=7,
            )  # fmt: skip
    note = f"{counted(len(taken), 'broker')} placed, {len(picture.waiting)} waiting for a place"
    axes.text(0.99, 0.97, note, transform=axes.transAxes, ha="right", va="top", fontsize=8)
    axes.set_ylim(-0.9 - 0.12 * picture.height, picture.height + 0.6)
    axes.set_axis_off()


def _draw_times(axes: Any, keys: Keys, group: KeyGroupId) -> None:  # noqa: ANN401 - as above
    """Draw the number of brokers over time, each change of it, and the beginnings of epochs as lines."""
    epochs, changes = keys.manager.history(group), keys.manager.changes(group)
    for number, epoch in enumerate(epochs):
        label = "epoch begins" if number == 0 else None
        begins = _EPOCH + timedelta(milliseconds=epoch.start)
        axes.axvline(begins, color="black", linewidth=0.8, linestyle=":", label=label)
    inside, line = 0, []
    for change in changes:
        inside += {"join": 1, "repair": 0}.get(change.kind, -1)
        line.append((change.at, max(inside, 0)))
    if line:
        axes.step(*zip(*line, strict=True), where="post", color="tab:blue", label="brokers inside")
    for kind, colour in _COLOURS.items():
        spots = [spot for spot, change in zip(line, changes, strict=True) if change.kind == kind]
        if spots:
            axes.scatter(*zip(*spots, strict=True), color=colour, s=22, zorder=3, label=kind)
    axes.set_ylabel("brokers")
    axes.tick_params(axis="x", labelrotation=20, labelsize=7)
    if epochs or line:
        axes.legend(fontsize=7)
