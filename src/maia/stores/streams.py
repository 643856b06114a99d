"""What a user does with a home in Python: publish, read, subscribe, explain; DataFrames in and out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from maia.authority import Action, ask_type
from maia.broker import Clause
from maia.encoding import format_advanced, html_table
from maia.errors import UsageError, VerificationError
from maia.pipeline import session
from maia.stores.home import Home

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


def publish(
    home: Home,
    frame: DataFrame,
    type_name: str,
    *,
    as_: str,
    version: str | None = None,
    publication: str | None = None,
) -> StreamingQuery | None:
    """Publish the rows of a DataFrame as a client; see `Home.publish`."""
    options = _options(home, type_name, as_, version=version, publication=publication)
    if not frame.isStreaming:
        frame.write.format("maia").options(**options).mode("append").save()
        return None
    if publication is None:
        raise UsageError(
            "a stream that publishes needs a `publication` name that stays the same", code="MISSING_OPTION"
        )
    # A name never becomes a path.
    digest = hashlib.sha256(publication.encode("utf-8", "surrogatepass")).hexdigest()
    checkpoint = home.path / "checkpoints" / f"publish-{digest[:24]}"
    writer = frame.writeStream.format("maia").options(**options).option("checkpointLocation", str(checkpoint))
    return writer.start()


def read(
    home: Home, type_name: str, *, as_: str, where: str = "", version: str | None = None, with_event_id: bool = False
) -> DataFrame:
    """Read what the log holds now, as a client may see it; see `Home.read`."""
    options = _options(home, type_name, as_, version=version, where=where, with_event_id=with_event_id)
    return session().read.format("maia").options(**options).load()


def subscribe(
    home: Home, type_name: str, *, as_: str, where: str = "", version: str | None = None, starting: str = "earliest"
) -> DataFrame:
    """Follow the log as a client may see it; see `Home.subscribe`."""
    options = _options(home, type_name, as_, version=version, where=where, starting=starting)
    return session().readStream.format("maia").options(**options).load()


def _options(
    home: Home,
    type_name: str,
    as_: str,
    *,
    version: str | None = None,
    where: str = "",
    publication: str | None = None,
    with_event_id: bool = False,
    starting: str | None = None,
) -> dict[str, str]:
    found = {"home": str(home.path.resolve()), "type": type_name, "as": as_}
    if version is not None:
        found["version"] = version
    if where:
        found["where"] = where
    if publication is not None:
        found["publication"] = publication
    if with_event_id:
        found["withEventId"] = "true"
    if starting is not None:
        found["startingOffsets"] = starting
    return found


@dataclass(frozen=True, slots=True)
class CellExplanation:
    """Why a client sees an attribute, or why not.

    Attributes:
        principal: The client's key name.
        attribute: The attribute's name in the version asked about.
        uid: Its uid.
        open_by: Clauses that open it, with the constraint each puts on the row; none means never.
        reason: When nothing opens it: the code and message of the denial, or that no clause lists it.
    """

    principal: str
    attribute: str
    uid: str
    open_by: tuple[Clause, ...]
    reason: str | None

    def __bool__(self) -> bool:
        """Tell whether the attribute is open in some rows."""
        return bool(self.open_by)

    def lines(self) -> list[str]:
        """Say it, one clause a line."""
        if not self.open_by:
            return [f"{self.principal} never sees `{self.attribute}` (uid {self.uid}): {self.reason}"]
        out = []
        for clause in self.open_by:
            demands = " and ".join(f"uid {uid} in {format_advanced(tag.to_sexp())}" for uid, tag in clause.constraints)
            chain = " -> ".join(identity.hex()[:16] for identity in clause.chain) or "the owner itself"
            rows = f"in rows where {demands}" if demands else "in every row"
            out.append(f"{self.principal} sees `{self.attribute}` (uid {self.uid}) {rows}, by {chain}")
        return out

    def __str__(self) -> str:
        """Say it in one text."""
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        """Show it in a notebook, one clause a row."""
        caption = f"{self.principal} and `{self.attribute}` (uid {self.uid})"
        if not self.open_by:
            return html_table(caption, ("", ""), [("never seen", str(self.reason))])
        rows = (
            (
                " and ".join(f"uid {uid} in {format_advanced(tag.to_sexp())}" for uid, tag in clause.constraints)
                or "every row",
                " -> ".join(identity.hex()[:16] for identity in clause.chain) or "the owner itself",
            )
            for clause in self.open_by
        )
        return html_table(caption, ("seen in rows where", "by the chain"), rows)


def explain(
    home: Home, type_name: str, *, principal: str, attribute: str, version: str | None = None, at: datetime
) -> CellExplanation:
    """Explain why a client sees an attribute or not; see `Home.explain`."""
    name = home.find_type(type_name, version)
    sessions = home.sessions(at=at)
    pool = home.pool()
    event_type = sessions.event_type(name.type_id, name.version.text, at=at)
    item = event_type.by_name(attribute)
    client = home.key(principal)
    clauses = sessions.clauses(client, Action.SUBSCRIBE, event_type, pool, at=at)
    opened = tuple(clause for clause in clauses if clause.opens(item.uid))
    reason = None
    if not clauses:
        request = ask_type(Action.SUBSCRIBE, name.owner, name.name, name.version.text)
        try:
            sessions.verifier.verify(request, principal=client, evidence=pool, at=at)
            reason = "the conditions of its right do not hold"
        except VerificationError as error:
            reason = str(error)
    elif not opened:
        reason = "no clause of its authority lists this attribute"
    return CellExplanation(principal, attribute, item.uid, opened, reason)
