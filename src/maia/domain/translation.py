"""A translator client of a domain: follows one type and publishes what it sees as another, each event once.

It is a client like any other: it sees what its right to subscribe shows, and sets what its right to publish allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from maia.domain.client import Client
from maia.domain.domain import Domain
from maia.domain.publication import Published
from maia.errors import UsageError
from maia.events import Translator

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def make_translator(domain: Domain, source: str, target: str, pairs: Sequence[tuple[str, str]] = ()) -> Translator:
    """Pair the attributes of two types: those that are called the same and have one type, or as the pairs say.

    Raises:
        MalformedError: A pair does not fit (``TRANSLATOR_PAIRS``), or names no attribute.
        MaiaError: A type is unknown.
    """
    old, new = domain.event_type(source), domain.event_type(target)
    return Translator.by_name(old, new) if not pairs else Translator(source=old, target=new, pairs=tuple(pairs))


def start_translator(
    client: Client, translator: Translator, source: str, target: str, *, publication: str
) -> StreamingQuery:
    """Follow the source and publish the target until the query is stopped; started again it goes on where it ended.

    Args:
        client: Who sees and publishes.
        translator: The pairs.
        source: The type that is followed, in full.
        target: The type that is published, in full.
        publication: Names the publication: as long as it stays the same, every event is moved once.

    Raises:
        MaiaError: The client may not see the one or publish the other.
    """
    frame = client.subscribe(source, attributes=[old for old, _ in translator.pairs])
    rows = frame.selectExpr(*(f"{_quoted(old)} as {_quoted(new)}" for old, new in translator.pairs))
    query = client.publish(rows, target, publication=publication)
    if isinstance(query, Published):
        raise UsageError("what is followed is a stream", code="NO_ROWS")
    return query


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
