"""Conditions, rates and providers as their users meet them; and the attacks of publish/subscribe that they stop."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from maia.authority import Action, CertificatePool, Constraint, StatementBook, Verifier, type_right, verify_event_type
from maia.errors import ChainError, RevokedError, VerificationError
from maia.events import EventType, TypeName, Version, attribute, batch_to_transit, check_batch, sign_event_type
from maia.filters import BoundKind, Side, allows, compile_filter
from maia.home.providers import HomePlace, HomeSurroundings, SqlFacts
from maia.home.rates import RateLedger
from maia.kernel import CONDITION_FALSE, RATE_LIMITED, Sessions, enforce_publication
from maia.policy import ConditionSyntaxError, Environment, Predicate, compile_condition
from maia.principals import TestKind as Kind
from maia.testing import People, at, grant, listing, online

PEOPLE = People("exchange", "domain", "firm", "desk", "eve", "lister")
QUOTE = EventType(
    name=TypeName(PEOPLE.exchange.public_key, "stock.Quote", Version("1")),
    attributes=(attribute("symbol", 1, "string"), attribute("price", 2, "integer"), attribute("source", 3, "string")),
)
TYPES = {item.name: item.type.value for item in QUOTE.attributes}
MONTH = (at("2026-06-01T00:00"), at("2026-07-01T00:00"))
OFFICE = "now.clock('Europe/London') >= '09:00' && now.clock('Europe/London') < '17:00'"


def london(text: str) -> datetime:
    """A time by the clocks of London in summer."""
    return at(f"{text}+01:00")


def right(*actions: Action, **options):
    """A right on quotes."""
    return type_right(PEOPLE.exchange.public_key, QUOTE.name.name, actions=actions, **options)


@dataclass
class Broker:
    """A broker with its certificates."""

    sessions: Sessions
    pool: CertificatePool

    def advertise(self, who, when):
        """Announce."""
        return self.sessions.advertise(PEOPLE[who].public_key, QUOTE.type_id, "1", self.pool, at=when)

    def clauses(self, who, when, action=Action.PUBLISH):
        """What somebody may do."""
        return self.sessions.clauses(PEOPLE[who].public_key, action, QUOTE, self.pool, at=when)

    def publish(self, who, when, *symbols, clauses=None):
        """Publish quotes; tell the codes, in order."""
        held = self.clauses(who, when) if clauses is None else clauses
        enforced = enforce_publication(QUOTE, quotes(*symbols), held, at=when)
        refused = {refusal.row: refusal.code for refusal in enforced.refusals}
        return [refused.get(row, "OK") for row in range(len(symbols))]

    def subscribe(self, who, when, text="", identity="s"):
        """Subscribe."""
        return self.sessions.subscribe(identity, PEOPLE[who].public_key, QUOTE.type_id, "1", text, self.pool, at=when)

    def seen(self, when, *symbols):
        """How many events each subscription gets."""
        batch = batch_to_transit(QUOTE, check_batch(QUOTE, quotes(*symbols)))
        plan = self.sessions.plan(QUOTE.type_id, self.pool, at=when)
        return {delivery.subscription: len(delivery.rows) for delivery in plan.deliver(batch)}


def quotes(*symbols):
    """Quotes of these symbols."""
    rows = {"symbol": list(symbols), "price": [10] * len(symbols), "source": ["firm"] * len(symbols)}
    return pa.RecordBatch.from_pydict(rows)


def broker(*certificates, place=None, book=None, **options) -> Broker:
    """A broker that knows the type."""
    verifier = Verifier(statements=book) if book is not None else Verifier()
    if place is not None:
        options["surroundings"] = lambda: place
    sessions = Sessions(verifier, **options)
    sessions.install(verify_event_type(sign_event_type(QUOTE, PEOPLE.exchange), verifier=verifier, at=MONTH[0]))
    return Broker(sessions, CertificatePool(certificates))


def given(who, *conditions, actions=(Action.PUBLISH,), **options):
    """A certificate of the exchange."""
    return grant(PEOPLE.exchange, PEOPLE[who], right(*actions, **options), valid=MONTH, conditions=conditions)


def test_one_certificate_for_a_month_of_working_days():
    """Nine to five: 16:59 yes, 17:01 no, the next morning yes, and one certificate was issued."""
    made = broker(given("desk", OFFICE, actions=(Action.SUBSCRIBE,)))
    made.subscribe("desk", london("2026-06-03T16:59"))
    with pytest.raises(ChainError) as caught:
        made.subscribe("desk", london("2026-06-03T17:01"))
    assert caught.value.code == CONDITION_FALSE
    made.subscribe("desk", london("2026-06-04T09:30"))
    times = ("2026-06-03T16:59", "2026-06-03T17:01", "2026-06-04T09:30")
    assert [made.seen(london(when), "A") for when in times] == [{"s": 1}, {}, {"s": 1}]
    assert len(made.pool) == 1


def test_a_condition_tells_actions_apart():
    """`action == "publish" && hour < 17` gives publishing until five and subscribing never."""
    source = 'action == "publish" && now.hour("Europe/London") < 17'
    made = broker(given("firm", source, actions=(Action.PUBLISH, Action.SUBSCRIBE)))
    assert made.advertise("firm", london("2026-06-03T16:00")).principal == PEOPLE.firm.public_key
    with pytest.raises(ChainError):
        made.subscribe("firm", london("2026-06-03T16:00"))
    typed = broker(given("firm", 'event_type == "stock.Quote" && event["1"] in ["A", "B"]'))
    assert typed.publish("firm", london("2026-06-03T16:00"), "A", "C") == ["OK", CONDITION_FALSE]


def test_leaving_early_denies_without_revocation(tmp_path: Path):
    """The duty roster is asked each time; when it is down the answer is no."""
    path = tmp_path / "roster.db"
    desk = PEOPLE.desk.public_key.key_id.hex()
    with sqlite3.connect(path) as roster:
        roster.execute("create table duty (officer text)")
        roster.execute("insert into duty values (?)", (desk,))
    roster.close()
    on_duty = SqlFacts(
        predicate=Predicate("on_duty", 1), database=str(path), ask_sql="select 1 from duty where officer = ?"
    )
    place = HomePlace(Environment([on_duty]), RateLedger(tmp_path / "rates.db"))
    made = broker(given("desk", "on_duty(principal)", actions=(Action.SUBSCRIBE,)), place=place)
    when = london("2026-06-03T12:00")
    made.subscribe("desk", when)
    assert made.seen(when, "A") == {"s": 1}
    with sqlite3.connect(path) as roster:
        roster.execute("delete from duty")
    roster.close()
    assert made.seen(when, "A") == {}
    with sqlite3.connect(path) as roster:
        roster.execute("insert into duty values (?)", (desk,))
    roster.close()
    assert made.seen(when, "A") == {"s": 1}
    path.unlink()
    assert made.seen(when, "A") == {}
    assert dict(place.environment.failures) == {("on_duty/1", "PROVIDER_FAILED"): 1}


def test_ten_a_minute(tmp_path: Path):
    """The eleventh within the minute is refused, also by a broker that was restarted; the next minute is another."""
    start = london("2026-06-03T12:00")

    def made() -> Broker:
        return broker(given("firm", 'rate(10, "1m")'), place=HomeSurroundings(str(tmp_path))())

    codes = [made().publish("firm", start + timedelta(seconds=5 * n), "A")[0] for n in range(12)]
    assert codes == ["OK"] * 10 + [RATE_LIMITED] * 2
    assert made().publish("firm", start + timedelta(seconds=60), "A") == ["OK"]


def test_the_right_to_publish_ends_between_advertisement_and_publication():
    """Advertised at ten to five, published at five past: refused although the advertisement stands."""
    made = broker(given("firm", OFFICE))
    made.advertise("firm", london("2026-06-03T16:50"))
    held = made.clauses("firm", london("2026-06-03T16:50"))
    assert made.publish("firm", london("2026-06-03T16:55"), "A", clauses=held) == ["OK"]
    assert made.publish("firm", london("2026-06-03T17:05"), "A", clauses=held) == [CONDITION_FALSE]


def test_conditions_along_a_chain_are_conjoined():
    """Weekdays by the owner, nine to five by the domain: Saturday at ten is neither."""
    weekdays = "now.weekday('Europe/London') <= 5"
    links = (
        grant(PEOPLE.exchange, PEOPLE.domain, right(Action.PUBLISH), delegate=True, valid=MONTH, conditions=[weekdays]),
        grant(PEOPLE.domain, PEOPLE.firm, right(Action.PUBLISH), valid=MONTH, conditions=[OFFICE]),
    )
    made = broker(*links)
    times = {"Friday at ten": "2026-06-05T10:00", "Saturday": "2026-06-06T10:00", "Friday night": "2026-06-05T22:00"}
    held = {name: len(made.clauses("firm", london(when))) for name, when in times.items()}
    assert held == {"Friday at ten": 1, "Saturday": 0, "Friday night": 0}


@pytest.mark.parametrize("name", ["loop", "import", "attribute access", "a million nodes"])
def test_what_is_not_safe_is_refused_when_it_is_read(name: str):
    """It never becomes a condition, and a certificate that carries it anyway proves nothing."""
    source = {
        "loop": "[1].all(x, x > 0)",
        "import": "import os",
        "attribute access": "principal.key == 'x'",
        "a million nodes": "true" + " && true" * 10**6,
    }[name]
    with pytest.raises(ConditionSyntaxError):
        compile_condition(source)
    assert broker(given("firm", source[:8_000])).clauses("firm", london("2026-06-03T12:00")) == ()


# -- attacks


def test_a_flooder_is_refused_at_the_eleventh_and_then_revoked(tmp_path: Path):
    """Without a right nothing; with one, ten a minute; and after the revocation nothing at the next batch."""
    book = StatementBook()
    tested = grant(
        PEOPLE.exchange, PEOPLE.firm, right(Action.PUBLISH), valid=MONTH, conditions=['rate(10, "1m")'],
        tests=[online(Kind.CRL, PEOPLE.lister)],
    )  # fmt: skip
    start = london("2026-06-03T12:00")
    later = start + timedelta(seconds=61)  # the list comes anew each minute: that is the bound
    place = HomePlace(Environment(), RateLedger(tmp_path / "rates.db"))
    made = broker(tested, place=place, book=book)
    book.accept(listing(Kind.CRL, PEOPLE.lister, valid=(start, later)))
    with pytest.raises(VerificationError):
        made.advertise("eve", start)
    flood = made.publish("firm", start, *["bogus"] * 1_000)
    assert (flood[:10], set(flood[10:])) == (["OK"] * 10, {RATE_LIMITED})
    assert set(made.publish("firm", start + timedelta(seconds=30), *["bogus"] * 100)) == {RATE_LIMITED}
    book.accept(listing(Kind.CRL, PEOPLE.lister, [tested], sequence=2, valid=(later, later + timedelta(hours=1))))
    assert made.publish("firm", later, "bogus") == ["NOT_PERMITTED"]
    with pytest.raises(RevokedError):
        made.advertise("firm", later)


def test_fake_subscriptions_leave_no_entry():
    """Without the right a thousand attempts leave nothing at the first broker."""
    made = broker(given("desk", actions=(Action.SUBSCRIBE,)))
    when = london("2026-06-03T12:00")
    for number in range(1_000):
        with pytest.raises(VerificationError):
            made.subscribe("eve", when, f"symbol = 'A' and price = {number}", identity=f"fake {number}")
    assert made.sessions.subscriptions() == ()
    made.subscribe("desk", when, "symbol = 'A'")
    assert len(made.sessions.subscriptions()) == 1


def test_fake_advertisements_do_not_churn_tables():
    """Who has no right is refused each time; who has it announces the same however often."""
    made = broker(given("firm"))
    when = london("2026-06-03T12:00")
    announced = made.advertise("firm", when)
    for _ in range(300):
        with pytest.raises(VerificationError):
            made.advertise("eve", when)
        assert made.advertise("firm", when) == announced
    bound = compile_filter("symbol = 'A' and price < 100", TYPES)
    topics = [{"symbol": "A", "price": 1}, {"symbol": "A", "price": 1, "source": "new topic"}]
    strict = [allows(bound, kind=BoundKind.STRICT_LOWER, side=Side.PUBLISH, subject=event) for event in topics]
    assert strict == [True, False]


def test_nobody_publishes_as_the_exchange():
    """The firm has no right of the exchange's, and what it may publish names it as its source."""
    bound = right(Action.PUBLISH, constraints=[Constraint("3", "=", "firm")])
    made = broker(grant(PEOPLE.exchange, PEOPLE.firm, bound, valid=MONTH))
    when = london("2026-06-03T12:00")
    with pytest.raises(VerificationError):
        made.advertise("eve", when)
    rows = {"symbol": ["A"], "price": [10], "source": ["exchange"]}
    enforced = enforce_publication(QUOTE, pa.RecordBatch.from_pydict(rows), made.clauses("firm", when), at=when)
    assert enforced.batch.column("3").to_pylist() == ["firm"]
    assert enforced.forced == 1
