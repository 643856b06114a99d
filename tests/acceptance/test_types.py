"""Event types across principals: who may define, evolve, extend and deploy, and what each version's subscribers see."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from maia.authority import Action, VerifiedEventType, Verifier, network_right, type_right, verify_event_type
from maia.encoding import encode, parse_canonical
from maia.errors import (
    ChainError,
    ExpiredError,
    NotFoundError,
    SignatureError,
    UncheckedError,
    VerificationError,
)
from maia.events import (
    FIRST,
    Add,
    AttributeType,
    EventType,
    Options,
    Remove,
    Rename,
    TypeName,
    UnverifiedEventType,
    Version,
    attribute,
    evolve,
    lookalikes,
    parse_compatible_event_type,
    parse_event_type,
    sign_event_type,
)
from maia.principals import (
    Authorisation,
    Certificate,
    KeySigner,
    Kind,
    Period,
    PublicKey,
    Threshold,
    UnverifiedCertificate,
    issue,
    parse_certificate,
)

PITO, CCS, BO, MET, EVIL, TM, K_TMP, A, B, C = (KeySigner(bytes([n]) * 32) for n in range(1, 11))


UKPN = (PITO.public_key, "UK Police Network")


NOW = datetime(2026, 6, 1, tzinfo=UTC)


NP = EventType(
    name=TypeName(PITO.public_key, "uk.gov.pito.Numberplate", Version("8516")),
    attributes=(
        attribute("numberplate", 3265, "string"),
        attribute("timestamp", 9058, "timestamp"),
        attribute("location", 3467, "string"),
    ),
)


def _grant(
    issuer: KeySigner,
    subject: KeySigner | Threshold,
    actions: tuple[Action, ...] | None,
    *,
    owner: KeySigner | None = PITO,
    name: str = "uk.gov.pito.Numberplate",
    delegate: bool = False,
    until: datetime | None = None,
    network: tuple[PublicKey, str] | None = None,
) -> UnverifiedCertificate:
    """Issue a right on PITO's types, or on a network."""
    if network is not None:
        tag = network_right(network[0], network[1], actions)
    else:
        tag = type_right(None if owner is None else owner.public_key, name, actions=actions)
    certificate: Certificate = issue(
        Authorisation(
            issuer=issuer.public_key,
            subject=subject if isinstance(subject, Threshold) else subject.public_key,
            delegate=delegate,
            tag=tag.to_sexp(),
            period=Period(None, until),
        ),
        issuer,
    )
    return parse_certificate(certificate.raw)


def _sign(definition: EventType, signer: KeySigner, *credentials: UnverifiedCertificate) -> UnverifiedEventType:
    return sign_event_type(replace(definition, credentials=credentials), signer)


def _verify(unverified: UnverifiedEventType, at: datetime = NOW, **how: object) -> VerifiedEventType:
    return verify_event_type(parse_event_type(unverified.raw), verifier=Verifier(), at=at, **how)  # type: ignore[arg-type]


def _version(definition: EventType, number: str) -> EventType:
    return replace(definition, name=replace(definition.name, version=Version(number)))


MANAGE = (Action.MANAGE,)


INSTALL = (Action.INSTALL,)


@pytest.mark.requirement("22.10")
@pytest.mark.requirement("2.03")
@pytest.mark.threat("T35")
def test_same_body_under_another_owner_inherits_no_right() -> None:
    """[P_Evil, uk.gov.pito.Numberplate, 8516] is its own type, which PITO's rights do not reach."""
    theirs = _verify(sign_event_type(replace(NP, name=replace(NP.name, owner=EVIL.public_key)), EVIL))
    ours = _verify(sign_event_type(NP, PITO))
    assert theirs.definition.name != ours.definition.name
    assert theirs.definition.type_id != ours.definition.type_id
    right = _grant(PITO, MET, None)
    from maia.authority import ask_type

    asked = [ask_type(Action.PUBLISH, item.definition.name.owner, NP.name.name, "8516") for item in (ours, theirs)]
    decisions = [Verifier().decide(ask, principal=MET.public_key, evidence=[right], at=NOW) for ask in asked]
    assert [bool(decision) for decision in decisions] == [True, False]
    assert decisions[1].reason == "WRONG_ROOT"
    with pytest.raises(ChainError):
        _verify(sign_event_type(NP, EVIL))
    assert lookalikes("uk.gov.pito.Numberpl\u0430te", (NP.name.name,))


@pytest.mark.requirement("2.08")
def test_deploying_needs_an_install_chain_from_the_coordinating_principal() -> None:
    """NP' signed by CCS's billing office without a chain is refused on UKPN; with PITO -> CCS -> BO it is accepted."""
    own = replace(NP, name=TypeName(BO.public_key, "uk.ccs.Plate", FIRST))
    first = _grant(PITO, CCS, INSTALL, network=UKPN, delegate=True)
    second = _grant(CCS, BO, INSTALL, network=UKPN)
    with pytest.raises(ChainError):
        _verify(_sign(own, BO), network=UKPN)
    with pytest.raises(ChainError):
        _verify(_sign(own, BO, second), network=UKPN)
    with pytest.raises(ChainError, match=r"NOT_INSTALLED.*no root here"):
        _verify(_sign(own, BO, first, second), network=(EVIL.public_key, "UK Police Network"))
    assert _verify(_sign(own, BO, second, first), network=UKPN).network == UKPN
    assert _verify(sign_event_type(NP, PITO), network=UKPN).signer == PITO.public_key


@pytest.mark.requirement("2.09")
@pytest.mark.threat("T38")
def test_definition_expires_with_its_credentials() -> None:
    """An install certificate that ends at 100 carries the definition to 100; a fresh version is accepted at 101."""
    hundred = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=100)
    own = replace(NP, name=TypeName(CCS.public_key, "uk.ccs.Plate", Version("1")))
    old = _sign(own, CCS, _grant(PITO, CCS, INSTALL, network=UKPN, until=hundred))
    carried = _verify(old, hundred, network=UKPN)
    assert carried.expires == hundred
    assert carried.holds_at(hundred)
    assert not carried.holds_at(hundred + timedelta(seconds=1))
    with pytest.raises(ExpiredError, match="TYPE_EXPIRED"):
        _verify(old, hundred + timedelta(seconds=1), network=UKPN)
    fresh = _sign(_version(own, "2"), CCS, _grant(PITO, CCS, INSTALL, network=UKPN))
    assert _verify(fresh, hundred + timedelta(seconds=1), network=UKPN).expires is None


@pytest.mark.requirement("2.11")
def test_throw_away_owner_key_hands_everything_on() -> None:
    """K_tmp gives PITO the root right and is forgotten; PITO signs v2 and grants access, and all of it verifies."""
    created = replace(NP, name=TypeName(K_TMP.public_key, "x.Orphan", FIRST))
    root = _grant(K_TMP, PITO, None, owner=K_TMP, name="x.Orphan", delegate=True)
    assert _verify(sign_event_type(created, K_TMP))
    second = _version(created, "1")
    assert _verify(_sign(second, PITO, root))
    with pytest.raises(ChainError):
        _verify(_sign(second, PITO))
    from maia.authority import ask_type

    access = _grant(PITO, MET, (Action.SUBSCRIBE,), owner=K_TMP, name="x.Orphan")
    asked = ask_type(Action.SUBSCRIBE, K_TMP.public_key, "x.Orphan", "1")
    decide = Verifier().decide
    assert decide(asked, principal=MET.public_key, evidence=[root, access], at=NOW)
    assert not decide(asked, principal=MET.public_key, evidence=[access], at=NOW)


def test_threshold_owner_speaks_through_enough_members() -> None:
    """Two of three members together appoint a manager; one alone, or one twice, does not."""
    board = Threshold(2, (A.public_key, B.public_key, C.public_key))
    owned = replace(NP, name=TypeName(board, "x.Board", FIRST))

    def share(member: KeySigner) -> UnverifiedCertificate:
        tag = type_right(board, "x.Board", actions=MANAGE)
        body = Authorisation(
            issuer=member.public_key, subject=TM.public_key, delegate=False, tag=tag.to_sexp(), period=Period()
        )
        return parse_certificate(issue(body, member).raw)

    assert _verify(_sign(owned, TM, share(A), share(C)))
    for shares in ([share(A)], [share(B), share(B)], []):
        with pytest.raises(ChainError):
            _verify(_sign(owned, TM, *shares))
    with pytest.raises(ChainError):
        _verify(_sign(owned, A))


@pytest.mark.requirement("2.12")
def test_six_item_healthcare_definition_loads_and_verifies() -> None:
    """uk.nhs.path_report with UUIDs everywhere and a chain from the NHS root; without the chain it fails."""
    nhs, authority = PITO, CCS
    report = EventType(
        name=TypeName(nhs.public_key, "uk.nhs.path_report", Version("31ab47dc-4e52-4509-92ec-39f6e603d6e6")),
        attributes=(
            attribute("patient-ID", "0640d3d2-0b2b-45db-b66b-0f4200cd8358", "string"),
            attribute("patient-name", "de312646-e940-466d-a71f-fa9122891d5a", "string"),
            attribute("hospital-ID", "e4ab7b23-87dc-44ca-bf7c-cba5cc5ce6f7", "string"),
            attribute("lab-number", "1dd5f593-1bc6-4f53-89ef-5f2a38b1d4ec", "string"),
            attribute("sample-receipt-date", "a273e069-7cb6-48ca-b827-9bb11d449dbf", "date"),
            attribute("path-report-text", "b831c325-4d63-4d98-b7c0-782a1d4a1c44", "binary"),
            attribute("SNOMED-CT-codes", "3514a33d-5173-453c-8b5a-11e8ead71761", "string"),
        ),
        options=Options(release="direct"),
    )
    chain = _grant(nhs, authority, MANAGE, owner=nhs, name="uk.nhs.*")
    verified = _verify(_sign(report, authority, chain))
    assert len(verified.event_type.attributes) == 7
    with pytest.raises(ChainError):
        _verify(_sign(report, authority))
    # The chapter's own scope: the signature covers items 1 to 4 and the certificates stand outside.
    mark = authority.sign(Kind.EVENT_TYPE, encode(report.to_sexp()))
    credentials = (b"credentials", parse_canonical(chain.raw))
    raw = encode((b"signed", b"1", report.to_sexp(), credentials, (b"signature", authority.public_key.to_sexp(), mark)))
    imported = parse_compatible_event_type(raw)
    with pytest.raises(VerificationError, match="TYPE_SCOPE"):
        verify_event_type(imported, verifier=Verifier(), at=NOW)
    accepted = verify_event_type(imported, verifier=Verifier(), at=NOW, accept_compatible=True)
    assert accepted.compatible


@pytest.mark.requirement("3.09")
def test_manager_embeds_the_chain_from_the_owner() -> None:
    """S(P1) alone, S(P2)+{P1->P2}, S(Pn)+{P1->...->Pn} verify; S(P2) with nothing fails."""
    chain = [
        _grant(PITO, A, MANAGE, delegate=True),
        _grant(A, B, MANAGE, delegate=True),
        _grant(B, C, MANAGE),
    ]
    assert _verify(_sign(NP, PITO))
    assert _verify(_sign(NP, A, chain[0]))
    assert _verify(_sign(NP, C, *reversed(chain)))
    with pytest.raises(ChainError):
        _verify(_sign(NP, A))
    for missing in range(3):
        with pytest.raises(ChainError):
            _verify(_sign(NP, C, *chain[:missing], *chain[missing + 1 :]))
    with pytest.raises(ChainError, match="DELEGATION_FORBIDDEN"):
        _verify(_sign(NP, B, _grant(PITO, A, MANAGE), chain[1]))


V0 = sign_event_type(_version(NP, "0"), PITO)


def _nothing(_: object) -> UnverifiedEventType:
    raise NotFoundError("there is nothing")


PARTS = {
    "add, and may add": ("addAttribute", [Add("speed", AttributeType.INTEGER)], True),
    "add and remove, and may add": ("addAttribute", [Add("speed", AttributeType.INTEGER), Remove("location")], False),
    "remove, and may remove": ("removeAttribute", [Remove("location")], True),
    "rename, and may rename": ("editAttributeName", [Rename("location", "place")], True),
    "rename, and may add": ("addAttribute", [Rename("location", "place")], False),
    "remove and add the same name as a rename": (
        "editAttributeName",
        [Remove("location"), Add("location", AttributeType.STRING)],
        False,
    ),
    "remove and add another name as a rename": (
        "editAttributeName",
        [Remove("location"), Add("place", AttributeType.STRING)],
        False,
    ),
    "change nothing, and may add": ("addAttribute", [], True),
}


@pytest.mark.requirement("3.10")
@pytest.mark.threat("T39")
@pytest.mark.parametrize("right, operations, accepted", PARTS.values(), ids=PARTS)
def test_partial_manager_stays_within_its_part(right: str, operations: list[object], accepted: bool) -> None:
    """Changes are measured against the previous version, embedded or looked up; without it nothing is accepted."""
    part = _grant(PITO, TM, (Action.parse(right),))
    embedded = _sign(evolve(V0, operations, embed=True), TM, part)  # type: ignore[arg-type]
    named = _sign(evolve(V0, operations), TM, part)  # type: ignore[arg-type]
    known = {V0.definition_id: V0}
    if accepted:
        assert _verify(embedded)
        assert _verify(named, find_previous=known.__getitem__)
    else:
        for version in (embedded, named):
            with pytest.raises(ChainError, match="NOT_PERMITTED"):
                _verify(version, find_previous=known.__getitem__)
    with pytest.raises(UncheckedError, match="PREVIOUS_MISSING"):
        _verify(named)
    with pytest.raises(UncheckedError, match="PREVIOUS_MISSING"):
        _verify(named, find_previous=_nothing)
    without = replace(named.definition, previous=None)
    with pytest.raises(UncheckedError, match="PREVIOUS_MISSING"):
        _verify(sign_event_type(without, TM))


@pytest.mark.requirement("3.11")
def test_manager_needs_install_too_and_never_connect() -> None:
    """P_TM with manage alone is refused on the network; with manage and install it is accepted, unconnected."""
    manage = _grant(PITO, TM, MANAGE)
    install = _grant(PITO, TM, INSTALL, network=UKPN)
    v2 = _version(NP, "2")
    assert _verify(_sign(v2, TM, manage))
    with pytest.raises(ChainError):
        _verify(_sign(v2, TM, manage), network=UKPN)
    with pytest.raises(ChainError):
        _verify(_sign(v2, TM, install), network=UKPN)
    connect = _grant(PITO, TM, (Action.CONNECT,), network=UKPN)
    with pytest.raises(ChainError):
        _verify(_sign(v2, TM, manage, connect), network=UKPN)
    assert _verify(_sign(v2, TM, install, manage), network=UKPN)


def test_management_right_is_issued_without_a_new_version() -> None:
    """The type stays at v0 while P_TM becomes its manager; only using the right makes a version."""
    versions = [V0]
    right = _grant(PITO, TM, MANAGE)
    assert len(versions) == 1
    assert _verify(V0).definition.credentials == ()
    versions.append(_sign(evolve(V0, [Add("speed", AttributeType.INTEGER)]), TM, right))
    assert _verify(versions[-1]).signer == TM.public_key


@pytest.mark.requirement("6.10")
def test_replayed_definition_is_harmless_and_an_altered_copy_is_refused() -> None:
    """Authority is read from the definition alone: the same bytes verify again and again, others do not."""
    raw = _sign(NP, TM, _grant(PITO, TM, MANAGE)).raw
    verifier = Verifier()
    seen = [verify_event_type(parse_event_type(raw), verifier=verifier, at=NOW) for _ in range(3)]
    assert {item.definition.definition_id for item in seen} == {seen[0].definition.definition_id}
    altered = raw.replace(b"8:location", b"8:locatiom")
    with pytest.raises(SignatureError):
        verify_event_type(parse_event_type(altered), verifier=verifier, at=NOW)


@pytest.mark.threat("T37")
def test_removed_uid_does_not_come_back_as_something_else() -> None:
    """Over the whole lineage at hand: another type or another name is refused, the same attribute is welcome back."""
    without = sign_event_type(evolve(V0, [Remove("location")], version=Version("1"), embed=True), PITO)
    known = {item.definition_id: item for item in (V0, without)}
    for name, kind in (("place", "string"), ("location", "integer")):
        for previous in (without, without.definition_id):
            attributes = (*without.definition.attributes, attribute(name, 3467, kind))
            bad = replace(_version(NP, "2"), attributes=attributes, previous=previous)
            with pytest.raises(VerificationError, match="UID_REUSED"):
                _verify(sign_event_type(bad, PITO), find_previous=known.__getitem__)
    back = replace(_version(NP, "2"), attributes=NP.attributes, previous=without)
    assert _verify(sign_event_type(back, PITO))
