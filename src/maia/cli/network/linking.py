"""Writing the links of a network file into the homes that copy: what `maia link add` keeps, and nobody's right."""

from __future__ import annotations

from dataclasses import replace

from maia.cli.network.description import NetworkDescription, NetworkLink
from maia.errors import UsageError


def lay_links(network: NetworkDescription) -> tuple[str, ...]:
    """Keep the links that the homes have not yet; a home learns the neighbour's public key for it.

    Whether a neighbour is let in, and may connect, is asked by both sides whenever something is copied.

    Returns:
        What was added, in words.

    Raises:
        NotFoundError: A home is not there: ``NO_HOME``; or it does not know a type.
        UsageError: A home has another link of that name: ``NETWORK_LINK``.
    """
    from maia.home import Home

    for domain in network.domains:
        Home.open(domain.home)  # before anything is written or started
    return tuple(text for link in network.links for text in _lay(network, link))


def _lay(network: NetworkDescription, wanted: NetworkLink) -> list[str]:
    import maia
    from maia.domain import Link, add_link, read_links
    from maia.home import Home

    source, target = network.domain(wanted.source), network.domain(wanted.target)
    told: list[str] = []
    with maia.open(target.home) as domain:
        home = domain.home
        types = dict.fromkeys(
            item.hex() for text in wanted.types for item in sorted(home.wire_ids(domain.find_type(text).type_id))
        )
        key = Home.open(source.home).broker.public_key
        known = [name for name, item in home.folder.keys.items() if item == key]
        name = known[0] if known else f"{source.name}-broker"
        link = Link(
            name=source.name, address=source.address("log"), key=name, types=tuple(types),
            ca="" if source.tls is None else str(source.tls[0]),
        )  # fmt: skip
        kept = {item.name: item for item in read_links(home)}.get(link.name)
        if kept is None:
            if not known:
                if home.public_path(name).exists():
                    raise _other(wanted, f"its key `{name}` is another one")
                home.add_public_key(name, key)
                told.append(f"{target.name} knows the broker of {source.name} as `{name}`")
            add_link(home, link)
            told.append(f"{target.name} copies from {source.name}")
        elif replace(kept, key=link.key) != link or kept.key not in known:
            raise _other(wanted, f"it has another link `{link.name}`, to {kept.address}")
    return told


def _other(wanted: NetworkLink, why: str) -> UsageError:
    return UsageError(
        f"`{wanted.target}` cannot copy from `{wanted.source}`: {why}; `maia link remove` forgets a link",
        code="NETWORK_LINK",
    )
