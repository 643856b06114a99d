"""The access control service's routes: parse, ask the service, render.

Rules kept here:

- what a member asks for is for the key that signed the request;
- whatever changes the domain, or shows more than one's own, is for administrators; to everybody else it is denied, and
  denials look alike.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query

from maia.access_control import AccessControl, MemberKind
from maia.authority import Challenge
from maia.errors import DeniedError, UsageError
from maia.policy import FactKind
from maia.services.access_control.open_routes import aware, open_routes
from maia.services.access_control.views import (
    MAX_CERTIFICATE,
    ActivationBody,
    CertificateBody,
    DoneView,
    EnrolBody,
    EnrolmentView,
    FactBody,
    HandedView,
    InvitationBody,
    InvitationView,
    JournalView,
    MembersView,
    PolicyBody,
    PolicyChangeView,
    PolicyView,
    ProofView,
    QuestionBody,
    RegisterView,
    RetractBody,
    RevocationBody,
    RevocationView,
    RoleBody,
    RolesView,
    StatementsView,
    show_change,
    show_entry,
    show_handed,
    show_line,
    show_member,
    show_revocation,
)
from maia.services.http import Caller, Signed
from maia.wire import decode_blob, decode_octets, encode_octets

_PAGE = 100


def access_control_routes(service: AccessControl) -> tuple[APIRouter, ...]:
    """Give the routes of a domain's service."""
    return (
        open_routes(service),
        _member_routes(service),
        _people_routes(service),
        _policy_routes(service),
        _register_routes(service),
    )


def _member_routes(service: AccessControl) -> APIRouter:
    router = APIRouter(tags=["members"])

    @router.post("/members/enrol")
    def enrol(body: EnrolBody, caller: Signed) -> EnrolmentView:
        """Become a member, by an invitation or an appointment."""
        appointment = None if body.appointment is None else decode_blob(body.appointment, limit=MAX_CERTIFICATE)
        found = service.enrol(caller.authenticated, at=caller.at, invitation=body.invitation, appointment=appointment)
        return EnrolmentView(member=show_member(found.member), handed=show_handed(found.handed))

    @router.post("/roles/activate")
    def activate(body: ActivationBody, caller: Signed) -> ProofView:
        """Activate a role."""
        proof = service.activate(caller.authenticated, body.role, at=caller.at, anonymous=body.anonymous)
        return ProofView(proof=list(proof.lines()))

    @router.post("/roles/deactivate")
    def deactivate(body: RoleBody, caller: Signed) -> RevocationView:
        """Give up a role, with what stands on it."""
        return show_revocation(service.deactivate(caller.authenticated, body.role, at=caller.at))

    @router.post("/capabilities")
    def capabilities(caller: Signed) -> HandedView:
        """Take the certificates of everything that one may have now."""
        return show_handed(service.capabilities(caller.authenticated, at=caller.at))

    @router.post("/capabilities/renew")
    def renew(body: CertificateBody, caller: Signed) -> HandedView:
        """Get a certificate anew."""
        raw = decode_blob(body.certificate, limit=MAX_CERTIFICATE)
        return show_handed(service.renew(caller.authenticated, raw, at=caller.at))

    @router.post("/capabilities/report")
    def report(body: CertificateBody, caller: Signed) -> DoneView:
        """Report a delegation that one made."""
        service.report(caller.authenticated, decode_blob(body.certificate, limit=MAX_CERTIFICATE), at=caller.at)
        return DoneView(new=True)

    @router.get("/statements")
    def statements(caller: Signed) -> StatementsView:
        """Give the domain's validity lists that count now; they are public."""
        return StatementsView(statements=[encode_octets(raw) for raw in service.statements(at=caller.at)])

    @router.post("/statements/answer")
    def answer(body: QuestionBody, caller: Signed) -> StatementsView:
        """Answer a verifier's one-time question: which of some certificates are good."""
        challenge = Challenge(
            nonce=decode_octets(body.nonce, length=32),
            verifier=body.verifier,
            until=aware(body.until),
            request=None if body.request is None else decode_octets(body.request, length=32),
        )
        asked = [decode_octets(text, length=32) for text in body.certificates]
        return StatementsView(statements=[encode_octets(service.answer(challenge, asked, at=caller.at).raw)])

    return router


def _people_routes(service: AccessControl) -> APIRouter:
    router = APIRouter(tags=["administrators"])

    @router.get("/members")
    def members(caller: Signed) -> MembersView:
        """List the members."""
        _administer(service, caller)
        return MembersView(members=[show_member(member) for member in service.members(at=caller.at)])

    @router.post("/invitations")
    def invite(body: InvitationBody, caller: Signed) -> InvitationView:
        """Invite somebody."""
        _administer(service, caller)
        return InvitationView(
            code=service.invite(
                body.name,
                at=caller.at,
                kind=MemberKind(body.kind),
                life=timedelta(seconds=body.seconds),
                appointments=body.appointments,
            )
        )

    @router.get("/roles")
    def roles(caller: Signed, principal: Annotated[str | None, Query(min_length=1, max_length=64)] = None) -> RolesView:
        """List the active roles, of one member or of all."""
        _administer(service, caller)
        return RolesView(roles=[str(role) for role in service.roles(at=caller.at, principal=principal)])

    @router.post("/facts")
    def record(body: FactBody, caller: Signed) -> DoneView:
        """Record an appointment, or that something is true outside."""
        _administer(service, caller)
        write = service.appoint if body.kind == FactKind.APPOINTMENT.value else service.observe
        return DoneView(new=write(body.fact, at=caller.at, until=None if body.until is None else aware(body.until)))

    @router.post("/facts/retract")
    def retract(body: RetractBody, caller: Signed) -> RevocationView:
        """Take a fact back, with everything that stands on it."""
        _administer(service, caller)
        return show_revocation(service.retract(body.fact, at=caller.at))

    return router


def _policy_routes(service: AccessControl) -> APIRouter:
    router = APIRouter(tags=["administrators"])

    @router.get("/policy")
    def policy(caller: Signed) -> PolicyView:
        """Show the policy in force."""
        _administer(service, caller)
        return PolicyView(text=service.policy(at=caller.at))

    @router.post("/policy/preview")
    def preview(body: PolicyBody, caller: Signed) -> PolicyChangeView:
        """Say what a policy would change for whom, and change nothing."""
        _administer(service, caller)
        return show_change(service.preview(body.text, at=caller.at))

    @router.post("/policy/apply")
    def apply(body: PolicyBody, caller: Signed) -> PolicyChangeView:
        """Put a policy in force."""
        _administer(service, caller)
        return show_change(service.apply(body.text, at=caller.at))

    return router


def _register_routes(service: AccessControl) -> APIRouter:
    router = APIRouter(tags=["administrators"])

    @router.get("/register")
    def register(caller: Signed, after: Annotated[int, Query(ge=0, le=10**9)] = 0) -> RegisterView:
        """List live certificates, a hundred at a time, after so many."""
        _administer(service, caller)
        page = service.register(at=caller.at)[after : after + _PAGE]
        return RegisterView(entries=[show_entry(entry) for entry in page])

    @router.post("/revocations")
    def revoke(body: RevocationBody, caller: Signed) -> RevocationView:
        """Withdraw certificates, a role or a member; or say what that would end."""
        _administer(service, caller)
        work = service.preview_revocation if body.preview else service.revoke
        identities = [decode_octets(text, length=32) for text in body.certificates]
        return show_revocation(work(at=caller.at, certificates=identities, role=body.role, principal=body.principal))

    @router.get("/journal")
    def journal(caller: Signed, after: Annotated[int, Query(ge=0, le=2**53 - 1)] = 0) -> JournalView:
        """Read what the service did, a hundred lines at a time."""
        _administer(service, caller)
        return JournalView(lines=[show_line(item) for item in service.journal(after=after, limit=_PAGE)])

    return router


def _administer(service: AccessControl, caller: Caller) -> None:
    try:
        service.require_administrator(caller.authenticated, at=caller.at)
    except DeniedError:
        raise
    except UsageError as error:
        raise DeniedError("only administrators may do this", code="NOT_ADMINISTRATOR") from error
