"""What the type commands share: the home's registry, types as people name them, and the credentials a signer needs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from maia.authority import MANAGE_PARTS, Action, Request, VerifiedEventType, Verifier, ask_network, ask_type
from maia.cli.read.files import read_source, write_target
from maia.cli.read.principals import parse_principal_text
from maia.cli.read.signers import open_signer
from maia.errors import NotFoundError, UsageError
from maia.events import (
    Add,
    EventType,
    FoldedUids,
    Retype,
    SequenceUids,
    TypeName,
    UidPolicy,
    UnverifiedEventType,
    WholeUuids,
    check_owner,
    parse_attribute_type,
    parse_event_type,
    parse_uid,
    parse_version,
    sign_event_type,
)
from maia.home import DirectoryRegistry, Folder, verify_with_registry
from maia.principals import Principal, PublicKey, UnverifiedCertificate, parse_certificate

_ATTRIBUTE = re.compile(r"(?P<name>.+?):(?P<type>[a-z]+)(?::(?P<uid>[0-9a-fx-]+))?")
_UID_POLICIES: dict[str, UidPolicy] = {"sequence": SequenceUids(), "folded": FoldedUids(), "uuid": WholeUuids()}


def registry_of(home: Folder) -> DirectoryRegistry:
    """Open the registry of a home: its folder `types`."""
    return DirectoryRegistry(home.path / "types", verifier=Verifier(statements=home.book()))


def find_type(text: str, home: Folder) -> UnverifiedEventType:
    """Find a definition: a file, or OWNER/NAME[@VERSION] in the home's registry.

    Raises:
        NotFoundError: There is none.
        UsageError: No version is named and there are several.
    """
    if Path(text).is_file():
        return parse_event_type(read_source(text))
    owner, name, version = split_type(text, home)
    found = registry_of(home).versions(check_owner(owner), name)
    if version is not None:
        found = tuple(item for item in found if item.definition.name.version == parse_version(version))
    if not found:
        raise NotFoundError(f"no type `{text}` in this home", code="TYPE_NOT_FOUND")
    versions = sorted({item.definition.name.version.text for item in found})
    if len(versions) > 1:
        raise UsageError(f"`{text}` has the versions {', '.join(versions)}; add @VERSION", code="AMBIGUOUS")
    return found[0]


def split_type(text: str, home: Folder) -> tuple[Principal, str, str | None]:
    """Read OWNER/NAME[@VERSION]; a name without an owner says nothing.

    Raises:
        UsageError: There is no owner.
    """
    owner, rest = _split_owner(text)
    name, mark, version = rest.rpartition("@")
    return (
        (parse_principal_text(owner, home), name, version) if mark else (parse_principal_text(owner, home), rest, None)
    )


def split_network(text: str, home: Folder) -> tuple[Principal, str]:
    """Read the OWNER/NAME of a network."""
    owner, name = _split_owner(text)
    return parse_principal_text(owner, home), name


def _split_owner(text: str) -> tuple[str, str]:
    depth = 0
    for position, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "/" and depth == 0 and 0 < position < len(text) - 1:
            return text[:position].strip(), text[position + 1 :].strip()
    raise UsageError(f"`{text}` does not say whose it is; write OWNER/NAME[@VERSION]", code="TYPE_TEXT")


def parse_add(text: str) -> Add:
    """Read NAME:TYPE[:UID].

    >>> parse_add("numberplate:string:3265")
    Add(name='numberplate', type=<AttributeType.STRING: 'string'>, uid='3265')
    """
    found = _ATTRIBUTE.fullmatch(text)
    if found is None:
        raise UsageError(f"`{text}` is no attribute; write NAME:TYPE or NAME:TYPE:UID", code="ATTRIBUTE_TEXT")
    uid = None if found["uid"] is None else parse_uid(found["uid"])
    return Add(found["name"], parse_attribute_type(found["type"]), uid)


def parse_retype(text: str) -> Retype:
    """Read NAME:TYPE[:UID] as a change of type."""
    added = parse_add(text)
    return Retype(added.name, added.type, added.uid)


def parse_pair(text: str) -> tuple[str, str]:
    """Read OLD=NEW."""
    old, mark, new = text.partition("=")
    if not mark or not old or not new:
        raise UsageError(f"`{text}` is no change of name; write OLD=NEW", code="ATTRIBUTE_TEXT")
    return old, new


def uid_policy(word: str) -> UidPolicy:
    """Choose where uids come from.

    Raises:
        UsageError: The word is none of `sequence`, `folded` and `uuid`.
    """
    if word not in _UID_POLICIES:
        raise UsageError(f"uids come from {', '.join(_UID_POLICIES)}, not `{word}`", code="UID_POLICY")
    return _UID_POLICIES[word]


def sign_and_keep(
    definition: EventType,
    signer: PublicKey,
    home: Folder,
    *,
    at: datetime,
    network: str | None,
    passphrase_file: Path | None,
    out: Path | None,
) -> tuple[UnverifiedEventType, VerifiedEventType]:
    """Embed the credentials the signer needs, sign, verify as a stranger would, and keep the definition.

    Raises:
        VerificationError: The certificates of this home do not prove the signer's right; nothing is kept.
    """
    on = None if network is None else split_network(network, home)
    credentials = _credentials(definition, signer, home, at, on)
    signed = sign_event_type(replace(definition, credentials=credentials), open_signer(signer, home, passphrase_file))
    registry = registry_of(home)
    verified = verify_with_registry(registry, signed, verifier=Verifier(statements=home.book()), at=at, network=on)
    registry.put(signed.raw, at=at)
    if out is not None:
        write_target(out, signed.raw)
    return signed, verified


def signer_key(text: str | None, owner: Principal, home: Folder) -> PublicKey:
    """Find who signs: the one named, else the owner.

    Raises:
        UsageError: Nobody is named and the owner is no key of its own.
    """
    if text is not None:
        return home.key(text)
    if isinstance(owner, PublicKey):
        return owner
    raise UsageError("the owner is no single key; name who signs with --as", code="SIGNER_MISSING")


def type_name(text: str, home: Folder, *, default_version: str) -> TypeName:
    """Read the full name of a version to be made."""
    owner, name, version = split_type(text, home)
    return TypeName(check_owner(owner), name, parse_version(version or default_version))


def _credentials(
    definition: EventType, signer: PublicKey, home: Folder, at: datetime, network: tuple[Principal, str] | None
) -> tuple[UnverifiedCertificate, ...]:
    """Pick from the home the certificates that prove what the definition needs; what is missing is found out later."""
    name = definition.name
    whole = ask_type(Action.MANAGE, name.owner, name.name, name.version.text)
    parts = [ask_type(action, name.owner, name.name, name.version.text) for action in MANAGE_PARTS]
    proven = _prove([whole], signer, home, at)
    found = proven if proven is not None else _prove(parts, signer, home, at) or {}
    wanted = []
    if definition.extends is not None:
        parent = definition.extends
        wanted.append(ask_type(Action.EXTEND, parent.owner, parent.name, parent.version.text))
    if network is not None:
        wanted.append(ask_network(Action.INSTALL, *network))
    found |= _prove(wanted, signer, home, at) or {}
    return tuple(found.values())


def _prove(
    requests: Iterable[Request], signer: PublicKey, home: Folder, at: datetime
) -> dict[bytes, UnverifiedCertificate] | None:
    verifier, pool = Verifier(statements=home.book()), home.pool()
    found: dict[bytes, UnverifiedCertificate] = {}
    proven = False
    for request in requests:
        decision = verifier.decide(request, principal=signer, evidence=pool, at=at)
        if decision.grant is not None:
            proven = True
            found |= {item.certificate_id: parse_certificate(item.raw) for item in decision.grant.certificates}
    return found if proven else None
