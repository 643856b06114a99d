"""What `maia.toml` must not say is named, with what was meant or where it belongs."""

from __future__ import annotations

import pytest

from maia.errors import MalformedError
from maia.home import HomeConfig

WRONG = {
    "a slip": ('name = "met"\ngrcae = 3\n', "no setting `grcae`; did you mean `grace`?"),
    "a setting of a table": ('name = "met"\ndatabase = "x"\n', "no setting `database`; it belongs to `[services]`"),
    "a setting of the top": ('name = "met"\n[services]\nlog = "x"\n', "it belongs to the top, above all tables"),
    "text for a number": ('name = "met"\ngrace = "3"\n', "`grace` is a whole number"),
    "half a network": ('name = "met"\n[network]\nowner = "pito"\n', "both `owner` and `name`"),
    "no table": ('network = "pito"\nname = "met"\n', "write `[network]` above its settings"),
    "another word": ('name = "met"\nspill = "open"\n', "`spill` is `sealed` or `trusted`, not `open`"),
    "nothing": ("", "it lacks `name`"),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_setting_is_named(text: str, said: str) -> None:
    """The message names the setting, not only the file."""
    with pytest.raises(MalformedError) as raised:
        HomeConfig.from_toml(f"format = 2\n{text}".encode())
    assert raised.value.code == "HOMECONFIG_FILE"
    assert said in raised.value.message
