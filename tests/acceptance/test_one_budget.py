"""One budget for one decision: evidence costs its reading, a bound in steps, and nobody else's time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from maia.authority import Action, Request, Root, Verifier, VerifierLimits, ask, ask_type, parse_tag
from maia.clients import AddressPolicy, KeyManagerClient
from maia.encryption import GroupRequest, JoinGroups, join_public_key, new_join_key, sign_group_request
from maia.errors import DeniedError, MalformedError, UncheckedError, VerificationError
from maia.principals import KeySigner
from maia.testing import (
    Command,
    ManagedType,
    Pile,
    Standing,
    at,
    cost_of,
    costly_evidence,
    grant,
    managed_type,
    served,
    worst_evidence,
)

NOW = at("2026-06-01")
LIMITS = VerifierLimits()
SIZES = {"54 KB": 54 << 10, "136 KB": 136 << 10}
REFUSED = (VerificationError, DeniedError, MalformedError)
"""Not proven, not allowed, or more certificates than a request may bring: 136 KB of small ones are too many."""
SHAPES = ("thresholds", "doubling names", "groups", "sets of patterns", "written intersections")


@pytest.mark.threat("T50")
@pytest.mark.parametrize("standing", [Standing.FORGER, Standing.STRANGER])
def test_evidence_that_no_root_leads_to_costs_its_reading(standing: Standing) -> None:
    """The dearest piles of a forger and of a stranger take few steps, and no more signatures than certificates."""
    piles = worst_evidence(
        lambda pile: cost_of(pile, at=NOW).steps, standing=standing, octets=54 << 10, rounds=3, seed=11
    )
    for family, pile in piles.items():
        cost = cost_of(pile, at=NOW)
        assert cost.answer not in {"granted", "LIMIT_EXCEEDED"}, family
        assert cost.steps <= 4_000, (family, cost)
        if standing is Standing.STRANGER:
            assert cost.signatures <= 64, (family, cost)


@pytest.mark.threat("T50")
def test_evidence_of_a_holder_ends_with_the_budget() -> None:
    """Somebody with a right to pass on can write what takes long; it ends with a doubt and at a bound in steps."""
    piles = worst_evidence(
        lambda pile: cost_of(pile, at=NOW).steps, standing=Standing.HOLDER, octets=32 << 10, rounds=3, seed=11
    )
    bound = LIMITS.max_steps + (32 << 10) // LIMITS.octets_per_step
    answers = {family: cost_of(pile, at=NOW) for family, pile in piles.items()}
    assert all(cost.steps <= bound + 512 for cost in answers.values()), answers
    assert "LIMIT_EXCEEDED" in {cost.answer for cost in answers.values()}
    assert {cost.answer for cost in answers.values()} <= {"LIMIT_EXCEEDED", "granted", "NO_EVIDENCE", "NOT_PERMITTED"}


@pytest.mark.threat("T50")
def test_the_parts_of_a_decision_share_one_budget() -> None:
    """Two questions with one budget get together what one has; time that is handed in counts as well."""
    owner, smith = KeySigner(bytes(32)), KeySigner(bytes(31) + b"s").public_key
    chain = [grant(owner, smith, (b"read", b"%d" % n)) for n in range(40)]
    everything = Request(wanted=parse_tag((b"*",)))
    verifier = Verifier([Root(subject=owner.public_key)])
    pool_of = {"principal": smith, "evidence": chain, "at": NOW}
    budget = VerifierLimits(max_steps=1_000).budget()
    answers = []
    for _ in range(4):
        try:
            answers.append(len(verifier.clauses(everything, budget=budget, **pool_of)))
        except UncheckedError as error:
            answers.append(error.code)
    assert (answers[0], answers[-1]) == (40, "LIMIT_EXCEEDED")
    late = iter(range(10**6))
    hurried = Verifier([Root(subject=owner.public_key)], clock=lambda: float(next(late) * 100))
    assert hurried.decide(ask((b"read", b"1")), **pool_of).reason == "LIMIT_EXCEEDED"


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> ManagedType:
    """Give a home that manages the keys of its type."""
    return managed_type(tmp_path_factory.mktemp("budget") / "clinic")


@pytest.fixture(scope="module")
def port(clinic: ManagedType) -> Iterator[int]:
    """Serve its key manager."""
    with served("key-manager", clinic.path) as port:
        yield port


def client(clinic: ManagedType, port: int, signer: KeySigner) -> KeyManagerClient:
    """Connect as somebody."""
    return KeyManagerClient(
        f"http://127.0.0.1:{port}", signer=signer, server_key=clinic.owner.public_key,
        policy=AddressPolicy(loopback=True),
    )  # fmt: skip


def join_request(clinic: ManagedType, who: KeySigner) -> bytes:
    """Ask to join, now."""
    stamp = int(datetime.now(UTC).timestamp() * 1000)
    return sign_group_request(
        GroupRequest(
            manager=clinic.owner.public_key.key_id, type_id=clinic.type_id, stamp=stamp,
            what=JoinGroups(key=join_public_key(new_join_key())),
        ),
        who,
    )  # fmt: skip


@pytest.mark.threat("T50")
@pytest.mark.parametrize("octets", SIZES.values(), ids=SIZES.keys())
@pytest.mark.parametrize("standing", [Standing.FORGER, Standing.STRANGER])
def test_a_key_manager_answers_hostile_evidence_and_others_meanwhile(
    clinic: ManagedType, port: int, standing: Standing, octets: int
) -> None:
    """Each pile is refused with a code, while another client shakes hands again and again and is always answered."""
    shaken, done = [], threading.Event()

    def shake() -> None:
        while not done.is_set() or not shaken:
            with client(clinic, port, KeySigner.generate()) as other, pytest.raises(DeniedError):
                other.status()
            shaken.append(1)

    honest = threading.Thread(target=shake)
    honest.start()
    try:
        evil = KeySigner.generate()
        for number, family in enumerate(SHAPES):
            pile = Pile(family=family, standing=standing, octets=octets, seed=number)
            evidence = costly_evidence(pile, owner=clinic.owner, principal=evil.public_key, type_name=clinic.name)
            with client(clinic, port, evil) as attacker, pytest.raises(REFUSED):
                attacker.join(join_request(clinic, evil), evidence)
    finally:
        done.set()
        honest.join()
    assert shaken


@pytest.mark.threat("T50")
@pytest.mark.parametrize("family", SHAPES)
def test_a_folder_of_hostile_files_is_answered_by_the_command(tmp_path: Path, family: str) -> None:
    """`maia prove` on forged files: no proof, with a reason; on the same files with the one that proves: a proof."""
    maia, owner, smith = Command(tmp_path / "home"), KeySigner.generate(), KeySigner.generate()
    folder = tmp_path / "evidence"
    folder.mkdir()
    pile = Pile(family=family, standing=Standing.FORGER, octets=54 << 10)
    pile_of = costly_evidence(pile, owner=owner, principal=smith.public_key, type_name="T")
    stranger = replace(pile, standing=Standing.STRANGER)
    pile_of += costly_evidence(stranger, owner=owner, principal=smith.public_key, type_name="T")
    for number, raw in enumerate(pile_of):
        (folder / f"{number:04d}.cert").write_bytes(raw)
    for name, key in (("owner", owner), ("smith", smith)):
        ran = maia("key", "import", name, key.public_key.raw.hex())
        assert ran.code == 0, ran.err
    question = (
        "--as", "smith", "--type", "owner/T@1", "--action", "subscribe", "--certificates", str(folder),
        "--at", "2026-06-01T00:00:00Z",
    )  # fmt: skip
    assert maia("prove", *question).code == 3
    right = ask_type(Action.SUBSCRIBE, owner.public_key, "T", "1").wanted
    (folder / "right.cert").write_bytes(grant(owner, smith, right).raw)
    assert maia("prove", *question).code == 0
