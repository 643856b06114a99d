"""Whether a definition speaks for the owner in its name: the verification of event types.

A definition is a request that carries its own evidence (000 §5.3.3): it needs no connection, no registry that can be
trusted and no clock but ``at``. Rules kept here, in this order:

1. the signature covers everything, credentials included; a definition in the narrower scope of the healthcare chapter
   is refused unless the caller accepts it by name;
2. a previous version, where there is one, belongs to the same type and is signed; no uid has changed its type, or come
   back as another attribute, since any version that is at hand;
3. the signer is the owner, or the credentials prove the owner's `manage` right for it. If they prove parts of `manage`
   only, the definition is compared with its previous version, which must be at hand and be proven itself. What goes
   beyond those parts refuses the definition, and so does a previous version that is missing;
4. a definition that extends another type shows the `extend` right of that type's owner, and the parent is verified;
5. on a network, the signer is the coordinating principal or the credentials prove `install` for it.

The credentials count as long as they prove: when one that is needed has expired the definition has expired, with the
code ``TYPE_EXPIRED``. One that proves nothing, forged or superfluous, neither helps nor harms. A certificate with
conditions proves nothing here, since a definition cannot say when they hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar, dataclass
from datetime import datetime

from maia.authority.decision import Grant
from maia.authority.request import Request, ask_network, ask_type
from maia.authority.rights import MANAGE_PARTS, Action
from maia.authority.verifier import Verifier
from maia.errors import (
    ChainError,
    ExpiredError,
    MalformedError,
    NotFoundError,
    UncheckedError,
    UsageError,
    VerificationError,
)
from maia.events import (
    MAX_LINEAGE,
    EventType,
    EventTypeId,
    ManageAction,
    SignedEventType,
    UnverifiedEventType,
    check_meanings,
    diff,
    inherit,
    verify_type_signature,
)
from maia.principals import Principal, PublicKey, UnverifiedCertificate

Network = tuple[Principal, str]
"""A network's name: its coordinating principal and what people call it."""

FindPrevious = Callable[[EventTypeId], UnverifiedEventType]
"""Looks a version up by its identity; raises `NotFoundError` when it cannot."""


class _Proof:
    """Held by this module alone."""


_PROOF = _Proof()


@dataclass(frozen=True, slots=True)
class VerifiedEventType:
    """A definition that speaks for its owner. Only `verify_event_type` makes one.

    Attributes:
        definition: What was signed.
        event_type: The same with inherited attributes; what events are checked against.
        signer: Who signed.
        grants: Why the signer may; none of them outlives its certificates.
        network: The network on which it may be used, when that was asked.
        raw: The bytes as they came.
        compatible: Accepted in the scope of the healthcare chapter.
        parent: The type that it extends, when it extends one.
    """

    definition: EventType
    event_type: EventType
    signer: PublicKey
    grants: tuple[Grant, ...]
    network: Network | None
    raw: bytes
    compatible: bool
    parent: VerifiedEventType | None
    _proof: InitVar[_Proof]

    def __post_init__(self, _proof: _Proof) -> None:
        """Refuse to be made by anything but `verify_event_type`, by a copy too."""
        # INVARIANT: the authority of a VerifiedEventType was proven in this process.
        if _proof is not _PROOF:
            raise UsageError("only verify_event_type makes a VerifiedEventType")

    def holds_at(self, at: datetime) -> bool:
        """Tell whether the same credentials still carry the definition at another instant."""
        return all(grant.holds_at(at) for grant in self.grants)

    @property
    def lineage(self) -> tuple[VerifiedEventType, ...]:
        """The definition, the one that it extends, the one that this extends, and so on."""
        return (self,) if self.parent is None else (self, *self.parent.lineage)

    @property
    def expires(self) -> datetime | None:
        """The last instant at which the credentials carry the definition; ``None`` when they do not expire."""
        ends = [grant.period.not_after for grant in self.grants] + [grant.until for grant in self.grants]
        return min((end for end in ends if end is not None), default=None)


def verify_event_type(
    unverified: UnverifiedEventType,
    *,
    verifier: Verifier,
    at: datetime,
    network: Network | None = None,
    find_previous: FindPrevious | None = None,
    parent: VerifiedEventType | None = None,
    accept_compatible: bool = False,
) -> VerifiedEventType:
    """Prove that a definition speaks for the owner in its name, or raise.

    Args:
        unverified: The definition as it came.
        verifier: Decides about the credentials; its statements count, its roots do not: the owner is the root.
        at: The instant of the decision.
        network: Also demand the right to install types on this network.
        find_previous: Where to look for a previous version that is not embedded.
        parent: The type that the definition extends, verified.
        accept_compatible: Accept a signature that leaves the credentials out.

    Raises:
        VerificationError: Not proven, for whatever reason; the code says which rule failed.

    >>> from datetime import UTC
    >>> from maia.events import FIRST, EventType, TypeName, attribute, sign_event_type
    >>> from maia.principals import KeySigner
    >>> pito, evil = KeySigner(bytes(32)), KeySigner(bytes([1]) * 32)
    >>> name = TypeName(pito.public_key, "uk.gov.pito.Numberplate", FIRST)
    >>> definition = EventType(name=name, attributes=(attribute("numberplate", 3265, "string"),))
    >>> now = datetime(2026, 6, 1, tzinfo=UTC)
    >>> verify_event_type(sign_event_type(definition, pito), verifier=Verifier(), at=now).expires is None
    True
    >>> verify_event_type(sign_event_type(definition, evil), verifier=Verifier(), at=now)
    Traceback (most recent call last):
    ...
    maia.errors.ChainError: [NO_EVIDENCE] no readable certificate was presented
    """
    if unverified.compatible and not accept_compatible:
        raise VerificationError("the signature leaves the credentials out", code="TYPE_SCOPE")
    case = _Case(verifier, at, find_previous)
    signed = verify_type_signature(unverified)
    definition = signed.definition
    grants = list(case.prove_manage(signed, MAX_LINEAGE))
    if definition.extends is not None:
        grants.extend(case.prove_extend(signed, parent))
    if network is not None:
        grants.append(case.prove_install(signed, network))
    extended = None if definition.extends is None else parent
    return VerifiedEventType(
        definition, definition if extended is None else _inherit(definition, extended), signed.signer, tuple(grants),
        network, signed.raw, signed.compatible, extended, _PROOF,
    )  # fmt: skip


def prove_from_credentials(
    request: Request,
    signer: PublicKey,
    credentials: tuple[UnverifiedCertificate, ...],
    *,
    verifier: Verifier,
    at: datetime,
) -> Grant:
    """Prove one right of a definition's signer from the credentials inside the definition.

    Raises:
        VerificationError: Not proven; ``TYPE_EXPIRED`` when it was.
        UncheckedError: It is proven under conditions only.
    """
    try:
        grant = verifier.verify(request, principal=signer, evidence=credentials, at=at)
    except ExpiredError as error:
        if error.code != ExpiredError.default_code:
            raise
        raise ExpiredError(f"the definition has expired: {error.message}", code="TYPE_EXPIRED") from error
    if grant.conditions:
        raise UncheckedError("a definition rests on certificates with conditions", code="CONDITION_IN_TYPE")
    return grant


def _inherit(definition: EventType, parent: VerifiedEventType) -> EventType:
    try:
        return inherit(definition, parent.event_type)
    except MalformedError as error:
        raise VerificationError(error.message, code=error.code) from error


@dataclass(frozen=True, slots=True)
class _Case:
    """One verification in progress."""

    verifier: Verifier
    at: datetime
    find_previous: FindPrevious | None

    def prove(self, request: Request, signer: PublicKey, credentials: tuple[UnverifiedCertificate, ...]) -> Grant:
        """Prove one right of the signer from the embedded credentials."""
        return prove_from_credentials(request, signer, credentials, verifier=self.verifier, at=self.at)

    def prove_manage(self, signed: SignedEventType, lineage: int) -> tuple[Grant, ...]:
        """Prove that the signer may issue this version."""
        definition = signed.definition
        name = definition.name
        previous = self._previous(definition)
        request = ask_type(Action.MANAGE, name.owner, name.name, name.version.text)
        try:
            return (self.prove(request, signed.signer, definition.credentials),)
        except VerificationError as refusal:
            held = self._parts(signed)
            if not held:
                raise
            if previous is None:
                message = "the signer may change parts only, and the previous version is not at hand"
                raise UncheckedError(message, code="PREVIOUS_MISSING") from refusal
        if lineage <= 0:
            raise UncheckedError(f"more than {MAX_LINEAGE} versions to follow", code="LIMIT_EXCEEDED")
        try:
            # SECURITY: what the change is measured against must be proven too, or it could be made up to fit.
            grants = self.prove_manage(previous, lineage - 1)
        except VerificationError as error:
            message = f"the previous version is not proven: {error.message}"
            raise ChainError(message, code="PREVIOUS_UNPROVEN") from error
        changes = diff(previous.definition, definition, self._ancestors(previous.definition))
        beyond = changes.beyond(frozenset(held))
        if beyond:
            raise ChainError(f"the signer may not {', '.join(beyond)}", code="NOT_PERMITTED")
        for action in tuple(held):  # the definition shall not expire with a right that it does not need
            if not changes.beyond(frozenset(held) - {action}):
                del held[action]
        return (*grants, *held.values())

    def prove_extend(self, signed: SignedEventType, parent: VerifiedEventType | None) -> tuple[Grant, ...]:
        """Prove that the signer may extend the parent, and that the parent is at hand."""
        definition = signed.definition
        wanted = definition.extends
        if wanted is None:
            return ()
        request = ask_type(Action.EXTEND, wanted.owner, wanted.name, wanted.version.text)
        grant = self.prove(request, signed.signer, definition.credentials)
        if parent is None:
            raise UncheckedError(f"the type `{wanted}` that is extended is not at hand", code="PARENT_MISSING")
        return (grant, *parent.grants)

    def prove_install(self, signed: SignedEventType, network: Network) -> Grant:
        """Prove that the signer may install types on a network."""
        request = ask_network(Action.INSTALL, *network)
        try:
            return self.prove(request, signed.signer, signed.definition.credentials)
        except ChainError as error:
            message = f"its signer may not install types on `{network[1]}`: {error.message}"
            raise ChainError(message, code="NOT_INSTALLED") from error

    def _previous(self, definition: EventType) -> SignedEventType | None:
        """Find the previous version, and check what can be checked of it without its credentials."""
        found = self._find(definition)
        if found is None:
            return None
        previous = verify_type_signature(found)
        try:
            diff(previous.definition, definition)
            check_meanings(definition, previous.definition, self._ancestors(previous.definition))
        except MalformedError as error:
            raise VerificationError(error.message, code=error.code) from error
        return previous

    def _find(self, definition: EventType) -> UnverifiedEventType | None:
        reference = definition.previous
        if reference is None or isinstance(reference, UnverifiedEventType):
            return reference
        if self.find_previous is None:
            return None
        try:
            found = self.find_previous(reference)
        except NotFoundError:
            return None
        if found.definition_id != reference or found.compatible:
            raise VerificationError("the previous version is not the one that was meant", code="PREVIOUS_MISMATCH")
        return found

    def _ancestors(self, definition: EventType) -> list[EventType]:
        """Collect the versions before a version, as far as they are at hand and the limit reaches."""
        found: list[EventType] = []
        current = self._find(definition)
        while current is not None and len(found) < MAX_LINEAGE:
            found.append(current.definition)
            current = self._find(current.definition)
        return found

    def _parts(self, signed: SignedEventType) -> dict[ManageAction, Grant]:
        """Find the parts of `manage` that the credentials prove."""
        definition = signed.definition
        name = definition.name
        held: dict[ManageAction, Grant] = {}
        for action in MANAGE_PARTS:
            request = ask_type(action, name.owner, name.name, name.version.text)
            try:
                held[ManageAction(action.value)] = self.prove(request, signed.signer, definition.credentials)
            except VerificationError:
                continue
        return held
