"""The overlay's credential, a view on a capability: what it is about, for whom, and what may be done.

A credential has an object descriptor, a client descriptor, rights over the credential itself, rights of the object's
kind, and a signed digest over all of it. Every part is one of an SPKI certificate, and none is added: the digest is the
identity of the certificate, ``delegate`` its permission to pass the right on, and who decides is the verifier.

Rules kept here:

- a client is a person (a key), a role (a name in somebody's namespace) or a trust level: the name ``trust-high``,
  ``trust-medium`` or ``trust-low`` in the namespace of whoever vouches for hosts. One for a trust level that may be
  passed on lets hosts of that level sign for the object, and no others;
- a view says all that its certificate says, or there is none: `OverlayCredential.body` gives back the very body.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from maia.authority.objects import TRANSFER, ObjectDescriptor, read_object
from maia.errors import TagError, UsageError
from maia.principals import (
    Authorisation,
    Body,
    KeyHash,
    Name,
    OnlineTest,
    Period,
    Principal,
    PublicKey,
    Subject,
    check_name_part,
)

DELEGATE = "delegate"
GENERAL_RIGHTS = (DELEGATE, TRANSFER)
"""The rights over a credential itself: to pass a part of it on, and to hand it over whole."""
_TRUST = "trust-"


class ClientKind(StrEnum):
    """What a client descriptor may name."""

    PERSON = "person"
    ROLE = "role"
    TRUST = "trust"


class TrustLevel(StrEnum):
    """How far somebody's word is relied on, by whoever vouches."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


_LEVELS = tuple(TrustLevel)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDescriptor:
    """Whose a credential is.

    Attributes:
        kind: A person, a role or a trust level.
        key: The person; or in whose namespace the role or level is.
        name: The role, or the level; nothing for a person.
    """

    kind: ClientKind
    key: PublicKey | KeyHash
    name: str | None = None

    def __post_init__(self) -> None:
        """Refuse one that two descriptors could mean."""
        if (self.name is None) != (self.kind is ClientKind.PERSON):
            raise UsageError("a role and a trust level have a name, and a person has none", code="CREDENTIAL_CLIENT")
        if self.kind is ClientKind.TRUST and self.name not in _LEVELS:
            raise UsageError(f"a trust level is {', '.join(_LEVELS)}", code="CREDENTIAL_CLIENT")
        if self.kind is ClientKind.ROLE and (self.name or "").removeprefix(_TRUST) in _LEVELS:
            raise UsageError("a trust level is no role", code="CREDENTIAL_CLIENT")
        if self.name is not None:
            check_name_part(self.name)

    @property
    def principal(self) -> Principal:
        """Give it as the subject of a certificate.

        >>> from maia.principals import KeySigner
        >>> host = KeySigner(bytes(32)).public_key
        >>> ClientDescriptor(kind=ClientKind.TRUST, key=host, name="high").principal.parts
        ('trust-high',)
        """
        if self.name is None:
            return self.key
        return Name(self.key, (f"{_TRUST}{self.name}" if self.kind is ClientKind.TRUST else self.name,))

    @classmethod
    def of(cls, subject: Subject) -> ClientDescriptor:
        """Describe the subject of a certificate.

        Raises:
            TagError: It is a threshold, an object, or a name of a name: ``NOT_A_CREDENTIAL``.
        """
        if isinstance(subject, (PublicKey, KeyHash)):
            return cls(kind=ClientKind.PERSON, key=subject)
        if isinstance(subject, Name) and len(subject.parts) == 1:
            level = subject.parts[0].removeprefix(_TRUST)
            if level in _LEVELS and level != subject.parts[0]:
                return cls(kind=ClientKind.TRUST, key=subject.base, name=level)
            if subject.parts[0] not in _LEVELS:
                return cls(kind=ClientKind.ROLE, key=subject.base, name=subject.parts[0])
        raise TagError("the owner of a credential is a person, a role or a trust level", code="NOT_A_CREDENTIAL")


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlayCredential:
    """What a capability says, as the overlay puts it.

    Attributes:
        issuer: Who signed.
        object: What it is about.
        client: Whose it is.
        general: The rights over the credential itself.
        rights: The rights of the object's kind.
        period: When it counts.
        tests: The statements that it demands.
        conditions: What must hold whenever it is used.
        renew: Where a fresh one is asked for.
    """

    issuer: PublicKey
    object: ObjectDescriptor
    client: ClientDescriptor
    general: frozenset[str]
    rights: frozenset[str]
    period: Period
    tests: tuple[OnlineTest, ...] = ()
    conditions: tuple[str, ...] = ()
    renew: str | None = None

    @classmethod
    def of(cls, body: Body) -> OverlayCredential:
        """See the body of a certificate as a credential.

        Raises:
            TagError: It is none: ``NOT_A_CREDENTIAL``.
        """
        if not isinstance(body, Authorisation) or not isinstance(body.issuer, PublicKey):
            raise TagError("a credential is a right, signed by a key that it names", code="NOT_A_CREDENTIAL")
        named, rights = read_object(body.tag)
        general = ({DELEGATE} if body.delegate else set()) | (rights & {TRANSFER})
        found = cls(
            issuer=body.issuer, object=named, client=ClientDescriptor.of(body.subject), general=frozenset(general),
            rights=rights - {TRANSFER}, period=body.period, tests=body.tests, conditions=body.conditions,
            renew=body.renew,
        )  # fmt: skip
        # INVARIANT: the view and the body say the same, so that the digest of the one is that of the other.
        if found.body().to_sexp() != body.to_sexp():
            raise TagError("a credential cannot say all that this right says", code="NOT_A_CREDENTIAL")
        return found

    def body(self) -> Authorisation:
        """Give the body of the certificate.

        Raises:
            UsageError: A right is none of the kind (``OBJECT_RIGHT``), or none over a credential.
        """
        if self.general - set(GENERAL_RIGHTS):
            raise UsageError(f"rights over a credential are {', '.join(GENERAL_RIGHTS)}", code="OBJECT_RIGHT")
        tag = self.object.tag(self.rights | (self.general & {TRANSFER}))
        return Authorisation(
            issuer=self.issuer, subject=self.client.principal, delegate=DELEGATE in self.general, tag=tag.to_sexp(),
            period=self.period, tests=self.tests, conditions=self.conditions, renew=self.renew,
        )  # fmt: skip
