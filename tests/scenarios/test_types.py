"""Event types across principals: who may define, evolve, extend and deploy, and what each version's subscribers see."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from maia.authority import Action, Verifier, network_right, type_right
from maia.authority.types import VerifiedEventType, verify_event_type
from maia.conformance import answer_line
from maia.errors import (
    ChainError,
    ExpiredError,
    MaiaError,
    NotFoundError,
    SignatureError,
    UncheckedError,
    UsageError,
    VerificationError,
)
from maia.events import (
    FIRST,
    Add,
    AttributeType,
    EventType,
    LiveClient,
    Options,
    Publication,
    Release,
    Remove,
    Rename,
    SequenceUids,
    TypeName,
    Uid,
    UnverifiedEventType,
    Version,
    attribute,
    batch_as_parent,
    batch_from_transit,
    batch_to_transit,
    check_batch,
    drawn,
    evolve,
    from_transit,
    inherit,
    lint,
    lookalikes,
    parse_event_type,
    sign_event_type,
    to_transit,
    transit_as_parent,
    translate,
    translate_batch,
)
from maia.principals import (
    Authorisation,
    Certificate,
    KeySigner,
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
    with pytest.raises(ChainError, match="WRONG_ROOT"):
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
        options=Options(release=Release.DIRECT),
    )
    chain = _grant(nhs, authority, MANAGE, owner=nhs, name="uk.nhs.*")
    verified = _verify(_sign(report, authority, chain))
    assert len(verified.event_type.attributes) == 7
    with pytest.raises(ChainError):
        _verify(_sign(report, authority))


@pytest.mark.requirement("2.13")
@pytest.mark.requirement("5.16")
@pytest.mark.requirement("23.09")
def test_child_needs_the_extend_right_and_parent_subscribers_see_parent_attributes() -> None:
    """A holder of extend `Test*` extends TestType1 but not Other; TestType1's subscribers get the child's events."""
    parent = EventType(name=TypeName(PITO.public_key, "TestType1", FIRST), attributes=(attribute("a", 0, "string"),))
    other = replace(parent, name=TypeName(PITO.public_key, "Other", FIRST))
    extend = _grant(PITO, CCS, (Action.EXTEND,), name="Test*")
    child = EventType(
        name=TypeName(CCS.public_key, "Child", FIRST),
        attributes=(attribute("b", 1, "integer"),),
        extends=parent.name,
    )
    verified_parent = _verify(sign_event_type(parent, PITO))
    verified = _verify(_sign(child, CCS, extend), parent=verified_parent)
    assert [item.name for item in verified.event_type.attributes] == ["a", "b"]
    with pytest.raises(ChainError):
        _verify(_sign(child, CCS), parent=verified_parent)
    with pytest.raises(ChainError, match="NOT_PERMITTED"):
        _verify(_sign(replace(child, extends=other.name), CCS, extend), parent=_verify(sign_event_type(other, PITO)))
    with pytest.raises(UncheckedError, match="PARENT_MISSING"):
        _verify(_sign(child, CCS, extend))
    with pytest.raises(VerificationError, match="ATTRIBUTE_UID_TWICE"):
        _verify(_sign(replace(child, attributes=(attribute("b", 0, "integer"),)), CCS, extend), parent=verified_parent)
    with pytest.raises(VerificationError, match="TYPE_EXTENDS"):
        _verify(_sign(child, CCS, extend), parent=_verify(sign_event_type(_version(parent, "5"), PITO)))

    # A later parent version renames `a` and happens to use the child's number for something else.
    later = replace(_version(parent, "1"), attributes=(attribute("alpha", 0, "string"), attribute("z", 1, "integer")))
    whole = inherit(child, parent)
    event = to_transit(Publication(whole, {"a": "x", "b": 7}))
    as_parent = transit_as_parent(event, child)
    assert dict(from_transit(as_parent, parent).values) == {"a": "x"}
    assert dict(from_transit(as_parent, later).values) == {"alpha": "x", "z": None}
    batch = check_batch(whole, pa.RecordBatch.from_pylist([{"a": "x", "b": 7}]))
    seen = batch_from_transit(later, batch_as_parent(child, batch_to_transit(whole, batch)))
    assert seen.to_pylist() == [{"alpha": "x", "z": None}]
    for wrong in (lambda: transit_as_parent(event, parent), lambda: transit_as_parent(as_parent, child)):
        with pytest.raises(MaiaError, match="OTHER_TYPE"):
            wrong()
    with pytest.raises(MaiaError, match="OTHER_TYPE"):
        batch_as_parent(parent, batch_to_transit(whole, batch))


@pytest.mark.requirement("3.02")
def test_versions_live_side_by_side() -> None:
    """v1 publishes on while v2 is deployed; subscribers of both get every event, without anybody stopping."""
    v1 = sign_event_type(_version(NP, "1"), PITO)
    v2 = evolve(v1, [Add("speed", AttributeType.INTEGER)], version=Version("2"), uids=SequenceUids())
    running = to_transit(Publication(v1.definition, {"numberplate": "AE05 XYZ"}))
    newer = to_transit(Publication(v2, {"numberplate": "BX51 ABC", "speed": 30}))
    for event, plate, speed in ((running, "AE05 XYZ", None), (newer, "BX51 ABC", 30)):
        assert from_transit(event, v1.definition).values["numberplate"] == plate
        assert from_transit(event, v2).values["numberplate"] == plate
        assert from_transit(event, v2).values["speed"] == speed


@pytest.mark.requirement("3.06")
def test_transit_event_has_uids_and_neither_version_nor_names() -> None:
    """NP 8516 travels as 3265, 9058 and 3467, singly and by the batch."""
    row = {"numberplate": "AE05 XYZ", "timestamp": NOW, "location": "Victoria"}
    event = to_transit(Publication(NP, row))
    assert set(event.values) == {"3265", "9058", "3467"}
    assert event.type_id == NP.type_id
    batch = batch_to_transit(NP, check_batch(NP, pa.RecordBatch.from_pylist([row])))
    assert batch.schema.names == ["3265", "9058", "3467"]
    text = repr(event) + str(batch.schema.to_string(show_schema_metadata=True, show_field_metadata=True))
    assert "8516" not in text
    assert "location" not in text


@pytest.mark.requirement("3.07")
def test_unknown_uids_are_dropped_and_missing_ones_null() -> None:
    """v1 {numberplate, location} seen as v2 {numberplate, speed} is {numberplate: value, speed: null}."""
    v1 = replace(_version(NP, "1"), attributes=(NP.attributes[0], NP.attributes[2]))
    v2 = replace(_version(NP, "2"), attributes=(NP.attributes[0], attribute("speed", 1, "integer")))
    row = {"numberplate": "AE05 XYZ", "location": "Victoria"}
    assert dict(translate(Publication(v1, row), v2).values) == {"numberplate": "AE05 XYZ", "speed": None}
    batch = check_batch(v1, pa.RecordBatch.from_pylist([row]))
    assert translate_batch(v1, v2, batch).to_pylist() == [{"numberplate": "AE05 XYZ", "speed": None}]


V4799 = replace(_version(NP, "4799"), attributes=(attribute("license-plate", 9525, "string"),))
V8516 = replace(_version(NP, "8516"), attributes=(attribute("numberplate", 9525, "string"),))
LATER = replace(
    _version(NP, "9000"),
    attributes=(attribute("license-plate", 3879, "string"), attribute("numberplate", 9525, "string")),
)


@pytest.mark.requirement("3.08")
@pytest.mark.requirement("24.06")
@pytest.mark.threat("T36")
def test_rename_survives_and_reused_name_is_not_confused() -> None:
    """license-plate(9525) arrives as numberplate; license-plate(3879) sees null, and an old right does not open it."""
    published = Publication(V4799, {"license-plate": "AE05 XYZ"})
    assert dict(translate(published, V8516).values) == {"numberplate": "AE05 XYZ"}
    assert dict(translate(published, LATER).values) == {"license-plate": None, "numberplate": "AE05 XYZ"}
    batch = check_batch(V4799, pa.RecordBatch.from_pylist([{"license-plate": "AE05 XYZ"}]))
    assert translate_batch(V4799, LATER, batch).to_pylist() == [{"license-plate": None, "numberplate": "AE05 XYZ"}]
    from maia.authority.request import ask_cell

    tag = type_right(PITO.public_key, NP.name.name, actions=(Action.SUBSCRIBE,), attributes=["9525"])
    body = Authorisation(issuer=PITO.public_key, subject=MET.public_key, delegate=False, tag=tag.to_sexp())
    old_right = parse_certificate(issue(body, PITO).raw)

    def opens(uid: str) -> bool:
        asked = ask_cell(Action.SUBSCRIBE, PITO.public_key, NP.name.name, "9000", uid, (b"row",))
        return bool(Verifier().decide(asked, principal=MET.public_key, evidence=[old_right], at=NOW))

    assert opens("9525")
    assert not opens("3879")


@pytest.mark.requirement("3.14")
def test_subscriber_side_needs_only_its_own_version() -> None:
    """A broker that holds v8516 alone translates what was published under v4799."""
    travelling = to_transit(Publication(V4799, {"license-plate": "AE05 XYZ"}))
    bytes_on_the_wire = sign_event_type(V8516, PITO).raw
    held = _verify(parse_event_type(bytes_on_the_wire)).event_type
    assert dict(from_transit(travelling, held).values) == {"numberplate": "AE05 XYZ"}


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


@pytest.mark.threat("T39")
def test_partial_manager_cannot_make_up_the_previous_version() -> None:
    """A previous version that nobody entitled signed, or another than the one named, proves nothing."""
    part = _grant(PITO, TM, (Action.ADD_ATTRIBUTE,))
    invented = sign_event_type(replace(V0.definition, attributes=()), TM)
    with pytest.raises(ChainError, match="PREVIOUS_UNPROVEN"):
        _verify(_sign(evolve(invented, [Add("x", AttributeType.STRING)], embed=True), TM, part))
    honest = _sign(evolve(V0, [Add("x", AttributeType.STRING)]), TM, part)
    with pytest.raises(VerificationError, match="PREVIOUS_MISMATCH"):
        _verify(honest, find_previous=lambda _: invented)
    forged = replace(V0, signature=bytes(64))
    with pytest.raises(SignatureError):
        _verify(_sign(evolve(forged, [], embed=True), TM, part))
    loosened = replace(evolve(V0, [], embed=True), options=Options(encryption="plain"))  # type: ignore[arg-type]
    with pytest.raises(ChainError, match="change the options"):
        _verify(_sign(loosened, TM, part))


def test_lineage_of_partial_managers_is_followed_to_a_whole_right() -> None:
    """Each partial version rests on the one before it, back to one that the owner signed."""
    part = _grant(PITO, TM, (Action.ADD_ATTRIBUTE,))
    one = _sign(evolve(V0, [Add("x", AttributeType.STRING)], embed=True), TM, part)
    two = _sign(evolve(one, [Add("y", AttributeType.STRING)], embed=True), TM, part)
    assert len(_verify(two).grants) == 3
    greedy = _sign(evolve(one, [Remove("location")], embed=True), TM, part)
    with pytest.raises(ChainError, match="NOT_PERMITTED"):
        _verify(greedy)
    with pytest.raises(ChainError, match="PREVIOUS_UNPROVEN"):
        _verify(_sign(evolve(greedy, [Add("z", AttributeType.STRING)], embed=True), TM, part))


def test_endless_lineage_is_not_followed() -> None:
    """Versions that are looked up one after the other end at a stated number."""
    part = _grant(PITO, TM, (Action.ADD_ATTRIBUTE,))
    known = {V0.definition_id: V0}
    current = V0
    for number in range(34):
        current = _sign(evolve(current, [Add(f"x{number}", AttributeType.STRING)]), TM, part)
        known[current.definition_id] = current
    with pytest.raises(ChainError, match="more than 32 versions"):
        _verify(current, find_previous=known.__getitem__)


def test_two_parts_from_two_chains_add_up_and_unneeded_ones_do_not_expire_the_type() -> None:
    """Adding and removing may come from different issuers; a part that is not used limits nothing."""
    soon = NOW + timedelta(hours=1)
    add = _grant(PITO, TM, (Action.ADD_ATTRIBUTE,))
    middle = _grant(PITO, A, MANAGE, delegate=True)
    remove = _grant(A, TM, (Action.REMOVE_ATTRIBUTE,))
    rename = _grant(PITO, TM, (Action.EDIT_ATTRIBUTE_NAME,), until=soon)
    both = evolve(V0, [Add("x", AttributeType.STRING), Remove("location")], embed=True)
    assert _verify(_sign(both, TM, add, middle, remove, rename)).expires is None
    with pytest.raises(ChainError, match="NOT_PERMITTED"):
        _verify(_sign(both, TM, add, middle))


@pytest.mark.threat("T37")
def test_uid_reused_with_another_type_is_refused_even_for_the_owner() -> None:
    """Nobody gives an old uid a new meaning."""
    retyped = (attribute("numberplate", 3265, "integer"), *NP.attributes[1:])
    for previous in (V0, V0.definition_id):
        bad = replace(_version(NP, "1"), attributes=retyped, previous=previous)
        with pytest.raises(VerificationError, match="UID_REUSED"):
            _verify(sign_event_type(bad, PITO), find_previous=lambda _: V0)
    same_number = replace(V0.definition, attributes=NP.attributes[:1], previous=V0)
    with pytest.raises(VerificationError, match="VERSION_TAKEN"):
        _verify(sign_event_type(same_number, PITO))


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


@pytest.mark.requirement("3.12")
def test_management_right_is_issued_without_a_new_version() -> None:
    """The type stays at v0 while P_TM becomes its manager; only using the right makes a version."""
    versions = [V0]
    right = _grant(PITO, TM, MANAGE)
    assert len(versions) == 1
    assert _verify(V0).definition.credentials == ()
    versions.append(_sign(evolve(V0, [Add("speed", AttributeType.INTEGER)]), TM, right))
    assert _verify(versions[-1]).signer == TM.public_key


@pytest.mark.requirement("3.13")
def test_removal_names_the_subscriber_it_hurts_and_advises_a_new_type() -> None:
    """Removing `location` names SO; adding `speed` names nobody."""
    clients = [
        LiveClient(name="SO", uids=frozenset({Uid("3467"), Uid("9058")})),
        LiveClient(name="BO", uids=frozenset({Uid("3265"), Uid("9058")})),
    ]
    new = evolve(V0, [Remove("location")])
    (finding,) = lint(V0.definition, new, clients)
    assert finding.clients == ("SO",)
    assert finding.attribute.name == "location"
    assert "new type" in finding.advice
    assert lint(V0.definition, evolve(V0, [Add("speed", AttributeType.INTEGER)]), clients) == ()


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


def test_concurrent_managers_never_collide() -> None:
    """A hundred managers evolve the same version at once; no version and no new uid is drawn twice."""
    released = [evolve(V0, [Add("speed", AttributeType.INTEGER)], version=drawn) for _ in range(100)]
    assert len({item.name.version for item in released}) == 100
    assert len({item.by_name("speed").uid for item in released}) == 100


def test_event_of_another_type_is_not_translated() -> None:
    """Owner and name decide whether an event belongs to a type."""
    other = replace(NP, name=TypeName(EVIL.public_key, NP.name.name, NP.name.version))
    with pytest.raises(MaiaError, match="OTHER_TYPE"):
        translate(Publication(NP, {}), other)


def test_conditions_in_credentials_prove_nothing() -> None:
    """Nobody can evaluate working hours for a definition, so it is not proven."""
    tag = type_right(PITO.public_key, NP.name.name, actions=MANAGE)
    body = Authorisation(
        issuer=PITO.public_key, subject=TM.public_key, delegate=False, tag=tag.to_sexp(), conditions=("hour < 17",)
    )
    with pytest.raises(UncheckedError, match="CONDITION_IN_TYPE"):
        _verify(_sign(NP, TM, parse_certificate(issue(body, PITO).raw)))


def test_superfluous_credentials_neither_help_nor_harm() -> None:
    """What proves nothing, expired or foreign, leaves the answer as it is."""
    expired = _grant(PITO, TM, MANAGE, until=NOW - timedelta(days=1))
    foreign = _grant(EVIL, TM, MANAGE)
    assert _verify(_sign(NP, PITO, expired, foreign))
    assert _verify(_sign(NP, TM, expired, foreign, _grant(PITO, TM, MANAGE)))
    with pytest.raises(ExpiredError, match="TYPE_EXPIRED"):
        _verify(_sign(NP, TM, foreign, expired))


def test_verified_type_is_made_by_the_verifier_alone() -> None:
    """Nobody else can say that a definition is verified."""
    good = _verify(V0)
    with pytest.raises(UsageError):
        VerifiedEventType(good.definition, good.event_type, good.signer, (), None, b"", object())  # type: ignore[arg-type]
    with pytest.raises((TypeError, ValueError)):
        replace(good, grants=())


# ---------------------------------------------------------------- the conformance adapter


def _ask(verb: str, **fields: object) -> dict[str, object]:
    return answer_line(json.dumps({"id": 1, "verb": verb, **fields}).encode())


def _plate(signer: object = "pito", **fields: object) -> dict[str, object]:
    return {
        "owner": "pito",
        "name": "uk.gov.pito.Plate",
        "version": 2,
        "attributes": [{"name": "a", "uid": 1, "type": "string"}, {"name": "b", "uid": 2, "type": "integer"}],
        "signer": signer,
        "credentials": [],
        **fields,
    }


def _may(*actions: str, issuer: str = "pito", subject: str = "p2", **fields: object) -> dict[str, object]:
    right = {"type": ["pito", "uk.gov.pito.Plate", "*"], "actions": list(actions)}
    return {"issuer": issuer, "subject": subject, "delegate": False, "right": right, **fields}


FIRST_PLATE = _plate(version=1, attributes=[{"name": "a", "uid": 1, "type": "string"}])
INSTALL_RIGHT = {"network": ["net", "N"], "actions": ["install"]}
INSTALLS = {"issuer": "net", "subject": "pito", "delegate": False, "right": INSTALL_RIGHT}
NOBODY = {"key": "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"}
ADAPTER = {
    "the owner signs": (_plate(), {}, True),
    "the owner by its hash": (_plate(owner={"hash": "pito"}), {}, True),
    "a stranger signs": (_plate("p2"), {}, False),
    "a manager": (_plate("p2", credentials=[_may("manage")]), {}, True),
    "a publisher is no manager": (_plate("p2", credentials=[_may("publish", "subscribe")]), {}, False),
    "every action": (_plate("p2", credentials=[_may("*")]), {}, True),
    "another's right": (_plate("p3", credentials=[_may("manage")]), {}, False),
    "a right from another": (_plate("p2", credentials=[_may("manage", issuer="p9")]), {}, False),
    "a certificate that was altered": (
        _plate("p2", credentials=[_may("manage", tamper={"signature": "flip"})]), {}, False,
    ),
    "a certificate not valid yet": (_plate("p2", credentials=[_may("manage", not_before=51)]), {}, False),
    "an expired certificate": (_plate("p2", credentials=[_may("manage", not_after=49)]), {}, False),
    "a certificate that needs a statement": (
        _plate("p2", credentials=[_may("manage", tests=[{"kind": "crl", "signer": "pito"}])]), {}, False,
    ),
    "an altered attribute": (_plate(tamper={"attributes": [{"name": "a", "uid": 1, "type": "integer"}]}), {}, False),
    "an altered name": (_plate(tamper={"name": "uk.gov.pito.Plates"}), {}, False),
    "another signer claimed": (_plate("eve", tamper={"signer": "pito"}), {}, False),
    "a flipped signature": (_plate(tamper={"signature": "flip"}), {}, False),
    "a second signature": (_plate(tamper={"signature": "+L"}), {}, False),
    "a signature from nowhere": (_plate(signature="00" * 64), {}, False),
    "credentials taken away": (_plate("p2", credentials=[_may("manage")], tamper={"credentials": []}), {}, False),
    "credentials added": (_plate("p2", tamper={"credentials": [_may("manage")]}), {}, False),
    "no key at all": (_plate(owner={"name": ["pito", "types"]}), {}, False),
    "a key without a private half": (_plate(NOBODY), {}, False),
    "a small-order owner": (_plate(owner={"key": "00" * 32}), {}, False),
    "a name for a version": (_plate(version="v1"), {}, False),
    "part of manage, within": (_plate("p2", credentials=[_may("addAttribute")], previous=FIRST_PLATE), {}, True),
    "part of manage, by the thesis's word": (_plate("p2", credentials=[_may("add")], previous=FIRST_PLATE), {}, True),
    "part of manage, beyond": (_plate("p2", credentials=[_may("editAttributeName")], previous=FIRST_PLATE), {}, False),
    "part of manage, nothing to compare": (_plate("p2", credentials=[_may("addAttribute")]), {}, False),
    "part of manage, forged comparison": (
        _plate("p2", credentials=[_may("addAttribute")], previous={**FIRST_PLATE, "signer": "p2"}), {}, False,
    ),
    "a previous version of another type": (_plate(previous={**FIRST_PLATE, "name": "x.Other"}), {}, False),
    "a uid with another type before": (
        _plate(previous={**FIRST_PLATE, "attributes": [{"name": "a", "uid": 1, "type": "date"}]}), {}, False,
    ),
    "installed without the right": (_plate(), {"network": ["net", "N"]}, False),
    "installed with the right": (_plate(credentials=[INSTALLS]), {"network": ["net", "N"]}, True),
    "installed on another network": (_plate(credentials=[INSTALLS]), {"network": ["net", "M"]}, False),
    "installed nowhere": (_plate(), {"network": "N"}, False),
    "installed by the coordinating principal": (_plate(), {"network": ["pito", "N"]}, True),
    "a threshold owner without its members": (_plate(owner={"threshold": {"k": 1, "of": ["pito", "p2"]}}), {}, True),
    "a threshold owner with too few": (_plate(owner={"threshold": {"k": 2, "of": ["pito", "p2"]}}), {}, False),
}  # fmt: skip


@pytest.mark.parametrize("version, fields, valid", ADAPTER.values(), ids=ADAPTER)
def test_adapter_verifies_types(version: dict[str, object], fields: dict[str, object], valid: bool) -> None:
    """`type.verify` answers valid, refused with a reason, or an error; never anything else."""
    answer = _ask("type.verify", type=version, at=50, **fields)
    assert (answer.get("result") == "valid") is valid
    if not valid:
        assert answer.get("reason") or answer.get("error") not in (None, "internal", "unknown-verb")


ONE = [{"name": "n", "uid": 1, "type": "timestamp"}]
TRANSLATED = {
    "times as texts": ([ONE, ONE], {"n": "2026-06-01T10:00:00+02:00"}, {"n": "2026-06-01T08:00:00Z"}),
    "times as seconds": ([ONE, ONE], {"n": 150}, {"n": 150}),
    "decimals as texts": ([[{**ONE[0], "type": "decimal"}]] * 2, {"n": "10.50"}, {"n": "10.50"}),
    "decimals as numbers": ([[{**ONE[0], "type": "decimal"}]] * 2, {"n": 10.5}, {"n": 10.5}),
    "binary": ([[{**ONE[0], "type": "binary"}]] * 2, {"n": "bWFpYQ=="}, {"n": "bWFpYQ=="}),
    "dates": ([[{**ONE[0], "type": "date"}]] * 2, {"n": "2010-02-01"}, {"n": "2010-02-01"}),
    "nothing said": ([ONE, ONE], {}, {"n": None}),
    "an explicit null": ([ONE, ONE], {"n": None}, {"n": None}),
    "an unknown attribute": ([ONE, ONE], {"m": 1}, None),
    "binary that is no text": ([[{**ONE[0], "type": "binary"}]] * 2, {"n": "\ud800"}, None),
    "a value of another type": ([ONE, ONE], {"n": True}, None),
    "an integer that is none": ([[{**ONE[0], "type": "integer"}]] * 2, {"n": 2**63}, None),
    "an integer for a float": ([[{**ONE[0], "type": "float"}]] * 2, {"n": 4}, None),
}


@pytest.mark.parametrize("versions, event, expected", TRANSLATED.values(), ids=TRANSLATED)
def test_adapter_translates_events(
    versions: list[list[dict[str, object]]], event: dict[str, object], expected: dict[str, object] | None
) -> None:
    """`type.translate` gives values back in the form in which they came, or an error."""
    made = [_plate(version=n, attributes=attributes) for n, attributes in enumerate(versions)]
    answer = _ask("type.translate", versions=made, **{"from": 0, "to": 1}, event=event)
    assert answer.get("result") == expected
    assert (expected is None) is ("error" in answer)


def test_adapter_refuses_versions_that_do_not_belong_together() -> None:
    """Two types, one number twice, an unknown number, a damaged definition."""
    one, two = _plate(version=1), _plate(version=2)
    cases = (
        [one, {**two, "name": "x.Other"}],
        [one, {**two, "owner": "eve", "signer": "eve"}],
        [one, {**two, "version": 1}],
        [one, {**two, "version": 3}],
        [one, {**two, "tamper": {"signature": "flip"}}],
        [one],
        [],
        [one, {**two, "attributes": None}],
        [one, {**two, "tamper": 1}],
        [one, {**two, "previous": 1}],
        [one] * 257,
    )
    for versions in cases:
        answer = _ask("type.translate", versions=versions, **{"from": 1, "to": 2}, event={})
        assert answer.get("result") in (None, "refused"), versions
        assert answer.get("error") not in ("internal", "unknown-verb")


def test_adapter_passes_the_sample(shared: object) -> None:
    """The published sample cases of the type verbs are answered as expected."""
    lines = (shared / "peers" / "conformance-sample.jsonl").read_text("utf-8").splitlines()  # type: ignore[operator]
    cases = [case for case in map(json.loads, lines) if case.get("request", {}).get("verb", "").startswith("type.")]
    assert cases
    for case in cases:
        answer = answer_line(json.dumps(case["request"]).encode())
        if case["expect"] == {"refused": True}:
            assert answer.get("result", "refused") == "refused", case["why"]
        else:
            assert answer.get("result") == case["expect"], case["why"]
