"""On-line tests as people write them: ``crl:met``, ``revalidation:met@https://…``."""

from __future__ import annotations

from collections.abc import Sequence

from maia.errors import UsageError
from maia.home.folder import Folder, key_of
from maia.home.words.principals import parse_principal_text
from maia.principals import OnlineTest, TestKind


def parse_tests(tests: str | OnlineTest | Sequence[str | OnlineTest] | None, home: Folder) -> tuple[OnlineTest, ...]:
    """Read ``KIND:SIGNER[@URI]``, one or several; what is a test already stays one.

    Raises:
        UsageError: The kind is unknown, or there is no signer.
    """
    several = (tests,) if isinstance(tests, (str, OnlineTest)) else tests or ()
    return tuple(test if isinstance(test, OnlineTest) else _parse_test(test, home) for test in several)


def _parse_test(text: str, home: Folder) -> OnlineTest:
    kind, mark, rest = text.partition(":")
    signer, _, address = rest.partition("@")
    kinds = {known.value: known for known in TestKind}
    if not mark or kind not in kinds or not signer.strip():
        raise UsageError(f"`{text}` is no test; write {'|'.join(kinds)}:SIGNER[@URI]", code="TEST_TEXT")
    key = key_of(parse_principal_text(signer, home))
    return OnlineTest(kinds[kind], key, (address,) if address else ())
