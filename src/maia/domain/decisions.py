"""Decisions as the audit keeps them: what was asked, by what it was decided, and the answer; they can be repeated.

    {"action":"subscribe","at":…,"code":"OK","engine":…,"epoch":…,"holder":…,"key":…,"rights":…,"state":…,"type":…,…,"v":1}

``state`` names the files that decided (`maia.log.EvidenceStates`): certificates, statements, definitions, public keys
and policy, by one digest. ``rights`` is the digest of the reduced rights that came out.

Rules kept here:

- no value is told: of a filter there are the attributes that it reads, and a salted digest under a key of the broker's,
  by which the home alone can tell whether somebody shows the same filter again;
- no private key, no secret of a service and no address is in a state: of the settings it has those that decide;
- what a decision asked outside of the home is named, since nobody can decide that again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from maia.domain.agreement_files import POLICY_FOLDER
from maia.domain.label_files import FrameLabels, has_roles
from maia.domain.snapshot import Snapshot, file_state
from maia.encoding import encode
from maia.encryption import groups_of
from maia.errors import DeniedError, EncodingError, MaiaError, UnavailableError, VerificationError
from maia.events import EventType, TypeName
from maia.filters import compile_filter
from maia.home import OWNERS_FOLDER, Home, HomeConfig
from maia.kernel import Clause
from maia.log import OK, EvidenceStates
from maia.principals import PublicKey
from maia.version import __version__

DECISION_FORMAT = 1
STATEMENT_ORDER = "statements.order"
PROVIDERS = f"{POLICY_FOLDER}/providers.toml"
_DECIDE = ("name", "broker", "domain", "network", "grace", "skew", "names")
_MAX_FILE = 16 << 20
_DEPTH = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFilter:
    """What the audit keeps of a client's own filter.

    Attributes:
        reads: The attributes that it names.
        salt: In hex.
        digest: Of the salt and the filter, under a key of the broker's.
    """

    reads: tuple[str, ...]
    salt: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDecision:
    """A decision, as the audit keeps it.

    Attributes:
        action: What was asked for: ``subscribe`` or ``publish``.
        type: Of which type, its id in hex.
        version: Of which version.
        key: Whose right, the public key in hex.
        at: At which instant rights were judged.
        state: What decided, see `maia.log.EvidenceStates`.
        holder: What the key is called in the home, of a reader.
        code: The answer: ``OK``, or the code of the refusal.
        rights: The digest of the reduced rights; empty for a refusal.
        epoch: The start of the newest epoch of the type's keys that the home held; 0 without any.
        engine: The version of Maia that decided.
        proven: Whether somebody had proven to hold the key.
        filter: The client's own filter, if it gave one.
        frame: By what a labelled frame was labelled: the policy's digest, and the tags.
        ground: On what the right stood before, where something of it was gone.
        outside: What was asked outside of the home: ``answers``, ``facts``, ``roles``.
    """

    action: str
    type: str
    version: str
    key: str
    at: datetime
    state: str
    holder: str = ""
    code: str = OK
    rights: str = ""
    epoch: int = 0
    engine: str = __version__
    proven: bool = False
    filter: RecordedFilter | None = None
    frame: tuple[str, tuple[str, ...]] | None = None
    ground: Mapping[str, object] | None = None
    outside: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Write it; what is empty is left out."""
        value = {name: item for name, item in asdict(self).items() if item not in (None, "", (), False)}
        value |= {"v": DECISION_FORMAT, "at": self.at.astimezone(UTC).isoformat(timespec="microseconds")}
        return json.dumps(value, sort_keys=True, separators=(",", ":"))


def parse_decision(text: str) -> RecordedDecision:
    """Read a decision from a row of the audit.

    Raises:
        EncodingError: It is none: ``DECISION_SHAPE``.
        UnavailableError: A newer Maia wrote it: ``FORMAT_NEWER``.
    """
    try:
        value: dict[str, Any] = json.loads(text)
        version = value.pop("v")
        if type(version) is int and version > DECISION_FORMAT:
            raise UnavailableError(
                f"a decision is of format {version}, and this Maia knows {DECISION_FORMAT}", code="FORMAT_NEWER"
            )
        value["at"] = datetime.fromisoformat(value["at"]).astimezone(UTC)
        if "filter" in value:
            reads = tuple(map(str, value["filter"].pop("reads")))
            value["filter"] = RecordedFilter(reads=reads, **value["filter"])
        if "frame" in value:
            policy, tags = value["frame"]
            value["frame"] = (str(policy), tuple(map(str, tags)))
        found = RecordedDecision(**{**value, "outside": tuple(value.get("outside", ()))})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise EncodingError("this is no decision", code="DECISION_SHAPE") from error
    if found.text != text:
        raise EncodingError("this is no decision", code="DECISION_SHAPE")
    return found


def said_clauses(*groups: Iterable[Clause]) -> str:
    """Name reduced rights by one digest: what each clause says, and the chain behind it."""
    found = hashlib.sha256()
    for clauses in groups:
        found.update(b"%d" % len(held := tuple(clauses)))
        for clause in held:
            found.update(encode((clause.identity, tuple(bytes(item) for item in clause.chain))))
    return found.hexdigest()


def filter_digest(home: Home, salt: str, text: str) -> str:
    """Name a filter by a salted digest, under a key of the broker's: who has the audit alone can try no values."""
    key = hmac.digest(home.broker.export_seed(), b"maia/1 audit filter\x01", hashlib.sha256)
    return hmac.new(key, bytes.fromhex(salt) + text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


@dataclass(slots=True)
class DecisionAtWork:
    """A decision while it is made.

    Attributes:
        records: Who writes it down; nobody while a decision is repeated.
        asked: What was asked.
        answers: Whether somebody was asked to confirm certificates, for this once.
        ground: On what the right stood before, where something of it is gone.
    """

    records: DecisionRecords | None = None
    asked: RecordedDecision | None = None
    answers: bool = False
    ground: Mapping[str, object] | None = None

    def granted(self, event_type: EventType, clauses: Iterable[Clause], own: Iterable[Clause] = ()) -> str:
        """Say that it is granted, and what."""
        return "" if self.records is None else self.records.granted(self, event_type, clauses, own)

    def refused(self, error: MaiaError) -> str:
        """Say that it is refused, and why."""
        return "" if self.asked is None else replace(self.outside(), code=error.code, ground=self.ground).text

    def outside(self, *more: str) -> RecordedDecision:
        """Give what was asked, with what was asked for outside of the home."""
        assert self.asked is not None  # noqa: S101 - whoever writes down began
        words = {*self.asked.outside, *more, *(["answers"] if self.answers else [])}
        return replace(self.asked, outside=tuple(sorted(words)))


@contextmanager
def recording(
    records: DecisionRecords | None,
    known: Snapshot,
    name: TypeName,
    key: PublicKey,
    *,
    action: str,
    holder: str = "",
    filter_: str | None = None,
    proven: bool = False,
    frames: FrameLabels | None = None,
    at: datetime,
) -> Iterator[DecisionAtWork]:
    """Write a decision down while it is made; a refusal takes what is told of it along.

    Args:
        records: Who writes it down; nobody while one is repeated.
        known: The home's evidence.
        name: The version that is asked for.
        key: Whose right.
        action: ``subscribe`` or ``publish``.
        holder: What a reader's key is called in the home.
        filter_: The client's own filter.
        proven: Whether somebody proved to hold the key.
        frames: By what a labelled frame was labelled.
        at: Now.
    """
    told = DecisionAtWork()
    if records is not None:
        asked = records.begin(known, name, key, action=action, filter_=filter_, at=at)
        frame = None if frames is None else (frames.policy, tuple(sorted(frames.tags)))
        told = DecisionAtWork(records, replace(asked, holder=holder, proven=proven, frame=frame))
    try:
        yield told
    except (DeniedError, VerificationError) as error:
        error.decision = told.refused(error)
        raise


class DecisionRecords:
    """Writes down the decisions of a home; states are kept once while nothing changes."""

    def __init__(self, home: Home) -> None:
        """Write down for a home."""
        self._home = home
        self._states = EvidenceStates(home.audit_path)
        self._read: dict[str, tuple[object, bytes | None]] = {}
        self._kept: tuple[Snapshot, object, datetime, object, str] | None = None
        self._epochs: tuple[object, Any] | None = None

    def begin(
        self,
        known: Snapshot,
        name: TypeName,
        key: PublicKey,
        *,
        action: str,
        filter_: str | None,
        at: datetime,
    ) -> RecordedDecision:
        """Write down what is asked, before it is decided, with what will decide it.

        Raises:
            UnavailableError: It cannot be kept, so nothing is decided: ``AUDIT_UNAVAILABLE``.
        """
        return RecordedDecision(
            action=action, type=name.type_id.hex(), version=name.version.text, key=key.raw.hex(), at=at,
            state=self._state(known, at), filter=self._filter(known, name, filter_, at),
            outside=("roles",) if has_roles(self._home) else (),
        )  # fmt: skip

    def granted(
        self, told: DecisionAtWork, event_type: EventType, clauses: Iterable[Clause], own: Iterable[Clause]
    ) -> str:
        """Write down that it was granted, and what."""
        held, more = tuple(clauses), tuple(own)
        facts = any(item.conditions for item in (*held, *more)) and (self._home.path / PROVIDERS).exists()
        asked = told.outside(*(["facts"] if facts else []))
        return replace(asked, rights=said_clauses(held, more), epoch=self._epoch(event_type)).text

    def _filter(self, known: Snapshot, name: TypeName, text: str | None, at: datetime) -> RecordedFilter | None:
        if text is None:
            return None
        try:
            version = known.sessions.event_type(name.type_id, name.version.text, at=at)
            typed = compile_filter(text, {item.name: item.type.value for item in version.attributes})
        except MaiaError:
            return None  # refused before any right is asked for
        salt = secrets.token_hex(16)
        return RecordedFilter(
            reads=tuple(sorted(typed.attributes)), salt=salt, digest=filter_digest(self._home, salt, text)
        )

    def _epoch(self, event_type: EventType) -> int:
        """Tell the start of the newest epoch of a type's keys that the home holds."""
        state = file_state(self._home.path / "keyring", depth=0)
        if self._epochs is None or self._epochs[0] != state:
            self._epochs = (state, self._home.keyring())
        ring = self._epochs[1]
        labels = [item.uid.encode() for item in event_type.attributes]
        groups = groups_of(event_type.type_id, labels, event_type.options.encryption)
        return max((epoch for group in groups for epoch in ring.epochs(group)[-1:]), default=0)

    def _state(self, known: Snapshot, at: datetime) -> str:
        """Name what decides at this moment, and keep it."""
        kept, token = self._kept, known.pool.token
        if kept is not None and kept[0] is known and kept[1] is token:
            if kept[2] == at:
                return kept[4]
            policy = file_state(self._home.path / POLICY_FOLDER, depth=_DEPTH)
            if kept[3] == policy:
                self._kept = (known, token, at, policy, kept[4])
                return kept[4]
        policy = file_state(self._home.path / POLICY_FOLDER, depth=_DEPTH)
        name = self._states.keep(self._files(known))
        self._kept = (known, token, at, policy, name)
        return name

    def _files(self, known: Snapshot) -> dict[str, bytes | None]:
        home, found = self._home, dict[str, bytes | None]()
        settings = {name: getattr(home.config, name) for name in _DECIDE}
        found["maia.toml"] = HomeConfig(**settings).to_toml().encode()
        for certificate in known.pool:
            for item in known.pool.spellings(certificate.certificate_id):
                found[f"certificates/{hashlib.sha256(item.raw).hexdigest()}.cert"] = item.raw
        lists = known.verifier.statements.raw_statements()
        names = [hashlib.sha256(raw).hexdigest() for raw in lists]
        found |= {f"statements/{name}": raw for name, raw in zip(names, lists, strict=True)}
        found[STATEMENT_ORDER] = "\n".join(names).encode()
        paths = list((home.path / "keys").glob("*.pub"))
        for folder in ("types", OWNERS_FOLDER, POLICY_FOLDER):
            paths += _walk(home.path / folder, _DEPTH)
        read: dict[str, tuple[object, bytes | None]] = {}
        for path in paths:
            name = path.relative_to(home.path).as_posix()
            if name != PROVIDERS:  # its addresses and passwords are nobody's; what it answers is outside
                state, before = file_state(path, depth=0), self._read.get(name)
                read[name] = before if before is not None and before[0] == state else (state, _octets(path))
                found[name] = read[name][1]
        self._read = read
        return found


def _walk(folder: Path, depth: int) -> list[Path]:
    """List the files of a folder and of those in it, nothing hidden."""
    try:
        items = sorted(item for item in folder.iterdir() if not item.name.startswith("."))
    except OSError:
        return []
    found: list[Path] = []
    for item in items:
        if item.is_dir():
            found += _walk(item, depth - 1) if depth else []
        else:
            found.append(item)
    return found


def _octets(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_FILE)
    except OSError:
        return None
