"""What leaves a domain by its release rules, and what was released.

Each function is a method of `Domain`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from maia.domain.facade.decisions import issuer_name
from maia.domain.given import AskPassphrase, asks, several
from maia.errors import UsageError
from maia.home import ReleaseEntry, ReleaseLedger, passphrase_asker
from maia.policy import release as rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from maia.domain.domain import Domain
    from maia.domain.releases import DefinedRelease, Released, ReleasePreview


def release(
    domain: Domain,
    type: str,  # noqa: A002 - as everywhere
    *,
    to: str,
    by: str,
    version: str | None = None,
    out: Path | str | None = None,
    passphrase: AskPassphrase | None = None,
    at: datetime | None = None,
) -> tuple[Released, ...]:
    """Release what is new of a type to a destination, by the rules in ``policy/*.release``.

    Args:
        domain: Whose events and rules.
        type: The type that is read: ``owner/name@version``, with what is clear left out.
        to: For whom: ``registry``, or ``study("bladder-7")``.
        by: The client of this domain that reads the type and publishes what is released.
        version: Which version is read, when the type does not say.
        out: A file, ``.parquet`` or ``.jsonl``, in place of the released type; what it holds is protected no more.
        passphrase: Asks for the passphrase of the client's key, when that is sealed.
        at: Now.

    Returns:
        What became of rows, and of counts, as far as there are rules for them.

    Raises:
        DeniedError: No rule lets anything leave (``NO_RELEASE_RULE``), or the client has no right.
        NotFoundError: The released type is not defined: ``RELEASE_UNDEFINED``; `define_release` does that.
        PolicySyntaxError: The rules have an error; the message has file, line and column.
    """
    from maia.domain.releases import apply_release, check_output  # noqa: PLC0415 - needs Arrow

    moment = domain.clock() if at is None else at
    file = None if out is None else Path(out).resolve()
    if file is not None:
        check_output(file)
    client = domain.prove(by, passphrase=passphrase)
    name = domain.find_type(type, version)
    return apply_release(domain, name, rules.parse_destination(to), client, out=file, at=moment)


def define_release(
    domain: Domain,
    type: str,  # noqa: A002 - as everywhere
    *,
    to: str,
    by: str | Sequence[str],
    owner: str | None = None,
    version: str | None = None,
    passphrase: AskPassphrase | None = None,
) -> tuple[DefinedRelease, ...]:
    """Define the types of what is released to a destination, and let clients and the broker publish them.

    Args:
        domain: Whose events and rules.
        type: The type that is released.
        to: For whom.
        by: The clients that will release.
        owner: Whose key signs; the type's owner when its key is here, else the key that speaks for the domain.
        version: Which version is read, when the type does not say.
        passphrase: Asks for the passphrase of the owner's key, when that is sealed.

    Raises:
        DeniedError: No rule lets anything leave: ``NO_RELEASE_RULE``.
        MaiaError: Something is unknown; the message says what.
    """
    from maia.domain.releases import define_released, release_trees  # noqa: PLC0415 - needs Arrow

    name, at, folder = domain.find_type(type, version), domain.clock(), domain.home.folder
    event_type = domain.known(at=at).sessions.event_type(name.type_id, name.version.text, at=at)
    trees = release_trees(domain, name, event_type, rules.parse_destination(to))
    key = folder.key(issuer_name(domain, name.owner) if owner is None else owner)
    signer = folder.signer(key, lambda who: asks(passphrase) or passphrase_asker(who))
    publishers = several(by) or ()
    return tuple(define_released(domain.home, signer, event_type, tree, publishers=publishers, at=at) for tree in trees)


def preview_release(
    domain: Domain,
    type: str,  # noqa: A002 - as everywhere
    rows: Sequence[Mapping[str, object]] | None = None,
    *,
    to: str,
    by: str | None = None,
    version: str | None = None,
    limit: int = 5,
    passphrase: AskPassphrase | None = None,
) -> tuple[ReleasePreview, ...]:
    """Show what the rules make of sample rows, before and after; nothing leaves.

    Args:
        domain: Whose events and rules.
        type: The type that the rows are of.
        rows: The sample, as JSON has it: dates, times and decimals are texts.
        to: For whom.
        by: In place of rows, the client that reads the first events of the log.
        version: Which version, when the type does not say.
        limit: How many events are read.
        passphrase: Asks for the passphrase of the client's key, when that is sealed.

    Raises:
        DeniedError: No rule lets anything leave: ``NO_RELEASE_RULE``.
        UsageError: There are neither rows nor a client, or both: ``RELEASE_SAMPLE``.
        MaiaError: A row does not fit the type, or the rules have an error.
    """
    from maia.domain.releases import preview_release as preview  # noqa: PLC0415 - as above
    from maia.domain.releases import release_trees, sample_rows  # noqa: PLC0415 - needs Arrow

    if (rows is None) == (by is None):
        raise UsageError("give sample rows, or the client that reads some", code="RELEASE_SAMPLE")
    name, at = domain.find_type(type, version), domain.clock()
    event_type = domain.known(at=at).sessions.event_type(name.type_id, name.version.text, at=at)
    trees = release_trees(domain, name, event_type, rules.parse_destination(to))
    if by is not None:
        sample = sample_rows(domain, name, domain.prove(by, passphrase=passphrase), limit=limit)
    else:
        sample = [dict(row) for row in rows or ()]
    return tuple(preview(tree, event_type, sample) for tree in trees)


def released(
    domain: Domain,
    frame: DataFrame,
    type: str,  # noqa: A002 - as everywhere
    *,
    to: str,
    version: str | None = None,
) -> DataFrame:
    """Give what the rules make of the rows of a frame, on Spark; nothing leaves, and nothing is noted.

    Of counts and rows for one destination, the rows. Pseudonyms are made up, as in `preview_release`: equal for
    equal values of this frame, and never those that `release` gives.

    Raises:
        DeniedError: No rule lets anything leave: ``NO_RELEASE_RULE``.
        PolicySyntaxError: The rules have an error.
    """
    from maia.domain.releases import release_trees  # noqa: PLC0415 - needs Arrow

    name, at = domain.find_type(type, version), domain.clock()
    event_type = domain.known(at=at).sessions.event_type(name.type_id, name.version.text, at=at)
    return domain.engine.release(frame, release_trees(domain, name, event_type, rules.parse_destination(to))[0])


def releases(domain: Domain) -> tuple[ReleaseEntry, ...]:
    """List what was released to whom, oldest first: destination, type, attributes, how much, and where to."""
    return ReleaseLedger(domain.path).entries()


def abandon_release(
    domain: Domain, number: int, *, by: str | None = None, passphrase: AskPassphrase | None = None
) -> ReleaseEntry:
    """Give up a release that was begun and cannot be finished; audited, and what it covers counts as released.

    Args:
        domain: Whose events and rules.
        number: Its number, as `releases` has it.
        by: The client that began it; the key that speaks for the domain when there is none.
        passphrase: Asks for the passphrase of that key, when it is sealed.

    Raises:
        NotFoundError: There is no such release: ``NO_RELEASE``.
        UsageError: It is done, or was given up before: ``RELEASE_OVER``.
        DeniedError: Somebody else began it (``RELEASE_NOT_YOURS``), or it stands in the log: ``RELEASE_LEFT``.
    """
    from maia.domain.releases import abandon_begun  # noqa: PLC0415 - needs Arrow

    if by is not None:
        client = domain.prove(by, passphrase=passphrase)
        return abandon_begun(domain, number, client.name, client.key)
    name, folder = domain.config.domain, domain.home.folder
    signer = folder.signer(folder.key(name), lambda who: asks(passphrase) or passphrase_asker(who))
    return abandon_begun(domain, number, name, signer.public_key)
