"""Tables of signed requests and of leadership: what must survive a restart for old requests and leaders to stay out."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, LargeBinary, String, Table

from maia.database.columns import Instant, metadata

used_nonces = Table(
    "used_nonces",
    metadata,
    Column("key_id", LargeBinary(32), primary_key=True),
    Column("nonce", LargeBinary(64), primary_key=True),
    Column("until", Instant, nullable=False),
    Index("ix_used_nonces_until", "until"),
)
"""Nonces of requests that are still fresh; ``until`` is when the request is too old anyway."""

clock_floors = Table(
    "clock_floors",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("floor", Instant, nullable=False),
)
"""The highest instant at which a service ever accepted something; its time never falls below."""

leader_terms = Table(
    "leader_terms",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("term", BigInteger, nullable=False),
)
"""How often a service's leadership was taken; a leader may write while the term is its own."""
