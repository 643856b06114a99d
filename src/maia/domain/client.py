"""A client of a domain, whose key was proven: it publishes, reads and subscribes."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from maia.domain.engine import Asked
from maia.domain.possession import ProvenClient
from maia.domain.publication import Published
from maia.domain.topics import TypeOrTopic
from maia.encoding import html_table
from maia.errors import UsageError
from maia.principals import PublicKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from maia.domain.engine import Engine, Rows


class Client:
    """Publishes and reads as one key of a domain. Only `Domain.client` makes one, after the key was unlocked.

    Attributes:
        proven: The client's name and key, with the proof; plans are made for it.
    """

    __slots__ = ("_agent", "_checkpoints", "_engine", "_locked", "proven")

    def __init__(
        self,
        engine: Callable[[], Engine],
        proven: ProvenClient,
        *,
        locked: bool,
        agent: Callable[[], Path],
        checkpoints: Path,
    ) -> None:
        """Act for a key that was proven.

        Args:
            engine: Gives what moves rows for the domain.
            proven: The client.
            locked: Whether the file alone does not unlock the key, so that other processes need the agent.
            agent: Starts the agent that proves the key to other processes; gives its socket.
            checkpoints: Where streams that publish keep their place.
        """
        self._engine = engine
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

    def publish(
        self,
        rows: Rows,
        type: str | None = None,  # noqa: A002 - as everywhere
        *,
        topic: str | None = None,
        version: str | None = None,
        publication: str | None = None,
        advertise: str | None = None,
        strict: bool = False,
    ) -> Published | StreamingQuery:
        """Publish rows: a DataFrame, batch or streaming, an Arrow table or a pandas frame.

        Args:
            rows: Columns named as the attributes of the version.
            type: The type: ``owner/name@version``, with what is clear left out.
            topic: In its place, the topic to publish under: ``owner/name``.
            version: Which version the rows have, when the type does not say.
            publication: Names the publication; publishing it twice counts once. Streams need one.
            advertise: What will be published, as a filter whose constraints are alternatives: refused when the bounds
                of the right do not allow it, and rows that it does not cover are refused.
            strict: Publish nothing and raise when any row is refused.

        Returns:
            For a batch what became of it, committed by now; for a stream the running query.

        Raises:
            DeniedError: With ``strict``, rows were refused: ``ROWS_REFUSED``.
            MaiaError: The type is unknown, or the client or the domain's broker has no right.
        """
        events = TypeOrTopic(type=type, version=version, topic=topic)
        asked = replace(self._asked(events, "", None, with_event_id=False), advertise=advertise)
        engine = self._engine()
        if not engine.is_stream(rows):
            name = publication or secrets.token_hex(16)
            return engine.publish(rows, asked, publication=name, strict=strict)
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
        return self._engine().read(self._asked(events, where, attributes, with_event_id=with_event_id))

    def subscribe(
        self,
        type: str | None = None,  # noqa: A002 - as everywhere
        *,
        topic: str | None = None,
        where: str = "",
        attributes: str | Sequence[str] | None = None,
        version: str | None = None,
        with_event_id: bool = False,
        starting: str = "earliest",
    ) -> DataFrame:
        """Follow the log as this client may see it: a streaming DataFrame, with the rights of each micro-batch.

        Args:
            type: The type: ``owner/name@version``, with what is clear left out.
            topic: In its place, a topic with all below it, also what is defined there later; see `read`.
            where: The client's filter; it may speak of attributes that are open to the client.
            attributes: Which attributes, in which order; all of the version when there are none.
            version: Which version to see events as, when the type does not say.
            with_event_id: Add the columns ``_event`` and ``_stamp``.
            starting: ``earliest``, ``latest``, or the number of the commit after which to start.

        Raises:
            MaiaError: The type is unknown, the client has no right, or the filter is refused.
        """
        events = TypeOrTopic(type=type, version=version, topic=topic)
        asked = self._asked(events, where, attributes, with_event_id=with_event_id)
        return self._engine().subscribe(asked, starting=starting)

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
