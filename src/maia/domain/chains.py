"""All chains of a right, each walked from its root, with its conditions asked now and the broker's own right."""

from __future__ import annotations

from dataclasses import dataclass, replace

from maia.authority import Decision, Grant, Proof, Tag
from maia.domain.conditions import ConditionState, ask_conditions
from maia.domain.questions import RightQuestion
from maia.errors import NotFoundError
from maia.home import words
from maia.policy import Occasion

MAX_CHAINS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRight:
    """The broker of this home, and whether it has the right that its client has."""

    name: str
    decision: Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class RightChains:
    """What was found out about a right that is held."""

    steps: list[words.ProofStep]
    count: int
    held: str
    conditions: tuple[ConditionState, ...]
    usable: bool
    broker: BrokerRight | None

    def text(self) -> str:
        """Say what is held, and what keeps it from being used now."""
        count = len(self.steps)
        many = f", by {count} chains that add up" if count > 1 else ""
        false = [f"`{item.source}` {item.why}" for item in self.conditions if item.holds is False]
        if not self.usable:
            return f"would hold {self.held}{many}, but not now: {'; '.join(false)}"
        later = [f"`{item.source}` {item.why}" for item in self.conditions if item.holds is None]
        parts = [f"holds {self.held}{many}", *(f"where {text}" for text in later)]
        return ", ".join(parts) + (f"; of other chains {'; '.join(false)}" if false else "")

    def to_json(self) -> dict[str, object]:
        """Give it for machines."""
        states = [{"condition": item.source, "holds": item.holds, "why": item.why} for item in self.conditions]
        return {"chains": [step.to_json() for step in self.steps], "usable": self.usable, "asked": states}


def explain_chains(question: RightQuestion, grant: Grant) -> RightChains:
    """Walk every chain that gives a part of what was asked for, the one of the grant first."""
    clauses = question.clauses()
    found: dict[object, tuple[Proof, Tag, tuple[str, ...]]] = {
        clause.proof.certificate_ids(): (clause.proof, clause.tag, clause.conditions) for clause in clauses
    }
    first = grant.proof.certificate_ids()
    found = {first: found.get(first, (grant.proof, grant.tag, grant.conditions)), **found}
    chains = list(found.values())
    count, chains = len(chains), chains[:MAX_CHAINS]
    occasion = _occasion(question)
    asked = ask_conditions(question.home, (text for _, _, texts in chains for text in texts), occasion)
    false = {item.source for item in asked if item.holds is False}
    usable = [tag for _, tag, texts in chains if not false.intersection(texts)]
    tags = usable or [tag for _, tag, _ in chains]
    return RightChains(
        steps=[words.explain_proof(proof, question.request, question.home) for proof, _, _ in chains],
        held="; ".join(dict.fromkeys(words.describe_tag(tag.to_sexp(), question.home) for tag in tags)),
        conditions=asked, count=count, usable=bool(usable), broker=_broker(question),
    )  # fmt: skip


def _broker(question: RightQuestion) -> BrokerRight | None:
    """Look at the broker of a home, which needs what its client needs to publish or deliver."""
    home, views = question.home, words.views(question.request.wanted.to_sexp(), question.home)
    if (
        home.config is None
        or not views
        or not any({"publish", "subscribe"} & set(view.actions or ()) for view in views)
    ):
        return None
    try:
        key = home.key(home.config.broker)
    except NotFoundError:
        return None
    if key.key_id == question.principal.key_id:
        return None
    return BrokerRight(name=home.show(key.key_id), decision=replace(question, principal=key).decide())


def _occasion(question: RightQuestion) -> Occasion:
    views = words.views(question.request.wanted.to_sexp(), question.home) or []
    view = views[0] if views else None
    default = "connect" if view is not None and view.kind == "network" else "subscribe"
    return Occasion(
        action=(view.actions or (default,))[0] if view is not None else default, at=question.at,
        principal=question.principal.key_id.hex(),
        event_type=(view.name or "") if view is not None and view.kind == "type" else "",
    )  # fmt: skip
