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
    Remove,
    SequenceUids,
    TypeName,
    Uid,
    UnverifiedEventType,
    Version,
    attribute,
    batch_to_transit,
    check_batch,
    drawn,
    evolve,
    from_transit,
    lint,
    parse_event_type,
    sign_event_type,
    to_transit,
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


def test_child_needs_the_extend_right_and_the_parent() -> None:
    """A holder of extend `Test*` extends TestType1 but not Other, with names and uids of its own."""
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


def test_subscriber_side_needs_only_its_own_version() -> None:
    """A broker that holds v8516 alone translates what was published under v4799."""
    travelling = to_transit(Publication(V4799, {"license-plate": "AE05 XYZ"}))
    bytes_on_the_wire = sign_event_type(V8516, PITO).raw
    held = _verify(parse_event_type(bytes_on_the_wire)).event_type
    assert dict(from_transit(travelling, held).values) == {"numberplate": "AE05 XYZ"}


V0 = sign_event_type(_version(NP, "0"), PITO)


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
        VerifiedEventType(good.definition, good.event_type, good.signer, (), None, b"", False, None, object())  # type: ignore[arg-type]
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
