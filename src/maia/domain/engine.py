"""The port to whatever moves rows: frames in, frames out. `maia.spark` fills it; what is asked for is decided below."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from maia.domain.labelled_reads import LabelledRead
from maia.domain.look import Look
from maia.domain.possession import ProvenClient
from maia.domain.publication import Published
from maia.domain.topics import TypeOrTopic

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from maia.domain.client import Client
    from maia.policy import release as releases

    Rows: TypeAlias = DataFrame | pa.Table | pa.RecordBatch | pd.DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a client asks for: a type or topics, and how much of it.

    Attributes:
        client: Who asks; its key was proven.
        agent: The socket of the agent that proves a sealed key to other processes.
        events: The type or the topics.
        where: The client's filter.
        attributes: Which attributes, in which order; all when there are none.
        with_event_id: Whether rows carry ``_event`` and ``_stamp``.
        advertise: What a publisher says that it will publish, as a filter.
        naive_timestamps: The zone of a publisher's times that have none.
        labelled: That a labelled frame reads, and by what it is labelled.
    """

    client: ProvenClient
    agent: str | None
    events: TypeOrTopic
    where: str = ""
    attributes: tuple[str, ...] | None = None
    with_event_id: bool = False
    advertise: str | None = None
    naive_timestamps: str | None = None
    labelled: LabelledRead | None = None


class Engine(Protocol):
    """Runs the plans of one domain over frames."""

    def publish(self, rows: Rows, asked: Asked, *, publication: str, strict: bool) -> Published:
        """Publish the rows of a batch; it is committed when this returns."""
        ...

    def publish_stream(self, frame: DataFrame, asked: Asked, *, publication: str, checkpoint: Path) -> StreamingQuery:
        """Publish a stream, each micro-batch once."""
        ...

    def read(self, asked: Asked) -> DataFrame:
        """Read what the log holds now."""
        ...

    def labelled(self, asked: Asked, client: Client, read: LabelledRead) -> Any:  # noqa: ANN401 - a `LabelledFrame`
        """Read what the log holds now, into a frame that carries labels."""
        ...

    def look(self, asked: Asked, *, limit: int) -> Look:
        """Read the first rows, and tell what was closed, refused and not read."""
        ...

    def subscribe(self, asked: Asked, *, starting: str) -> DataFrame:
        """Follow the log."""
        ...

    def audit(self) -> DataFrame:
        """Give the audit as a table."""
        ...

    def release(self, frame: DataFrame, tree: releases.ReleaseTree) -> DataFrame:
        """Give what a tree of release rules makes of the rows of a frame."""
        ...

    def is_stream(self, rows: object) -> bool:
        """Tell whether rows are a stream."""
        ...
