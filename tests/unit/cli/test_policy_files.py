"""`maia policy preview` and `apply`: what is refused is named by the file it stands in."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("verb", ["preview", "apply"])
def test_a_rule_that_cannot_run_is_named_by_file_line_and_column(maia, verb):
    """Two files are one policy to the service; whoever wrote the second finds the mistake in the second."""
    assert maia("domain", "init", str(maia.home), "--key").code == 0
    (maia.home / "policy" / "a.rules").write_text("# fine\ngood(self) <- sworn(self)*\n", "utf-8")
    (maia.home / "policy" / "b.rules").write_text("bad(x) <- sworn(self)*\n", "utf-8")
    ran = maia("policy", verb)
    assert ran.code == 1
    assert "[UNBOUND_VARIABLE] `b.rules`, line 1, column 5: the variable `x` is bound by no premise" in ran.err
    (maia.home / "policy" / "b.rules").unlink()
    assert maia("policy", verb).code == 0
