"""Who may have frames handled, and through what: the one place where rights and policies meet handlers.

Rules kept here:

- who asks is a client whose key was proven; policies call it by the names under which the home knows that key, and by
  the roles that the home's register has active for it, never by what somebody says;
- policies and rights are asked now, by the domain's clock;
- the home's own policies count always. Whoever names others beside them gets what both allow, through what both force;
- what a policy forces comes first, on the source's own pixels, whatever is installed behind it;
- on a channel, which is the stream of an event type, three rights are needed, each with its conditions and the right to
  connect, asked of the kernel (`Sessions.prove`); without any one of them nothing is installed;
- a refusal is told to the audit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from typing import TYPE_CHECKING

from maia.authority import Action, Grant
from maia.domain.handlers.catalogue import forced_handler
from maia.domain.operations import refusals
from maia.domain.possession import ProvenClient
from maia.domain.register import names_by_key
from maia.domain.xml_policies import OWN_ZONE, OwnPolicies, policy_clock, read_xml_policy
from maia.encoding import printable
from maia.errors import DeniedError, UsageError, VerificationError
from maia.home import Folder, words
from maia.kernel import FrameHandler, HandlerPost
from maia.policy import xml

if TYPE_CHECKING:
    from maia.domain.domain import Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class CameraView:
    """The frames of a camera, under policies.

    Attributes:
        policies: Files, or https:// addresses, beside the home's own; all of them count.
        camera: Whose frames they are, as the policies name it.
        channel: Where handlers are installed, as the policies name it; needed where there are any.
        zone: The zone whose clock the hours of these policies mean.
    """

    policies: tuple[str, ...]
    camera: str
    channel: str | None = None
    zone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeChannel:
    """The stream of an event type, from which handlers make one of another, or of the same.

    Attributes:
        source: The type on whose channel they are installed.
        target: The type that they make.
    """

    source: str
    target: str


def entitled_posts(
    domain: Domain,
    client: ProvenClient,
    handlers: Sequence[FrameHandler],
    *,
    view: CameraView | None = None,
    channel: TypeChannel | None = None,
) -> tuple[HandlerPost, ...]:
    """Put up the handlers that policies force on a client, and behind them those that it may install.

    Args:
        domain: Whose client, types and register.
        client: Who sees the frames, and installs.
        handlers: What it installs, in order.
        view: Of which camera, under which policies.
        channel: On the stream of which type.

    Raises:
        DeniedError: The client may not see the camera (``XML_DENIED``), install one of the handlers
            (``INSTALL_DENIED``), or lacks one of the three rights (``HANDLER_RIGHT``).
        UsageError: There is neither a view nor a channel, so that nothing could be decided; or no view where the home
            has policies of its own.
        MaiaError: A policy or the register cannot be read, which refuses as well.
    """
    if view is None and channel is None:
        raise UsageError("a client's handlers are put up under policies, or on the channel of a type")
    at = domain.clock()
    with refusals(domain.home, client, channel.source if channel is not None else view.camera if view else "", at=at):
        own = OwnPolicies(domain.home.folder).now()
        if own and view is None:
            # SECURITY: a rule of the home is not left out by not naming the camera.
            raise UsageError("this home has policies of image streams: name the camera whose frames they are")
        if channel is not None:
            prove_rights(domain, client, install_rights(channel), at=at)
        forced = () if view is None else _check_view(domain, client, handlers, view, own, at=at)
    # SECURITY: what a policy forces comes first, on the source's own pixels, whatever is installed behind it.
    return (*(HandlerPost(forced_handler(item), forced=True) for item in forced), *map(HandlerPost, handlers))


def tried_posts(folder: Folder, handlers: Sequence[FrameHandler]) -> tuple[HandlerPost, ...]:
    """Put up handlers for nobody in particular, to try them out; in a home with policies of its own nobody does.

    Raises:
        UsageError: The home has policies of image streams: whoever leaves the client out goes around none of them.
        MaiaError: A policy of the home cannot be read.
    """
    if OwnPolicies(folder).now():
        # SECURITY: a rule of the home is not left out by not saying who sees the frames.
        raise UsageError(
            "this home has policies of image streams: name the client that sees the frames, and the camera"
        )
    return tuple(map(HandlerPost, handlers))


def names_of(domain: Domain, client: ProvenClient, *, at: datetime) -> frozenset[str]:
    """Name a client as policies may call it: every name that the home has for its key, and the roles active for it.

    Raises:
        MaiaError: The register cannot be asked.
    """
    return names_by_key(domain.home, client.key, at=at)


def decide_view(
    policies: Sequence[xml.XmlPolicy],
    client: ProvenClient,
    names: frozenset[str],
    handlers: Sequence[FrameHandler],
    *,
    camera: str,
    channel: str,
    at: time,
) -> tuple[xml.ForcedHandler, ...]:
    """Let policies decide what a client sees and installs; give what they force on it.

    Raises:
        DeniedError: It may not see the camera (``XML_DENIED``), or install one of the handlers (``INSTALL_DENIED``).
    """
    seen = xml.decide(policies, xml.See(user=client.name, camera=camera, roles=names), at=at)
    if not seen:
        told = f"`{printable(client.name)}` may not see `{printable(camera)}`"
        raise DeniedError(f"{told}: {seen.reason}", code="XML_DENIED")
    for handler in handlers:
        asked = xml.Install(user=client.name, filter=handler.name, channel=channel, roles=names)
        if not xml.decide(policies, asked, at=at):
            told = f"`{printable(client.name)}` may not install `{handler.name}` there"
            raise DeniedError(told, code="INSTALL_DENIED")
    return seen.handlers


def install_rights(channel: TypeChannel) -> tuple[tuple[Action, str], ...]:
    """Name the three rights that a transformation takes: from the one type, to the other, and to install there."""
    return (
        (Action.TRANSFORM_FROM, channel.source), (Action.TRANSFORM_TO, channel.target),
        (Action.INSTALL_HANDLER, channel.source),
    )  # fmt: skip


def prove_rights(
    domain: Domain, client: ProvenClient, needed: Iterable[tuple[Action, str]], *, at: datetime
) -> tuple[Grant, ...]:
    """Prove rights of a client on types, each with its conditions.

    Raises:
        DeniedError: It lacks one of them, or a condition does not hold: ``HANDLER_RIGHT``.
    """
    known, folder = domain.known(at=at), domain.home.folder
    proven = []
    for action, type_ in needed:
        request, name = (
            words.parse_right(folder, type_=type_, actions=[action.value]).request(),
            type_.rpartition("/")[2],
        )
        try:
            found = known.sessions.prove(client.key, action, request, known.pool, at=at, type_name=name)
        except VerificationError as error:
            told = f"`{printable(client.name)}` lacks the right `{action.value}` on `{printable(type_)}`"
            raise DeniedError(told, code="HANDLER_RIGHT") from error
        proven.append(found)
    return tuple(proven)


def _check_view(
    domain: Domain,
    client: ProvenClient,
    handlers: Sequence[FrameHandler],
    view: CameraView,
    own: Sequence[xml.XmlPolicy],
    *,
    at: datetime,
) -> tuple[xml.ForcedHandler, ...]:
    if handlers and view.channel is None:
        raise UsageError("policies say on which channel a handler may be installed: name it")
    named = [read_xml_policy(domain.home.folder, source) for source in view.policies]
    names, forced = names_of(domain, client, at=at), dict[xml.ForcedHandler, None]()
    # SECURITY: each decides by itself, so that what somebody names beside the home's own gives nothing.
    judges = [(own, OWN_ZONE)] if own else []
    judges += [(named, view.zone)] if named or not own else []
    for policies, zone in judges:
        found = decide_view(
            policies, client, names, handlers, camera=view.camera, channel=view.channel or "",
            at=policy_clock(at, zone),
        )  # fmt: skip
        forced |= dict.fromkeys(found)
    return tuple(forced)
