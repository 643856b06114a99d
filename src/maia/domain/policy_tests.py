"""Running policy tests: each assertion is a question that somebody could ask, and its answer is compared.

Nothing is decided here. By certificates, `maia.reasoning` is asked, which asks the kernel; where the home has labels,
what they close is asked of the kernel as for a client; by rules, the engine that runs them.

Rules kept here:

- what cannot be told fails, whichever way it was asserted: it is neither yes nor no;
- somebody or something that the home does not know fails the test; a misspelled name is not somebody who cannot.

The coverage says what no test touches: certificates in force that stand in no chain which a test asked about, and rules
that gave no answer. A right that no test touches can be taken away or widened without any test failing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from maia.authority import Action
from maia.domain.label_files import has_labels, screened_clauses
from maia.domain.policy_answers import find_roles, suppose
from maia.domain.policy_files import policy_sources
from maia.domain.policy_test_files import PolicyTest, ReadInstant, read_tests
from maia.domain.readers import Readers, cell_of, cell_words, find_readers, world_of
from maia.errors import DeniedError, MaiaError, NotFoundError, UncheckedError
from maia.events import EventType, TypeName
from maia.home import words
from maia.kernel import Clause
from maia.policy import PolicySource, combine_sources, locate_line, parse_policy
from maia.principals import CertificateId, KeyId, Naming
from maia.reasoning import Cell, CellHolder, World, opens_cell, why_not

if TYPE_CHECKING:
    from maia.domain.domain import Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOutcome:
    """What became of one assertion.

    Attributes:
        file: The file of its test.
        line: The line of its test.
        test: What the test is called.
        asserted: What was asserted.
        passed: Whether it is so.
        code: Why it is not: ``CAN``, ``CANNOT``, ``DOUBT``, or the code of an error.
        found: The proof, the link that is missing, or what is in doubt.
    """

    file: str
    line: int
    test: str
    asserted: str
    passed: bool
    code: str = ""
    found: str = ""

    def to_json(self) -> dict[str, object]:
        """Describe it for machines."""
        return {
            "file": self.file, "line": self.line, "test": self.test, "asserted": self.asserted, "passed": self.passed,
            "reason": self.code, "found": self.found,
        }  # fmt: skip

    def __str__(self) -> str:
        """Say it as compilers do."""
        name = f" {self.test}:" if self.test else ""
        return f"{self.file}:{self.line}:{name} expected: {self.asserted}; found: [{self.code}] {self.found}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCoverage:
    """What tests touch.

    Attributes:
        certificates: How many certificates are in force.
        rules: How many rules there are.
        untouched_certificates: Those that stand in no chain which a test asked about, in words.
        untouched_rules: Those that gave no answer, with file and line.
    """

    certificates: int
    rules: int
    untouched_certificates: tuple[str, ...]
    untouched_rules: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyReport:
    """What a run of policy tests found; true in a condition when all passed."""

    outcomes: tuple[PolicyOutcome, ...]
    coverage: PolicyCoverage

    @property
    def failed(self) -> tuple[PolicyOutcome, ...]:
        """The assertions that did not hold."""
        return tuple(one for one in self.outcomes if not one.passed)

    def __bool__(self) -> bool:
        """Stand for the result."""
        return bool(self.outcomes) and not self.failed


def run_policy_tests(domain: Domain, files: Sequence[Path], *, at: datetime, instant: ReadInstant) -> PolicyReport:
    """Run the tests of files against what a home knows; nothing is changed.

    Args:
        domain: The home.
        files: The files, all of which are read before the first test runs.
        at: The moment that tests are about which name none.
        instant: Reads a moment that is written as text.

    Raises:
        MaiaError: A file cannot be read; the message has file and line.
    """
    tests = [test for path in files for test in read_tests(path, instant=instant)]
    run = _Run(domain, at)
    outcomes = tuple(outcome for test in tests for outcome in run.outcomes(test))
    return PolicyReport(outcomes=outcomes, coverage=run.coverage())


@dataclass(slots=True)
class _Run:
    """A run: the worlds by moment, and what was touched so far."""

    domain: Domain
    at: datetime
    worlds: dict[datetime, World] = field(default_factory=dict)
    touched: set[CertificateId] = field(default_factory=set)
    used: set[tuple[str, int]] = field(default_factory=set)
    rules: tuple[PolicySource, ...] | None = None

    def outcomes(self, test: PolicyTest) -> Iterator[PolicyOutcome]:
        """Run a test; what stands in its way is its failure."""
        ask = {"test": self._cells, "roles": self._roles, "suppose": self._suppose}[test.kind]
        try:
            yield from list(ask(test))
        except MaiaError as error:
            yield _outcome(test, _words(test), False, error.code, self.domain.home.folder.decorate(error.message))

    # -- by certificates

    def _cells(self, test: PolicyTest) -> Iterator[PolicyOutcome]:
        world = self._world(test.at or self.at)
        name = self.domain.find_type(test.texts["type"])
        for attribute in test.lists["attribute"]:
            cell = cell_of(
                world, name, attribute, action=test.texts.get("action", "subscribe"), row=test.row,
                where=test.texts.get("where", ""),
            )  # fmt: skip
            yield from self._about(test, world, name, cell)

    def _about(self, test: PolicyTest, world: World, name: TypeName, cell: Cell) -> Iterator[PolicyOutcome]:
        folder = self.domain.home.folder
        only = [words.parse_principal_text(text, folder) for text in test.lists.get("only", ())]
        readers = find_readers(self.domain, world, name, cell, only=only)
        said = cell_words(world, name, cell)
        for expected, texts in ((True, test.lists.get("can", ())), (False, test.lists.get("cannot", ()))):
            for text in texts:
                asserted = f"{text} {'' if expected else 'not: '}{said}"
                key = folder.key(text).key_id
                can, code, found = self._answer(world, cell, readers, text, key)
                yield _outcome(test, asserted, can is expected, code, found)
        if "only" in test.lists:
            asserted = f"only {', '.join(test.lists['only']) or 'owners'}: {said}"
            for holder in readers.answer.holders:
                self._touch(holder)
            doubts = [*readers.doubts, *(one.hex()[:16] for one in readers.answer.unknown)]
            if readers.outsiders:
                found = "; ".join(f"{one.name} by {one.given}" for one in readers.outsiders)
                yield _outcome(test, asserted, False, "CAN", found)
            elif doubts:
                yield _outcome(test, asserted, False, "DOUBT", f"it cannot be told of {', '.join(doubts)}")
            else:
                yield _outcome(test, asserted, True, "", "")

    def _answer(
        self, world: World, cell: Cell, readers: Readers, text: str, key: KeyId
    ) -> tuple[bool | None, str, str]:
        """Tell whether somebody reads or writes a cell, or that it cannot be told, and by what."""
        holder = next((one for one in readers.answer.holders if one.key == key), None)
        if holder is None:
            error = why_not(world, key, cell)
            # SECURITY: what cannot be told is no refusal, and a certificate that waits for a statement may give it yet.
            waits = key in world.pool.led_to(readers.answer.unknown)
            if isinstance(error, UncheckedError) or (error is not None and waits):
                return None, "DOUBT", f"[{error.code}] {self.domain.home.folder.decorate(error.message)}"
            if error is not None:
                return False, "CANNOT", f"[{error.code}] {self.domain.home.folder.decorate(error.message)}"
            own = next(
                one for one in world.versions(cell.type_id) if cell.uid in {str(it.uid) for it in one.attributes}
            )
            held = own, world.clauses(key, cell.action, own)
            return self._labelled(world, cell, text, held, "as an owner, without a certificate")
        self._touch(holder)
        if holder.assumed:
            return None, "DOUBT", f"it rests on {', '.join(holder.assumed)}: ask about a row"
        given = next(one.given for one in readers if one.key == key.hex())
        return self._labelled(world, cell, text, (holder.version, holder.clauses), f"by {given}")

    def _labelled(
        self, world: World, cell: Cell, text: str, held: tuple[EventType, tuple[Clause, ...]], given: str
    ) -> tuple[bool | None, str, str]:
        """Let the home's labels close what certificates open, as they do for a client."""
        home, (version, clauses) = self.domain.home, held
        if cell.action is Action.SUBSCRIBE and has_labels(home):
            known = self.domain.known(at=world.at)
            try:
                opened = screened_clauses(home, known, clauses, version, text, at=world.at)
                seen = opens_cell(world, opened, cell, version)
            except UncheckedError as error:
                return None, "DOUBT", f"[{error.code}] {error.message}"
            except DeniedError as error:
                return False, "CANNOT", f"[{error.code}] {error.message}"
            if not seen:
                return False, "CANNOT", "[LABELS_CLOSE] its label may not flow to this client"
        return True, "CAN", given

    def _touch(self, holder: CellHolder) -> None:
        self.touched.update(identity for clause in holder.clauses for identity in clause.chain)

    def _world(self, at: datetime) -> World:
        if at not in self.worlds:
            self.worlds[at] = world_of(self.domain, at=at)
        return self.worlds[at]

    # -- by rules

    def _roles(self, test: PolicyTest) -> Iterator[PolicyOutcome]:
        action = test.texts.get("action", "subscribe")
        known = {rule.head.name for rule in parse_policy(combine_sources(self._sources())).activations}
        for attribute in test.lists["attribute"]:
            found = find_roles(
                self.domain.home, self._sources(), test.texts["type"], attribute, action=action, at=self.at
            )
            for expected, texts in ((True, test.lists.get("can", ())), (False, test.lists.get("cannot", ()))):
                for role in texts:
                    if role not in known:
                        raise NotFoundError(f"no rule gives a role `{role}`", code="NO_SUCH_ROLE")
                    by = [one for one in found if one.role.partition("(")[0] == role]
                    self.used |= {(one.file, one.line) for one in by}
                    what = f"{role} {'' if expected else 'never: '}{action} `{attribute}` of `{test.texts['type']}`"
                    proof = "; ".join(f"{one.file}:{one.line}: {one.rule}" for one in by)
                    yield _outcome(
                        test, what, bool(by) is expected, "CAN" if by else "CANNOT", proof or "no rule gives it"
                    )

    def _suppose(self, test: PolicyTest) -> Iterator[PolicyOutcome]:
        role, who = test.texts["role"], test.texts["as"]
        found = suppose(
            self._sources(), role, who, appointed=test.lists.get("appoint", ()),
            observed=test.lists.get("observe", ()), assume=test.lists.get("assume", ()),
        )  # fmt: skip
        self.used |= {locate_line(self._sources(), line) for line in found.lines}
        proof = "; ".join(found.proof if found else [f"line {one.line}: {one}" for one in found.lacks])
        asserted = f"{who} {'can' if test.holds else 'cannot'} be {role}"
        code = "CAN" if found else "CANNOT"
        yield _outcome(test, asserted, found.holds is test.holds, code, proof or "no rule gives it")

    def _sources(self) -> tuple[PolicySource, ...]:
        if self.rules is None:
            self.rules = policy_sources(self.domain.path)
        return self.rules

    # -- what was touched

    def coverage(self) -> PolicyCoverage:
        """Say what no test touched."""
        folder, world = self.domain.home.folder, self._world(self.at)
        rights = [one for one in world.pool if not isinstance(one.body, Naming)]
        in_force = [one for one in rights if one.body.period.contains(self.at)]
        missed = sorted(
            (words.show_subject(one.body.issuer, folder), words.show_subject(one.body.subject, folder),
             one.certificate_id.hex()[:16])
            for one in in_force
            if one.certificate_id not in self.touched
        )  # fmt: skip
        rules: list[tuple[str, int, str]] = []
        try:
            sources = self._sources()
            policy = parse_policy(combine_sources(sources))
            rules = [(*locate_line(sources, rule.line), str(rule)) for rule in policy.rules]
        except NotFoundError:
            pass  # a home without rules
        left = [f"{file}:{line}: {text}" for file, line, text in rules if (file, line) not in self.used]
        return PolicyCoverage(
            certificates=len(in_force), rules=len(rules),
            untouched_certificates=tuple(f"{item} from {giver} to {taker}" for giver, taker, item in missed),
            untouched_rules=tuple(left),
        )  # fmt: skip


def _outcome(test: PolicyTest, asserted: str, passed: bool, code: str, found: str) -> PolicyOutcome:  # noqa: FBT001 - what it is
    return PolicyOutcome(
        file=test.file, line=test.line, test=test.name, asserted=asserted, passed=passed, code=code, found=found
    )


def _words(test: PolicyTest) -> str:
    return " ".join(f"{word}={value}" for word, value in test.texts.items())
