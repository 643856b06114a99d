"""The law of speech: what a link adds names only attributes that its issuer holds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from builders import AT, Case, advanced, case, certificate_id, key, naming, right, signed

from maia.principals import Authorisation, Body, Name, Subject, Threshold

ABOUT = "Constraints, conditions and forced values name only what is open to their issuer; the owner holds all."
TYPE = '(maia-type owner Sighting "1"'
ROW = '(row (place Victoria) (plate AE05) (speed "91"))'
FAST = '(* where (speed (* range numeric ge "70")))'
AT_VICTORIA = "(* where (place Victoria))"
VERSIONS = {"1": ["place", "plate"], "2": ["place", "plate", "speed"]}


def cases() -> list[Case]:
    """List the cases."""
    return [*allowed(), *denied(), *versions_allowed(), *versions_denied()]


def allowed() -> list[Case]:
    """List what is proven."""
    plates = given("owner", "alice", "(* set plate place)", delegate=True)
    fast = given("owner", "alice", "plate", FAST, delegate=True)
    plate_fast = given("alice", "carol", "plate", FAST)
    yes = _yes
    return [
        yes("the owner speaks of what it does not open", [given("owner", "alice", "plate", FAST)], "alice"),
        yes("a holder narrows by what it holds", [plates, given("alice", "bob", "(*)", AT_VICTORIA)], "bob"),
        yes("and by what it does not pass on", [plates, given("alice", "bob", "plate", AT_VICTORIA)], "bob"),
        yes(
            "a holder of everything speaks of everything",
            [given("owner", "alice", "(*)", delegate=True), given("alice", "bob", "plate", FAST)],
            "bob",
        ),
        yes("the demand above is repeated word for word", [fast, given("alice", "bob", "(*)", FAST)], "bob"),
        yes(
            "a wider demand than the one above says nothing",
            [fast, given("alice", "bob", "(*)", '(* where (speed (* range numeric ge "50")))')],
            "bob",
        ),
        yes(
            "attributes held by a prefix",
            [given("owner", "alice", "(* prefix pla)", delegate=True), given("alice", "bob", "(*)", AT_VICTORIA)],
            "bob",
        ),
        yes(
            "a condition on an open attribute",
            [plates, given("alice", "bob", "(*)", conditions=('event["place"] == "Victoria"',))],
            "bob",
        ),
        yes(
            "a condition on the moment",
            [plates, given("alice", "bob", "(*)", conditions=("now.hour('Europe/London') < 17",))],
            "bob",
        ),
        yes(
            "a condition of the chain above, repeated",
            [
                given("owner", "alice", "plate", delegate=True, conditions=('event["speed"] > 70',)),
                given("alice", "bob", "(*)", conditions=('event["speed"] > 70',)),
            ],
            "bob",
        ),
        yes(
            "members of a threshold speak of what it holds",
            jointly("(* set plate place)", given("alice", "carol", "(*)", AT_VICTORIA), given("bob", "carol", "(*)")),
            "carol",
        ),
        yes(
            "members of a threshold close an attribute and speak of it with one voice",
            jointly("(* set plate speed)", plate_fast, given("bob", "carol", "plate", FAST)),
            "carol",
        ),
        yes(
            "a member of a threshold speaks of what it closes itself",
            jointly("(* set plate speed)", plate_fast, given("bob", "carol", "(*)")),
            "carol",
        ),
        yes(
            "an alternative for another action is not heard",
            [
                plates,
                right("alice", "bob", f"(* set {TYPE} publish (*) {FAST}) {TYPE} subscribe plate))"),
            ],
            "bob",
        ),
        yes(
            "another chain that speaks of nothing",
            [given("owner", "carol", "plate", delegate=True), given("carol", "dave", "plate")],
            "dave",
            extra=[given("owner", "alice", "plate", delegate=True), given("alice", "dave", "plate", FAST)],
        ),
    ]


def denied() -> list[Case]:
    """List what is not proven: the link speaks of what is closed to its issuer."""
    plate = given("owner", "alice", "plate", delegate=True)
    fast = given("owner", "alice", "plate", FAST, delegate=True)
    all_fast = given("alice", "carol", "(*)", FAST)
    staff = Name(key("owner"), ("staff",))
    no = _no
    return [
        no("a constraint on a closed attribute", [plate, given("alice", "bob", "(*)", FAST)], "bob"),
        no(
            "that the closed attribute has a value at all",
            [plate, given("alice", "bob", "(*)", "(* where (speed (*)))")],
            "bob",
        ),
        no(
            "the smallest narrowing of a demand on a closed attribute",
            [fast, given("alice", "bob", "(*)", '(* where (speed (* range numeric g "70")))')],
            "bob",
        ),
        no(
            "one open and one closed attribute",
            [plate, given("alice", "bob", "(*)", '(* where (plate AE05) (speed (* range numeric ge "70")))')],
            "bob",
        ),
        no(
            "a row that is spelled out",
            [plate, given("alice", "bob", "(*)", "(row (place Victoria))")],
            "bob",
        ),
        no(
            "a condition on a closed attribute",
            [plate, given("alice", "bob", "(*)", conditions=('event["speed"] > 70',))],
            "bob",
        ),
        no(
            "a condition on whether a closed attribute has a value",
            [plate, given("alice", "bob", "(*)", conditions=('"speed" in event',))],
            "bob",
        ),
        no(
            "a condition that cannot be read",
            [plate, given("alice", "bob", "(*)", conditions=(r'event["\x73peed"] > 70',))],
            "bob",
        ),
        no(
            "a condition that hides in a string of another kind",
            [plate, given("alice", "bob", "(*)", conditions=('"""a" == "a" || event["speed"] > 70 || "a" == "a"""',))],
            "bob",
        ),
        no(
            "one alternative of the link speaks, so the link gives nothing",
            [plate, right("alice", "bob", f"(* set {TYPE} subscribe plate) {TYPE} subscribe plate {FAST}))")],
            "bob",
        ),
        no(
            "two rights of the issuer do not lend to each other",
            [
                right("owner", "alice", f"(* set {TYPE} subscribe plate) {TYPE} subscribe speed))", delegate=True),
                given("alice", "bob", "plate", FAST),
            ],
            "bob",
        ),
        no(
            "two chains of the issuer do not lend to each other",
            [plate, given("owner", "alice", "speed", delegate=True), given("alice", "bob", "plate", FAST)],
            "bob",
        ),
        no(
            "the right to publish an attribute opens nothing to read by",
            [
                plate,
                given("owner", "alice", "speed", delegate=True, action="publish"),
                given("alice", "bob", "(*)", FAST),
            ],
            "bob",
        ),
        no(
            "a forced value on an attribute that the publisher may not set",
            [
                given("owner", "alice", "plate", delegate=True, action="publish"),
                given("alice", "bob", "(*)", AT_VICTORIA, action="publish"),
            ],
            "bob",
            action="publish",
        ),
        no(
            "an attribute that was closed on the way stays closed",
            [
                given("owner", "alice", "(*)", delegate=True),
                given("alice", "bob", "plate", delegate=True),
                given("bob", "carol", "(*)", FAST),
            ],
            "carol",
        ),
        no(
            "a member of a threshold speaks of what it does not hold",
            jointly("plate", all_fast, given("bob", "carol", "(*)")),
            "carol",
        ),
        no(
            "a member of a threshold speaks of what another closes",
            jointly("(* set plate speed)", all_fast, given("bob", "carol", "plate")),
            "carol",
        ),
        no(
            "a member of a threshold has a condition on what another closes",
            jointly(
                "(* set plate speed)",
                given("alice", "carol", "(*)", conditions=('event["speed"] > 70',)),
                given("bob", "carol", "plate"),
            ),
            "carol",
        ),
        no(
            "under a name",
            [
                given("owner", staff, "plate", delegate=True),
                naming("owner", "staff", "alice"),
                given("alice", "bob", "(*)", FAST),
            ],
            "bob",
        ),
        no(
            "after a blanket, which opens no more than there was",
            [
                given("owner", "alice", "plate", delegate=True),
                right("alice", "bob", "(maia-type)", delegate=True),
                given("bob", "carol", "(*)", FAST),
            ],
            "carol",
        ),
    ]


def versions_allowed() -> list[Case]:
    """List what is proven where the definitions are known: ``(*)`` of a version is what that version has."""
    whole = given("owner", "alice", "(*)", delegate=True)
    yes = partial(_yes, versions=VERSIONS)
    return [
        yes(
            "all of a version, narrowed by what the version has",
            [whole, given("alice", "bob", "(*)", AT_VICTORIA)],
            "bob",
        ),
        yes(
            "all of every version, narrowed by what another version has",
            [every("owner", "alice", delegate=True), given("alice", "bob", "(*)", FAST)],
            "bob",
        ),
        yes("the owner speaks of what another version has", [given("owner", "alice", "(*)", FAST)], "alice"),
        yes(
            "the owner's demand on what another version has, passed on",
            [given("owner", "alice", "(*)", FAST, delegate=True), given("alice", "bob", "(*)", FAST)],
            "bob",
        ),
        yes(
            "all of a version, where nobody says what it has",
            [whole, given("alice", "bob", "(*)", FAST)],
            "bob",
            versions=None,
        ),
    ]


def versions_denied() -> list[Case]:
    """List what is not proven where the definitions are known."""
    whole = given("owner", "alice", "(*)", delegate=True)
    no = partial(_no, versions=VERSIONS)
    return [
        no(
            "all of a version, narrowed by what another version has", [whole, given("alice", "bob", "(*)", FAST)], "bob"
        ),
        no(
            "all of a version, with a condition on what another version has",
            [whole, given("alice", "bob", "(*)", conditions=('event["speed"] > 70',))],
            "bob",
        ),
        no(
            "all of a version, with a condition that may name anything",
            [whole, given("alice", "bob", "(*)", conditions=("size(event) > 3",))],
            "bob",
        ),
        no(
            "listing what another version has opens nothing",
            [
                whole,
                given("alice", "bob", "(* set plate speed)", delegate=True),
                given("bob", "carol", "(*)", FAST),
            ],
            "carol",
        ),
        no(
            "bound to a version on the way",
            [
                every("owner", "alice", delegate=True),
                given("alice", "bob", "(*)", delegate=True),
                every("bob", "carol", FAST),
            ],
            "carol",
        ),
        no(
            "a range of versions is not every version",
            [
                every("owner", "alice", version='(* range alpha ge "" le "2")', delegate=True),
                every("alice", "bob", FAST),
            ],
            "bob",
        ),
        no(
            "a value forced on what another version has",
            [
                given("owner", "alice", "(*)", delegate=True, action="publish"),
                given("alice", "bob", "(*)", '(* where (speed "91"))', action="publish"),
            ],
            "bob",
            action="publish",
        ),
        no(
            "a version of which nothing is known",
            [whole, given("alice", "bob", "(*)", AT_VICTORIA)],
            "bob",
            versions={"2": ["place", "plate", "speed"]},
        ),
    ]


def every(
    issuer: str, subject: str, rows: str = "(*)", *, version: str = "(*)", delegate: bool = False
) -> Authorisation:
    """Give a right on all attributes of many versions."""
    return right(issuer, subject, f"(maia-type owner Sighting {version} subscribe (*) {rows})", delegate=delegate)


def given(
    issuer: str,
    subject: str | Subject,
    uids: str,
    rows: str = "(*)",
    *,
    action: str = "subscribe",
    delegate: bool = False,
    conditions: tuple[str, ...] = (),
) -> Authorisation:
    """Give a right on the cells of the one type of this family."""
    return right(issuer, subject, f"{TYPE} {action} {uids} {rows})", delegate=delegate, conditions=conditions)


def jointly(uids: str, *members: Authorisation) -> list[Authorisation]:
    """Give a right to two who have to agree, and what each of them passes on."""
    return [given("owner", Threshold(2, (key("alice"), key("bob"))), uids, delegate=True), *members]


def _given(
    bodies: Sequence[Body], principal: str, action: str, versions: dict[str, list[str]] | None
) -> dict[str, Any]:
    mends = " reject" if action == "publish" else ""
    return {
        "roots": [advanced(key("owner").to_sexp())],
        "certificates_hex": [signed(body).hex() for body in bodies],
        "statements_hex": [],
        "principal_hex": key(principal).raw.hex(),
        "request": f"{TYPE} {action} plate {ROW}{mends})",
        "at": AT,
        **({} if versions is None else {"versions": versions}),
    }


def _yes(
    says: str,
    bodies: Sequence[Body],
    who: str,
    *,
    extra: Sequence[Body] = (),
    versions: dict[str, list[str]] | None = None,
) -> Case:
    expected = {"allowed": True, "certificate_ids_hex": sorted(certificate_id(signed(body)) for body in bodies)}
    return case(says, "authority.decide", _given([*extra, *bodies], who, "subscribe", versions), expected)


def _no(
    says: str,
    bodies: Sequence[Body],
    who: str,
    *,
    action: str = "subscribe",
    versions: dict[str, list[str]] | None = None,
) -> Case:
    expected = {"allowed": False, "reason": "SPEAKS_OF_CLOSED", "stage": "reduction"}
    return case(says, "authority.decide", _given(bodies, who, action, versions), expected, must_fail=True)
