"""Rights that a domain decides, gives and takes back, and the types that they are on.

Each function is a method of `Domain`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from maia.authority import Decision
from maia.domain.client import Client
from maia.domain.given import AskPassphrase, asks, several
from maia.domain.grants import Granted, RevocationDraft, draft_grant, revoke_certificate, sign_grant
from maia.domain.presentations import decide_request
from maia.domain.topics import TypeOrTopic
from maia.events import FIRST, EventType, Options, SequenceUids, TypeName
from maia.home import frame_schema, passphrase_asker, read_schema, sign_definition, words
from maia.principals import KeyHash, KeyId, OnlineTest, Period, Principal, PublicKey

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from maia.domain.domain import Domain


def decide(
    domain: Domain,
    client: Client | None,
    evidence: Sequence[bytes] | None,
    action: str | None,
    type: str | None,  # noqa: A002 - as everywhere
    *,
    version: str | None = None,
    at: datetime | None = None,
) -> Decision:
    """Decide as a broker does whether what is presented gives a right: a proven key, evidence, one operation, one type.

    It is about authority alone. Whether this broker would serve the client, and which cells it would show, depends on
    its own rights, on conditions and on labels as well: `explain` and `who_can` answer that.

    Args:
        domain: Which one gives or decides.
        client: Whose key was proven; nobody's without one.
        evidence: The certificates that it shows, as octets.
        action: ``publish``, ``subscribe``, ``manage``.
        type: The type that it wants to do it on.
        version: The version, when the type does not say.
        at: Now.

    Returns:
        Yes or no; a denial names the stage at which it failed, or the first of the three that is missing.

    Raises:
        VerificationError: This domain's broker is not in the network: ``BROKER_NOT_CONNECTED``.
        MaiaError: The type is unknown here, or there is no such action.
    """
    name = None if type is None else domain.find_type(type, version)
    proven = None if client is None else client.proven
    return decide_request(domain, proven, evidence, action, name, at=domain.clock() if at is None else at)


def type_from_schema(
    domain: Domain,
    source: Path | str | DataFrame | pd.DataFrame | pa.Table | pa.RecordBatch | pa.Schema,
    name: str | None = None,
    *,
    assume_utc: bool = False,
    passphrase: AskPassphrase | None = None,
) -> EventType:
    """Derive a type from a file or a frame, and define it when a name is given.

    Of a schema nothing is lost. CSV and JSON lines have none: fractions in them are taken as float, which rounds.

    Args:
        domain: Which one gives or decides.
        source: A Parquet, Arrow, CSV or JSON-lines file, or a frame of Spark, pandas or Arrow.
        name: ``owner/name@version``; the owner's key signs. Without it nothing is signed or kept.
        assume_utc: Whether times without a zone are in UTC.
        passphrase: Asks for the passphrase of the owner's key, when that is sealed.

    Raises:
        MalformedError: Columns do not fit; the message names all of them, each with what to do: ``SCHEMA_TYPE``.
        MaiaError: The owner is unknown, its key is not here, or the version is taken.
    """
    folder = domain.home.folder
    # Without a name there is nothing to sign; the attributes stand under an owner that nobody is.
    chosen = TypeName(KeyHash(KeyId(bytes(32))), "x", FIRST) if name is None else words.new_name(name, folder)
    read = read_schema if isinstance(source, str | Path) else frame_schema
    made = read(
        Path(source) if isinstance(source, str) else source,  # type: ignore[arg-type] # as `read` was chosen
        chosen, options=Options(), uids=SequenceUids(), assume_utc=assume_utc,
    )  # fmt: skip
    if name is None:
        return made
    signer = folder.signer(
        words.signer_key(None, chosen.owner, folder), lambda who: asks(passphrase) or passphrase_asker(who)
    )
    return sign_definition(folder, made, signer, at=domain.clock()).definition


def grant(
    domain: Domain,
    to: str,
    type: str | None = None,  # noqa: A002 - as everywhere
    *,
    topic: str | None = None,
    sub_topics: bool = False,
    by: str | None = None,
    actions: str | Sequence[str] = "subscribe",
    attributes: str | Sequence[str] | None = None,
    bounds: str | Sequence[str] = (),
    conditions: str | Sequence[str] = (),
    delegate: bool = False,
    not_before: datetime | None = None,
    until: datetime | None = None,
    tests: str | OnlineTest | Sequence[str | OnlineTest] | None = None,
    irrevocable: bool = False,
    passphrase: AskPassphrase | None = None,
) -> Granted:
    """Give a right on a type or a topic, signed with a key of this home, and keep its certificate.

    Where several texts may stand, one alone may stand for itself: ``actions="publish"``, ``attributes="ward"``.

    Args:
        domain: Which one gives or decides.
        to: Who receives it: the name of a key here, a fingerprint, or a local name such as ``met: brokers``.
        type: The type: ``owner/name@version``, or ``owner/name@*`` for every version.
        topic: In its place, a topic; a right to subscribe is on all below it as well.
        sub_topics: With a topic: whether a right to publish is on all below it as well.
        by: Whose key signs; the type's owner when its key is here, else the key that speaks for the domain.
        actions: ``publish``, ``subscribe``, ``manage``.
        attributes: Which attributes, by name, each with a demand on the row where there is one
            (``numberplate='AE05 XYZ'``); all when there are none.
        bounds: Access-control filters that what is published or subscribed to must keep to, all of them:
            ``upper (message = 'new_product')``.
        conditions: What must hold whenever the right is used.
        delegate: Whether the receiver may pass it on.
        not_before: From when it is valid.
        until: Until when it is valid.
        tests: Statements that it demands, by which it can be revoked: ``crl:SIGNER``, as in ``maia grant --test``;
            the lists of whoever signs by default.
        irrevocable: Whether it demands none, so that only its end ends it.
        passphrase: Asks for the passphrase of the signing key, when that is sealed.

    Raises:
        DeniedError: The issuer cannot give it: ``ISSUER_LACKS_RIGHT``.
        MaiaError: Something is unknown or useless; the message says what.
    """
    folder, at = domain.home.folder, domain.clock()
    events, does, cells = TypeOrTopic(type=type, topic=topic), several(actions), several(attributes)
    if events.topic is None:
        right = words.parse_right(folder, type_=type, actions=does, attributes=cells, bounds=several(bounds))
    else:
        right = words.parse_topic_right(
            folder, events.topic, actions=does, attributes=cells, sub_topics=sub_topics
        )  # fmt: skip
    issuer = folder.key(issuer_name(domain, right.owner) if by is None else by)
    draft = draft_grant(
        folder, issuer, right, to=words.parse_principal_text(to, folder), at=at, delegate=delegate,
        period=Period(not_before, until), conditions=several(conditions) or (),
        tests=() if irrevocable else None if tests is None else words.parse_tests(tests, folder),
    )  # fmt: skip
    return sign_grant(
        folder, draft, folder.signer(issuer, lambda name: asks(passphrase) or passphrase_asker(name)), at=at
    )


def revoke(domain: Domain, certificate: str | Granted, *, passphrase: AskPassphrase | None = None) -> RevocationDraft:
    """Revoke a certificate by a list of the key that it obeys, at once, and tell the log.

    What the domain's service issued is revoked there, with everything that stands on it.

    Args:
        domain: Which one gives or decides.
        certificate: What `grant` returned, the beginning of the certificate's id, or its file.
        passphrase: Asks for the passphrase of the list's key, when that is sealed.

    Returns:
        What was signed, whether the log heard of it, and how long verifiers that did not may go on accepting it.

    Raises:
        UsageError: No list can revoke it, or one did.
    """
    folder = domain.home.folder
    text = certificate.certificate.certificate_id.hex() if isinstance(certificate, Granted) else certificate
    return revoke_certificate(
        folder, text, lambda key: folder.signer(key, lambda name: asks(passphrase) or passphrase_asker(name)),
        at=domain.clock(),
    )  # fmt: skip


def issuer_name(domain: Domain, owner: Principal | None) -> str:
    """Name the key that signs for an owner: its own where that is here, else the one that speaks for the domain."""
    folder = domain.home.folder
    name = folder.names.get(owner.key_id) if isinstance(owner, PublicKey) else None
    return name if name is not None and folder.key_path(name).is_file() else domain.config.domain
