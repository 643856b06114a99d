"""Why a client sees a cell, or why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from maia.authority import Action
from maia.domain.snapshot import Snapshot
from maia.encoding import did_you_mean, html_table
from maia.errors import DeniedError, UsageError, VerificationError
from maia.events import EventType, TypeName
from maia.home import Folder, words
from maia.kernel import Clause, requests_for
from maia.principals import CertificateId, PublicKey, UnverifiedCertificate


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
        chains: For each clause, who gave it to whom, by the names that the home knows.
        inherited: The type that the attribute is inherited from, whose rights decide; empty when it is the type's own.
    """

    principal: str
    attribute: str
    uid: str
    open_by: tuple[Clause, ...]
    reason: str | None
    names: tuple[tuple[str, str], ...] = ()
    chains: tuple[str, ...] = ()
    inherited: str = ""

    def __bool__(self) -> bool:
        """Tell whether the attribute is open in some rows."""
        return bool(self.open_by)

    def lines(self) -> list[str]:
        """Say it, one clause a line."""
        what = f"`{self.attribute}` (uid {self.uid}{f', of `{self.inherited}`' if self.inherited else ''})"
        if not self.open_by:
            return [f"{self.principal} never sees {what}: {self.reason}"]
        out = []
        for clause, (demands, chain) in zip(self.open_by, self._clauses(), strict=True):
            rows = f"in rows where {demands}" if demands else "in every row"
            within = words.describe_bounds(clause.cells.bounds, dict(self.names))
            rows += f", by a subscription within {within}" if within else ""
            out.append(f"{self.principal} sees {what} {rows}, by {chain}")
        return out

    def __str__(self) -> str:
        """Say it in one text."""
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        """Show it in a notebook, one clause a row."""
        caption = f"{self.principal} and `{self.attribute}` (uid {self.uid})"
        if not self.open_by:
            return html_table(caption, ("", ""), [("never seen", str(self.reason))])
        rows = ((demands or "every row", chain) for demands, chain in self._clauses())
        return html_table(caption, ("seen in rows where", "by the chain"), rows)

    def __repr__(self) -> str:
        """Say it as `str` does: there is nothing in it that a person would rather read otherwise."""
        return f"<{'; '.join(self.lines())}>"

    def _clauses(self) -> list[tuple[str, str]]:
        """Give the demands on the row and the chain of each clause, in words."""
        names = dict(self.names)
        demands = [
            " and ".join(
                f"{names.get(uid, f'uid {uid}')} {words.describe_value(tag.to_sexp())}"
                for uid, tag in clause.constraints
            )
            for clause in self.open_by
        ]
        chains = self.chains or tuple(_ids(clause) for clause in self.open_by)
        return list(zip(demands, chains, strict=True))


def explain_cell(
    known: Snapshot,
    name: TypeName,
    client: PublicKey,
    *,
    principal: str,
    attribute: str,
    folder: Folder,
    at: datetime,
    labelled: Callable[[tuple[Clause, ...], EventType], tuple[Clause, ...]],
    why_closed: Callable[[EventType], str],
) -> CellExplanation:
    """Explain why a client sees an attribute or not.

    Args:
        known: The home's evidence.
        name: The version.
        client: Whose view.
        principal: What the client is called here.
        attribute: The attribute's name.
        folder: Knows names for the keys of the chains.
        at: When.
        labelled: Closes what labels keep from the client.
        why_closed: Says which flow tags keep the attribute from it.

    Raises:
        UsageError: The version has no such attribute: ``NO_SUCH_ATTRIBUTE``.
    """
    sessions, pool = known.sessions, known.pool
    event_type = sessions.event_type(name.type_id, name.version.text, at=at)
    names = tuple((one.uid, one.name) for one in event_type.attributes)
    if attribute not in {word for _, word in names}:
        near = did_you_mean(attribute, (word for _, word in names))
        raise UsageError(f"`{name.name}` has no attribute `{attribute}`{near}", code="NO_SUCH_ATTRIBUTE")
    item = event_type.by_name(attribute)
    try:
        sessions.check_connected(client, pool, at=at)
    except VerificationError as error:
        unserved = f"[{error.code}] {folder.decorate(error.message)}"
        return CellExplanation(principal, attribute, item.uid, (), unserved, names)
    opened, refused = _granted(known, client, event_type, item.uid, folder=folder, at=at)
    own, *extended = sessions.lineage(event_type)
    parent = next((one for one in extended if item.uid in one.uids), None)
    reason = None
    if not opened:
        clauses = sessions.clauses(client, Action.SUBSCRIBE, event_type, pool, at=at)
        asked = own if not clauses or parent is None else parent
        if any(clause.opens(item.uid) for clause in clauses):  # its own right opens it, and its broker has to show it
            reason = refused or "[BROKER_LACKS_RIGHT] the broker may not open this attribute itself"
        else:
            reason = _missing(known, client, asked, clauses, of_parent=asked is not own, folder=folder, at=at)
    if opened:
        try:
            opened = tuple(clause for clause in labelled(opened, event_type) if clause.opens(item.uid))
            reason = (
                None if opened else f"[LABELS_CLOSE] its label may not flow to this client: {why_closed(event_type)}"
            )
        except (VerificationError, DeniedError) as error:
            opened, reason = (), f"[{error.code}] {error.message}"
    by_id = {one.certificate_id: one for one in pool}
    chains = tuple(chain_words(clause, by_id, folder) for clause in opened)
    inherited = "" if parent is None else parent.name.name
    return CellExplanation(principal, attribute, item.uid, opened, reason, names, chains, inherited)


def _granted(
    known: Snapshot, client: PublicKey, event_type: EventType, uid: str, *, folder: Folder, at: datetime
) -> tuple[tuple[Clause, ...], str]:
    """Ask for the clauses that open an attribute to a client; with them, why there are none at all."""
    try:
        clauses = known.sessions.granted(client, Action.SUBSCRIBE, event_type, known.pool, at=at)
    except (VerificationError, DeniedError) as error:
        return (), f"[{error.code}] {folder.decorate(error.message)}"
    return tuple(clause for clause in clauses if clause.opens(uid)), ""


def _missing(
    known: Snapshot,
    client: PublicKey,
    asked: EventType,
    clauses: tuple[Clause, ...],
    *,
    of_parent: bool,
    folder: Folder,
    at: datetime,
) -> str:
    """Say what a client's own rights lack."""
    [request] = requests_for(Action.SUBSCRIBE, asked)
    try:
        known.sessions.verifier.verify(request, principal=client, evidence=known.pool, at=at)
    except VerificationError as error:
        return f"[{error.code}] {folder.decorate(error.message)}"
    if any(clause.holder == (asked.type_id if of_parent else None) for clause in clauses):
        return "no clause of its authority lists this attribute"
    return "the conditions of its right do not hold"


def chain_words(clause: Clause, certificates: Mapping[CertificateId, UnverifiedCertificate], folder: Folder) -> str:
    """Say who gave a right to whom, and by which certificates."""
    links = [certificates.get(identity) for identity in clause.chain]
    if not links or any(link is None for link in links):
        return _ids(clause)
    known = [link for link in links if link is not None]
    who = [folder.names.get(known[0].body.issuer_id) or folder.show(known[0].body.issuer_id)]
    who += [words.show_subject(link.body.subject, folder) for link in known]
    return f"{' -> '.join(who)} ({_ids(clause)})"


def _ids(clause: Clause) -> str:
    return " -> ".join(identity.hex()[:16] for identity in clause.chain) or "the owner itself"
