"""Why a client sees a cell, or why not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from maia.authority import Action, ask_type
from maia.domain.snapshot import Snapshot
from maia.encoding import format_advanced, html_table
from maia.errors import VerificationError
from maia.events import TypeName
from maia.kernel import Clause
from maia.principals import PublicKey


@dataclass(frozen=True, slots=True)
class CellExplanation:
    """Why a client sees an attribute, or why not.

    Attributes:
        principal: The client's key name.
        attribute: The attribute's name in the version asked about.
        uid: Its uid.
        open_by: Clauses that open it, with the constraint each puts on the row; none means never.
        reason: When nothing opens it: the code and message of the denial, or that no clause lists it.
        names: The names of the version's attributes by uid, to speak of rows with.
    """

    principal: str
    attribute: str
    uid: str
    open_by: tuple[Clause, ...]
    reason: str | None
    names: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        """Tell whether the attribute is open in some rows."""
        return bool(self.open_by)

    def lines(self) -> list[str]:
        """Say it, one clause a line."""
        if not self.open_by:
            return [f"{self.principal} never sees `{self.attribute}` (uid {self.uid}): {self.reason}"]
        out = []
        for clause in self.open_by:
            demands = self._demands(clause)
            rows = f"in rows where {demands}" if demands else "in every row"
            out.append(f"{self.principal} sees `{self.attribute}` (uid {self.uid}) {rows}, by {_chain(clause)}")
        return out

    def __str__(self) -> str:
        """Say it in one text."""
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        """Show it in a notebook, one clause a row."""
        caption = f"{self.principal} and `{self.attribute}` (uid {self.uid})"
        if not self.open_by:
            return html_table(caption, ("", ""), [("never seen", str(self.reason))])
        rows = ((self._demands(clause) or "every row", _chain(clause)) for clause in self.open_by)
        return html_table(caption, ("seen in rows where", "by the chain"), rows)

    def _demands(self, clause: Clause) -> str:
        names = dict(self.names)
        return " and ".join(
            f"`{names.get(uid, f'uid {uid}')}` in {format_advanced(tag.to_sexp())}" for uid, tag in clause.constraints
        )


def explain_cell(
    known: Snapshot, name: TypeName, client: PublicKey, *, principal: str, attribute: str, at: datetime
) -> CellExplanation:
    """Explain why a client sees an attribute or not.

    Args:
        known: The home's evidence.
        name: The version.
        client: Whose view.
        principal: What the client is called here.
        attribute: The attribute's name.
        at: When.
    """
    sessions, pool = known.sessions, known.pool
    event_type = sessions.event_type(name.type_id, name.version.text, at=at)
    item = event_type.by_name(attribute)
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
    names = tuple((one.uid, one.name) for one in event_type.attributes)
    return CellExplanation(principal, attribute, item.uid, opened, reason, names)


def _chain(clause: Clause) -> str:
    return " -> ".join(identity.hex()[:16] for identity in clause.chain) or "the owner itself"
