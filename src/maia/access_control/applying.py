"""Changing the policy: checked, compared with what is in force, and applied in one transaction."""

from __future__ import annotations

from datetime import datetime

from maia import database
from maia.access_control.role_book import RoleBook
from maia.access_control.values import Difference, PolicyChange
from maia.access_control.withdrawing import Withdrawing
from maia.policy import (
    Policy,
    PolicySyntaxError,
    Severity,
    check,
    check_privileges,
    parse_policy,
)

_Records = database.AccessControlRecords


class Applying(Withdrawing):
    """Puts policies in force."""

    def _checked(self, text: str, *, at: datetime) -> Policy:
        """Read a policy and refuse one with errors, at the first of them."""
        policy = parse_policy(text)
        catalogue = self._home.types(at=at)
        for finding in (*check(policy), *check_privileges(policy, catalogue, text=text)):
            if finding.severity is Severity.ERROR:
                message = f"line {finding.line}, column {finding.column}: {finding.message}"
                raise PolicySyntaxError(message, code=finding.code, line=finding.line, column=finding.column)
        return policy

    def _apply(self, records: _Records, text: str, policy: Policy, *, number: int, at: datetime) -> PolicyChange:
        self._changes()
        before = self._held()
        if number:
            records.touch(policy=number)
        anonymous = set(self._roles.anonymous)
        self._book, fallen = RoleBook.load(records, text, self._environment, at=at, policy=policy)
        self._roles.anonymous |= anonymous & set(fallen)  # what falls anonymously is noted anonymously
        self._policy_text = text
        after = self._held()
        everybody = sorted(self._members)
        changed = {name for name in everybody if before.get(name, set()) != after.get(name, set())}
        hidden = ((role, role in anonymous or self.settings.hides(role)) for role in fallen)
        self._note_roles(records, "fall", hidden, at=at)
        self._roles.forget(fallen)
        ending = self._unsupported(records, changed | {role.holder for role in fallen}, at=at)
        ended = self._end(records, ending, fallen, (), at=at).certificates if ending else ()
        findings = (*check(policy), *check_privileges(policy, self._home.types(at=at), text=text))
        names = sorted(changed | {role.holder for role in fallen} | {item.holder for item in ended if item.holder})
        return PolicyChange(
            number=number,
            findings=findings,
            differences=tuple(
                Difference(
                    principal=name,
                    lost_roles=tuple(sorted(str(role.atom) for role in fallen if role.holder == name)),
                    gained_privileges=tuple(sorted(after.get(name, set()) - before.get(name, set()))),
                    lost_privileges=tuple(sorted(before.get(name, set()) - after.get(name, set()))),
                    ended=tuple(item for item in ended if item.holder == name),
                )
                for name in names
            ),
        )

    def _held(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for holder, privilege in self._roles.engine.privileges():
            found.setdefault(holder, set()).add(str(privilege))
        return found

    def policy(self, *, at: datetime) -> str:
        """Give the text of the policy in force."""
        with self._reading(at):
            return self._policy_text

    def preview(self, text: str, *, at: datetime) -> PolicyChange:
        """Say what a policy would change for whom, and change nothing.

        Raises:
            PolicySyntaxError: The text is no policy, or one that could not be applied; with line and column.
        """
        policy = self._checked(text, at=at)
        return self._try(lambda records: self._apply(records, text, policy, number=0, at=at), at=at)

    def apply(self, text: str, *, at: datetime) -> PolicyChange:
        """Put a policy in force: roles that it does not carry fall, and what stood on them ends.

        Raises:
            PolicySyntaxError: The text is no policy, or one that could not be applied; with line and column.
        """
        policy = self._checked(text, at=at)

        def work(records: _Records) -> PolicyChange:
            number = records.add_policy(text, at=at)
            records.note("policy", f"number {number}", who=None, at=at)
            return self._apply(records, text, policy, number=number, at=at)

        change = self._write(work, at=at)
        self.tell(at=at)
        return change
