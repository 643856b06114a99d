"""What workers tell the audit: sealed, put into the store of the log, and taken from there by the home.

    _returned/<broker>/<operation>-<part>-<random>

Rules kept here:

- each is sealed under a key that the home makes from its own and that only the order of that operation holds; its name
  is under the seal. What does not open is removed, and told to nobody;
- it is told while its part of the operation has no result in the audit: what comes after that, or comes again, is
  removed untold, whoever has the key;
- who acted, and on which type, is what the intent says. A worker tells counts, codes and where, within bounds;
- it is told before it is removed: a home that is killed between the two tells it once.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from maia.domain.operations import audit_of
from maia.encoding import encode
from maia.errors import EncodingError, NotFoundError, UnavailableError
from maia.home import PRIVATE_FILE, Home, locked, now, write_file
from maia.log import AuditRow, Store
from maia.principals import KeyId, KeySigner, PublicKey

RETURNED = "_returned"
_MARK = "returned"
_MAX_RESULT = 16 << 20
_AT_ONCE = 1000
_ROUNDS = 100
_NONCE = 12
_NAME = re.compile(r"(\d{1,15})-(\d{1,9})-[0-9a-f]{16}")
_LISTS = ("clauses", "certificates", "attributes", "closed")
_TEXTS = ("source", "code", "filter", "plan")
_KINDS = ("deliver", "withhold", "refuse", "notice", "alarm")
_MAX_TEXT = 4096
_MAX_LIST = 4096
_MAX_EVENTS = 2**53
_log = logging.getLogger(__name__)


def return_key(broker: KeySigner, operation: int) -> bytes:
    """Make the key that seals what an operation's tasks tell the audit."""
    return hmac.digest(broker.export_seed(), encode((b"maia/1 returned", b"%d" % operation)), hashlib.sha256)


def expect_results(home: Home) -> None:
    """Note that tasks of this home run elsewhere, so that it looks for what they tell."""
    mark = home.path / _MARK
    if not mark.exists():
        write_file(mark, b"", mode=PRIVATE_FILE)


def put_result(store: Store, broker: KeyId, key: bytes, operation: int, part: int, rows: Sequence[AuditRow]) -> None:
    """Leave what the audit is to be told of one part of an operation; the last row is its result.

    Raises:
        UnavailableError: The store does not take it.
    """
    name = f"{operation}-{part}-{secrets.token_hex(8)}"
    nonce = secrets.token_bytes(_NONCE)
    said = json.dumps([{**asdict(row), "at": row.at.isoformat()} for row in rows]).encode()
    sealed = nonce + AESGCM(key).encrypt(nonce, said, name.encode())
    if not store.put_new(f"{RETURNED}/{broker.hex()}/{name}", sealed):
        raise UnavailableError("what the audit is to be told cannot be left in the log", code="AUDIT_UNAVAILABLE")


def take_results(home: Home) -> int:
    """Tell the audit what workers left for it; count the parts of operations that were told.

    Raises:
        UnavailableError: The store does not answer, or the audit cannot be written.
    """
    if not (home.path / _MARK).exists():
        return 0
    taken, broker, store = 0, home.broker, home.log_store
    audit = audit_of(home)
    folder = f"{RETURNED}/{broker.public_key.key_id.hex()}"
    with locked(home.path / _MARK):
        waiting: dict[tuple[int, int], AuditRow] = {}
        after = ""
        for _ in range(_ROUNDS):
            names = store.list_after(folder, after, limit=_AT_ONCE)
            # INVARIANT: looked at after the list, so that whatever is in it had its intent by then. Several attempts of
            # one task may have told: what is open now is told of all that are there now.
            waiting |= audit.open_parts()
            for name in names:
                found = _NAME.fullmatch(name)
                with suppress(NotFoundError):
                    place = (-1, -1) if found is None else (int(found[1]), int(found[2]))
                    intent = waiting.get(place)
                    try:
                        # SECURITY: whoever can write to the store can put there again what was taken from it.
                        if intent is not None:
                            sealed = store.get(f"{folder}/{name}", limit=_MAX_RESULT)
                            rows = _opened(sealed, return_key(broker, place[0]), name, intent, broker.public_key)
                            audit.end(place[0], rows[-1], rows=rows[:-1], part=place[1])
                            taken += 1
                    except EncodingError as error:
                        _log.warning("warning: [%s] what lay in the log for the audit is not told", error.code)
                    store.delete(f"{folder}/{name}")
            if len(names) < _AT_ONCE:
                break
            after = names[-1]
    return taken


def _opened(sealed: bytes, key: bytes, name: str, intent: AuditRow, broker: PublicKey) -> list[AuditRow]:
    """Open what a worker left; the last row is the result.

    Raises:
        EncodingError: No worker of that operation did, or it tells what a read does not: ``RETURNED_SHAPE``.
    """
    try:
        said = json.loads(AESGCM(key).decrypt(sealed[:_NONCE], sealed[_NONCE:], name.encode()))
        *before, last = said
        rows = [_row(row, _KINDS, intent, broker) for row in before]
        return [*rows, _row(last, ("result",), intent, broker)]
    except (InvalidTag, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise EncodingError("not what a worker of this operation tells", code="RETURNED_SHAPE") from error


def _row(said: dict[str, Any], kinds: Sequence[str], intent: AuditRow, broker: PublicKey) -> AuditRow:
    """Read a row; who and what about is the intent's, and when is between the intent and now.

    Raises:
        ValueError: It is none that a read tells.
    """
    kind, events, at = said["kind"], said["events"], datetime.fromisoformat(said["at"])
    if kind not in kinds or type(events) is not int or not 0 <= events < _MAX_EVENTS or at.tzinfo is None:
        raise ValueError("no row of a read")
    told: dict[str, Any] = {word: _text(said[word]) for word in _TEXTS}
    told |= {word: tuple(_text(item) for item in _listed(said[word])) for word in _LISTS}
    return AuditRow(
        at=min(max(at, intent.at), max(now(), intent.at)), kind=kind, type_id=intent.type_id, subject=intent.subject,
        principal=broker.fingerprint if kind == "alarm" else intent.principal, events=events, **told,
    )  # fmt: skip


def _text(said: object) -> str:
    if not isinstance(said, str) or len(said.encode()) > _MAX_TEXT:
        raise ValueError("no text, or too much")
    return said


def _listed(said: object) -> list[object]:
    if not isinstance(said, list) or len(said) > _MAX_LIST:
        raise ValueError("no list, or too long")
    return said
