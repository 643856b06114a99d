"""A domain's home: one directory with its keys, certificates, types, statements, keyring, log and audit.

    maia.toml            the home's format, name, network, broker, log
    keys/                NAME.key (0600) and NAME.pub
    certificates/        *.cert, as they came
    owners/              *.cert, by which members of owners of several keys were exchanged
    types/               signed definitions
    statements           accepted validity statements
    policy/              the domain's policy, and providers.toml, which says who answers for facts
    rates.db             what publishers drew from their rates
    keyring              attribute keys, sealed to the broker's key
    groups               what the broker knows of its key groups, sealed likewise
    stamps               the highest stamp this broker ever reserved
    key-uses             how often each key sealed
    log-before-lanes     a note that the log is of the format before lanes, until `maia log migrate` is done
    log-begins           where the lanes of the log begin, as their owners last said
    log/                 parcels and commits; may lie elsewhere and be shared
    releases/            what was released to whom, and the secret of pseudonyms (0700)
    audit/               the journal of intents and results, and what decided (0700); audit-head is its newest head
    checkpoints/

A home is usable by hand: everything but the keyring is a file that an editor and a version control system can handle,
and nothing in it is believed without verification. It is files and no more; `maia.domain.Domain` is a home, opened.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from maia.authority import CertificatePool, Verifier
from maia.encryption import (
    WHOLE_EVENT,
    KeyGroupId,
    Keyring,
    Tolerance,
    TypeIds,
    keyring_secret,
    open_keyring,
    seal_keyring,
)
from maia.errors import NotFoundError, UsageError
from maia.events import EventType, TypeId, TypeName, parse_version
from maia.home.certificates import CertificateFolder
from maia.home.clock import check_pace
from maia.home.config import CONFIG_FILE, MAX_CONFIG, HomeConfig
from maia.home.files import PRIVATE_FILE, PUBLIC_FILE, locked, make_folder, read_file, write_file
from maia.home.folder import Folder
from maia.home.formats import LOG_BEFORE, with_head, without_head
from maia.home.keys import read_key, read_public_key, write_key, write_public_key
from maia.home.machine import now
from maia.home.providers import HomeSurroundings
from maia.home.statements import StatementFile
from maia.home.types import DirectoryRegistry
from maia.kernel import KEY_MANAGER, MAX_LEAD, milliseconds, read_mark, reserve_stamps, write_mark
from maia.principals import KeySigner, Name, Principal, PublicKey

if TYPE_CHECKING:
    from maia.log import Store

_MAX_KEYRING = 64 << 20


@dataclass(frozen=True, slots=True)
class Home:
    """The files of a domain."""

    path: Path
    config: HomeConfig
    _stores: dict[Hashable, Store] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def create(cls, path: Path | str, config: HomeConfig, *, broker: KeySigner | None = None) -> Home:
        """Make a new home with a broker key, a fresh one unless one is given.

        Raises:
            UsageError: There is one already.
        """
        root = Path(path)
        if (root / CONFIG_FILE).exists():
            raise UsageError(f"`{root}` is a home already", code="HOME_EXISTS")
        make_folder(root, mode=0o755)
        home = cls(root, config)
        home.add_key(config.broker, KeySigner.generate() if broker is None else broker)
        write_file(root / CONFIG_FILE, config.to_toml().encode(), mode=PUBLIC_FILE)
        return home

    @classmethod
    def open(cls, path: Path | str) -> Home:
        """Open a home.

        Raises:
            NotFoundError: There is none.
        """
        root = Path(path)
        if not (root / CONFIG_FILE).is_file():
            raise NotFoundError(f"`{root}` is no home: it has no `{CONFIG_FILE}`", code="NO_HOME")
        return cls(root, HomeConfig.from_toml(read_file(root / CONFIG_FILE, limit=MAX_CONFIG)))

    @classmethod
    def of(cls, folder: Folder) -> Home:
        """Open the home that a folder is, with the settings that the folder goes by.

        Raises:
            NotFoundError: It is none.
        """
        return cls.open(folder.path) if folder.config is None else cls(folder.path, folder.config)

    @property
    def folder(self) -> Folder:
        """Its keys, certificates and statements, and who can be named in it."""
        # a service may have been told another database than `maia.toml` names; it holds for whoever gets the folder
        return Folder(self.path, settings=self.config)

    # -- keys of people and of the broker

    def new_key(self, name: str, *, passphrase: str | None = None) -> KeySigner:
        """Make a key pair under a name."""
        signer = KeySigner.generate()
        self.add_key(name, signer, passphrase=passphrase)
        return signer

    def add_key(self, name: str, signer: KeySigner, *, passphrase: str | None = None) -> None:
        """Keep a key pair under a name."""
        write_key(self.key_path(name), signer, passphrase=passphrase)
        write_public_key(self.public_path(name), signer.public_key)

    def add_public_key(self, name: str, key: PublicKey) -> None:
        """Know somebody's public key under a name."""
        write_public_key(self.public_path(name), key)

    def signer(self, name: str) -> KeySigner:
        """Return the private key of a name."""
        return read_key(self.key_path(name))

    def key(self, name: str) -> PublicKey:
        """Return the public key of a name."""
        return read_public_key(self.public_path(name))

    @property
    def broker(self) -> KeySigner:
        """The key that seals and signs this home's parcels."""
        return self.signer(self.config.broker)

    def key_path(self, name: str) -> Path:
        """Return where a private key lives.

        Raises:
            UsageError: The name is not one that can be a file: ``KEY_NAME``.
        """
        return self.folder.key_path(name)

    def public_path(self, name: str) -> Path:
        """Return where a public key lives."""
        return self.folder.public_path(name)

    # -- evidence, statements, types

    @property
    def certificates(self) -> CertificateFolder:
        """The certificates of this home."""
        return self.folder.certificates

    def pool(self) -> CertificatePool:
        """Return all certificates as evidence."""
        return self.certificates.pool()

    @property
    def statements(self) -> StatementFile:
        """The validity statements of this home."""
        return self.folder.statements

    def verifier(self) -> Verifier:
        """Return a verifier with the statements that were accepted here by now."""
        return Verifier(statements=self.statements.load(), clock=time.monotonic)

    @property
    def types(self) -> DirectoryRegistry:
        """The type registry of this home."""
        return DirectoryRegistry(self.path / "types")

    def read_type(self, name: TypeName) -> EventType:
        """Return the definition of a version that speaks for its owner, or did before it expired.

        Raises:
            NotFoundError: There is none: ``TYPE_NOT_FOUND``.
        """
        # SECURITY: what is planted beside the genuine definition names no attribute and opens no key group.
        registry = DirectoryRegistry(self.path / "types", verifier=self.verifier())
        for item in registry.genuine(name.owner, name.name, at=now()):
            if item.definition.name == name:
                return item.definition
        raise NotFoundError(f"there is no type `{name}` that verifies", code="TYPE_NOT_FOUND")

    # -- the network and its places

    @property
    def network(self) -> tuple[Principal, str] | None:
        """The network this home belongs to; its owner is a key, or several of which enough must agree."""
        if self.config.network is None:
            return None
        from maia.home.words import parse_principal_text  # noqa: PLC0415 - words of people, over the folder

        owner, name = self.config.network
        return parse_principal_text(owner, self.folder), name

    @property
    def tolerance(self) -> Tolerance:
        """Grace and skew."""
        return Tolerance(grace=self.config.grace * 1000, skew=self.config.skew * 1000)

    @property
    def plan_age(self) -> timedelta:
        """How old a plan may get before rights are judged anew."""
        return timedelta(seconds=self.config.plan_age)

    @property
    def log_place(self) -> str:
        """Where the log is: a directory, or the address of a store."""
        if "://" not in self.config.log:
            return str((self.path / self.config.log).resolve())
        from maia.log import check_address  # noqa: PLC0415 - most homes have a directory

        return check_address(self.config.log)

    @property
    def log_store(self) -> Store:
        """The store in which the log lies; opened once while this home is, in this process and environment."""
        from maia.log import open_store  # noqa: PLC0415 - most who open a home want no log

        return open_store(self.log_place, self._stores)

    @property
    def log_path(self) -> Path:
        """The directory of the log.

        Raises:
            UsageError: It lies in none: ``LOG_NO_DIRECTORY``.
        """
        from maia.log import LogDirectory  # noqa: PLC0415 - most who open a home want no log

        return LogDirectory(self.log_store).path

    @property
    def log_before_lanes(self) -> bool:
        """Whether this home had a log of the format before lanes and did not migrate it.

        SECURITY: that is noted here when the home is migrated. What lies in the log says nothing: anybody can put it
        there, and would stop everybody.
        """
        return (self.path / LOG_BEFORE).exists()

    def note_lanes(self) -> None:
        """Note that the log was migrated."""
        (self.path / LOG_BEFORE).unlink(missing_ok=True)

    @property
    def seen_path(self) -> Path:
        """Where this home remembers how far it read the lanes of the log."""
        return self.path / "seen"

    @property
    def audit_path(self) -> Path:
        """Where the audit is."""
        return self.path / "audit"

    @property
    def database_url(self) -> str:
        """Where the domain's services keep their state: a database address, or a file of the home."""
        url = self.config.database
        return url if "://" in url else str(self.path / url)

    @property
    def trusts_disks(self) -> bool:
        """Whether the disks that Spark spills to are protected otherwise than by Spark."""
        return self.config.spill == "trusted"

    @property
    def surroundings(self) -> HomeSurroundings:
        """A reference to what conditions may ask here: the clock, ``policy/providers.toml`` and the ledger of rates."""
        return HomeSurroundings(str(self.path.resolve()))

    # -- attribute keys and stamps

    def keyring(self) -> Keyring:
        """Open the keyring; an empty one when there is none yet."""
        path = self.path / "keyring"
        if not path.exists():
            return Keyring()
        data = without_head("keyring", read_file(path, limit=_MAX_KEYRING), path)
        return open_keyring(data, keyring_secret(self.broker.export_seed()))

    def save_keyring(self, ring: Keyring) -> None:
        """Seal and keep the keyring."""
        data = seal_keyring(ring, keyring_secret(self.broker.export_seed()), nonce=secrets.token_bytes(12))
        write_file(self.path / "keyring", with_head("keyring", data), mode=PRIVATE_FILE)

    def type_ids(self) -> TypeIds | None:
        """Return the keyed ids of types on this home's network; nothing when it uses plain ones.

        Raises:
            UsageError: The home belongs to no network that a key owns: ``KEYED_TYPES``.
        """
        if self.config.keyed_types is None:
            return None
        owner = None if self.network is None else self.network[0]
        if owner is None or isinstance(owner, Name):
            raise UsageError("keyed type ids need a network, whose owner is a key", code="KEYED_TYPES")
        hiding = TypeName(owner, self.config.keyed_types, parse_version("1"))
        return TypeIds(self.keyring(), KeyGroupId(hiding.type_id, WHOLE_EVENT))

    def wire_ids(self, type_id: TypeId) -> frozenset[TypeId]:
        """Return all ids under which events of a type may be in the log: the plain one, and those of held epochs."""
        ids = self.type_ids()
        return frozenset((type_id,)) if ids is None else ids.known(type_id) | {type_id}

    def may_manage_keys(self) -> bool:
        """Tell whether a key is here with which a home could manage key groups; most homes have none."""
        return any(self.key_path(name).exists() for name in (KEY_MANAGER, self.config.domain))

    def next_stamp(self) -> int:
        """Reserve a stamp, kept on disk before it is used, so no crash and no clock makes one come twice."""
        path = self.path / "stamps"
        with locked(path):
            at = now()
            check_pace(self.path / "pace", at)
            high = read_mark(read_file(path, limit=64)) if path.exists() else -1
            lead = MAX_LEAD + self.config.skew * 1000
            stamp = reserve_stamps(high, now=milliseconds(at), count=1, lead=lead).first
            write_file(path, write_mark(stamp), mode=PUBLIC_FILE)
            return stamp
