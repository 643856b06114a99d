"""A domain's home: one directory with its keys, certificates, types, statements, keyring, log and audit.

    maia.toml            name, network, broker, log
    keys/                NAME.key (0600) and NAME.pub
    certificates/        *.cert, as they came
    types/               signed definitions
    statements           accepted validity statements
    policy/              the domain's policy, and providers.toml, which says who answers for facts
    rates.db             what publishers drew from their rates
    keyring              attribute keys, sealed to the broker's key
    groups               what the broker knows of its key groups, sealed likewise
    stamps               the highest stamp this broker ever reserved
    key-uses             how often each key sealed
    log/                 parcels and commits; may lie elsewhere and be shared
    audit/  checkpoints/

A home is usable by hand: everything but the keyring is a file that an editor and a version control system can handle,
and nothing in it is believed without verification.
"""

from __future__ import annotations

import secrets
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from maia.authority import (
    Action,
    CertificatePool,
    Verifier,
    ask_type,
)
from maia.broker import KEY_MANAGER, Sessions, milliseconds, read_mark, reserve_stamps, write_mark
from maia.encryption import (
    WHOLE_EVENT,
    EpochId,
    KeyGroupId,
    Keyring,
    Tolerance,
    TypeIds,
    groups_of,
    keyring_secret,
    open_keyring,
    seal_keyring,
)
from maia.errors import MalformedError, NotFoundError, UnavailableError, UsageError, VerificationError
from maia.events import EventType, TypeId, TypeName, parse_event_type, parse_version
from maia.principals import KeySigner, Name, Principal, PublicKey
from maia.stores.certificates import CertificateFolder
from maia.stores.files import PRIVATE_FILE, PUBLIC_FILE, locked, make_folder, read_file, write_file
from maia.stores.keys import read_key, read_public_key, write_key, write_public_key
from maia.stores.providers import HomeSurroundings
from maia.stores.statements import StatementFile
from maia.stores.types import DirectoryRegistry, verify_with_registry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from maia.stores.streams import CellExplanation

_CONFIG = "maia.toml"
_MAX_CONFIG = 1 << 16
_MAX_KEYRING = 64 << 20
_KEY_LENGTH = 32
_NUMBERS = ("grace", "skew", "history", "alarm")
_TEXTS = ("name", "broker", "domain", "log", "keyed_types", *_NUMBERS)
_SERVICES: dict[str, str | None] = {"database": "store.db", "key_manager": None, "access_control": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeConfig:
    """What ``maia.toml`` says.

    Attributes:
        name: What people call the domain.
        broker: The name of the key that seals and signs parcels.
        domain: The name of the key that speaks for the domain and issues its certificates.
        network: Owner's key name and network name, when clients must show ``connect``.
        log: The log's directory, relative to the home.
        grace: Seconds for which a replaced key still opens.
        skew: Seconds by which clocks may differ.
        history: Seconds for which replaced keys are kept, at least ``grace``; without it, as long as the log keeps
            commits of their time.
        alarm: Events an hour above which the audit points a subscription out; without it, none.
        keyed_types: The network owner's type whose key hides type ids on the wire; without it they are plain.
        database: Where the domain's services keep their state: a file in the home, or a database address.
        key_manager: Address of the key manager; without one it runs in process.
        access_control: Address of the access control service; without one it runs in process.
    """

    name: str
    broker: str = "broker"
    domain: str = "domain"
    network: tuple[str, str] | None = None
    log: str = "log"
    grace: int = 30
    skew: int = 5
    history: int | None = None
    alarm: int | None = None
    keyed_types: str | None = None
    database: str = "store.db"
    key_manager: str | None = None
    access_control: str | None = None

    def to_toml(self) -> str:
        """Write the file."""
        texts = {"name": self.name, "broker": self.broker, "domain": self.domain, "log": self.log}
        lines = [f"{key} = {_quote(text)}" for key, text in texts.items()]
        lines += [f"grace = {self.grace}", f"skew = {self.skew}"]
        if self.history is not None:
            lines.append(f"history = {self.history}")
        if self.alarm is not None:
            lines.append(f"alarm = {self.alarm}")
        if self.keyed_types is not None:
            lines.append(f"keyed_types = {_quote(self.keyed_types)}")
        if self.network is not None:
            lines += ["", "[network]", f"owner = {_quote(self.network[0])}", f"name = {_quote(self.network[1])}"]
        services = {key: getattr(self, key) for key in _SERVICES if getattr(self, key) != _SERVICES[key]}
        if services:
            lines += ["", "[services]", *(f"{key} = {_quote(text)}" for key, text in services.items())]
        return "\n".join(lines) + "\n"

    @classmethod
    def from_toml(cls, data: bytes) -> HomeConfig:
        """Read the file.

        Raises:
            MalformedError: It is not TOML, or has unknown or ill-typed settings.
        """
        try:
            value = tomllib.loads(data.decode("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise MalformedError(f"`{_CONFIG}` is not TOML: {error}", code="HOME_CONFIG") from error
        network = value.pop("network", {})
        services = value.pop("services", {})
        if not (
            _all_known(value, _TEXTS)
            and isinstance(network, dict)
            and _all_known(network, ("owner", "name"))
            and len(network) != 1
            and isinstance(services, dict)
            and _all_known(services, _SERVICES)
            and "name" in value
        ):
            raise MalformedError(f"`{_CONFIG}` has a setting that is unknown or wrong", code="HOME_CONFIG")
        pair = (network["owner"], network["name"]) if network else None
        return cls(network=pair, **value, **services)


def _all_known(table: dict[str, object], known: Iterable[str]) -> bool:
    right = all(type(value) is (int if key in _NUMBERS else str) for key, value in table.items())
    return right and table.keys() <= set(known)


@dataclass(slots=True)
class Home:
    """A domain's home, opened."""

    path: Path
    config: HomeConfig
    _types: dict[bytes, bytes] = field(default_factory=dict)

    @classmethod
    def create(cls, path: Path | str, config: HomeConfig, *, broker: KeySigner | None = None) -> Home:
        """Make a new home with a broker key, a fresh one unless one is given.

        Raises:
            UsageError: There is one already.
        """
        root = Path(path)
        if (root / _CONFIG).exists():
            raise UsageError(f"`{root}` is a home already", code="HOME_EXISTS")
        make_folder(root, mode=0o755)
        home = cls(root, config)
        home.add_key(config.broker, KeySigner.generate() if broker is None else broker)
        write_file(root / _CONFIG, config.to_toml().encode(), mode=PUBLIC_FILE)
        return home

    @classmethod
    def open(cls, path: Path | str) -> Home:
        """Open a home.

        Raises:
            NotFoundError: There is none.
        """
        root = Path(path)
        if not (root / _CONFIG).is_file():
            raise NotFoundError(f"`{root}` is no home: it has no `{_CONFIG}`", code="NO_HOME")
        return cls(root, HomeConfig.from_toml(read_file(root / _CONFIG, limit=_MAX_CONFIG)))

    # -- keys of people and of the broker

    def new_key(self, name: str, *, passphrase: str | None = None) -> KeySigner:
        """Make a key pair under a name."""
        signer = KeySigner.generate()
        self.add_key(name, signer, passphrase=passphrase)
        return signer

    def add_key(self, name: str, signer: KeySigner, *, passphrase: str | None = None) -> None:
        """Keep a key pair under a name."""
        write_key(self._key_path(name, "key"), signer, passphrase=passphrase)
        write_public_key(self._key_path(name, "pub"), signer.public_key)

    def add_public_key(self, name: str, key: PublicKey) -> None:
        """Know somebody's public key under a name."""
        write_public_key(self._key_path(name, "pub"), key)

    def signer(self, name: str) -> KeySigner:
        """Return the private key of a name."""
        return read_key(self._key_path(name, "key"))

    def key(self, name: str) -> PublicKey:
        """Return the public key of a name."""
        return read_public_key(self._key_path(name, "pub"))

    @property
    def broker(self) -> KeySigner:
        """The key that seals and signs this home's parcels."""
        return self.signer(self.config.broker)

    def _key_path(self, name: str, suffix: str) -> Path:
        if not name or not all(letter.isalnum() or letter in "-_." for letter in name) or name.startswith("."):
            raise UsageError(f"`{name}` cannot name a key: use letters, digits, `-`, `_` and `.`", code="KEY_NAME")
        return self.path / "keys" / f"{name}.{suffix}"

    # -- evidence, statements, types

    @property
    def certificates(self) -> CertificateFolder:
        """The certificates of this home."""
        return CertificateFolder(self.path / "certificates")

    def pool(self) -> CertificatePool:
        """Return all certificates as evidence."""
        return self.certificates.pool()

    @property
    def statements(self) -> StatementFile:
        """The validity statements of this home."""
        return StatementFile(self.path / "statements")

    @property
    def types(self) -> DirectoryRegistry:
        """The type registry of this home."""
        return DirectoryRegistry(self.path / "types")

    @property
    def network(self) -> tuple[Principal, str] | None:
        """The network this home belongs to."""
        if self.config.network is None:
            return None
        return self.key(self.config.network[0]), self.config.network[1]

    @property
    def tolerance(self) -> Tolerance:
        """Grace and skew."""
        return Tolerance(grace=self.config.grace * 1000, skew=self.config.skew * 1000)

    @property
    def log_path(self) -> Path:
        """Where the log is."""
        return (self.path / self.config.log).resolve()

    @property
    def surroundings(self) -> HomeSurroundings:
        """A reference to what conditions may ask here: the clock, ``policy/providers.toml`` and the ledger of rates."""
        return HomeSurroundings(str(self.path.resolve()))

    def verifier(self) -> Verifier:
        """Return a verifier with the statements that were accepted here."""
        return Verifier(statements=self.statements.load())

    def sessions(self, *, at: datetime, verifier: Verifier | None = None) -> Sessions:
        """Return sessions that know every type of this home that verifies now."""
        sessions = Sessions(
            verifier if verifier is not None else self.verifier(), network=self.network, surroundings=self.surroundings
        )
        registry = self.types
        for name in registry.names():
            for unverified in registry.find(name):
                try:
                    sessions.install(
                        verify_with_registry(
                            registry, unverified, verifier=sessions.verifier, at=at, network=self.network
                        )
                    )
                    self._types[unverified.definition_id] = unverified.raw
                except VerificationError:
                    continue
        return sessions

    def find_type(self, name: str, version: str | None = None) -> TypeName:
        """Find a type by its readable name, when that says which one.

        Raises:
            NotFoundError: There is none.
            UsageError: Several owners or versions have the name; the message lists them.
        """
        found = [
            known
            for known in self.types.names()
            if known.name == name and (version is None or known.version.text == version)
        ]
        if not found:
            raise NotFoundError(
                f"there is no type `{name}`{'' if version is None else f' version {version}'}", code="TYPE_NOT_FOUND"
            )
        if len(found) > 1:
            listed = ", ".join(str(item) for item in found)
            raise UsageError(f"`{name}` may be any of: {listed}; name the version", code="TYPE_AMBIGUOUS")
        return found[0]

    def definition(self, name: TypeName) -> bytes:
        """Return the signed definition of a version that this home keeps."""
        return self.types.find(name)[0].raw

    # -- attribute keys

    def keyring(self) -> Keyring:
        """Open the keyring; an empty one when there is none yet."""
        path = self.path / "keyring"
        if not path.exists():
            return Keyring()
        return open_keyring(read_file(path, limit=_MAX_KEYRING), keyring_secret(self.broker.export_seed()))

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

    def sealing_keys(self) -> Keyring:
        """Open the keyring for a task that publishes: it looks for new keys before each parcel."""
        keys: Keyring = import_module("maia.stores.group_keys_sealing").SealingKeys(self)
        return keys

    def save_keyring(self, ring: Keyring) -> None:
        """Seal and keep the keyring."""
        data = seal_keyring(ring, keyring_secret(self.broker.export_seed()), nonce=secrets.token_bytes(12))
        write_file(self.path / "keyring", data, mode=PRIVATE_FILE)

    def ensure_keys(self, event_type: EventType, *, at: datetime) -> int:
        """See that a type's groups have keys; return how many groups got one now.

        The keys of groups that a key manager looks after come from there: this home's own when it manages the type, see
        `maia.stores.group_keys_home`. Without a manager they are made here, and kept here.

        Raises:
            UnavailableError: The keys are managed elsewhere, and the broker did not join: ``KEYS_NOT_JOINED``.
            MaiaError: The home's own key manager refuses its broker.
        """
        uids = [item.uid.encode() for item in event_type.attributes]
        groups = groups_of(event_type.type_id, uids, event_type.options.encryption)
        if self.config.key_manager is not None:
            if groups and not self._follows(groups):
                # INVARIANT: keys that nobody refreshes here seal nothing, also those of a membership that ended.
                name = event_type.name.name
                raise UnavailableError(
                    f"this home is in no key group of `{name}`; `maia keys join {name}` asks its key manager",
                    code="KEYS_NOT_JOINED",
                )
            return 0
        ring = self.keyring()
        if all(ring.epochs(group) for group in groups) or self._follows(groups):
            return 0
        if not any(ring.epochs(group) for group in groups) and self.may_manage_keys():
            own = import_module("maia.stores.group_keys_home")
            if own.manages(self, event_type, at=at):
                return len(own.join_own_groups(self, event_type, at=at))
        with locked(self.path / "keyring"):
            ring = self.keyring()
            missing = [group for group in groups if not ring.epochs(group)]
            for group in missing:
                ring.add(group, EpochId(milliseconds(at)), secrets.token_bytes(_KEY_LENGTH))
            if missing:
                self.save_keyring(ring)
            return len(missing)

    def _follows(self, groups: Iterable[KeyGroupId]) -> bool:
        """Tell whether one of these groups gets its keys from the log."""
        if not (self.path / "groups").exists():
            return False
        followed = import_module("maia.stores.group_keys").GroupKeys(self).groups()
        return not frozenset(groups).isdisjoint(followed)

    def may_manage_keys(self) -> bool:
        """Tell whether a key is here with which a home could manage key groups; most homes have none."""
        return any((self.path / "keys" / f"{name}.key").exists() for name in (KEY_MANAGER, self.config.domain))

    def next_stamp(self) -> int:
        """Reserve a stamp, kept on disk before it is used, so no crash and no clock makes one come twice."""
        path = self.path / "stamps"
        with locked(path):
            high = read_mark(read_file(path, limit=64)) if path.exists() else -1
            stamp = reserve_stamps(high, now=milliseconds(now()), count=1).first
            write_file(path, write_mark(stamp), mode=PUBLIC_FILE)
            return stamp

    def publishing_evidence(self, event_type: EventType, *, at: datetime) -> tuple[bytes, ...]:
        """Return the certificates that prove this broker's right to publish a type.

        Raises:
            VerificationError: It has none.
        """
        name = event_type.name
        request = ask_type(Action.PUBLISH, name.owner, name.name, None)
        grant = self.verifier().verify(request, principal=self.broker.public_key, evidence=self.pool(), at=at)
        return tuple(item.raw for item in grant.certificates)

    def read_type(self, name: TypeName) -> EventType:
        """Return the definition of a version, unverified; plans are made from verified ones."""
        return parse_event_type(self.definition(name)).definition

    # -- events

    def publish(
        self,
        frame: DataFrame,
        type_name: str,
        *,
        as_: str,
        version: str | None = None,
        publication: str | None = None,
    ) -> StreamingQuery | None:
        """Publish the rows of a DataFrame, batch or streaming, as a client of this domain.

        Args:
            frame: Columns named as the attributes of the version.
            type_name: The type's readable name.
            as_: The client's key name.
            version: Which version the rows have, when the home knows several.
            publication: Names the publication; publishing it twice counts once. Streams need one.

        Returns:
            The running query of a streaming frame; nothing for a batch, which is committed when this returns.
        """
        started: StreamingQuery | None = streams().publish(
            self, frame, type_name, as_=as_, version=version, publication=publication
        )
        return started

    def read(
        self, type_name: str, *, as_: str, where: str = "", version: str | None = None, with_event_id: bool = False
    ) -> DataFrame:
        """Read what the log holds now, as a client may see it: closed cells are null, other rows are absent."""
        seen: DataFrame = streams().read(
            self, type_name, as_=as_, where=where, version=version, with_event_id=with_event_id
        )
        return seen

    def subscribe(
        self, type_name: str, *, as_: str, where: str = "", version: str | None = None, starting: str = "earliest"
    ) -> DataFrame:
        """Follow the log as a client may see it: a streaming DataFrame, whose rights are those of each micro-batch."""
        seen: DataFrame = streams().subscribe(self, type_name, as_=as_, where=where, version=version, starting=starting)
        return seen

    def explain(
        self,
        type_name: str,
        *,
        principal: str,
        attribute: str,
        version: str | None = None,
        at: datetime | None = None,
    ) -> CellExplanation:
        """Explain why a client sees an attribute or not, with the chains behind it."""
        moment = now() if at is None else at
        found: CellExplanation = streams().explain(
            self, type_name, principal=principal, attribute=attribute, version=version, at=moment
        )
        return found


def streams() -> ModuleType:
    """Load what needs Spark, when it is needed."""
    return import_module("maia.stores.streams")


@dataclass(frozen=True, slots=True)
class HomeKeys:
    """A reference to a home's keyring: builds the key provider where it is called, and carries no key."""

    path: str

    def __call__(self) -> Keyring:
        """Open the keyring here; what is sealed with it is counted in the home."""
        return Home.open(self.path).sealing_keys()


@dataclass(frozen=True, slots=True)
class HomeSigner:
    """A reference to a home's broker key: builds the signer where it is called, and carries no key."""

    path: str

    def __call__(self) -> KeySigner:
        """Read the broker's key here."""
        return Home.open(self.path).broker


def now() -> datetime:
    """Read the clock."""
    return datetime.now(UTC)


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
