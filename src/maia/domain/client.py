"""A client of a domain, whose key was proven: it advertises, publishes, reads and subscribes."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from maia.authority import Action
from maia.domain.engine import Asked
from maia.domain.label_files import frame_labels
from maia.domain.labelled_reads import sign_labelled_read
from maia.domain.possession import ProvenClient
from maia.domain.publication import Published, nothing_published
from maia.domain.topics import TypeOrTopic
from maia.encoding import html_table
from maia.errors import UsageError
from maia.events import parse_offset
from maia.principals import PublicKey

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from maia.domain.domain import Domain
    from maia.domain.engine import Rows
    from maia.domain.look import Look
    from maia.events import UnverifiedEventType

    NamedType: TypeAlias = str | bytes | UnverifiedEventType


class Client:
    """Publishes and reads as one key of a domain. Only `Domain.client` makes one, after the key was unlocked.

    Attributes:
        proven: The client's name and key, with the proof; plans are made for it.
    """

    __slots__ = ("_agent", "_checkpoints", "_domain", "_locked", "proven")

    def __init__(
        self,
        domain: Domain,
        proven: ProvenClient,
        *,
        locked: bool,
        agent: Callable[[], Path],
        checkpoints: Path,
    ) -> None:
        """Act for a key that was proven.

        Args:
            domain: Whose client it is: its broker remembers what the client advertises and subscribes to.
            proven: The client.
            locked: Whether the file alone does not unlock the key, so that other processes need the agent.
            agent: Starts the agent that proves the key to other processes; gives its socket.
            checkpoints: Where streams that publish keep their place.
        """
        self._domain = domain
        self._agent = agent
        self._locked = locked
        self._checkpoints = checkpoints
        self.proven = proven

    @property
    def name(self) -> str:
        """What the key is called in the domain's home."""
        return self.proven.name

    @property
    def key(self) -> PublicKey:
        """The public key."""
        return self.proven.key

    @property
    def agent(self) -> str:
        """Where other processes of this user have the key proven: what the option ``agent`` of Spark's names."""
        return str(self._agent())

    def __repr__(self) -> str:
        """Name the client and its key."""
        return f"<client {self.name}, {self.key.fingerprint}>"

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return html_table(f"client {self.name}", ("", ""), [("key", self.key.fingerprint)])

    def advertise(
        self,
        type: NamedType | None = None,  # noqa: A002 - as everywhere
        *,
        topic: str | None = None,
        version: str | None = None,
        where: str | None = None,
    ) -> None:
        """Say that this client will publish a type; its broker verifies the right once, remembers it and audits it.

        Args:
            type: The type: ``owner/name@version`` with what is clear left out, or its signed definition.
            topic: In its place, the topic to publish under: ``owner/name``.
            version: Which version, when the type does not say.
            where: What will be published, as a filter whose constraints are alternatives; rows that it does not cover
                are refused.

        Raises:
            MaiaError: The type is unknown, the client or the broker has no right, or the bounds of the right do not
                allow it; nothing is remembered then.
        """
        name = self._events(type, version, topic, Action.PUBLISH).published(self._domain)
        self._domain.advertise(name, client=self.proven, said=where)

    def unadvertise(
        self,
        type: str | None = None,  # noqa: A002 - as everywhere
        *,
        topic: str | None = None,
        version: str | None = None,
    ) -> None:
        """Take back what was advertised, in all versions unless one is named; publishing it is refused from now on.

        Raises:
            DeniedError: Nothing of it was advertised: ``NOT_ADVERTISED``.
        """
        events = TypeOrTopic(type=type, version=version, topic=topic)
        name = events.type if events.type is not None else events.published(self._domain)
        self._domain.unadvertise(name, client=self.proven, version=version)

    def publish(
        self,
        rows: Rows,
        type: NamedType | None = None,  # noqa: A002 - as everywhere
        *,
        topic: str | None = None,
        version: str | None = None,
        publication: str | None = None,
        advertise: str | None = None,
        strict: bool = False,
        naive_timestamps: str | None = None,
    ) -> Published | StreamingQuery:
        """Publish rows: a DataFrame, batch or streaming, an Arrow table or a pandas frame.

        Args:
            rows: Columns named as the attributes of the version.
            type: The type: ``owner/name@version`` with what is clear left out, or its signed definition.
            topic: In its place, the topic to publish under: ``owner/name``.
            version: Which version the rows have, when the type does not say.
            publication: Names the publication; publishing it twice counts once. Streams need one.
            advertise: What will be published, as a filter whose constraints are alternatives: refused when the bounds
                of the right do not allow it, and rows that it does not cover are refused.
            strict: Publish nothing and raise when any row is refused.
            naive_timestamps: The zone of times that have none, ``UTC`` or an offset such as ``+01:00``; without it
                their rows are refused.

        Returns:
            For a batch what became of it, committed by now; for a stream the running query.

        Raises:
            RowsRefusedError: Every row was refused, or any with ``strict``, so that nothing is published.
            DeniedError: The client took back what it had advertised, or never did where its domain wants that:
                ``NOT_ADVERTISED``.
            MaiaError: The type is unknown, or the client or the domain's broker has no right.
        """
        events = self._events(type, version, topic, Action.PUBLISH)
        if naive_timestamps is not None:
            parse_offset(naive_timestamps)
        asked = replace(
            self._asked(events, "", None, with_event_id=False), advertise=advertise, naive_timestamps=naive_timestamps
        )
        engine = self._domain.engine
        if not engine.is_stream(rows):
            name = publication or secrets.token_hex(16)
            done = engine.publish(rows, asked, publication=name, strict=strict)
            if done.refused and not done.events:
                raise nothing_published(done)
            return done
        if publication is None:
            raise UsageError(
                "a stream that publishes needs a `publication` name that stays the same", code="MISSING_OPTION"
            )
        # A name never becomes a path.
        digest = hashlib.sha256(publication.encode("utf-8", "surrogatepass")).hexdigest()
        checkpoint = self._checkpoints / f"publish-{digest[:24]}"
        return engine.publish_stream(rows, asked, publication=publication, checkpoint=checkpoint)

    def read(
        self,
        type: str | None = None,  # noqa: A002 - as everywhere
        *,
        topic: str | None = None,
        where: str = "",
        attributes: str | Sequence[str] | None = None,
        version: str | None = None,
        with_event_id: bool = False,
    ) -> DataFrame:
        """Read what the log holds now, as this client may see it: closed cells are null, other rows are absent.

        Args:
            type: The type: ``owner/name@version``, with what is clear left out.
            topic: In its place, a topic with all below it: ``owner/name``, with ``*`` where any component may stand.
            where: The client's filter; it may speak of attributes that are open to the client.
            attributes: Which attributes, in which order; all of the version when there are none.
            version: Which version to see events as, when the type does not say.
            with_event_id: Add the columns ``_event`` and ``_stamp``.

        Raises:
            MaiaError: The type is unknown, the client has no right, or the filter is refused.
        """
        events = TypeOrTopic(type=type, version=version, topic=topic)
        return self._domain.engine.read(self._asked(events, where, attributes, with_event_id=with_event_id))

    def labelled(
        self,
        type: str,  # noqa: A002 - as everywhere
        *,
        where: str = "",
        version: str | None = None,
    ) -> Any:  # noqa: ANN401 - a `LabelledFrame` of `maia.spark` stands above
        """Read what the log holds now into a frame that carries flow labels, and is checked wherever something leaves.

        Args:
            type: The type: ``owner/name@version``, with what is clear left out.
            where: The client's filter; it may speak of attributes that are open to the client.
            version: Which version to see events as, when the type does not say.

        Raises:
            MaiaError: The type is unknown, the client has no right, nothing of it may flow to the client, or the filter
                is refused.
        """
        events = TypeOrTopic(type=type, version=version)
        domain = self._domain
        labels = frame_labels(domain.home, self.name, at=(at := domain.clock()))
        # SECURITY: the ticket is for this read; nothing else opens to a client what only its frames may hold.
        read = sign_labelled_read(domain.home, self.key, events, where, labels, at=at)
        return domain.engine.labelled(self._asked(events, where, None, with_event_id=False), self, read)

    def look(
        self,
        type: str | None = None,  # noqa: A002 - as everywhere
        *,
        topic: str | None = None,
        where: str = "",
        attributes: str | Sequence[str] | None = None,
        version: str | None = None,
        limit: int = 20,
    ) -> Look:
        """Look at the first events, as `read` gives them, and at what was closed, refused or not read.

        It prints as a table in which closed attributes are marked ∅ and nulls are null, with one line below it.

        Args:
            type: The type: ``owner/name@version``, with what is clear left out.
            topic: In its place, a topic with all below it.
            where: The client's filter.
            attributes: Which attributes, in which order; all of the version when there are none.
            version: Which version to see events as, when the type does not say.
            limit: At most so many rows.

        Raises:
            MaiaError: The type is unknown, the client has no right, or the filter is refused.
        """
        if limit < 1:
            raise UsageError("`limit` is at least 1", code="OPTION_VALUE")
        events = TypeOrTopic(type=type, version=version, topic=topic)
        return self._domain.engine.look(self._asked(events, where, attributes, with_event_id=False), limit=limit)

    def subscribe(
        self,
        type: NamedType | None = None,  # noqa: A002 - as everywhere
        *,
        topic: str | None = None,
        where: str = "",
        attributes: str | Sequence[str] | None = None,
        version: str | None = None,
        with_event_id: bool = False,
        starting: str = "earliest",
        name: str | None = None,
    ) -> DataFrame:
        """Follow the log as this client may see it: a streaming DataFrame, with the rights of each micro-batch.

        Args:
            type: The type: ``owner/name@version`` with what is clear left out, or its signed definition, which the
                broker verifies and keeps: from then on the name is enough.
            topic: In its place, a topic with all below it, also what is defined there later; see `read`.
            where: The client's filter; it may speak of attributes that are open to the client.
            attributes: Which attributes, in which order; all of the version when there are none.
            version: Which version to see events as, when the type does not say.
            with_event_id: Add the columns ``_event`` and ``_stamp``.
            starting: ``earliest``, ``latest``, or the number of the commit after which to start.
            name: Lets the broker remember the subscription under this name: the delivery job stores what it gets,
                whether this client is there or not, and `delivered` gives it. Subscribing again by the same name, type
                and filter goes on with it; `unsubscribe` ends it.

        Raises:
            DeniedError: Somebody else has a subscription of this name: ``NOT_YOUR_SUBSCRIPTION``.
            UsageError: There is one of this name to another type or by another filter: ``SUBSCRIPTION_EXISTS``.
            MaiaError: The type is unknown, the client has no right, or the filter is refused; nothing is remembered.
        """
        events = self._events(type, version, topic, Action.SUBSCRIBE).fixed(self._domain)
        if name is not None and events.topic is not None:
            raise UsageError("the delivery job keeps subscriptions to types; follow a topic without a name")
        asked = self._asked(events, where, attributes, with_event_id=with_event_id)
        frame = self._domain.engine.subscribe(asked, starting=starting)
        if name is not None:
            self._keep(name, events, where)  # last: what was refused leaves nothing behind
        return frame

    def unsubscribe(self, name: str) -> None:
        """End a subscription that the broker remembers; what it was delivered stays there for this client.

        Raises:
            NotFoundError: There is none: ``NO_SUBSCRIPTION``.
            DeniedError: It is somebody else's: ``NOT_YOUR_SUBSCRIPTION``.
        """
        from maia.domain.subscriptions import end_subscription  # noqa: PLC0415 - above this module

        end_subscription(self._domain, name, client=self.proven)

    def delivered(self, name: str, *, last: int | None = None) -> pa.Table:
        """Read what a subscription of this client was delivered, oldest first, with the rights of now.

        The delivery job (`maia deliver`) delivers; before it has run there is nothing, and a warning says so.

        Args:
            name: The subscription.
            last: Only the last so many events.

        Raises:
            MaiaError: The subscription is unknown or somebody else's, or the client has no right any more.
        """
        import pyarrow as pa  # noqa: PLC0415 - most clients ask for frames

        from maia.domain.deliveries import last_events, read_deliveries  # noqa: PLC0415 - above this module

        batches = read_deliveries(self._domain, self, name)
        kept = list(batches if last is None else last_events(batches, last))
        return pa.Table.from_batches(kept) if kept else pa.table({})

    def _keep(self, name: str, events: TypeOrTopic, where: str) -> None:
        from maia.domain.subscriptions import take_up_subscription  # noqa: PLC0415 - above this module
        from maia.domain.types import show_type  # noqa: PLC0415 - as above
        from maia.domain.wanted import Wanted  # noqa: PLC0415 - as above

        full = show_type(self._domain.home, events.names(self._domain)[0])
        wanted = Wanted(name=name, as_=self.name, type=full, where=where)
        take_up_subscription(self._domain, wanted, client=self.proven)

    def _events(self, type_: NamedType | None, version: str | None, topic: str | None, action: Action) -> TypeOrTopic:
        """Name what is meant; a definition is verified and kept by the broker first."""
        if type_ is None or isinstance(type_, str):
            return TypeOrTopic(type=type_, version=version, topic=topic)
        from maia.domain.types import show_type  # noqa: PLC0415 - as above

        raw = type_ if isinstance(type_, bytes) else type_.raw
        name = self._domain.learn(raw, client=self.proven, action=action)
        return TypeOrTopic(type=show_type(self._domain.home, name), version=version, topic=topic)

    def _asked(
        self,
        events: TypeOrTopic,
        where: str,
        attributes: str | Sequence[str] | None,
        *,
        with_event_id: bool,
    ) -> Asked:
        one = (attributes,) if isinstance(attributes, str) else attributes
        return Asked(
            client=self.proven, agent=self.agent if self._locked else None, events=events, where=where,
            attributes=None if one is None else tuple(one), with_event_id=with_event_id,
        )  # fmt: skip
