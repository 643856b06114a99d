"""Logging in and out: in the browser by a key that stays there, or with `maia login`."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from maia.errors import DeniedError, VerificationError
from maia.services.console.desk import Desk, read_form
from maia.services.console.login import Login
from maia.services.http import Body, octets_field
from maia.wire import LOGIN_LENGTH, LoginChallenge, decode_octets, encode_key, encode_octets, parse_login


class LoginView(Body):
    """A challenge, and whom the answer is for."""

    challenge: str = octets_field(LOGIN_LENGTH)
    console: str = octets_field(32)


class AnswerBody(Body):
    """The answer to a challenge, for an address that logs in once."""

    challenge: str
    answer: str


class OnceView(Body):
    """Where to go with a browser."""

    path: str


def login_routes(desk: Desk) -> APIRouter:
    """Make the routes by which one logs in and out."""
    router = APIRouter()

    @router.get("/login")
    async def show_login(request: Request) -> Response:
        """Show how to log in."""
        if await desk.overseer(request) is not None:
            return RedirectResponse("/rights", 303)
        challenge = encode_octets(desk.login.challenge(at=desk.clock()))
        return desk.page(
            "login.html", challenge=challenge, host=request.url.netloc, console=desk.console.key_id.hex(),
            origin=f"{request.url.scheme}://{request.url.netloc}", broker=desk.console.fingerprint,
        )  # fmt: skip

    @router.post("/login")
    async def log_in(request: Request) -> Response:
        """Check the answer that a browser gives, and begin a session."""
        form = await read_form(request)
        # The host is the one that this request names, which the envelope has compared with what the console is.
        challenge = LoginChallenge(
            host=request.url.netloc, changes=form.get("wish") == "change",
            challenge=decode_octets(form.get("challenge", ""), length=LOGIN_LENGTH),
        )  # fmt: skip
        return await desk.begin(request, await _checked(desk, request, challenge, form.get("answer", "")))

    @router.get("/login/challenge")
    async def give_challenge() -> LoginView:
        """Give a challenge to `maia login`."""
        return LoginView(
            challenge=encode_octets(desk.login.challenge(at=desk.clock())), console=encode_key(desk.console)
        )

    @router.post("/login/answer")
    async def keep_answer(request: Request, body: AnswerBody) -> OnceView:
        """Check the answer that `maia login` gives, and give an address that logs in once."""
        login = await _checked(desk, request, LoginChallenge.parse(body.challenge), body.answer)
        return OnceView(path=f"/login/once?token={desk.login.keep(login, at=desk.clock())}")

    @router.get("/login/once")
    async def show_once(token: str = "") -> Response:
        """Ask whether to log in: looking at an address changes nothing."""
        login = desk.login.find(token, at=desk.clock())
        if login is None:
            return desk.problem(VerificationError("this address was used or is too old", code="REPLAY"))
        oversight = await desk.ask(lambda: desk.domain.oversight(login.proof.key))
        return desk.page(
            "once.html", token=token, name=oversight.name, changes=login.changes and oversight.changes,
            fingerprint=login.proof.key.fingerprint,
        )  # fmt: skip

    @router.post("/login/once")
    async def use_once(request: Request) -> Response:
        """Use the address up, and begin a session."""
        form = await read_form(request)
        return await desk.begin(request, desk.login.take(form.get("token", ""), at=desk.clock()))

    @router.post("/logout")
    async def log_out(request: Request) -> Response:
        """End the session."""
        await desk.own_form(request, await read_form(request))
        return desk.end(request)

    return router


async def _checked(desk: Desk, request: Request, challenge: LoginChallenge, answer: str) -> Login:
    """Check an answer; whoever speaks for a key without having it, or oversees nothing, is told to the audit."""
    proof, path = parse_login(answer), request.scope["route"].path

    def check() -> Login:
        try:
            return desk.login.check(proof, challenge, oversees=desk.domain.oversight, at=desk.clock())
        except (DeniedError, VerificationError) as error:
            desk.unproven(proof.key, path, error.code, desk.clock())
            raise

    return await desk.ask(check)
