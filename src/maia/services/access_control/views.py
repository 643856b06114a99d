"""What the access control service says over HTTP: bodies of requests and answers, and how they are made from values."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from maia.access_control import Ended, Entry, Handed, Member, PolicyChange, Revocation
from maia.database import JournalRecord
from maia.services.http import Body, blob_field, octets_field
from maia.wire import encode_key, encode_octets

MAX_CERTIFICATE = 64 << 10
MAX_POLICY = 128 << 10
MAX_ATOM = 1000
MAX_IDS = 1000
_MAX_YEAR_SECONDS = 366 * 86_400

AtomText = Annotated[str, Field(min_length=1, max_length=MAX_ATOM)]
NameText = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Kind = Literal["client", "broker", "domain"]
Moment = Annotated[datetime, Field(strict=False)]


class EnrolBody(Body):
    """How a principal becomes a member: the code of an invitation, or an appointment certificate."""

    invitation: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    appointment: Annotated[str, blob_field(MAX_CERTIFICATE)] | None = None


class InvitationBody(Body):
    """Who is invited, as what, for how long, and what is recorded when it is used."""

    name: NameText
    kind: Kind = "client"
    seconds: Annotated[int, Field(ge=1, le=_MAX_YEAR_SECONDS)] = 86_400
    appointments: list[AtomText] = Field(default_factory=list, max_length=100)


class InvitationView(Body):
    """The code, which is shown this once."""

    code: str


class MemberView(Body):
    """A member."""

    name: str
    key: str
    kind: str
    joined: datetime
    gone: datetime | None


class MembersView(Body):
    """Members by name."""

    members: list[MemberView]


class HandedView(Body):
    """What a principal takes away: its certificates, the chain that proves them, the lists that count now."""

    certificates: list[str]
    chain: list[str]
    statements: list[str]
    refused: list[str]


class EnrolmentView(Body):
    """A new member and its first certificates."""

    member: MemberView
    handed: HandedView


class RoleBody(Body):
    """A role with all its parameters."""

    role: AtomText


class ActivationBody(RoleBody):
    """A role to activate, and whether the journal leaves out who it is; as the domain says when that is not told."""

    anonymous: bool | None = None


class ProofView(Body):
    """Why a role is active, a line a step."""

    proof: list[str]


class RolesView(Body):
    """Active roles with their holders."""

    roles: list[str]


class CertificateBody(Body):
    """A signed certificate."""

    certificate: str = blob_field(MAX_CERTIFICATE)


class DoneView(Body):
    """It is done, and was not before, or was."""

    new: bool


class FactBody(Body):
    """An appointment, or something that is true outside, and until when."""

    fact: AtomText
    kind: Literal["appointment", "environment"] = "appointment"
    until: Moment | None = None


class RetractBody(Body):
    """What is taken back."""

    fact: AtomText


class PolicyBody(Body):
    """The text of a policy."""

    text: str = Field(max_length=MAX_POLICY)


class PolicyView(Body):
    """The text of the policy in force."""

    text: str


class EndedView(Body):
    """A certificate that ends, and the worst case until nobody accepts it."""

    certificate: str
    holder: str | None
    privilege: str | None
    exposure: str


class RevocationBody(Body):
    """What is withdrawn: certificates by their ids, a role, a member."""

    certificates: list[Annotated[str, octets_field(32)]] = Field(default_factory=list, max_length=MAX_IDS)
    role: AtomText | None = None
    principal: NameText | None = None
    preview: bool = False


class RevocationView(Body):
    """What a withdrawal ended, or would end."""

    roles: list[str]
    certificates: list[EndedView]
    members: list[str]
    told: bool


class DifferenceView(Body):
    """What a policy changes for one principal."""

    principal: str
    lost_roles: list[str]
    gained_privileges: list[str]
    lost_privileges: list[str]
    ended: list[EndedView]


class PolicyChangeView(Body):
    """What a policy changes, or would."""

    number: int
    findings: list[str]
    differences: list[DifferenceView]


class EntryView(Body):
    """A live certificate of the register."""

    certificate_id: str
    certificate: str
    holder: str | None
    privilege: str | None
    until: datetime | None
    reported: bool


class RegisterView(Body):
    """A page of the register; ask again after the last one's id until none come."""

    entries: list[EntryView]


class StatementsView(Body):
    """Signed validity statements."""

    statements: list[str]


class QuestionBody(Body):
    """A verifier's one-time question about certificates."""

    nonce: str = octets_field(32)
    verifier: Annotated[str, Field(min_length=1, max_length=256)]
    until: Moment
    request: Annotated[str, octets_field(32)] | None = None
    certificates: list[Annotated[str, octets_field(32)]] = Field(max_length=MAX_IDS)


class JournalLine(Body):
    """Something that the service did."""

    number: int
    at: datetime
    action: str
    who: str | None
    what: str


class JournalView(Body):
    """A page of the journal, oldest first."""

    lines: list[JournalLine]


def show_member(member: Member) -> MemberView:
    """Render a member."""
    return MemberView(
        name=member.name, key=encode_key(member.key), kind=member.kind.value, joined=member.joined, gone=member.gone
    )


def show_handed(handed: Handed) -> HandedView:
    """Render what is handed out."""
    return HandedView(
        certificates=[encode_octets(item.raw) for item in handed.certificates],
        chain=[encode_octets(raw) for raw in handed.chain],
        statements=[encode_octets(raw) for raw in handed.statements],
        refused=[f"{privilege}: {code}" for privilege, code in handed.refused],
    )


def show_revocation(found: Revocation) -> RevocationView:
    """Render a withdrawal."""
    return RevocationView(
        roles=list(found.roles), certificates=_ended(found.certificates), members=list(found.members), told=found.told
    )


def show_change(change: PolicyChange) -> PolicyChangeView:
    """Render a change of policy."""
    return PolicyChangeView(
        number=change.number,
        findings=[str(finding) for finding in change.findings],
        differences=[
            DifferenceView(
                principal=item.principal,
                lost_roles=list(item.lost_roles),
                gained_privileges=list(item.gained_privileges),
                lost_privileges=list(item.lost_privileges),
                ended=_ended(item.ended),
            )
            for item in change.differences
        ],
    )


def show_entry(entry: Entry) -> EntryView:
    """Render a line of the register."""
    return EntryView(
        certificate_id=encode_octets(entry.certificate_id),
        certificate=encode_octets(entry.certificate),
        holder=entry.holder,
        privilege=entry.privilege,
        until=entry.until,
        reported=entry.reported,
    )


def show_line(line: JournalRecord) -> JournalLine:
    """Render a line of the journal."""
    return JournalLine(number=line.number, at=line.at, action=line.action, who=line.who, what=line.what)


def _ended(items: tuple[Ended, ...]) -> list[EndedView]:
    return [
        EndedView(
            certificate=encode_octets(item.certificate_id),
            holder=item.holder,
            privilege=item.privilege,
            exposure=str(item.exposure),
        )
        for item in items
    ]
