"""A proof walked from its root: who holds what after each link, and what the link took away."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from maia.authority import (
    EVERYTHING,
    FiveTuple,
    Held,
    Proof,
    ProofTree,
    Request,
    Tag,
    intersect,
    is_nothing,
    narrow,
    parse_tag,
)
from maia.errors import UsageError
from maia.home.folder import Folder
from maia.home.words.principals import show_node
from maia.home.words.rights import RightView, describe_tag, views
from maia.principals import Period


@dataclass(slots=True, kw_only=True)
class ProofStep:
    """One holder of the right in a proof, and what reaches it."""

    who: str
    certificate: str | None = None
    names: list[str] = field(default_factory=list)
    grants: str = ""
    keeps: str = ""
    shown: str = ""
    removes: list[str] = field(default_factory=list)
    delegate: bool = True
    period: Period | None = None
    conditions: tuple[str, ...] = ()
    then: list[ProofStep] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        """Give the step, and those below it, for machines."""
        data: dict[str, object] = {"holder": self.who}
        if self.certificate is not None:
            data |= {
                "certificate": self.certificate, "grants": self.grants, "keeps": self.keeps, "removes": self.removes,
                "delegate": self.delegate, "conditions": list(self.conditions),
                "valid": None if self.period is None else {
                    "not_before": _instant(self.period.not_before), "not_after": _instant(self.period.not_after),
                },
            }  # fmt: skip
        if self.names:
            data["names"] = self.names
        return data | {"then": [step.to_json() for step in self.then]}


def explain_proof(proof: Proof, request: Request, home: Folder) -> ProofStep:
    """Walk a proof from its root, noting what each link keeps and removes."""
    start = intersect(_widest(request), proof.root.tag)
    text = describe_tag(start.to_sexp(), home)
    root = ProofStep(who=f"{show_node(proof.root.node, home)}, the root", keeps=text, shown=text)
    whole = views(start.to_sexp(), home)
    root.then = _Walk(home, whole[0] if whole is not None and len(whole) == 1 else None).follow(proof.tree, start, ())
    return root


def _widest(request: Request) -> Tag:
    """Give everything on the object of a request: the request without its action and what follows."""
    match request.wanted.to_sexp():
        case (b"maia-type", owner, name, version, *_):
            return parse_tag((b"maia-type", owner, name, version))
        case (b"maia-network", owner, name, *_):
            return parse_tag((b"maia-network", owner, name))
        case _:
            return EVERYTHING


@dataclass(frozen=True, slots=True)
class _Walk:
    """One walk down a proof; ``known`` is the object that the head of the tree names, so that links need not."""

    home: Folder
    known: RightView | None

    def follow(self, tree: ProofTree, before: Tag, known: tuple[str, ...]) -> list[ProofStep]:
        held = [tree] if isinstance(tree, Held) else list(tree.branches)
        return [self._step(item.link, item.then, before, known) for item in held if item.link is not None and item.then]

    def _step(self, link: FiveTuple, below: ProofTree, before: Tag, known: tuple[str, ...]) -> ProofStep:
        home, after = self.home, narrow(before, link.tag, conditions=link.conditions, known=known).tag
        names = [
            f"{show_node(naming.issuer, home)}: {naming.name} means {show_node(naming.subject, home)}"
            for item in ([below] if isinstance(below, Held) else below.branches)
            for naming in item.namings
        ]
        return ProofStep(
            who=show_node(link.subject, home),
            certificate=link.source.hex(),
            names=names,
            grants=describe_tag(link.tag.to_sexp(), home),
            keeps=describe_tag(after.to_sexp(), home),
            shown=self._brief(after),
            removes=removed(before, after, home),
            delegate=link.delegate,
            period=link.period,
            conditions=link.conditions,
            then=self.follow(below, after, known + link.conditions),
        )

    def _brief(self, tag: Tag) -> str:
        found = views(tag.to_sexp(), self.home)
        if self.known is None or not found:
            return describe_tag(tag.to_sexp(), self.home)
        return "; ".join(view.brief(known=self.known) for view in found)


def removed(before: Tag, after: Tag, home: Folder) -> list[str]:
    """Say what a link takes away.

    Raises:
        UsageError: ``after`` is no part of ``before``; links never widen.
    """
    if is_nothing(after):
        return ["everything"]
    if before == after:
        return []
    if intersect(before, after) != after:
        raise UsageError("a link never widens a right")
    old, new = views(before.to_sexp(), home), views(after.to_sexp(), home)
    if old is None or new is None or len(old) != 1:
        return [f"all but {describe_tag(after.to_sexp(), home)}"]
    found = _differences(old[0], new)
    return found or [f"all but {describe_tag(after.to_sexp(), home)}"]


def _differences(old: RightView, new: list[RightView]) -> list[str]:
    found: list[str] = []
    kept = _union([view.actions for view in new])
    if kept is not None and (old.actions is None or set(old.actions) - set(kept)):
        gone = [word for word in old.actions or _ALL_ACTIONS[old.kind] if word not in kept]
        partly = "manage" in gone and any(word.startswith("manage/") for word in kept)
        words = ["the rest of manage" if partly and word == "manage" else word for word in gone]
        found.append(f"actions {', '.join(words)}")
    versions = {view.version for view in new}
    if old.version is None and None not in versions:
        found.append("other versions")
    names = {view.name for view in new}
    if old.name is None and None not in names:
        found.append("other names")
    on_cells = [view for view in new if view.actions is None or {"publish", "subscribe"} & set(view.actions)]
    attributes = _union([view.attributes for view in on_cells])
    if on_cells and attributes is not None:
        if old.attributes is None:
            found.append("all other attributes")
        elif gone_uids := [old.names.get(uid, uid) for uid in old.attributes if uid not in attributes]:
            found.append(f"attributes {', '.join(gone_uids)}")
    for uid, demand in {pair for view in new for pair in view.rows} - set(old.rows):
        found.append(f"rows without {old.names.get(uid, uid)} {demand}")
    return found


def _union(parts: list[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return tuple(dict.fromkeys(word for part in known for word in part))


_ALL_ACTIONS = {"network": ("connect", "install"), "type": ("publish", "subscribe", "manage", "extend")}


def _instant(instant: datetime | None) -> str | None:
    return None if instant is None else instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
