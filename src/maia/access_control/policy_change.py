"""A change of policy: checked, compared with what is in force, and applied in one transaction."""

from __future__ import annotations

from datetime import datetime

from maia.access_control.denied import held_privileges
from maia.access_control.register import Records, Register
from maia.access_control.values import Difference, PolicyChange
from maia.access_control.withdraw import cascade
from maia.policy import Policy, PolicyFinding, PolicySyntaxError, Severity, check, check_privileges, parse_policy


def preview(register: Register, text: str, *, at: datetime) -> PolicyChange:
    """Say what a policy would change for whom, and change nothing.

    Raises:
        PolicySyntaxError: The text is no policy, or one that could not be applied; with line and column.
    """
    policy, findings = _checked(register, text, at=at)
    return register.preview(lambda records: _change(register, records, text, policy, findings, number=0, at=at), at=at)


def apply(register: Register, text: str, *, at: datetime) -> PolicyChange:
    """Put a policy in force: roles that it does not carry fall, and what stood on them ends.

    Raises:
        PolicySyntaxError: The text is no policy, or one that could not be applied; with line and column.
    """
    policy, findings = _checked(register, text, at=at)
    with register.writing(at) as records:
        number = records.add_policy(text, at=at)
        records.journal.note("policy", f"number {number}", who=None, at=at)
        return _change(register, records, text, policy, findings, number=number, at=at)


def _checked(register: Register, text: str, *, at: datetime) -> tuple[Policy, tuple[PolicyFinding, ...]]:
    """Read a policy with what the checker has to say, and refuse one with errors, at the first of them."""
    policy = parse_policy(text)
    findings = (*check(policy), *check_privileges(policy, register.holdings.types(at=at), text=text))
    for finding in findings:
        if finding.severity is Severity.ERROR:
            message = f"line {finding.line}, column {finding.column}: {finding.message}"
            raise PolicySyntaxError(message, code=finding.code, line=finding.line, column=finding.column)
    return policy, findings


def _change(
    register: Register,
    records: Records,
    text: str,
    policy: Policy,
    findings: tuple[PolicyFinding, ...],
    *,
    number: int,
    at: datetime,
) -> PolicyChange:
    register.changes()
    before, held_under = _held(register, at=at), register.roles.engine
    if number:
        records.touch(policy=number)
    fallen = register.change_policy(records, text, policy, at=at)
    after = _held(register, at=at)
    changed = {name for name in register.members if before.get(name, set()) != after.get(name, set())}
    ended = cascade(register, records, fallen, (), at=at, changed=changed, held_under=held_under).certificates
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


def _held(register: Register, *, at: datetime) -> dict[str, set[str]]:
    """Give what each principal has, in words of the policy, with what is denied of it."""
    engine, found = register.roles.engine, dict[str, set[str]]()
    holders = {role.holder for role in engine.roles()}
    for holder in holders:
        held = held_privileges(register, holder, at=at)
        found[holder] = {item.words for item in held if not item.whole}
    return found
