"""A principal's view of the engine: what it activates, holds and gives up."""

from __future__ import annotations

from dataclasses import dataclass

from maia.policy.engine import PolicyEngine, Withdrawal
from maia.policy.facts import Fact
from maia.policy.proofs import Decision, Proof
from maia.policy.rules import Privilege
from maia.policy.terms import Atom


@dataclass(frozen=True, slots=True)
class Session:
    r"""One principal at one engine. Whoever makes a session has authenticated the principal.

    >>> from maia.policy import parse_policy
    >>> engine = PolicyEngine(parse_policy("doctor(self) <- employed(self)*\ndoctor(d) |- read('notes')"))
    >>> ali = Session(engine, "ali")
    >>> engine.appoint("employed(ali)"), ali.roles()
    (True, ())
    >>> ali.activate("doctor(ali)").rule
    'doctor(self) <- employed(self)*'
    >>> [str(privilege) for privilege in ali.privileges()]
    ['read(notes)']
    >>> len(ali.close()), ali.roles()
    (1, ())
    """

    engine: PolicyEngine
    principal: str

    def activate(self, role: Atom | str) -> Proof:
        """Activate a role, or raise; see `PolicyEngine.activate`."""
        return self.engine.activate(role, principal=self.principal)

    def deactivate(self, role: Atom | str) -> Withdrawal:
        """Give up a role; see `PolicyEngine.deactivate`."""
        return self.engine.deactivate(role, principal=self.principal)

    def decide(self, privilege: Privilege | str) -> Decision:
        """Say whether the principal has a privilege now; see `PolicyEngine.decide`."""
        return self.engine.decide(privilege, principal=self.principal)

    def roles(self) -> tuple[Atom, ...]:
        """The roles that the principal has active."""
        return tuple(role.atom for role in self.engine.roles(self.principal))

    def privileges(self) -> tuple[Privilege, ...]:
        """The privileges that the principal has now."""
        return tuple(privilege for _, privilege in self.engine.privileges(self.principal))

    def close(self) -> tuple[Fact, ...]:
        """Give up every role; what stood on them falls too, also roles of others."""
        return self.engine.close(self.principal)
