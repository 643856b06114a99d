"""The key with which a home manages key groups."""

from __future__ import annotations

from maia.errors import NotFoundError
from maia.home import Home
from maia.kernel import KEY_MANAGER
from maia.principals import KeySigner


def manager_signer(home: Home) -> KeySigner:
    """Return the key with which a home manages key groups.

    Raises:
        NotFoundError: The home has neither a key ``key-manager`` nor the one that speaks for its domain:
            ``NO_DOMAIN_KEY``.
    """
    try:
        return home.signer(KEY_MANAGER)
    except NotFoundError:
        name = home.config.domain
    try:
        return home.signer(name)
    except NotFoundError as error:
        raise NotFoundError(
            f"the home has no key `{name}` to manage key groups with; `maia key new {name}` makes it",
            code="NO_DOMAIN_KEY",
        ) from error
