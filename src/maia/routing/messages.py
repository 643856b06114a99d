"""What brokers say to each other. Values only; how they are written on a wire is another floor's business."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from maia.filters import TypedFilter
from maia.principals import PublicKey
from maia.routing.evidence import NetworkRequest
from maia.routing.identifiers import Identifier


@dataclass(frozen=True, slots=True)
class Lane:
    """All publications of one type at one broker, in one life of that broker; numbered from 1 without gaps."""

    origin: Identifier
    life: int
    key: Identifier


@dataclass(frozen=True, slots=True)
class Event:
    """One publication: its values, when its broker took it, and what the client signed."""

    number: int
    stamp: float
    values: Mapping[str, object]
    evidence: NetworkRequest | None = None


@dataclass(frozen=True, slots=True)
class WantedFilter:
    """One filter that somebody wants events for, by the number its teller gave it, and what the client signed."""

    number: int
    filter_: TypedFilter
    evidence: NetworkRequest | None = None


@dataclass(frozen=True, slots=True)
class AdvertisedLane:
    """A lane that is published to, how far it is, and the filters of which an event must match one.

    One that is ``closed`` is published to no longer; that it is told all the same lets those who were away learn how
    far it got.
    """

    lane: Lane
    head: int
    bounds: tuple[TypedFilter, ...]
    evidence: tuple[NetworkRequest, ...] = ()
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Advertise:
    """Lanes that come from the sender, and lanes that do no longer; ``whole`` replaces what was said before."""

    key: Identifier
    lanes: tuple[AdvertisedLane, ...] = ()
    ended: tuple[Lane, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Filters the sender wants events for, and numbers it takes back; ``whole`` replaces what was said before."""

    key: Identifier
    version: int
    added: tuple[WantedFilter, ...] = ()
    dropped: tuple[int, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Confirm:
    """The filters up to this version are in force all the way to the root."""

    key: Identifier
    version: int


@dataclass(frozen=True, slots=True)
class LaneOffer:
    """What happened on a lane after one number and up to another.

    With ``claims``, nothing in between but the event matches the receiver's filters. Without an event the offer tells
    how far the lane is.
    """

    lane: Lane
    after: int
    number: int
    event: Event | None = None
    claims: bool = True
    hops: int = 32


@dataclass(frozen=True, slots=True)
class Pull:
    """A question to a lane's own broker: the events of a stretch that match one of the filters, not older than that."""

    lane: Lane
    after: int
    number: int
    since: float
    filters: tuple[TypedFilter, ...]


@dataclass(frozen=True, slots=True)
class Pulled:
    """The answer: the matching events of a stretch, which may be shorter than asked for."""

    lane: Lane
    after: int
    number: int
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class HeldEvent:
    """An event, and the lane it was published to."""

    lane: Lane
    event: Event


@dataclass(frozen=True, slots=True)
class AskState:
    """A question for the last event of a type that matches a filter; with a lane, for the last one of that lane."""

    key: Identifier
    number: int
    filter_: TypedFilter
    lane: Lane | None = None


@dataclass(frozen=True, slots=True)
class ToldState:
    """The answer to a question by its number: the event, or none where it is unknown, and how far away it was held."""

    key: Identifier
    number: int
    held: HeldEvent | None = None
    hops: int = 0


@dataclass(frozen=True, slots=True)
class ShownCredentials:
    """All certificates of the sender, or those that it gained, signed for the receiver; see `LinkHandshake`."""

    key: PublicKey
    number: int
    stamp: float
    certificates: tuple[bytes, ...]
    adds: bool
    signature: bytes


@dataclass(frozen=True, slots=True)
class Join:
    """A newcomer looks for its place; the message goes towards it, and everybody on the way answers with `Peers`."""

    newcomer: Identifier


@dataclass(frozen=True, slots=True)
class Ask:
    """Whom do you know?"""


@dataclass(frozen=True, slots=True)
class Peers:
    """Whom the sender knows."""

    peers: tuple[Identifier, ...]


Message: TypeAlias = (
    Advertise
    | Subscribe
    | Confirm
    | LaneOffer
    | Pull
    | Pulled
    | AskState
    | ToldState
    | ShownCredentials
    | Join
    | Ask
    | Peers
)


@dataclass(frozen=True, slots=True)
class Packet:
    """What travels between two brokers: one message, or none, and how much of the other's was received.

    Attributes:
        source: Who sends it.
        target: For whom it is.
        life: Which life of the sender this is; a broker that comes back begins another.
        epoch: Which conversation of the two this is; the one who lost the other begins another.
        sequence: The number of the message in the conversation; 0 without one.
        received: All messages of the other up to here arrived.
        message: The message.
        asks: Whether an answer is wanted in any case.
    """

    source: Identifier
    target: Identifier
    life: int
    epoch: int
    sequence: int
    received: int
    message: Message | None = None
    asks: bool = False
