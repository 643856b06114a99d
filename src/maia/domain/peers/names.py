"""What a home calls the keys of others that a peer brings along."""

from __future__ import annotations

import re
import unicodedata

from maia.home import Home, is_key_itself
from maia.kernel import KEY_MANAGER
from maia.principals import PublicKey

_LONGEST = 48
_SHOWN = 8


def key_name(text: str) -> str:
    """Make the name of a key from what people call a domain.

    >>> key_name("St Mary's"), key_name("Krankenhaus  Nord (2)"), key_name("Universität Zürich")
    ('st-marys', 'krankenhaus-nord-2', 'universitat-zurich')
    """
    letters = (letter for letter in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(letter))
    words = re.sub(r"[^a-z0-9]+", "-", re.sub(r"['’]", "", "".join(letters)))
    return words.strip("-")[:_LONGEST].strip("-") or "peer"


def know_key(home: Home, text: str, key: PublicKey) -> str:
    """Know a key under a name made of a text, and give the name; a key that has one keeps it, and so does its name.

    A name that is taken, or is written as a key itself is, gets the beginning of the key's fingerprint added.
    """
    folder = home.folder
    known = folder.names.get(key.key_id)
    if known is not None:
        return known
    name = key_name(text)
    own = (home.config.broker, home.config.domain, KEY_MANAGER)
    if is_key_itself(name) or name in folder.keys or name in own or folder.key_path(name).exists():
        name = f"{name}-{key.fingerprint.replace('-', '')[:_SHOWN]}"
    home.add_public_key(name, key)
    return name
