"""The label policy: what it says, and that whatever is not understood is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.errors import EncodingError, FlowError
from maia.labels import PUBLIC, Carrier, Label, LabelPolicy, parse_label_policy

GOOD = """
[types."uk.nhs.path_report"]
patient = { S = ["identifiable"] }
text = { S = ["clinical(patient)", "ward(*)"], I = ["pathlab"] }

[readers.ali]
S = ["identifiable"]
I = ["pathlab"]
frames = ["clinical(*)"]

[roles]
tags = ["clinical"]

[sinks."/srv"]
S = ["clinical(*)"]

[components.counter]
does = "count"
declassify = ["clinical(*)"]
endorse = ["counted"]
clients = ["ali"]
"""

WRONG = {
    "no TOML": "[types",
    "an unknown table": "[reader.ali]\nS = []",
    "a type that is no table": "types = 3",
    "an attribute that is no table": '[types.T]\ntext = "clinical"',
    "an unknown part of a label": '[types.T]\ntext = { secrecy = ["x"] }',
    "tags that are no list": '[types.T]\ntext = { S = "x" }',
    "a tag that is no text": "[types.T]\ntext = { S = [3] }",
    "an empty tag": '[types.T]\ntext = { S = [""] }',
    "an unknown part of a reader": '[readers.ali]\nsees = ["x"]',
    "a component that does nothing": '[components.c]\ndeclassify = ["x"]',
    "a component that does something else": '[components.c]\ndoes = "shred"',
    "roles that are no tags": '[roles]\nfamilies = ["x"]',
    "a family with two parentheses": '[types.T]\ntext = { S = ["a(b)(c)"] }\n[x]',
}


def test_what_a_policy_says():
    """Families in a type are carriers, whole ones are static; the rest is as written."""
    policy = parse_label_policy(GOOD.encode())
    said = policy.said("uk.nhs.path_report", ("patient", "text", "ward"))
    text = said["text"]
    assert text.carriers == {Carrier(family="clinical", column="patient")}
    assert (text.secrecy, text.integrity) == ({"ward(*)"}, {"pathlab"})
    assert "ward" not in said
    assert policy.reader("ali").inside.secrecy == {"identifiable", "clinical(*)"}
    assert policy.reader("ali", ["clinical(7)"]).label.secrecy == {"identifiable", "clinical(7)"}
    assert policy.reader("stranger").inside == PUBLIC
    assert policy.sinks["/srv"] == Label(secrecy=frozenset({"clinical(*)"}))
    assert policy.role_tags == {"clinical"}
    assert policy.declared("counter", "ali").component.endorse == {"counted"}
    for name, client in (("counter", "bob"), ("other", "ali")):
        with pytest.raises(FlowError, match="NO_COMPONENT"):
            policy.declared(name, client)


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_what_is_not_understood_is_refused(text):
    """A slip of the pen opens nothing."""
    with pytest.raises(EncodingError) as raised:
        parse_label_policy(text.encode())
    assert raised.value.code in ("LABEL_POLICY", "LABEL_TAGS")


def test_a_policy_fits_its_type():
    """An attribute that the type does not have, labelled or as a carrier, is refused when the type is read."""
    policy = parse_label_policy(GOOD.encode())
    for attributes in (("patient",), ("text",)):
        with pytest.raises(EncodingError, match="LABEL_POLICY"):
            policy.said("uk.nhs.path_report", attributes)
    with pytest.raises(EncodingError):
        parse_label_policy(b"#" * (2 << 20))


@given(st.binary(max_size=300))
def test_any_octets_are_a_policy_or_refused(raw):
    """Nothing else is raised."""
    found = None
    with suppress(EncodingError):
        found = parse_label_policy(raw)
    assert found is None or isinstance(found, LabelPolicy)
