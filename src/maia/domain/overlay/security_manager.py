"""The security manager: who is given which credential, and for how long, by the policy of the home.

    # policy/credentials.toml
    [[give]]
    object = "sink:met/met.CameraA"      # or "code:*", any of the kind
    to = "smith"                         # a key of this home, a role that is active, or "*"
    rights = ["subscribe"]
    seconds = 60

Rules kept here:

- whoever asks has proven its key by answering a challenge; a name alone is given nothing;
- the policy says what is given and for how long; whoever asks chooses neither. Nothing here knows a period by itself;
- no policy gives nothing, and neither does one that cannot be read;
- what is given is an ordinary capability of the domain's key, which lists revoke, and is checked like any that is given
  by hand: a manager gives no more than it has.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import datetime, timedelta

from maia.authority import ObjectDescriptor
from maia.domain.grants import Granted, draft_grant, sign_grant
from maia.domain.operations import refusals
from maia.domain.possession import ProvenClient
from maia.domain.register import names_by_key
from maia.encoding import printable
from maia.errors import DeniedError, EncodingError, MaiaError, NotFoundError
from maia.home import Folder, Home, read_file, words
from maia.principals import Period, Signer

POLICY = "credentials.toml"
_MAX_POLICY, _MAX_RULES = 1 << 20, 10_000
_MAX_SECONDS = 10 * 366 * 86_400
_MEMBERS = {"object": str, "to": str, "rights": list, "seconds": int}


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveRule:
    """One rule of the policy: of which object, to whom, which rights, for how many seconds."""

    object: str
    to: str
    rights: tuple[str, ...]
    seconds: int

    def fits(self, named: ObjectDescriptor, names: frozenset[str], folder: Folder) -> bool:
        """Tell whether it gives an object to somebody with these names."""
        if self.to != "*" and self.to not in names:
            return False
        if self.object == f"{named.kind.value}:*":
            return True
        return not self.object.endswith(":*") and words.parse_object(self.object, folder) == named


def read_give_rules(folder: Folder) -> tuple[GiveRule, ...]:
    """Read the policy of a home; none where there is no file.

    Raises:
        EncodingError: It cannot be read whole: ``CREDENTIAL_POLICY``.
    """
    try:
        value = tomllib.loads(read_file(folder.path / "policy" / POLICY, limit=_MAX_POLICY).decode("utf-8"))
    except NotFoundError:
        return ()
    except ValueError as error:
        raise EncodingError(f"`{POLICY}` is not TOML", code="CREDENTIAL_POLICY") from error
    listed = value.get("give", [])
    if set(value) - {"give"} or not isinstance(listed, list) or len(listed) > _MAX_RULES:
        raise EncodingError(f"`{POLICY}` is a list of `[[give]]`", code="CREDENTIAL_POLICY")
    return tuple(map(_rule, listed))


def _rule(item: object) -> GiveRule:
    fits = isinstance(item, dict) and set(item) == set(_MEMBERS)
    if not fits or not all(type(item[name]) is kind for name, kind in _MEMBERS.items()):  # type: ignore[index]
        told = ", ".join(f"`{name}`" for name in _MEMBERS)
        raise EncodingError(f"each `[[give]]` of `{POLICY}` has {told}", code="CREDENTIAL_POLICY")
    assert isinstance(item, dict)  # noqa: S101 - asked above
    rights = item["rights"]
    if not all(isinstance(word, str) for word in rights) or not 1 <= item["seconds"] <= _MAX_SECONDS:
        raise EncodingError(f"`{POLICY}` names rights, and seconds from 1 on", code="CREDENTIAL_POLICY")
    return GiveRule(object=item["object"], to=item["to"], rights=tuple(rights), seconds=item["seconds"])


def give_credential(
    home: Home, client: ProvenClient, named: ObjectDescriptor, signer: Signer, *, at: datetime
) -> Granted:
    """Give a client the credential of an object that the policy has for it.

    Args:
        home: Whose policy, keys and lists.
        client: Who answered the challenge.
        named: What it asks for.
        signer: The domain's key.
        at: Now.

    Raises:
        DeniedError: The policy gives it none: ``CREDENTIAL_DENIED``; or the domain has not got the right itself.
    """
    with refusals(home, client, words.show_object(named, home.folder), at=at):
        rule = decide_gift(home, client, named, at=at)
        right = words.object_right(named, list(rule.rights), home.folder)
        draft = draft_grant(home.folder, signer.public_key, right, to=client.key, at=at, period=period_of(rule, at=at))
        return sign_grant(home.folder, draft, signer, at=at)


def decide_gift(home: Home, client: ProvenClient, named: ObjectDescriptor, *, at: datetime) -> GiveRule:
    """Find the first rule that gives an object to a client.

    Raises:
        DeniedError: There is none: ``CREDENTIAL_DENIED``.
    """
    rules = read_give_rules(home.folder)
    names = names_by_key(home, client.key, at=at)
    for rule in rules:
        try:
            if rule.fits(named, names, home.folder):
                return rule
        except MaiaError as error:
            raise EncodingError(f"`{POLICY}`: {error.message}", code="CREDENTIAL_POLICY") from error
    told = f"no policy gives `{printable(client.name)}` a credential of this {named.kind.value}"
    raise DeniedError(told, code="CREDENTIAL_DENIED")


def period_of(rule: GiveRule, *, at: datetime) -> Period:
    """Give the period that a rule sets, from now on: a period is closed, so its last second is one before its end."""
    start = at.replace(microsecond=0)
    return Period(start, start + timedelta(seconds=rule.seconds - 1))
