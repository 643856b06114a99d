"""The statement file: what a verifier accepted about validity, kept across restarts.

    (statements (version "1") (lists <signed statement> …) (nonces <octets> | (<octets> <until>) …))

Rules kept here:

- every statement is verified again when it is read; the disk is not believed;
- a file that is damaged in any place is refused whole: half a book could miss a revocation;
- a file never goes back: a book that lacks the newest list on disk is not written over it, and spent nonces stay spent
  until their challenge is over.

An attacker who can put an old copy of the whole file back is beyond what one file can notice.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from operator import itemgetter
from pathlib import Path

from maia.authority import (
    DEFAULT_VERIFIER_LIMITS,
    ListStatement,
    StatementBook,
    VerifierLimits,
    parse_statement,
    verify_statement,
)
from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, NotFoundError, UnavailableError
from maia.home.files import PRIVATE_FILE, PRIVATE_FOLDER, locked, make_folder, read_file, write_file
from maia.home.formats import newer_format
from maia.home.owners import read_successions
from maia.principals import KeyId, TestKind, encode_instant, parse_instant

STATEMENT_FILE_LIMITS = SexpLimits(max_bytes=256 << 20, max_depth=3, max_atom=16 << 20)
_VERSION: Sexp = (b"version", b"1")
_Track = tuple[KeyId, TestKind, bool]


class StatementFile:
    """A `StatementBook` on disk."""

    def __init__(self, path: Path) -> None:
        """Use a file, which need not exist: then nothing is known, which denies what needs a statement."""
        self.path = path

    def load(self, *, limits: VerifierLimits = DEFAULT_VERIFIER_LIMITS) -> StatementBook:
        """Read the book, verifying every statement.

        Raises:
            EncodingError: The file is damaged.
            VerificationError: A statement in it does not verify, or contradicts another.
            UnavailableError: The system refused.
        """
        book = StatementBook(limits=limits, successions=read_successions(self.path.parent))
        try:
            data = read_file(self.path, limit=STATEMENT_FILE_LIMITS.max_bytes)
        except NotFoundError:
            return book
        lists, nonces = _parse(data)
        for raw in lists:  # in the order in which the book says that they can be accepted again
            book.accept(verify_statement(parse_statement(raw)))
        for nonce, until in nonces.items():
            book.use((nonce,), until=until)
        return book

    def save(self, book: StatementBook, *, forgotten: datetime | None = None) -> None:
        """Write the book in one step; an interruption leaves the old file whole.

        Args:
            book: What is known now; it learns of the nonces that others spent.
            forgotten: What ended before this instant is left out, as `StatementBook.forget_before` does.

        Raises:
            UnavailableError: The file holds a newer list than the book (``STATEMENTS_NEWER_ON_DISK``: load it again,
                accept, save), or the system refused.
            MaiaError: The file on disk is damaged; it is left for a person to look at.
        """
        make_folder(self.path.parent, mode=PRIVATE_FOLDER)
        with locked(self.path):
            known = self.load()
            ours = _heads(book.raw_statements())
            for track, head in _heads(known.raw_statements()).items():
                # INVARIANT: what a saved book refuses, every later book refuses.
                if track not in ours or ours[track] < head:
                    raise UnavailableError(
                        f"`{self.path}` holds newer lists; load it again", code="STATEMENTS_NEWER_ON_DISK"
                    )
            for nonce, until in known.spent.items():
                if nonce not in book.spent and (forgotten is None or until is None or until >= forgotten):
                    book.use((nonce,), until=until)
            nonces = [_nonce(nonce, until) for nonce, until in sorted(book.spent.items(), key=itemgetter(0))]
            expression = (b"statements", _VERSION, (b"lists", *book.raw_statements()), (b"nonces", *nonces))
            write_file(self.path, encode(expression), mode=PRIVATE_FILE)


def _parse(data: bytes) -> tuple[list[bytes], dict[bytes, datetime | None]]:
    match parse_canonical(data, limits=STATEMENT_FILE_LIMITS):
        case (b"statements", version, (b"lists", *lists), (b"nonces", *nonces)) if version == _VERSION:
            pass
        case (b"statements", (b"version", bytes() as number), *_) if number.isdigit():
            raise newer_format("statements", found=int(number), known=1)
        case _:
            raise EncodingError("not a statement file", code="STATEMENT_FILE_SHAPE")
    return _strings(lists), dict(_read_nonce(item) for item in nonces)


def _strings(items: list[Sexp]) -> list[bytes]:
    strings = [item for item in items if isinstance(item, bytes)]
    if len(strings) != len(items):
        raise EncodingError("not a statement file", code="STATEMENT_FILE_SHAPE")
    return strings


def _nonce(nonce: bytes, until: datetime | None) -> Sexp:
    # An instant is written to the second, so a nonce is kept until the second is over.
    return nonce if until is None else (nonce, encode_instant(until.replace(microsecond=0) + timedelta(seconds=1)))


def _read_nonce(item: Sexp) -> tuple[bytes, datetime | None]:
    match item:
        case bytes() as nonce:
            return nonce, None
        case (bytes() as nonce, until):
            return nonce, parse_instant(until)
        case _:
            raise EncodingError("not a statement file", code="STATEMENT_FILE_SHAPE")


def _heads(raws: Iterable[bytes]) -> dict[_Track, tuple[datetime | int, int]]:
    """Find the newest list of each signer and kind: the latest start for timed lists, the highest number for others."""
    heads: dict[_Track, tuple[datetime | int, int]] = {}
    for raw in raws:
        body = parse_statement(raw).body
        assert isinstance(body, ListStatement)  # noqa: S101 - a book lists nothing else
        track = (body.signer.key_id, body.kind, body.timed)
        head = (body.starts or 0, body.sequence)
        heads[track] = max(heads.get(track, head), head)
    return heads
