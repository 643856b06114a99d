"""Two cameras, three people who see them, and policies that change while all of it runs.

The cameras publish each frame once. What a person sees of it is made on the way by handlers, as the policies of the
home say at that moment; the channels are bound once, and their program is not touched.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import maia
from maia.demo.contact_sheet import closed_image, contact_sheet, write_png
from maia.demo.typed import Organisation
from maia.demo.views import SceneView, refused
from maia.domain import ImageChannel, Sink, publish_parts
from maia.errors import MaiaError
from maia.kernel import Frame

CAMERAS = ("door", "yard")
PEOPLE: Mapping[str, str] = {
    "guard": "the guard",
    "shop": "the shop next door, which pays for little",
    "guest": "a guest",
}
_ALL = '<access user="*" camera="*" effect="allow"/>'
_BASIC = '<image camera="*" user="shop"><greyscale/><half-size/></image>'
_BLUR = '<image camera="door" user="*"><blur region="lower-half"/></image>'
_BLUR_GUEST = '<image camera="*" user="guest"><blur region="lower-half"/></image>'
_GONE = '<access user="guest" camera="*" effect="deny"/>'
POLICIES: Mapping[str, tuple[str, ...]] = {
    "at first": (_ALL, _BASIC),
    "the door is blurred": (_ALL, _BASIC, _BLUR),
    "for guests all is": (_ALL, _BASIC, _BLUR, _BLUR_GUEST),
    "the guest has gone": (_ALL, _BASIC, _BLUR, _GONE),
}
HEIGHT, WIDTH = 96, 128
SHEET = "contact-sheet.png"
_ATTRIBUTES = ("number:integer", "height:integer", "width:integer", "channels:integer", "pixels:binary")
Say = Callable[[str], None]


@dataclass(slots=True)
class AvsFacts:
    """What happened, for people and for machines.

    Attributes:
        commands: What was typed.
        published: How many events each camera published.
        seen: For each person and camera, under each policy, the sides and channels of what came; or why nothing did.
        verifications: How often the rights of each person were proven on each camera.
        sheet: Where the contact sheet is.
    """

    commands: list[str] = field(default_factory=list)
    published: dict[str, int] = field(default_factory=dict)
    seen: dict[str, dict[str, list[int] | str]] = field(default_factory=dict)
    verifications: dict[str, int] = field(default_factory=dict)
    sheet: str = ""

    def views(self) -> list[SceneView]:
        """Show what came to whom, under each policy."""
        rows = [
            (place, *(refused(item) if isinstance(item, str) else "x".join(map(str, item)) for item in row.values()))
            for place, row in self.seen.items()
        ]
        remark = "height, width and channels of each frame; the policies changed while the channels ran"
        return [
            SceneView(
                title="what each sees", columns=("who", *POLICIES), rows=tuple(rows), remark=remark,
                wide=True,
            )
        ]  # fmt: skip

    def to_json(self) -> dict[str, object]:
        """Give it for machines."""
        return {
            "commands": self.commands, "published": self.published, "seen": self.seen,
            "verifications": self.verifications, "sheet": self.sheet,
        }  # fmt: skip


def play_avs(folder: Path, *, say: Say, sheet: Path | None = None) -> AvsFacts:
    """Play the scenario in a folder.

    Args:
        folder: An empty folder; the home goes there.
        say: Tells the person at the terminal what is going on.
        sheet: Where the contact sheet goes; into the folder by default.
    """
    facts = AvsFacts()
    home = Organisation(folder, "avs", told=facts.commands, say=say)
    say("a home with two cameras; three people may have their streams routed to them, and none of them may subscribe")
    _found(home)
    screens: dict[str, dict[str, np.ndarray]] = {f"{who} at the {camera}": {} for who in PEOPLE for camera in CAMERAS}
    with maia.open(home.home) as domain:
        _policy(home, POLICIES["at first"])  # who is bound may see
        channels = {camera: domain.channel(camera, operator="operator") for camera in CAMERAS}
        sinks = {f"{who} at the {camera}": channels[camera].bind(who) for who in PEOPLE for camera in CAMERAS}
        for number, (policy, rules) in enumerate(POLICIES.items()):
            _policy(home, rules)
            for camera, channel in channels.items():
                row = _row(number, draw(camera, number))
                (done,) = publish_parts(domain, domain.prove("camera"), [[row]], type=camera)
                facts.published[camera] = facts.published.get(camera, 0) + done.events
                _show(channel, camera, policy, screens)
            say(f"{policy}: {', '.join(place for place, seen in screens.items() if policy in seen)}")
        for place, sink in sinks.items():
            row_of = screens[place]
            facts.seen[place] = {
                policy: list(row_of[policy].shape) if policy in row_of else _code(sink.closed) for policy in POLICIES
            }
            facts.verifications[place] = sink.verifications
    target = folder / SHEET if sheet is None else sheet
    nothing = closed_image(HEIGHT, WIDTH)
    write_png(target, contact_sheet([[row.get(policy, nothing) for policy in POLICIES] for row in screens.values()]))
    facts.sheet = str(target)
    say(f"the contact sheet is in {target}")
    return facts


def draw(camera: str, number: int) -> np.ndarray:
    """Draw what a camera sees: a wall or a garden, and somebody who walks through the lower half."""
    down, across = np.mgrid[0:HEIGHT, 0:WIDTH]
    image = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
    image[..., 2] = 90 + down
    image[..., 0 if camera == "door" else 1] = 60 + across
    if camera == "door":
        image[20:90, 46:82] = (120, 72, 40)
        image[55:59, 74:78] = (230, 200, 80)
    else:
        image[(across // 8 + down // 8) % 2 == 0] //= 2
    left = 12 + 26 * number
    image[46:58, left + 4 : left + 14] = (236, 188, 150)
    image[58:92, left : left + 18] = (190, 30, 50)
    image[64:70:2, left + 2 : left + 16] = (250, 250, 250)
    return image


def _found(home: Organisation) -> None:
    home.do("domain", "init", str(home.home), "--key")
    for who in ("owner", "camera", "operator", *PEOPLE):
        home.do("key", "new", who, "--no-passphrase")
    rights = {"broker": "publish", "camera": "publish", "operator": "subscribe", **dict.fromkeys(PEOPLE, "route")}
    for camera in CAMERAS:
        attributes = [word for item in _ATTRIBUTES for word in ("--attribute", item)]
        home.do("type", "define", f"owner/{camera}@1", *attributes)
        for who, action in rights.items():
            home.do("grant", "--from", "owner", "--to", who, "--type", f"owner/{camera}", "--action", action, "--yes")


def _policy(home: Organisation, rules: Sequence[str]) -> None:
    text = "".join(f"  {rule}\n" for rule in rules)
    made = home.write("policy/avs.xml.new", f'<policies xmlns="urn:maia:policy:1">\n{text}</policies>\n')
    made.rename(made.with_suffix(""))  # nobody reads half of it


def _show(channel: ImageChannel, camera: str, policy: str, screens: dict[str, dict[str, np.ndarray]]) -> None:
    def take(sink: Sink, frames: Sequence[Frame]) -> None:
        for frame in frames:
            image = np.frombuffer(frame.pixels, np.uint8).reshape(frame.height, frame.width, frame.channels)
            screens[f"{sink.client.name} at the {camera}"][policy] = image

    channel.pump(take)


def _row(number: int, image: np.ndarray) -> dict[str, object]:
    pixels = b64encode(image.tobytes()).decode("ascii")
    return {"number": number, "height": HEIGHT, "width": WIDTH, "channels": 3, "pixels": pixels}


def _code(error: MaiaError | None) -> str:
    return "" if error is None else error.code
