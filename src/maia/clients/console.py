"""Logging in to a console from the command line: its challenge is fetched and signed, and an address comes back.

Rules kept here: what is signed names the host that was asked, so that an answer is of use to nobody else; the console
has to be the one whose key the caller knows; an exchange has limits, and no redirect is followed.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx2

from maia import wire
from maia.errors import DeniedError, MaiaError, MalformedError, UnavailableError, UsageError, VerificationError
from maia.principals import PublicKey, Signer

_SECONDS, _MAX_ANSWER = 10.0, 64 << 10


def console_address(url: str, signer: Signer, *, console: PublicKey, changes: bool = False) -> str:
    """Log a key in to a console, and give the address by which a browser goes on, once and within two minutes.

    Args:
        url: The console: ``https://host[:port]``, or ``http://`` on this machine.
        signer: Who logs in.
        console: The console's key, which is the broker's.
        changes: Whether the session may change things.

    Raises:
        VerificationError: It is another console.
        DeniedError: The key does not oversee the domain.
        UnavailableError: The console does not answer.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise UsageError(f"`{url}` is no address of a console", code="ADDRESS")
    if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise UsageError("a console on another machine needs `https://`", code="TLS_REQUIRED")
    base = f"{parts.scheme}://{parts.netloc}"
    with httpx2.Client(timeout=_SECONDS, follow_redirects=False, trust_env=False) as client:
        offer = _ask(client, "GET", f"{base}/login/challenge")
        if wire.decode_key(str(offer.get("console", ""))) != console:
            raise VerificationError("this console answers for another broker", code="WRONG_KEY")
        octets = wire.decode_octets(str(offer.get("challenge", "")), length=wire.LOGIN_LENGTH)
        asked = wire.LoginChallenge(host=parts.netloc, changes=changes, challenge=octets)
        answer = wire.answer_login(asked, signer, console=console.key_id)
        path = _ask(client, "POST", f"{base}/login/answer", {"challenge": str(asked), "answer": answer}).get("path")
    if not isinstance(path, str) or not path.startswith("/login/once?token="):
        raise MalformedError("the console answers in another form", code="ANSWER")
    return f"{base}{path}"


def _ask(client: httpx2.Client, method: str, url: str, body: dict[str, str] | None = None) -> dict[str, object]:
    try:
        answer = client.request(method, url, json=body) if body is not None else client.request(method, url)
    except httpx2.TransportError as error:
        raise UnavailableError("the console does not answer", code="PEER_UNAVAILABLE") from error
    if len(answer.content) > _MAX_ANSWER:
        raise MalformedError("the console answers too much", code="ANSWER")
    found = wire.read_json(answer.content)
    if not isinstance(found, dict):
        raise MalformedError("the console answers in another form", code="ANSWER")
    if answer.status_code != 200:
        raise _refusal(answer.status_code, str(found.get("code", "ANSWER")), str(found.get("detail", "")))
    return found


def _refusal(status: int, code: str, detail: str) -> MaiaError:
    if status == 403:
        return DeniedError(f"the console lets this key not in: {detail}", code=code)
    return UnavailableError(f"the console refused: {code}", code="PEER_UNAVAILABLE")
