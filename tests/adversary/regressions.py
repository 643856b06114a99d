"""Sequences that once broke a law, made small; they are played again in every run of the tests."""

from __future__ import annotations

from moves import Follow, Join, Link, Option, Publish, Sequence, Tamper

_KEYS = Link("o", "x", True, (Option(("publish", "subscribe"), ("3",)),), listed=True)
FOUND = {
    "a rekey that is withheld makes a reader wait, and lose nothing": Sequence(
        49,
        "rekeys",
        (_KEYS,),
        True,
        (
            Join("xb"),
            Publish("camera", ((2, 1, 1), (1, 2, None), (0, 1, 2))),
            Tamper("old-rekey", 45),
            Follow(),
        ),
    ),
}
