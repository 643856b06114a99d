"""The event types and networks that rules may speak of, by the words they use: ``owner/name@version``, shortened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from maia.errors import MalformedError
from maia.events import Attribute, EventType
from maia.policy.known_types import KnownType
from maia.principals import Principal, fingerprint, principal_id

_NETWORK = "network"


class TypeCatalogue:
    """The event types and networks that a policy may speak of, by the words it uses."""

    def __init__(
        self,
        types: Iterable[EventType] = (),
        *,
        networks: Iterable[tuple[Principal, str]] = (),
        owners: Mapping[str, Principal] | None = None,
    ) -> None:
        """Learn definitions that were verified; versions of one type are put together.

        Args:
            types: Definitions, inherited attributes included.
            networks: Owner and name of each network; the first is also called ``network``.
            owners: What the names of owners mean here; their fingerprints mean them as well.
        """
        found: dict[bytes, list[EventType]] = {}
        for item in types:
            found.setdefault(item.type_id, []).append(item)
        self._by_word: dict[str, list[list[EventType]]] = {}
        for versions in found.values():
            name = versions[0].name.name
            for word in {name, name.rpartition(".")[2]}:
                self._by_word.setdefault(word, []).append(versions)
        # a fingerprint means the same everywhere; a name given here comes first
        self._owners = {
            fingerprint(versions[0].name.owner_id): versions[0].name.owner_id for versions in found.values()
        }
        self._owners |= {name: principal_id(owner) for name, owner in (owners or {}).items()}
        self._networks: dict[str, tuple[Principal, str]] = {}
        for owner, name in networks:
            self._networks.setdefault(_NETWORK, (owner, name))
            self._networks.setdefault(name, (owner, name))

    def find(self, word: str) -> KnownType:
        """Find the type that a word means.

        >>> from maia.events import TypeName, attribute, parse_version
        >>> from maia.principals import KeySigner
        >>> met = KeySigner(bytes(32)).public_key
        >>> name = TypeName(met, "uk.police.Report", parse_version("8516"))
        >>> report = EventType(name=name, attributes=(attribute("text", 1, "string"),))
        >>> known = TypeCatalogue([report], owners={"met": met})
        >>> known.find("Report").version, known.find("met/Report@8516").version
        ('*', '8516')

        Raises:
            MalformedError: There is none (``POLICY_TYPE``), or the word may mean several (``POLICY_AMBIGUOUS``).
        """
        owned, _, version = word.partition("@")
        owner, _, name = owned.rpartition("/")
        if owner and owner not in self._owners:
            raise MalformedError(f"there is no key `{owner}` that could own `{word}`", code="POLICY_TYPE")
        found = [
            versions
            for versions in self._by_word.get(name, [])
            if not owner or versions[0].name.owner_id == self._owners[owner]
        ]
        chosen = [versions for versions in found if versions[0].name.name == name] or found
        if not chosen:
            raise MalformedError(f"there is no event type `{word}`", code="POLICY_TYPE")
        if len(chosen) > 1:
            raise MalformedError(f"`{word}` may mean any of {self._shown(chosen)}", code="POLICY_AMBIGUOUS")
        (versions,) = chosen
        if version:
            versions = [item for item in versions if item.name.version.text == version]
        if not versions:
            raise MalformedError(f"there is no version `{version}` of `{owned}`", code="POLICY_TYPE")
        return _put_together(versions, version or "*")

    def portable(self, word: str) -> str:
        """Write a type so that it means the same in another home: with its owner's fingerprint in place of a name."""
        owner, slash, rest = word.rpartition("/")
        return f"{fingerprint(self.find(word).owner_id)}/{rest}" if slash and owner in self._owners else word

    def find_network(self, word: str) -> tuple[Principal, str]:
        """Find the network that a word means: ``network`` or its name.

        Raises:
            MalformedError: There is none.
        """
        if word not in self._networks:
            raise MalformedError(f"there is no network `{word}`", code="POLICY_TYPE")
        return self._networks[word]

    def types(self) -> tuple[KnownType, ...]:
        """List the known types, each once, by name."""
        groups = {versions[0].type_id: versions for group in self._by_word.values() for versions in group}
        known = (_put_together(versions, "*") for versions in groups.values())
        return tuple(sorted(known, key=lambda item: (item.name, principal_id(item.owner))))

    def _shown(self, chosen: Iterable[list[EventType]]) -> str:
        """Write types as a rule tells them apart; an owner without a name here is shown by its fingerprint."""
        names = {identity: name for name, identity in self._owners.items()}
        found = (versions[0].name for versions in chosen)
        return ", ".join(sorted(f"`{names[name.owner_id]}/{name.name}`" for name in found))


def _put_together(versions: list[EventType], version: str) -> KnownType:
    attributes: dict[str, set[Attribute]] = {}
    for item in versions:
        for each in item.attributes:
            attributes.setdefault(each.name, set()).add(each)
    name = versions[0].name
    return KnownType(
        owner=name.owner,
        name=name.name,
        version=version,
        attributes={key: frozenset(found) for key, found in attributes.items()},
    )
