"""Opening what a link of a home copies: a served log, a web server, or a store.

An address that stands in a home's own files is the owner's word, as in `homes`. A neighbour that serves its log must
prove its key, and that it may connect to the network of this home, before anything is asked of it.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from maia.clients.homes import address_policy
from maia.clients.log import LogClient
from maia.clients.web_log import WebLog
from maia.domain import Domain, Link, broker_credentials, check_neighbour
from maia.errors import NotFoundError, UsageError
from maia.log import ReadableStore, open_store


@contextmanager
def opened_link(domain: Domain, link: Link) -> Iterator[ReadableStore]:
    """Open the log that a link copies from, for one round.

    Raises:
        VerificationError: The neighbour does not prove its key, or may not connect to this home's network.
        DeniedError: It does not let us in.
        UnavailableError: It does not answer.
        UsageError: The link leads into this home's own log: ``LINK_ADDRESS``.
    """
    home = domain.home
    if not link.is_web:
        place = link.address if "://" in link.address else str((home.path / link.address).resolve())
        if place == home.log_place:
            raise UsageError("a link leads to another log than the home's own", code="LINK_ADDRESS")
        yield open_store(place)
        return
    tls = None
    if link.ca:
        path = home.path / link.ca
        if not path.is_file():
            raise NotFoundError(f"no file `{link.ca}`", code="NO_SUCH_FILE")
        tls = ssl.create_default_context(cafile=str(path))
    if not link.key:
        web = WebLog(link.address, policy=address_policy(link.address), tls=tls)
        try:
            yield web
        finally:
            web.close()
        return
    key = home.key(link.key)
    with LogClient(
        link.address, signer=home.broker, server_key=key, policy=address_policy(link.address), tls=tls
    ) as client:
        shown = client.introduce(broker_credentials(domain))
        # SECURITY: who serves must be in the network as well, at every round.
        check_neighbour(domain, key, shown.certificates, shown.statements)
        yield client
