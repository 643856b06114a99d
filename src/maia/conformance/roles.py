"""The conformance verb of roles: a policy and steps as JSON, answered by the engine of `maia.policy`."""

from __future__ import annotations

from collections.abc import Callable

from maia.conformance.fields import Json, field, objects, wrong
from maia.errors import DeniedError, VerificationError
from maia.policy import PolicyEngine, parse_policy

_MAX_STEPS = 10_000


def oasis_run(request: Json) -> list[dict[str, list[list[str]]]]:
    """Run steps under rules and give the state after each; an activation that fails leaves the state as it was."""
    rules = request.get("rules")
    if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
        raise wrong("rules", "a list of rules")
    steps = objects(request, "steps")
    if len(steps) > _MAX_STEPS:
        raise wrong("steps", f"a list of at most {_MAX_STEPS} steps")
    engine = PolicyEngine(parse_policy("\n".join(rules)))
    states = []
    for step in steps:
        _take(engine, step)
        states.append(_state(engine))
    return states


def _take(engine: PolicyEngine, step: Json) -> None:
    verbs = [verb for verb in ("appoint", "assert", "retract", "activate") if verb in step]
    if len(verbs) != 1 or set(step) - {verbs[0], "as"} or ("as" in step) != (verbs[0] == "activate"):
        raise wrong(
            "steps", "a list of objects, each with one of `appoint`, `assert`, `retract`, or `activate` and `as`"
        )
    text = field(step, verbs[0], str)
    if verbs[0] == "appoint":
        engine.appoint(text)
    elif verbs[0] == "assert":
        engine.observe(text)
    elif verbs[0] == "retract":
        engine.retract(text)
    else:
        principal = field(step, "as", str)
        try:
            engine.activate(text, principal=principal)
        except (DeniedError, VerificationError):
            return  # refused, and nothing changed


def _state(engine: PolicyEngine) -> dict[str, list[list[str]]]:
    return {
        "roles": [[role.holder, str(role.atom)] for role in engine.roles()],
        "privileges": [[holder, str(privilege)] for holder, privilege in engine.privileges()],
    }


VERBS: dict[str, Callable[[Json], object]] = {"oasis.run": oasis_run}
