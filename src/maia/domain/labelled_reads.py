"""The ticket by which a labelled frame reads what only labelled frames may hold.

Rules kept here:

- `Client.labelled` alone asks for one. The domain's broker signs it, for one client's key, one type, one filter, the
  label policy and the tags of the frame, and for a day; it is checked again in the processes in which Spark plans;
- whatever else stands in its place is refused, and the audit is told: an option that somebody writes opens nothing.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime, timedelta

from maia.domain.label_files import FrameLabels
from maia.domain.operations import refusals_of_key
from maia.domain.topics import TypeOrTopic
from maia.encoding import Sexp, encode, parse_canonical
from maia.errors import DeniedError, MaiaError
from maia.home import Home
from maia.principals import Kind, PublicKey, verify_signature

TICKET_AGE = timedelta(days=1)
_HEAD = b"labelled-read"
_MAX_TEXT = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledRead:
    """A read that fills a labelled frame.

    Attributes:
        labels: By what the frame is labelled.
        ticket: That the domain lets this client read so, as Spark's option ``labelled`` carries it.
    """

    labels: FrameLabels
    ticket: str


def sign_labelled_read(
    home: Home, key: PublicKey, asked: TypeOrTopic, where: str, labels: FrameLabels, *, at: datetime
) -> LabelledRead:
    """Let a labelled frame of a client read a type by a filter, until a day from now.

    Args:
        home: Whose broker lets it.
        key: The client's, which was proven.
        asked: The type.
        where: The client's filter.
        labels: By what the frame is labelled.
        at: Now.
    """
    until = int((at + TICKET_AGE).timestamp())
    said: Sexp = (b"%d" % until, labels.policy.encode(), tuple(tag.encode() for tag in sorted(labels.tags)))
    signature = home.broker.sign(Kind.LABELLED_READ, _body(key, asked, where, said))
    ticket = base64.urlsafe_b64encode(encode((_HEAD, said, signature))).decode()
    return LabelledRead(labels=labels, ticket=ticket)


def check_labelled_read(
    home: Home, ticket: str, name: str, asked: TypeOrTopic, where: str, *, at: datetime
) -> FrameLabels:
    """Tell by what a frame is labelled that reads with a ticket.

    Args:
        home: Whose broker signed it.
        ticket: What the option ``labelled`` says.
        name: The client, by name in the home.
        asked: The type that is read.
        where: The filter.
        at: Now.

    Raises:
        DeniedError: It is no ticket of this broker for this read, or it is over: ``LABELLED_READ``.
    """
    key = home.key(name)
    with refusals_of_key(home, key, name, asked.text, at=at):
        try:
            octets = base64.b64decode(ticket[: _MAX_TEXT + 1].encode("ascii"), altchars=b"-_", validate=True)
            match parse_canonical(octets):
                case (head, (bytes(until), bytes(policy), tuple(tags)) as said, bytes(signature)) if head == _HEAD:
                    # SECURITY: for this key, type and filter, and by this home's broker; nothing is believed before.
                    verify_signature(
                        Kind.LABELLED_READ, _body(key, asked, where, said), signature, home.key(home.config.broker)
                    )
                    if at.timestamp() <= int(until):
                        texts = (bytes(tag).decode() for tag in tags if isinstance(tag, bytes))
                        return FrameLabels(policy=policy.decode(), tags=frozenset(texts))
        except (MaiaError, UnicodeError, binascii.Error, ValueError) as error:
            raise _refusal() from error
        raise _refusal()


def _body(key: PublicKey, asked: TypeOrTopic, where: str, said: Sexp) -> bytes:
    texts = (asked.type or "", asked.topic or "", asked.version or "", where)
    return encode((_HEAD, bytes(key.key_id), tuple(text.encode("utf-8", "surrogatepass") for text in texts), said))


def _refusal() -> DeniedError:
    return DeniedError(
        "option `labelled` is written by `client.labelled` alone, for one read and a day: read again with it",
        code="LABELLED_READ",
    )
