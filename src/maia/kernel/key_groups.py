"""The key groups of a type, what changed in one, and who manages them; `group_admission` says who may join.

Rules kept here:

- 16.01: a type sealed by attribute has a key group for each attribute, and one for whole events; a type sealed by event
  has the latter alone; a plain type has none.
- A key manager is the owner, or whom the owner names ``key-manager``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from maia.authority import (
    CertificatePool,
    Verifier,
)
from maia.encryption import WHOLE_EVENT, ChangeKind, GroupChange, GroupState, KeyGroupId, groups_of
from maia.errors import ChainError
from maia.events import EncryptionMode, EventType, TypeName
from maia.kernel.group_admission import GroupAdmission, one_type
from maia.kernel.member_names import named
from maia.principals import KeyHash, PublicKey

KEY_MANAGER = "key-manager"
"""What the owner of types calls whoever manages their key groups."""
_DIGEST = 32


def groups_of_type(versions: Iterable[EventType]) -> tuple[KeyGroupId, ...]:
    """List the key groups of a type, from the versions that are known of it.

    Raises:
        UsageError: The versions are of several types.
    """
    known = one_type(versions)
    modes = {version.options.encryption for version in known} - {EncryptionMode.PLAIN}
    if not modes:
        return ()
    uids = sorted(
        {
            item.uid.encode()
            for version in known
            if version.options.encryption is EncryptionMode.ATTRIBUTE
            for item in version.attributes
        }
    )
    type_id = known[0].type_id
    return tuple(sorted({*groups_of(type_id, uids, EncryptionMode.ATTRIBUTE), KeyGroupId(type_id, WHOLE_EVENT)}))


def membership_changes(
    state: GroupState,
    member: bytes,
    admissions: Iterable[GroupAdmission],
    *,
    at: int,
    joins: bool,
    authorised_then: Callable[[GroupAdmission], bool] = lambda _: False,
) -> tuple[GroupChange, ...]:
    """Compare what a broker may now with what a group knows of it, and tell what has changed.

    Credentials that are gone are revoked; those that carry on, came or were renewed are shown. What the verifier says
    now is what counts: a credential that statements took away and gave back is a new one.

    Args:
        state: What the group's rules remember.
        member: The broker.
        admissions: To this group, as `admit_broker` found them now; none when it may not join.
        at: When the changes take effect, in milliseconds.
        joins: Whether it is, or wants to be, inside; whoever left is not brought back.
        authorised_then: Tells of an admission that rests on statements whether it held at the group's last refresh.
    """
    held = state.credentials_of(member)
    gone = {credential.identity for credential in held if credential.revoked is not None}
    live = {credential.identity[:_DIGEST]: credential for credential in held if credential.revoked is None}
    changes: list[GroupChange] = []
    kept: set[bytes] = set()
    for admission in admissions:
        known = live.get(admission.credential)
        identity = admission.credential if known is None else known.identity
        kept.add(identity)
        if not joins or (known is not None and member in state.members and known.stop == admission.valid_to):
            continue  # left, or nothing new
        start = admission.valid_from
        if known is None and admission.tested and not authorised_then(admission):
            start = at if start is None else max(start, at)
        elif known is not None:
            start = known.start
        changes.append(
            GroupChange(
                at=at, kind=ChangeKind.JOIN, member=member, valid_from=start, valid_to=admission.valid_to,
                credential=identity if identity not in gone else identity + b"%d" % at,
            )
        )  # fmt: skip
    revoked = [
        credential.identity
        for credential in live.values()
        if credential.identity not in kept and (credential.stop is None or credential.stop > at)
    ]  # one that ends by then ends by itself
    changes += [GroupChange(at=at, kind=ChangeKind.REVOKE, member=member, credential=name) for name in revoked]
    return tuple(changes)


def prove_key_manager(
    manager: PublicKey, name: TypeName, evidence: CertificatePool, *, verifier: Verifier, at: datetime
) -> None:
    """Prove that a key manages the key groups of a type: it is the owner, or the owner names it.

    Raises:
        ChainError: Neither is proven: ``NOT_THE_KEY_MANAGER``.
    """
    owner = name.owner
    if isinstance(owner, (PublicKey, KeyHash)) and (
        owner.key_id == manager.key_id
        or named(manager, owner.key_id, KEY_MANAGER, evidence, verifier=verifier, at=at) is not None
    ):
        return
    raise ChainError(
        f"`{manager.fingerprint}` is not the key manager of `{name.name}`: its owner gives it no name `{KEY_MANAGER}`",
        code="NOT_THE_KEY_MANAGER",
    )
