"""Policies that are filters travel inside certificates, and reduction conjoins them."""

from __future__ import annotations

import pytest

from maia.authority import Action, CertificatePool, Constraint, Verifier, ask_type, cell_rights, parse_tag, type_right
from maia.authority import rows_tag as rows_of
from maia.encoding import encode
from maia.filters import AttributeType, TypedFilter, compile_filter, from_tag, matches, to_tag
from maia.testing import People, at, grant

TYPES = {"location": "string", "numberplate": "string"}
UIDS = {"location": "3467", "numberplate": "3265"}
NOW = at("2026-06-01T09:00:00")


def right(owner, text):
    """Write a filter as the row constraint of a subscribe right, attribute by attribute."""
    typed = compile_filter(text, TYPES)
    constraints = [
        Constraint(UIDS[constraint.attribute], constraint.operator.value, constraint.value)
        for constraint in typed.constraints
    ]
    for constraint in typed.constraints:
        expected = parse_tag(to_tag((constraint,)))
        made = rows_of([Constraint(UIDS[constraint.attribute], constraint.operator.value, constraint.value)])
        assert made.get(UIDS[constraint.attribute].encode()) == expected
    return type_right(owner.public_key, "uk.gov.pito.Numberplate", actions=[Action.SUBSCRIBE], constraints=constraints)


def tags(filter_):
    """The constraints as the octets that certificates carry."""
    return {encode(to_tag((item,))) for item in filter_.constraints}


@pytest.mark.requirement("10.14")
def test_policy_writing_is_delegated_and_reduction_conjoins_the_filters():
    """PITO delegates with its filter, Met writes one for Smith; what Smith has is both."""
    people = People("PITO", "Met", "Smith")
    pito, met, smith = people["PITO"], people["Met"], people["Smith"]
    chain = [
        grant(pito, met, right(pito, "location prefix 'Vic'"), delegate=True),
        grant(met, smith, right(pito, "numberplate = 'AE05 XYZ'")),
    ]
    request = ask_type(Action.SUBSCRIBE, pito.public_key, "uk.gov.pito.Numberplate", "8516")
    [clause] = Verifier().clauses(request, principal=smith.public_key, evidence=CertificatePool(chain), at=NOW)
    [cells] = cell_rights(clause.tag)
    names = {uid: name for name, uid in UIDS.items()}
    read = [
        constraint
        for uid, tag in cells.constraints
        for constraint in from_tag(tag.to_sexp(), names[uid], AttributeType.STRING)
    ]
    both = TypedFilter(constraints=tuple(read))
    wanted = compile_filter("location prefix 'Vic' and numberplate = 'AE05 XYZ'", TYPES)
    assert {encode(to_tag((item,))) for item in both.constraints} == {
        encode(to_tag((item,))) for item in wanted.constraints
    }
    assert matches(both, {"location": "Victoria", "numberplate": "AE05 XYZ"})
    assert not matches(both, {"location": "Victoria", "numberplate": "BX51 ABC"})
    assert not matches(both, {"location": "Paddington", "numberplate": "AE05 XYZ"})
