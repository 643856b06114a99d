"""Statements and certificates in the log: signed once a period, verified before they are kept, silent when in doubt."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from maia.authority import Challenge, Rhythm, parse_statement, unsafe_sign_statement
from maia.domain import push_certificates
from maia.domain.statements import StatementFollower
from maia.encoding import encode
from maia.errors import MaiaError, UnavailableError, UsageError
from maia.home import ClockFile, Home, HomeConfig
from maia.log import NoticeKind, NoticeLog, StatementSubscription, publish_statement
from maia.principals import Certificate, CertificateId, Kind, OnlineTest, Signer, TestKind
from maia.testing import People, StatementPublisher, answer, at, follow, grant, listing, online

CRL, REVALIDATION = TestKind.CRL, TestKind.REVALIDATION
P = People("pito", "met", "smith", "jones", "evil", "lister")
BEATS = Rhythm(period=timedelta(seconds=5), lead=timedelta(seconds=2))
MINUTES = Rhythm(period=timedelta(seconds=60))


@pytest.fixture
def notices(tmp_path: Path) -> NoticeLog:
    """Give an empty side stream."""
    return NoticeLog(tmp_path / "log", own=tmp_path / "own")


def say(notices: NoticeLog, raw: bytes, kind: NoticeKind = NoticeKind.STATEMENT, signer: Signer = P.met) -> None:
    """Say something in the lane of a key, for the police."""
    notices.say(kind, signer, P.met.public_key.key_id, raw, at=at(0))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Give the home of a police broker, which knows its domain and PITO, over the same log."""
    made = Home.create(tmp_path / "met", HomeConfig(name="met", domain="met", log="../log"))
    made.add_public_key("met", P.met.public_key)
    made.add_public_key("pito", P.pito.public_key)
    return made


def right(kind: TestKind = CRL, who: str = "smith", signer: Signer = P.met, **rest: object) -> Certificate:
    """Issue somebody's right, which demands a statement."""
    return grant(P.met, P[who], "(read)", tests=[online(kind, signer)], **rest)


def publisher(notices: NoticeLog, rhythm: Rhythm = MINUTES, kind: TestKind = CRL, signer: Signer = P.met):
    """Publish as the police."""
    return StatementPublisher(notices=notices, signer=signer, rhythm=rhythm, kind=kind)


def outcome(home: Home, certificate: Certificate, when: int) -> str:
    """Follow the log at an instant and ask about the certificate's one test."""
    moment = follow(home, at=at(when))
    [test] = certificate.body.tests
    try:
        home.statements.load().check(test, certificate.certificate_id, at=moment)
    except MaiaError as error:
        return error.code
    return "good"


class CountingSigner:
    """Counts signatures."""

    def __init__(self, signer: Signer) -> None:
        self.signer, self.made = signer, 0
        self.public_key = signer.public_key

    def sign(self, kind: object, message: bytes) -> bytes:
        """Sign, and count lists; the lane around them is signed as well."""
        self.made += kind is Kind.STATEMENT
        return self.signer.sign(kind, message)


def test_one_signature_a_period_and_expired_certificates_leave_the_list(notices: NoticeLog) -> None:
    """1,000 certificates, 3 withdrawn: one signature a period, a list of 3; after one of them expired, of 2."""
    counting = CountingSigner(P.met)
    issuer = publisher(notices, signer=counting)
    issued = {CertificateId(bytes([n // 256, n % 256]) * 16): at(100 if n == 1 else 10**6) for n in range(1000)}
    withdrawn = {identity: issued[identity] for identity in list(issued)[1:4]}
    lengths = []
    for second in range(180):
        made = issuer.publish(withdrawn, at=at(second))
        if made is not None:
            lengths.append((second, len(made.body.certificates)))
    assert lengths == [(0, 3), (60, 3), (120, 2)]
    assert counting.made == 3
    assert issuer.listed() == frozenset(list(withdrawn)[1:])


def test_subscribing_answers_with_the_state_and_then_with_updates(notices: NoticeLog) -> None:
    """A new broker gets the current list without any new publication; then only what comes."""
    issuer, smith = publisher(notices), right()
    first = issuer.publish({}, at=at(0))
    issuer.publish({}, at=at(60))
    lane = notices.reader(NoticeKind.STATEMENT, P.met.public_key.key_id, P.met.public_key.key_id)
    before = lane.head()
    subscription = StatementSubscription(notices, P.met.public_key.key_id)
    [state] = subscription.state(at=at(70))
    assert (state.body.starts, state.body.ends) == (at(60), at(120))
    assert lane.head() == before
    assert first.raw != state.raw
    assert subscription.updates() == ()
    said = issuer.withdraw({smith.certificate_id: None}, at=at(80))
    assert [item.raw for item in subscription.updates()] == [said.raw]
    late = StatementSubscription(notices, P.met.public_key.key_id)
    assert [item.raw for item in late.state(at=at(90))] == [state.raw, said.raw]
    assert StatementSubscription(notices, P.jones.public_key.key_id).state(at=at(90)) == ()


@pytest.mark.threat("T27")
def test_a_missed_heartbeat_ends_access(notices: NoticeLog, home: Home) -> None:
    """A beat every 5 s, the link cut at 12: access ends at 17, one period and the lead after the beat at 10."""
    smith, issuer = right(), publisher(notices, BEATS)
    home.certificates.add(smith)
    seen = {}
    for second in range(25):
        if second < 12:
            issuer.publish({}, at=at(second))
        seen[second] = outcome(home, smith, second)
    assert [second for second, found in seen.items() if found == "good"] == list(range(17))
    assert {seen[second] for second in range(17, 25)} == {"NO_STATEMENT"}


def test_what_was_withdrawn_stays_so_in_lists_that_are_not_told_of_it(notices: NoticeLog, home: Home) -> None:
    """A program that names a revocation once, when it happens, has it in every later list."""
    smith, issuer = right(), publisher(notices, BEATS)
    home.certificates.add(smith)
    issuer.publish({}, at=at(0))
    issuer.withdraw({smith.certificate_id: None}, at=at(3))
    seen = set()
    for second in range(4, 25):
        issuer.publish({}, at=at(second))
        seen.add(outcome(home, smith, second))
    assert seen == {"REVOKED"}
    assert issuer.listed() == {smith.certificate_id}


def test_a_registered_verifier_is_told_of_a_change_at_once(notices: NoticeLog, home: Home) -> None:
    """It gets the current state first; a withdrawal counts before the list in force is over, and after it."""
    smith, jones, issuer = right(), right(who="jones"), publisher(notices, BEATS)
    issuer.publish({}, at=at(0))
    for certificate in (smith, jones):
        home.certificates.add(certificate)
    assert outcome(home, smith, 1) == "good"
    issuer.withdraw({smith.certificate_id: None}, at=at(2))
    assert outcome(home, smith, 2) == "REVOKED"
    assert outcome(home, jones, 2) == "good"
    for second in range(5, 40):
        issuer.publish({smith.certificate_id: None}, at=at(second))
        assert outcome(home, smith, second) == "REVOKED"
        assert outcome(home, jones, second) == "good"


def test_a_revalidation_confirms_over_the_log_and_cannot_be_taken_back_early(notices: NoticeLog, home: Home) -> None:
    """The positive list follows the same rhythm; what is left out of the next one is over with this one."""
    smith, issuer = right(REVALIDATION), publisher(notices, MINUTES, REVALIDATION)
    home.certificates.add(smith)
    assert outcome(home, smith, 0) == "NO_STATEMENT"
    issuer.publish({smith.certificate_id: None}, at=at(0))
    assert outcome(home, smith, 1) == "good"
    with pytest.raises(UsageError, match="NOT_BY_CRL"):
        issuer.withdraw({}, at=at(2))
    issuer.publish({}, at=at(60))
    assert [outcome(home, smith, second) for second in (60, 119, 120)] == ["REVOKED", "REVOKED", "NO_STATEMENT"]


def test_the_topic_is_the_publishers_memory_and_stays_short(notices: NoticeLog) -> None:
    """A publisher that starts anew goes on with sequence and interval; lists that are over are forgotten."""
    for second in range(0, 200, 5):
        made = publisher(notices, BEATS).publish({}, at=at(second))
        assert made is not None
    assert made.body.sequence == 40
    lane = notices.reader(NoticeKind.STATEMENT, P.met.public_key.key_id, P.met.public_key.key_id)
    assert len(lane.since(lane.head().floor).records) <= 3


def test_a_signer_tidies_its_long_lane_of_lists_that_ended_long_ago(notices: NoticeLog, home: Home) -> None:
    """What ended an hour ago serves nobody, and the answers stay the same; a home that was away reads on."""
    smith, hour = right(), 3600
    home.certificates.add(smith)
    for number in range(80):
        valid = (number * 5, number * 5 + 5)
        statement = listing(CRL, P.met, sequence=number + 1, valid=valid)
        publish_statement(notices, P.met, statement.raw, at=at(number * 5 + (2 * hour if number > 70 else 0)))
    last = listing(CRL, P.met, sequence=91, valid=(2 * hour, 2 * hour + 600))
    publish_statement(notices, P.met, last.raw, at=at(3 * hour))
    lane = notices.reader(NoticeKind.STATEMENT, P.met.public_key.key_id, P.met.public_key.key_id)
    kept = lane.since(lane.head().floor).records
    assert 1 <= len(kept) <= 20
    assert kept[-1].body == last.raw
    assert outcome(home, smith, 2 * hour + 1) == "good"


def test_statements_of_signers_that_no_certificate_names_are_not_kept(notices: NoticeLog, home: Home) -> None:
    """A log full of strangers' lists leaves the home's file as it was."""
    home.certificates.add(right())
    publisher(notices).publish({}, at=at(0))
    publisher(notices, signer=P.evil).publish({}, at=at(0))
    follow(home, at=at(1))
    [kept] = home.statements.load().raw_statements()
    assert parse_statement(kept).body.signer == P.met.public_key


REFUSED = {
    "no statement": lambda smith: b"junk",
    "another key's signature": lambda smith: unsafe_sign_statement(
        listing(CRL, P.met, [smith], sequence=9, valid=(0, 60)).body, P.evil
    ),
    "another signer's list": lambda smith: listing(CRL, P.evil, [smith], sequence=9, valid=(0, 60)).raw,
    "an overlapping list": lambda smith: listing(CRL, P.met, [smith], sequence=9, valid=(30, 90)).raw,
    "a list that is over": lambda smith: listing(CRL, P.met, [smith], sequence=9, valid=(-60, 0)).raw,
}


@pytest.mark.threat("T30")
@pytest.mark.threat("T31")
@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_what_does_not_verify_is_not_kept_and_stops_nothing(notices: NoticeLog, home: Home, make: object) -> None:
    """Junk in an issuer's topic costs its writer a message; the lists before and after it count."""
    smith = right()
    home.certificates.add(smith)
    say(notices, listing(CRL, P.met, sequence=1, valid=(0, 60)).raw)
    say(notices, make(smith))
    assert outcome(home, smith, 1) == "good"
    say(notices, listing(CRL, P.met, sequence=10, valid=(60, 120)).raw)
    assert [outcome(home, smith, second) for second in (59, 60, 119)] == ["good"] * 3
    assert len(home.statements.load().raw_statements()) == 2


def test_one_time_answers_do_not_travel_in_the_log(notices: NoticeLog, home: Home) -> None:
    """They fit one verifier's question; a log is no place for them."""
    smith = right()
    home.certificates.add(smith)
    given = answer(Challenge(nonce=b"n" * 16, verifier="met", until=at(60)), P.met, [smith])
    say(notices, given.raw)
    assert outcome(home, smith, 1) == "NO_STATEMENT"


def test_a_damaged_topic_is_silence_for_its_signer_alone(notices: NoticeLog, home: Home, tmp_path: Path) -> None:
    """What relies on the damaged lane is denied; another signer's lists arrive. The signer makes it whole."""
    smith, jones = right(), right(who="jones", signer=P.lister)
    for certificate in (smith, jones):
        home.certificates.add(certificate)
    publisher(notices).publish({}, at=at(0))
    publisher(notices, signer=P.lister).publish({}, at=at(0))
    for path in (tmp_path / "log").rglob("*.record"):
        if P.met.public_key.key_id in path.read_bytes():
            path.write_bytes(b"x" + path.read_bytes()[1:])
    assert outcome(home, smith, 1) == "NO_STATEMENT"
    assert outcome(home, jones, 1) == "good"
    notices.writer(NoticeKind.STATEMENT, P.met, P.met.public_key.key_id).reassert(at=at(2))
    assert outcome(home, smith, 2) == "good"


def test_two_processes_that_follow_at_once_lose_nothing(
    notices: NoticeLog, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process saved a newer list between our load and our save: we load again."""
    smith = right()
    home.certificates.add(smith)
    publisher(notices).publish({}, at=at(0))
    real, raced = type(home.statements).save, []

    def save(file: object, book: object, **rest: object) -> None:
        if not raced:
            raced.append(True)
            other = file.load()
            other.accept(listing(CRL, P.lister, sequence=5, valid=(0, 60)))
            real(file, other)
        real(file, book, **rest)

    monkeypatch.setattr(type(home.statements), "save", save)
    assert outcome(home, smith, 1) == "good"
    assert len(home.statements.load().raw_statements()) == 2


def test_a_new_right_of_the_domain_reaches_every_broker_with_one_message(notices: NoticeLog, tmp_path: Path) -> None:
    """One broadcast; both brokers of the police hold the right and its chain, and neither asked for it."""
    homes = []
    for name in ("one", "two", "kent"):
        made = Home.create(tmp_path / name, HomeConfig(name=name, domain="domain", log="../log"))
        made.add_public_key("domain", (P.jones if name == "kent" else P.met).public_key)
        made.add_public_key("pito", P.pito.public_key)
        homes.append(made)
    link = grant(P.pito, P.lister, "(read)", delegate=True)
    new = grant(P.lister, P.met, "(read)", delegate=True)
    push_certificates(notices, P.met, P.met.public_key.key_id, [link, new], at=at(0))
    for home in homes:
        follow(home, at=at(1))
    held = [{item.certificate_id for item in home.pool()} for home in homes]
    assert held == [{link.certificate_id, new.certificate_id}] * 2 + [set()]


UNKEPT = {
    "a stranger's certificate": lambda: [grant(P.evil, P.met, "(read)")],
    "a chain that begins with a stranger": lambda: [grant(P.evil, P.pito, "(read)"), grant(P.pito, P.met, "(read)")],
    "an expired certificate": lambda: [grant(P.pito, P.met, "(read)", valid=(None, 5))],
}


@pytest.mark.parametrize("make", UNKEPT.values(), ids=UNKEPT)
def test_certificates_that_can_prove_nothing_here_are_not_kept(notices: NoticeLog, home: Home, make: object) -> None:
    """A home is not filled by others; what comes after is taken."""
    push_certificates(notices, P.met, P.met.public_key.key_id, make(), at=at(0))
    good = grant(P.pito, P.met, "(write)")
    say(notices, good.raw, NoticeKind.CERTIFICATE)
    follow(home, at=at(10))
    assert [item.certificate_id for item in home.pool()] == [good.certificate_id]


def test_forged_and_malformed_messages_are_not_kept(notices: NoticeLog, home: Home) -> None:
    """One bad signature refuses its whole message."""
    good, forged = grant(P.pito, P.met, "(read)"), bytearray(grant(P.pito, P.met, "(write)").raw)
    forged[-5] ^= 1
    for body in (encode((b"certificates", good.raw, bytes(forged))), encode((b"certificates",)), b"x", b"(1:ae"):
        say(notices, body, NoticeKind.CERTIFICATE)
    follow(home, at=at(1))
    assert len(home.pool()) == 0


def test_a_home_that_does_not_know_its_domain_follows_no_certificates(notices: NoticeLog, tmp_path: Path) -> None:
    """Nothing to follow is nothing to do."""
    made = Home.create(tmp_path / "plain", HomeConfig(name="plain", log="../log"))
    push_certificates(notices, P.met, P.met.public_key.key_id, [grant(P.pito, P.met, "(read)")], at=at(0))
    follow(made, at=at(1))
    assert len(made.pool()) == 0


@pytest.mark.threat("T29")
def test_a_list_for_the_far_future_is_looked_at_again_when_its_time_comes(notices: NoticeLog, home: Home) -> None:
    """It is not kept now, and does not stand in the way."""
    smith, month = right(), 30 * 86_400
    home.certificates.add(smith)
    say(notices, listing(CRL, P.met, sequence=9, valid=(month, month + 60)).raw)
    say(notices, listing(CRL, P.met, sequence=1, valid=(0, 60)).raw)
    assert outcome(home, smith, 1) == "good"
    assert len(home.statements.load().raw_statements()) == 1
    assert outcome(home, smith, month) == "good"


CLOCKS = {
    "forward": ([0, 5, 3600], [0, 5, 3600]),
    "a little back stands still": ([100, 71, 90, 101], [100, 100, 100, 101]),
    "at the edge of the window": ([100, 70], [100, 100]),
    "beyond the window": ([100, 69, 100], [100, None, 100]),
    "an hour back": ([7200, 3600, 7199, 7201], [7200, None, 7200, 7201]),
}


@pytest.mark.threat("T61")
@pytest.mark.parametrize("instants, planned", CLOCKS.values(), ids=CLOCKS)
def test_a_clock_that_goes_back_plans_nothing_again(
    tmp_path: Path, instants: list[int], planned: list[int | None]
) -> None:
    """Within 30 s time stands still; beyond, nothing is planned; a restart does not forget."""
    found: list[datetime | None] = []
    for instant in instants:
        try:
            found.append(ClockFile(tmp_path / "clock").steady(at(instant)))
        except UnavailableError as error:
            assert error.code == "CLOCK_BACK"  # noqa: PT017 - the table says when
            found.append(None)
    assert found == [None if second is None else at(second) for second in planned]


def test_a_clock_file_that_is_no_instant_is_refused(tmp_path: Path) -> None:
    """Damage is not the beginning of time."""
    (tmp_path / "clock").write_bytes(b"soon")
    with pytest.raises(MaiaError, match="CLOCK_FILE"):
        ClockFile(tmp_path / "clock").steady(at(5))


@pytest.mark.threat("T61")
def test_no_list_is_revived_by_a_clock_that_goes_back(notices: NoticeLog, home: Home) -> None:
    """The list [0,60) is over at 70; at 45 again, by a clock set back, it stays over, and nothing is planned at 5."""
    smith = right()
    home.certificates.add(smith)
    publisher(notices).publish({}, at=at(0))
    assert outcome(home, smith, 45) == "good"
    assert outcome(home, smith, 70) == "NO_STATEMENT"
    assert outcome(home, smith, 45) == "NO_STATEMENT"
    with pytest.raises(UnavailableError, match="CLOCK_BACK"):
        follow(home, at=at(5))


@pytest.mark.threat("T28")
def test_an_old_message_put_back_into_the_log_is_refused_after_a_restart(notices: NoticeLog, home: Home) -> None:
    """Whoever writes to the log replays an empty list after a withdrawal: the withdrawal stands, restarts included."""
    smith, issuer = right(), publisher(notices)
    home.certificates.add(smith)
    issuer.publish({}, at=at(0))
    old = issuer.withdraw({}, at=at(1))
    issuer.withdraw({smith.certificate_id: None}, at=at(2))
    assert outcome(home, smith, 3) == "REVOKED"
    say(notices, old.raw)
    for _ in range(2):
        assert outcome(Home.open(home.path), smith, 4) == "REVOKED"
    test = OnlineTest(CRL, P.met.public_key)
    with pytest.raises(MaiaError, match="REVOKED"):
        home.verifier().statements.check(test, smith.certificate_id, at=at(5))


@pytest.mark.threat("T28")
def test_an_old_statement_file_put_back_under_a_running_process_revives_nothing(notices: NoticeLog, home: Home) -> None:
    """A31: the places that were read belong to the file that was written; another one is brought up to date anew."""
    smith, issuer = right(), publisher(notices)
    home.certificates.add(smith)
    follower = StatementFollower(home, notices)
    issuer.publish({}, at=at(0))
    follower.follow(home.pool(), at=at(1))
    old = home.statements.path.read_bytes()
    issuer.withdraw({smith.certificate_id: None}, at=at(2))
    [test] = smith.body.tests
    for second in (3, 4):
        follower.follow(home.pool(), at=at(second))
        with pytest.raises(MaiaError, match="REVOKED"):
            home.statements.load().check(test, smith.certificate_id, at=at(second))
        home.statements.path.write_bytes(old)
    home.statements.path.unlink()
    follower.follow(home.pool(), at=at(5))
    with pytest.raises(MaiaError, match="REVOKED"):
        home.statements.load().check(test, smith.certificate_id, at=at(5))
