"""What a console keeps in memory and draws: logins, sessions, graphs, and the audit with hostile words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.domain import Delegation, Domain, note_unproven
from maia.errors import DeniedError, ExpiredError, MaiaError, VerificationError
from maia.home import Home, HomeConfig
from maia.principals import KeySigner, PublicKey
from maia.services.console import LoginDesk
from maia.services.console.evidence_view import AuditSearch, search_audit
from maia.services.console.graph_view import MOST_NODES, draw
from maia.services.console.login import ONCE, WINDOW
from maia.services.console.sessions import IDLE, LIFETIME, MAX_OF_KEY, ConsoleSessions
from maia.wire import LoginChallenge, answer_login, parse_login

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
CONSOLE, OFFICER = KeySigner(b"c" * 32), KeySigner(b"o" * 32)
HOST = "127.0.0.1:8475"


def log_in(
    desk: LoginDesk, *, at: datetime = NOON, later: timedelta = timedelta(0), key: KeySigner = OFFICER
) -> object:
    """Answer a challenge, perhaps later."""
    asked = LoginChallenge(host=HOST, changes=False, challenge=desk.challenge(at=at))
    answer = answer_login(asked, key, console=CONSOLE.public_key.key_id)
    return desk.check(parse_login(answer), asked, oversees=oversees, at=at + later)


def oversees(key: PublicKey) -> None:
    """Know the officer alone."""
    if key != OFFICER.public_key:
        raise DeniedError("nothing", code="NO_OVERSIGHT")


def new_desk() -> LoginDesk:
    """Make the desk of a console."""
    return LoginDesk(CONSOLE.public_key.key_id, frozenset((HOST,)))


def test_a_challenge_and_an_address_grow_old() -> None:
    """And an address is used up."""
    desk = new_desk()
    for later in (WINDOW + timedelta(seconds=1), -timedelta(seconds=1)):
        with pytest.raises(ExpiredError, match="too old"):
            log_in(desk, later=later)
    login = log_in(desk, later=WINDOW - timedelta(seconds=1))
    token = desk.keep(login, at=NOON)  # type: ignore[arg-type]
    assert desk.find(token, at=NOON) == desk.find(token, at=NOON) == login
    assert desk.find(token, at=NOON + ONCE) is None
    assert desk.take(token, at=NOON) == login
    with pytest.raises(VerificationError, match="used"):
        desk.take(token, at=NOON)


def test_a_challenge_of_another_process_is_unknown() -> None:
    """Restarting a console forgets challenges, so that none can be answered twice."""
    asked = LoginChallenge(host=HOST, changes=False, challenge=new_desk().challenge(at=NOON))
    proof = parse_login(answer_login(asked, OFFICER, console=CONSOLE.public_key.key_id))
    with pytest.raises(VerificationError) as refused:
        new_desk().check(proof, asked, oversees=oversees, at=NOON)
    assert refused.value.code == "UNKNOWN_CHALLENGE"


def test_keys_that_oversee_nothing_take_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many a stranger proves, an officer logs in; and only so many officers at once."""
    monkeypatch.setattr("maia.services.console.login._MOST", 3)
    desk = new_desk()
    for number in range(5):
        with pytest.raises(DeniedError):
            log_in(desk, key=KeySigner(bytes([number]) * 32))
    for _ in range(3):
        log_in(desk)
    with pytest.raises(MaiaError, match="too many logins"):
        log_in(desk)


def test_a_session_ends_when_nobody_uses_it_and_at_last_in_any_case() -> None:
    """Using it puts off the first end, not the second."""
    desk, sessions = new_desk(), ConsoleSessions()
    cookie = sessions.open(log_in(desk), before="", at=NOON)  # type: ignore[arg-type]
    assert sessions.find(cookie, at=NOON + IDLE) is None
    cookie = sessions.open(log_in(desk), before="", at=NOON)  # type: ignore[arg-type]
    moment = NOON
    while moment + IDLE / 2 < NOON + LIFETIME:
        moment += IDLE / 2
        assert sessions.find(cookie, at=moment) is not None
    assert sessions.find(cookie, at=NOON + LIFETIME) is None


def test_a_key_has_so_many_sessions_and_a_login_ends_the_one_before() -> None:
    """The oldest gives way."""
    desk, sessions = new_desk(), ConsoleSessions()
    cookies = [sessions.open(log_in(desk), before="", at=NOON) for _ in range(MAX_OF_KEY + 1)]  # type: ignore[arg-type]
    assert [sessions.find(cookie, at=NOON) is not None for cookie in cookies] == [False] + [True] * MAX_OF_KEY
    sessions.open(log_in(desk), before=cookies[-1], at=NOON)  # type: ignore[arg-type]
    assert sessions.find(cookies[-1], at=NOON) is None
    assert sessions.find(cookies[1], at=NOON) is not None


@pytest.mark.parametrize(
    "text", ["", "maia-login:", "maia-login:h:look:x", "x" * 5000, "maia-login:h:both:" + "A" * 96]
)
def test_what_is_no_challenge_is_refused(text: str) -> None:
    """As an error of Maia's."""
    with pytest.raises(MaiaError):
        LoginChallenge.parse(text)
    with pytest.raises(MaiaError):
        parse_login(text)


def edge(issuer: str, subject: str) -> Delegation:
    """Make a line of a graph."""
    return Delegation(
        certificate="00", issuer=issuer, subject=subject, what="x", naming=False, passes_on=True, until=None, code="OK"
    )


def test_a_graph_is_drawn_in_layers_and_rounds_end() -> None:
    """Everybody stands to the right of all who gave to it, but where the graph closes a round."""
    drawing = draw([edge("a", "b"), edge("b", "c"), edge("a", "c"), edge("c", "b"), edge("d", "d")])
    assert drawing is not None
    across = {point.label: point.x for point in drawing.points}
    assert across["a"] < across["b"] < across["c"]
    assert across["a"] == across["d"]
    places = {(point.x, point.y) for point in drawing.points}
    assert len(places) == 4
    assert all(0 <= x < drawing.width and 0 <= y < drawing.height for x, y in places)
    assert len(drawing.lines) == 5
    assert draw([]) is None
    assert draw([edge("a", str(number)) for number in range(MOST_NODES)]) is None


def test_the_audit_is_searched_by_kind_code_and_time(tmp_path: Path) -> None:
    """The newest first; what does not fit is left out."""
    home = Home.create(tmp_path / "home", HomeConfig(name="x"))
    for number, code in enumerate(("WRONG_KEY", "REPLAY", "WRONG_KEY")):
        moment = NOON + timedelta(minutes=number)
        note_unproven(home, "", "", source=f"<b>{number}</b>", code=code, at=moment)
    domain, later = Domain(home), NOON + timedelta(hours=1)
    rows, more = search_audit(domain, AuditSearch(code="WRONG_KEY"), at=later)
    assert ([row.row.source for row in rows], more) == (["<b>2</b>", "<b>0</b>"], False)
    rows, _ = search_audit(domain, AuditSearch(since=NOON + timedelta(minutes=1)), at=later)
    assert len(rows) == 2
    with pytest.raises(MaiaError, match="no kind"):
        search_audit(domain, AuditSearch(kind="gossip"), at=later)
