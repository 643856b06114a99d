"""What a publication goes under: the book of advertisements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maia.errors import DeniedError
from maia.events import TypeName, parse_version
from maia.kernel import KeptAdvertisement, standing_advertisement
from maia.testing import People

PEOPLE = People("owner")
NAME = TypeName(PEOPLE.owner.public_key, "Plate", parse_version("1"))
KEPT = KeptAdvertisement(principal="aa", type_id=NAME.type_id, version="1", filter="x = 1")
OTHER_VERSION = replace(NAME, version=parse_version("2"))
REFUSED = {
    "withdrawn": ([replace(KEPT, withdrawn=True)], "aa", NAME, None, False),
    "withdrawn, and said anew by a publication": ([replace(KEPT, withdrawn=True)], "aa", NAME, "x = 2", False),
    "none, where it must come first": ([], "aa", NAME, None, True),
    "somebody else's, where it must come first": ([KEPT], "bb", NAME, None, True),
    "of another version, where it must come first": ([KEPT], "aa", OTHER_VERSION, None, True),
    "of something else, where it must come first": ([KEPT], "aa", NAME, "x = 2", True),
}
NEW = {
    "none": ([], "aa", NAME, None),
    "somebody else's": ([KEPT], "bb", NAME, None),
    "of another version": ([KEPT], "aa", OTHER_VERSION, None),
    "of something else": ([KEPT], "aa", NAME, "x = 2"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_nothing_is_published_unsaid(case):
    """Where nothing stands, and the publication may not become the advertisement, it is refused."""
    kept, principal, name, said, explicit = case
    with pytest.raises(DeniedError) as caught:
        standing_advertisement(kept, principal, name, said=said, explicit=explicit)
    assert caught.value.code == "NOT_ADVERTISED"


@pytest.mark.parametrize("case", NEW.values(), ids=NEW.keys())
def test_a_first_publication_may_be_the_advertisement(case):
    """Where a domain lets it, what is published for the first time advertises."""
    kept, principal, name, said = case
    assert standing_advertisement(kept, principal, name, said=said, explicit=False) is None


@pytest.mark.parametrize("said", [None, "x = 1"])
@pytest.mark.parametrize("explicit", [False, True])
def test_a_publication_goes_under_what_was_advertised(said, explicit):
    """With the same words, or without any, it goes under the publisher's own advertisement."""
    assert standing_advertisement([KEPT], "aa", NAME, said=said, explicit=explicit) == KEPT
