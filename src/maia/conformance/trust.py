"""The verbs of the trust core: expressions, tags, names and decisions."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import datetime

from maia.authority import (
    DEFAULT_VERIFIER_LIMITS,
    Action,
    CertificatePool,
    Challenge,
    Derived,
    Grant,
    Graph,
    ListStatement,
    NameNode,
    OneTimeAnswer,
    Request,
    Root,
    StatementBook,
    Verifier,
    ask,
    ask_network,
    ask_type,
    intersect,
    is_nothing,
    parse_statement,
    permits,
    unsafe_sign_statement,
    verify_statement,
)
from maia.authority import check_ground as _ground
from maia.conformance.certificates import (
    evidence_of,
    key_of,
    names_of,
    principal_of,
    signer_of,
    tag_of,
    tampered_signature,
    version_of,
)
from maia.conformance.fields import Json, VerbAnswer, field, instant, objects, optional_instant, wrong
from maia.encoding import Sexp, encode, format_advanced, parse_advanced, parse_canonical
from maia.errors import MalformedError, VerificationError
from maia.kernel import CONDITION_FALSE, NoSurroundings, make_guard
from maia.principals import CertificateId, KeyHash, PublicKey, TestKind, verify_certificate


def parse_expression(request: Json) -> str:
    """``sexp.parse``: canonical bytes in base64 to advanced text."""
    try:
        data = base64.b64decode(field(request, "canonical", str), validate=True)
    except (ValueError, binascii.Error) as error:
        raise wrong("canonical", "base64") from error
    return format_advanced(parse_canonical(data))


def intersect_tags(request: Json) -> str | None:
    """``tag.intersect``: what both tags admit, or null."""
    result = intersect(tag_of(request.get("a")), tag_of(request.get("b")))
    return None if is_nothing(result) else format_advanced(result.to_sexp())


def permits_request(request: Json) -> bool:
    """``tag.permits``: whether a ground request lies in a tag."""
    return permits(tag_of(request.get("tag")), _ground(parse_advanced(field(request, "request", str))))


def resolve_name(request: Json) -> list[str]:
    """``name.resolve``: the keys a name stands for."""
    at = instant(request.get("at"))
    name = principal_of({"name": request.get("name")})
    evidence, _, _ = evidence_of(objects(request, "certificates"))
    pool = CertificatePool(evidence)

    def usable(identity: CertificateId) -> bool:
        for spelling in pool.spellings(identity):
            try:
                body = verify_certificate(spelling).body
            except VerificationError:
                continue
            return body.period.contains(at) and not body.tests
        return False

    graph = Graph(pool.links, pool.namings, usable, DEFAULT_VERIFIER_LIMITS)
    names = names_of("name.resolve", request)
    node = NameNode(name.base.key_id, name.parts)  # type: ignore[union-attr]
    return sorted(names.get(key, key.hex()) for key in graph.names.resolve(node))


def decide(request: Json) -> VerbAnswer:
    """``authority.decide``: grant or deny, with the reason of a denial."""
    at = instant(request.get("at"))
    roots = [
        Root(subject=principal_of(root.get("subject")), tag=tag_of(root.get("tag")))
        for root in objects(request, "roots", required=False)
    ]
    evidence, identities, refused = evidence_of(objects(request, "certificates"))
    statements = sorted(objects(request, "statements", required=False), key=lambda s: instant(s.get("received")))
    verifier = Verifier(roots, statements=StatementBook())
    pool = CertificatePool(evidence)
    challenge = challenge_of(request.get("challenge"))
    pending = list(statements)

    def decision(asked: Json, when: datetime) -> tuple[bool, str | None]:
        receive(verifier.statements, pending, identities, until=when)
        principal = principal_of(asked.get("principal"))
        if not isinstance(principal, (PublicKey, KeyHash)):
            raise wrong("principal", "a key")
        wanted = request_of(asked.get("request"))
        answer = verifier.decide(wanted, principal=principal, evidence=pool, at=when, challenge=challenge)
        if answer.grant is not None and answer.grant.conditions:
            rights = verifier.clauses(wanted, principal=principal, evidence=pool, at=when)
            if not any(_holds(right, wanted, principal, pool, when) for right in rights or [answer.grant]):
                return False, CONDITION_FALSE
        return answer.allowed, answer.reason

    for earlier in objects(request, "before", required=False):
        decision(earlier, instant(earlier.get("at")))
    allowed, reason = decision(request, at)
    if allowed:
        return VerbAnswer("grant")
    if reason == "NO_EVIDENCE" and refused:
        reason = refused[0].code
    return VerbAnswer("deny", reason)


def _holds(
    right: Derived | Grant, wanted: Request, principal: PublicKey | KeyHash, pool: CertificatePool, at: datetime
) -> bool:
    """Ask the conditions of a chain that depend on the moment, as a broker without providers does."""
    action, name = Action.CONNECT, ""
    match wanted.wanted.to_sexp():
        case (b"maia-type", _, bytes() as text, _, word, *_):
            name = text.decode("utf-8", "replace")
            action = next((item for item in Action if item.to_sexp() == word), action)
        case (b"maia-network", _, _, b"install", *_):
            action = Action.INSTALL
    guard = make_guard(
        right.conditions, right.proof.certificate_ids(), action=action, principal=principal.key_id, event_type=name,
        evidence=pool, make=NoSurroundings, at=at,
    )  # fmt: skip
    return guard is not None


def request_of(value: object) -> Request:
    """Read what is asked for: a tag, or an action on a type or a network."""
    if isinstance(value, str):
        return ask(parse_advanced(value))
    if not isinstance(value, dict):
        raise wrong("request", "a tag or an action")
    action = Action.parse(field(value, "action", str))
    if "network" in value:
        owner, name = _named(value["network"], 2, "network")
        return ask_network(action, principal_of(owner), name[0])
    owner, rest = _named(value.get("type"), 3, "type")
    return ask_type(action, principal_of(owner), rest[0], rest[1])


def _named(value: object, length: int, what: str) -> tuple[object, tuple[str, ...]]:
    if not isinstance(value, list) or len(value) != length or not isinstance(value[1], str):
        raise wrong(what, "owner and name")
    return value[0], (value[1], *(version_of(part) for part in value[2:]))


def challenge_of(value: object) -> Challenge | None:
    """Read the question that the verifier asked."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise wrong("challenge", "an object")
    return Challenge(
        nonce=_text(value, "nonce").encode(),
        verifier=_text(value, "verifier"),
        until=instant(value.get("until"), "until"),
    )


def receive(
    book: StatementBook, pending: list[Json], identities: list[CertificateId | None], *, until: datetime
) -> None:
    """Hand the statements that arrived by an instant to the verifier; refused ones are as if never sent."""
    while pending and instant(pending[0].get("received"), "received") <= until:
        value = pending.pop(0)
        try:
            book.accept(verify_statement(parse_statement(statement_bytes(value, identities))))
        except MalformedError as error:
            if error.code == "REQUEST_FIELD":
                raise
        except VerificationError:
            continue


def statement_bytes(value: Json, identities: list[CertificateId | None]) -> bytes:
    """Make the signed bytes of a statement object."""
    signer_name = value.get("signer")
    signer = signer_of(str(value.get("signed_by", signer_name)))
    raw = unsafe_sign_statement(_statement_body(value, identities), signer)
    tamper = value.get("tamper")
    if not isinstance(tamper, dict):
        return raw
    match parse_canonical(raw):
        case (b"signed", expression, (b"signature", key, bytes() as signature)):
            changed = {name: new for name, new in tamper.items() if name != "signature"}
            body: Sexp = _statement_body({**value, **changed}, identities).to_sexp() if changed else expression
            mark = tampered_signature(signature, tamper.get("signature"))
            return encode((b"signed", body, (b"signature", key, mark)))
    raise wrong("tamper", "an object")  # pragma: no cover - unsafe_sign_statement makes this shape


def _statement_body(value: Json, identities: list[CertificateId | None]) -> ListStatement | OneTimeAnswer:
    listed = value.get("certificates", [])
    if not isinstance(listed, list) or not all(type(index) is int for index in listed):
        raise wrong("certificates", "a list of indexes")
    if not all(0 <= index < len(identities) for index in listed):
        raise wrong("certificates", "a list of indexes of this request")
    chosen = frozenset(identity for index in listed if (identity := identities[index]) is not None)
    signer = key_of(value.get("signer"))
    kind = value.get("kind")
    if kind == "one-time":
        return OneTimeAnswer(
            signer=signer, nonce=_text(value, "nonce").encode(), verifier=_text(value, "verifier"), certificates=chosen
        )
    if kind not in ("crl", "revalidation"):
        raise wrong("kind", "crl, revalidation or one-time")
    return ListStatement(
        kind=TestKind(kind),
        signer=signer,
        sequence=field(value, "sequence", int),
        certificates=chosen,
        starts=optional_instant(value, "from"),
        ends=optional_instant(value, "to"),
    )


def _text(value: Json, name: str) -> str:
    found = value.get(name)
    if isinstance(found, bool) or not isinstance(found, (str, int)):
        raise wrong(name, "text")
    return str(found)


VERBS: dict[str, Callable[[Mapping[str, object]], object]] = {
    "sexp.parse": parse_expression,
    "tag.intersect": intersect_tags,
    "tag.permits": permits_request,
    "name.resolve": resolve_name,
    "authority.decide": decide,
}
