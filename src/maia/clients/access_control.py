"""The client of a domain's access control service: for its members, and for those who administer it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from maia import wire
from maia.clients.reading import read_blobs, read_instant, read_list, read_number, read_table, read_text, read_texts
from maia.clients.service import ServiceClient
from maia.principals import CertificateId, PublicKey


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteMember:
    """A member of a domain, as its service says."""

    name: str
    key: PublicKey
    kind: str
    joined: datetime | None
    gone: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteHanded:
    """What a service handed out; nothing in it is verified yet.

    Attributes:
        certificates: One's own certificates.
        chain: The domain's certificates that prove them.
        statements: The domain's validity lists that count now.
        refused: Privileges that could not become a right, and why.
    """

    certificates: tuple[bytes, ...]
    chain: tuple[bytes, ...]
    statements: tuple[bytes, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRevocation:
    """What a withdrawal ended, or would end: roles, certificates with their holders, members."""

    roles: tuple[str, ...]
    certificates: tuple[tuple[CertificateId, str | None], ...]
    members: tuple[str, ...]
    told: bool


class AccessControlClient(ServiceClient):
    """Talks to an access control service. Every method raises what `ServiceClient.call` does."""

    # -- for members

    def enrol(
        self, *, invitation: str | None = None, appointment: bytes | None = None
    ) -> tuple[RemoteMember, RemoteHanded]:
        """Become a member by an invitation or an appointment certificate."""
        shown = None if appointment is None else wire.encode_octets(appointment)
        body = {key: value for key, value in (("invitation", invitation), ("appointment", shown)) if value is not None}
        answer = read_table(self.call("POST", "/v1/members/enrol", body=body))
        return _member(read_table(answer.get("member"))), _handed(answer.get("handed"))

    def activate(self, role: str, *, anonymous: bool | None = None) -> tuple[str, ...]:
        """Activate a role, named in the journal or not as one asks, else as the domain says; give its proof."""
        body = {"role": role} | ({} if anonymous is None else {"anonymous": anonymous})
        return read_texts(read_table(self.call("POST", "/v1/roles/activate", body=body)), "proof")

    def deactivate(self, role: str) -> RemoteRevocation:
        """Give up a role."""
        return _revocation(self.call("POST", "/v1/roles/deactivate", body={"role": role}))

    def capabilities(self) -> RemoteHanded:
        """Take the certificates of everything that one may have now."""
        return _handed(self.call("POST", "/v1/capabilities"))

    def renew(self, certificate: bytes) -> RemoteHanded:
        """Get a certificate anew."""
        body = {"certificate": wire.encode_octets(certificate)}
        return _handed(self.call("POST", "/v1/capabilities/renew", body=body))

    def report(self, certificate: bytes) -> None:
        """Report a delegation that one made."""
        self.call("POST", "/v1/capabilities/report", body={"certificate": wire.encode_octets(certificate)})

    def statements(self) -> tuple[bytes, ...]:
        """Ask for the validity lists that count now."""
        return read_blobs(read_table(self.call("GET", "/v1/statements")), "statements")

    # -- for administrators

    def members(self) -> tuple[RemoteMember, ...]:
        """List the members."""
        return tuple(_member(item) for item in read_list(read_table(self.call("GET", "/v1/members")), "members"))

    def invite(
        self, name: str, *, kind: str = "client", life: timedelta = timedelta(days=1), appointments: Iterable[str] = ()
    ) -> str:
        """Invite somebody; give the code."""
        seconds = life // timedelta(seconds=1)
        body = {"name": name, "kind": kind, "seconds": seconds, "appointments": list(appointments)}
        return read_text(read_table(self.call("POST", "/v1/invitations", body=body)), "code")

    def appoint(self, fact: str, *, until: datetime | None = None) -> bool:
        """Record an appointment; say whether it is new."""
        return self._record(fact, "appointment", until)

    def observe(self, fact: str, *, until: datetime | None = None) -> bool:
        """Record that something is true outside; say whether that is new."""
        return self._record(fact, "environment", until)

    def retract(self, fact: str) -> RemoteRevocation:
        """Take a fact back, with everything that stands on it."""
        return _revocation(self.call("POST", "/v1/facts/retract", body={"fact": fact}))

    def roles(self, principal: str | None = None) -> tuple[str, ...]:
        """List the active roles, of one member or of all."""
        query = None if principal is None else {"principal": principal}
        return read_texts(read_table(self.call("GET", "/v1/roles", query=query)), "roles")

    def policy(self) -> str:
        """Show the policy in force."""
        return read_text(read_table(self.call("GET", "/v1/policy")), "text")

    def preview_policy(self, text: str) -> Mapping[str, object]:
        """Ask what a policy would change for whom."""
        return read_table(self.call("POST", "/v1/policy/preview", body={"text": text}))

    def apply_policy(self, text: str) -> int:
        """Put a policy in force; give its number."""
        return read_number(read_table(self.call("POST", "/v1/policy/apply", body={"text": text})), "number")

    def register(self, *, after: int = 0) -> tuple[bytes, ...]:
        """List live certificates, a hundred at a time, after so many."""
        entries = read_list(read_table(self.call("GET", "/v1/register", query={"after": after})), "entries")
        return tuple(wire.decode_blob(read_text(item, "certificate"), limit=1 << 16) for item in entries)

    def revoke(
        self,
        *,
        certificates: Iterable[bytes] = (),
        role: str | None = None,
        principal: str | None = None,
        preview: bool = False,
    ) -> RemoteRevocation:
        """Withdraw certificates by their ids, a role or a member; or ask what that would end."""
        body: dict[str, object] = {"certificates": [wire.encode_octets(item) for item in certificates]}
        body |= {key: value for key, value in (("role", role), ("principal", principal)) if value is not None}
        return _revocation(self.call("POST", "/v1/revocations", body={**body, "preview": preview}))

    def journal(self, *, after: int = 0) -> tuple[Mapping[str, object], ...]:
        """Read what the service did, a hundred lines at a time."""
        return tuple(read_list(read_table(self.call("GET", "/v1/journal", query={"after": after})), "lines"))

    def _record(self, fact: str, kind: str, until: datetime | None) -> bool:
        body = {"fact": fact, "kind": kind, **({} if until is None else {"until": until.isoformat()})}
        return read_table(self.call("POST", "/v1/facts", body=body)).get("new") is True


def _member(table: dict[str, object]) -> RemoteMember:
    return RemoteMember(
        name=read_text(table, "name"),
        key=wire.decode_key(read_text(table, "key")),
        kind=read_text(table, "kind"),
        joined=read_instant(table, "joined"),
        gone=read_instant(table, "gone"),
    )


def _handed(value: object) -> RemoteHanded:
    table = read_table(value)
    return RemoteHanded(
        certificates=read_blobs(table, "certificates"),
        chain=read_blobs(table, "chain"),
        statements=read_blobs(table, "statements"),
        refused=read_texts(table, "refused"),
    )


def _revocation(value: object) -> RemoteRevocation:
    table = read_table(value)
    ended = [
        (
            CertificateId(wire.decode_octets(read_text(item, "certificate"), length=32)),
            None if item.get("holder") is None else read_text(item, "holder"),
        )
        for item in read_list(table, "certificates")
    ]
    return RemoteRevocation(
        roles=read_texts(table, "roles"),
        certificates=tuple(ended),
        members=read_texts(table, "members"),
        told=table.get("told") is True,
    )
