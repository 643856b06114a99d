"""A longer chain never grants more: over 100 000 random chains, request by request.

The chains carry every tag form, periods and delegation; they are reduced as tuples, without signatures. What each link
admits is computed by the oracle of `strategies_trust`, so the reduced chain is also compared with the plain conjunction
of its links.
"""

from __future__ import annotations

import random
from datetime import timedelta
from functools import cache

import pytest
from hypothesis import given
from strategies_trust import LONG, NOW, REQUESTS, SIGNERS, member, random_tag, randoms

from maia.authority import FiveTuple, Root, Tag, Verifier, ask, parse_tag, permits, reduce_chain, reduce_pair
from maia.encoding import Sexp, format_advanced
from maia.errors import ChainError, ExpiredError, TagError
from maia.principals import Authorisation, CertificateId, KeyId, Period, unsafe_sign_certificate

CHAINS = 1_000_000 if LONG else 100_000
LONGEST = 8
TAGS = 1_500
KEYS = [KeyId(bytes([number]) * 32) for number in range(LONGEST + 2)]
# A spread of the universe: strings, lists, rows; all of it is asked in test_tags.
ASKED = REQUESTS[::3]


def oracle_mask(expression: Sexp) -> int:
    """Mark the requests that lie in a tag, by the oracle."""
    return sum(1 << bit for bit, request in enumerate(ASKED) if member(expression, request))


@cache
def mask(tag: Tag) -> int:
    """Mark the requests that a tag permits."""
    return sum(1 << bit for bit, request in enumerate(ASKED) if permits(tag, request))


def broad_tag(rng: random.Random) -> Sexp:
    """Draw a tag that leaves something, so that chains get long."""
    while True:
        expression = random_tag(rng)
        if rng.random() < 0.35:
            expression = (b"*", b"set", expression, *(random_tag(rng) for _ in range(3)))
        if oracle_mask(expression).bit_count() >= 3:
            return expression


def random_period(rng: random.Random) -> Period:
    """Draw a period around now."""
    start = NOW + timedelta(hours=rng.randrange(-48, 4)) if rng.random() < 0.4 else None
    end = NOW + timedelta(hours=rng.randrange(4, 48)) if rng.random() < 0.4 else None
    return Period(start, end)


def random_link(rng: random.Random, tags: list[tuple[Tag, int]], place: int) -> tuple[FiveTuple, int]:
    """Draw the link at one place of a chain, which mostly fits there."""
    tag, requests = rng.choice(tags)
    subject = KEYS[place + 1] if rng.random() < 0.97 else rng.choice(KEYS)
    delegate = rng.random() < 0.95
    source = CertificateId(rng.randbytes(8))
    return FiveTuple(KEYS[place], subject, delegate, tag, random_period(rng), (), source), requests


@pytest.mark.slow
def test_a_longer_chain_never_grants_more() -> None:
    """Each added link can only take away: requests, time, and the right to pass on what may not be passed on."""
    rng = random.Random(100_000)
    tags = [(parse_tag(expression), oracle_mask(expression)) for expression in (broad_tag(rng) for _ in range(TAGS))]
    extended = refused = 0
    while extended + refused < CHAINS:
        link, links_admit = random_link(rng, tags, 0)
        chain = [link]
        so_far = reduce_chain(chain)
        for place in range(1, LONGEST):
            link, requests = random_link(rng, tags, place)
            try:
                longer = reduce_pair(so_far, link)
            except (ChainError, ExpiredError) as error:
                reason = error.code
            else:
                reason = None
            if reason is not None:
                assert justified(reason, so_far, link, links_admit & requests), (reason, chain, link)
                refused += 1
                break
            chain.append(link)
            extended += 1
            links_admit &= requests
            assert mask(longer.tag) & ~mask(so_far.tag) == 0, [format_advanced(one.tag.to_sexp()) for one in chain]
            # Rows may be lost where a list spells a row out; nothing may be gained.
            assert mask(longer.tag) & ~links_admit == 0
            assert within(longer.period, so_far.period)
            assert so_far.delegate
            assert (longer.issuer, longer.subject, longer.delegate) == (chain[0].issuer, link.subject, link.delegate)
            so_far = longer
        mask.cache_clear()
    assert extended > CHAINS // 3
    assert refused > CHAINS // 20


def justified(code: str, first: FiveTuple, second: FiveTuple, common: int) -> bool:
    """Tell whether a refusal has the reason that it names."""
    empty = first.period.intersect(second.period) is None
    return {
        "BROKEN_CHAIN": first.subject != second.issuer,
        "DELEGATION_FORBIDDEN": not first.delegate,
        "EMPTY_AUTHORITY": common & ~ROWS == 0,
        "EMPTY_VALIDITY": empty,
    }[code]


def holds_row(request: Sexp) -> bool:
    """Tell whether a row stands anywhere in a request."""
    return isinstance(request, tuple) and (request[0] == b"row" or any(map(holds_row, request)))


ROWS = sum(1 << bit for bit, request in enumerate(ASKED) if holds_row(request))


def within(narrow: Period, wide: Period) -> bool:
    """Tell whether one period lies in another."""
    starts = wide.not_before is None or (narrow.not_before is not None and narrow.not_before >= wide.not_before)
    ends = wide.not_after is None or (narrow.not_after is not None and narrow.not_after <= wide.not_after)
    return starts and ends


@given(randoms)
def test_reduction_is_associative(rng: random.Random) -> None:
    """Where a chain is cut before it is reduced makes no difference to what it proves."""
    tags = [(parse_tag(broad_tag(rng)), 0) for _ in range(4)]
    links = [random_link(rng, tags, place)[0] for place in range(4)]
    outcomes = []
    for order in (
        lambda a, b, c, d: reduce_pair(reduce_pair(reduce_pair(a, b), c), d),
        lambda a, b, c, d: reduce_pair(reduce_pair(a, b), reduce_pair(c, d)),
        lambda a, b, c, d: reduce_pair(a, reduce_pair(b, reduce_pair(c, d))),
    ):
        try:
            result = order(*links)
            outcomes.append((result.issuer, result.subject, result.delegate, result.period, mask(result.tag) & ~ROWS))
        except (ChainError, ExpiredError):
            outcomes.append(None)
    # An intersection may be empty only once all links are in, so a refusal is compared as "admits nothing".
    assert len({outcome[-1] if outcome else 0 for outcome in outcomes}) == 1
    assert len({outcome[:-1] for outcome in outcomes if outcome is not None}) <= 1


@given(randoms)
def test_a_signed_chain_admits_the_conjunction_of_its_links(rng: random.Random) -> None:
    """The verifier allows a request along a chain exactly when each link admits it (decide link by link)."""
    length = rng.randrange(1, 5)
    expressions = [broad_tag(rng) for _ in range(length)]
    signers = SIGNERS[: length + 1]
    evidence = [
        unsafe_sign_certificate(
            Authorisation(
                issuer=signers[i].public_key, subject=signers[i + 1].public_key, delegate=i < length - 1, tag=expression
            ),
            signers[i],
        )
        for i, expression in enumerate(expressions)
    ]
    verifier = Verifier([Root(subject=signers[0].public_key)])
    for request in rng.sample(ASKED, 8):
        try:
            wish = ask(request)
        except TagError:
            continue
        decision = verifier.decide(wish, principal=signers[-1].public_key, evidence=evidence, at=NOW)
        assert bool(decision) is all(member(expression, request) for expression in expressions)
        if length > 1:
            shorter = verifier.decide(wish, principal=signers[-2].public_key, evidence=evidence[:-1], at=NOW)
            assert shorter or not decision
