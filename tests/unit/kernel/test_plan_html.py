"""What notebooks show: event types, grants and plans as tables in which nothing of strangers becomes markup."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from maia.authority import Action, Verifier, ask_type
from maia.domain import CellExplanation
from maia.encoding import html_table
from maia.encryption import Tolerance
from maia.events import EncryptionMode, EventType, TypeName, attribute, parse_version, sign_event_type
from maia.filters import TypedFilter
from maia.kernel import Clause, DeliverPlan, PlanTerm, PublishPlan, Sealing, Subscription, clauses_from, versions_of
from maia.principals import KeySigner
from maia.testing import TYPE_NAME, TYPE_VERSION, NumberplateNetwork, numberplate_network

HOSTILE = "<img src=x onerror=alert(1)>&\"'</table><script>"


class Seen(HTMLParser):
    """Collects the tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert all(name == "colspan" for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


TABLE = {"table", "caption", "tr", "th", "td"}


def event_type(owner: KeySigner, *names: str) -> EventType:
    """Make a type of text attributes."""
    attributes = tuple(attribute(name, str(number), "string") for number, name in enumerate(names))
    return EventType(name=TypeName(owner.public_key, "x.Y", parse_version("1")), attributes=attributes)


def test_hostile_names_are_shown_and_not_obeyed() -> None:
    """A name full of markup comes out as text, in a type and in both plans."""
    owner = KeySigner.generate()
    kind = event_type(owner, HOSTILE, "plain")
    seen = Seen(kind._repr_html_())
    assert seen.tags == TABLE
    assert HOSTILE in seen.text
    for plan in (publish_plan(kind, owner), deliver_plan(kind, HOSTILE)):
        shown = Seen(plan._repr_html_())
        assert shown.tags == TABLE
        assert HOSTILE in "".join(shown.text)


TERM = PlanTerm.of((), made=datetime(2026, 6, 1, tzinfo=UTC), age=timedelta(days=1), skew=timedelta(0))


def whole_right(kind: EventType) -> tuple[Clause, ...]:
    """Give the owner's own clause."""
    request = ask_type(Action.SUBSCRIBE, kind.name.owner, kind.name.name, None)
    found = Verifier().clauses(request, principal=kind.name.owner, evidence=(), at=datetime(2026, 6, 1, tzinfo=UTC))
    return clauses_from(found, versions_of((kind,)))


def publish_plan(kind: EventType, owner: KeySigner) -> PublishPlan:
    """Make a plan of the owner."""
    return PublishPlan(
        publication=HOSTILE, principal="x", definition=sign_event_type(kind, owner).raw, clauses=whole_right(kind),
        sealing=Sealing(type_id=kind.type_id, mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32)),
        term=TERM,
    )  # fmt: skip


def deliver_plan(kind: EventType, identity: str) -> DeliverPlan:
    """Make a plan with one subscription of the owner."""
    subscription = Subscription(identity, kind, TypedFilter(), whole_right(kind))  # type: ignore[arg-type]
    return DeliverPlan(
        type_id=kind.type_id, kinds={item.uid: item.type for item in kind.attributes}, subscriptions=(subscription,),
        term=TERM, origins={}, arrives=0, tolerance=Tolerance(grace=0, skew=0),
    )  # fmt: skip


def test_a_grant_shows_who_may_do_what_by_which_certificates() -> None:
    """Principal, request, tag and certificates are there; the holder's key material beyond its fingerprint is not."""
    network: NumberplateNetwork = numberplate_network()
    request = ask_type(Action.SUBSCRIBE, network.key("PITO"), TYPE_NAME, TYPE_VERSION)
    grant = Verifier().verify(
        request, principal=network.key("Smith"), evidence=tuple(network.certificates.values()), at=network.now
    )
    seen = Seen(grant._repr_html_())
    assert seen.tags == TABLE
    text = "".join(seen.text)
    assert network.key("Smith").fingerprint in text
    assert all(certificate.certificate_id.hex() in text for certificate in grant.certificates)
    assert network.people["Smith"].export_seed().hex() not in text


def test_characters_that_browsers_obey_are_written_as_escapes() -> None:
    """A change of direction cannot turn a name around."""
    assert "\\u202e" in html_table("a\u202eb", ["x"], [])
    assert "\u202e" not in html_table("a\u202eb", ["x"], [])


def test_long_tables_and_cells_are_cut() -> None:
    """A page stays small whatever stands in it."""
    page = html_table("c", ["x"], ([f"{number}" + "y" * 10_000] for number in range(100_000)))
    assert len(page) < 200_000
    assert "…" in page


@given(cells=st.lists(st.lists(st.text(), min_size=2, max_size=2), max_size=5), caption=st.text())
def test_no_text_becomes_markup(cells: list[list[str]], caption: str) -> None:
    """Whatever stands in it, a table has the tags of a table and no attributes."""
    assert Seen(html_table(caption, ["a", "b"], cells)).tags <= TABLE


def test_an_explanation_shows_its_clauses_or_why_there_are_none() -> None:
    """A cell that is seen comes with constraint and chain; one that is not, with the reason; names stay text."""
    owner = KeySigner.generate()
    [clause] = whole_right(event_type(owner, "plain"))
    seen = Seen(CellExplanation(HOSTILE, "plain", "0", (clause,), None)._repr_html_())
    assert seen.tags == TABLE
    assert {"every row", "the owner itself"} <= set(seen.text)
    assert HOSTILE in "".join(seen.text)
    closed = Seen(CellExplanation("smith", "plain", "0", (), HOSTILE)._repr_html_())
    assert closed.tags == TABLE
    assert {"never seen", HOSTILE} <= set(closed.text)
