"""All chains of a right, each walked from its root, with its conditions asked now and what the broker lacks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from maia.authority import Action, Decision, Grant, Proof, Tag, ask_type
from maia.domain.conditions import ConditionState, ask_conditions
from maia.domain.questions import RightQuestion
from maia.errors import NotFoundError
from maia.home import words
from maia.policy import Occasion
from maia.principals import Principal, principal_id

MAX_CHAINS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerNeeds:
    """What the broker of this home lacks, for its client to use the right.

    Attributes:
        name: The broker.
        publish: Whether it may publish the type itself, which its parcels have to prove; nothing when that is not
            asked for.
        deliver: Whether it may open the type itself, by a right to subscribe or to publish: it shows no cell that it
            may not open. Nothing when that is not asked for.
        keyless: Attributes whose key somebody else manages and this home does not hold: null in whatever it delivers.
    """

    name: str
    publish: Decision | None
    deliver: Decision | None = None
    keyless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RightChains:
    """What was found out about a right that is held."""

    steps: list[words.ProofStep]
    count: int
    held: str
    conditions: tuple[ConditionState, ...]
    usable: bool
    broker: BrokerNeeds | None

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


def _broker(question: RightQuestion) -> BrokerNeeds | None:
    """Look at the broker of a home, for what a plan asks of it: rights of its own, and keys to deliver."""
    home, views = question.home, words.views(question.request.wanted.to_sexp(), question.home)
    owner = question.request.owner
    if home.config is None or owner is None or not views or views[0].kind != "type" or views[0].name is None:
        return None
    try:
        key = home.key(home.config.broker)
    except NotFoundError:
        return None
    if key.key_id == question.principal.key_id:
        return None
    actions = {action for view in views for action in view.actions or ()}
    name, version = views[0].name, views[0].version

    def own(action: Action) -> Decision:
        request = ask_type(action, owner, name, version, question.request.versions)
        return replace(question, principal=key, request=request).decide()

    publish = own(Action.PUBLISH) if "publish" in actions else None
    deliver = own(Action.SUBSCRIBE) if "subscribe" in actions else None
    if deliver is not None and not deliver and (sealing := own(Action.PUBLISH)):
        deliver = sealing  # whoever seals a column can open it
    keyless = _keyless(question, views[0], owner) if "subscribe" in actions else ()
    return BrokerNeeds(name=home.show(key.key_id), publish=publish, deliver=deliver, keyless=keyless)


def _keyless(question: RightQuestion, view: words.RightView, owner: Principal) -> tuple[str, ...]:
    """Name the attributes whose keys come from a key manager that this home has not got them from."""
    from maia.encryption import groups_of  # noqa: PLC0415 - brings Arrow, which deciding does without
    from maia.home import Home  # noqa: PLC0415 - as above

    folder = question.home
    if folder.config is None or folder.config.key_manager is None:
        return ()  # keys are made here, with the first publication
    found: dict[str, None] = {}
    ring = Home.of(folder).keyring()
    for version in folder.versions(principal_id(owner), view.name or ""):
        if view.version not in (None, version.name.version.text):
            continue
        for item in version.attributes:
            groups = groups_of(version.type_id, [item.uid.encode()], version.options.encryption)
            asked = view.attributes is None or item.uid in view.attributes
            if asked and not all(ring.epochs(group) for group in groups):
                found[item.name] = None
    return tuple(found)


def _occasion(question: RightQuestion) -> Occasion:
    views = words.views(question.request.wanted.to_sexp(), question.home) or []
    view = views[0] if views else None
    default = "connect" if view is not None and view.kind == "network" else "subscribe"
    return Occasion(
        action=(view.actions or (default,))[0] if view is not None else default, at=question.at,
        principal=question.principal.key_id.hex(),
        event_type=(view.name or "") if view is not None and view.kind == "type" else "",
    )  # fmt: skip
