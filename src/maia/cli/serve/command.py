"""`maia serve key-manager|acs`: run a service of a home until it is told to stop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.bundles import unpacked
from maia.cli.read.options import examples, new_app
from maia.cli.show.output import note

if TYPE_CHECKING:
    from maia.home import Home
    from maia.services import http

app = new_app("Run a service of a home.")


@dataclass(frozen=True, kw_only=True)
class Hosting:
    """Which home is served, and how clients reach it."""

    home: options.Home = Path()
    host: Annotated[str, typer.Option("--host", help="Where to listen; other than loopback needs TLS.")] = "127.0.0.1"
    port: Annotated[
        int | None,
        typer.Option("--port", min=1, max=65535, help="The port; 8471 for the key manager, 8472 for the ACS."),
    ] = None
    tls_cert: Annotated[
        Path | None, typer.Option("--tls-cert", metavar="FILE", help="The server's certificate chain, PEM.")
    ] = None
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="FILE", help="The certificate's private key, PEM.")
    ] = None
    name: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="HOST[:PORT]", help="A further name by which clients know the service."),
    ] = None
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            metavar="URL",
            envvar="MAIA_DATABASE_URL",
            help="The database, in place of the home's setting.",
        ),
    ] = None

    def opened(self) -> Home:
        """Open the home, with the database that was asked for."""
        from maia.home import Home

        home = Home.open(self.home)
        return home if self.database is None else replace(home, config=replace(home.config, database=self.database))

    def listening(self, port: int) -> http.Listening:
        """Tell where to listen; on this port when none was asked for."""
        from maia.services import http

        return http.Listening(
            host=self.host, port=self.port or port, certificate=self.tls_cert, private_key=self.tls_key,
            names=tuple(self.name or ()),
        )  # fmt: skip


@app.command(
    "key-manager",
    epilog=examples(
        "maia serve key-manager --home pito",
        "maia serve key-manager --home pito --host 0.0.0.0 --port 8443 --tls-cert cert.pem --tls-key key.pem",
    ),
)
@unpacked
def serve_key_manager(hosting: Hosting) -> None:
    """Run the key manager of the home's types: it admits brokers and publishes rekey messages into the log.

    Several processes may run over one database: one leads, and the others take over when it is gone.
    """
    from maia.services import key_manager

    listening = hosting.listening(8471)
    _serve("key manager", key_manager.make_key_manager(hosting.opened(), listening), listening)


@app.command(
    "acs",
    epilog=examples(
        "maia serve acs --home met",
        "maia serve acs --home met --database postgresql://maia@db.example/met",
    ),
)
@unpacked
def serve_acs(hosting: Hosting) -> None:
    """Run the access control service of the home's domain: role policy in, capabilities out.

    Several processes may run over one database: one leads, and the others take over when it is gone.
    """
    from maia.services import access_control

    listening = hosting.listening(8472)
    _serve("access control service", access_control.make_access_control(hosting.opened(), listening), listening)


def _serve(what: str, service: http.App, listening: http.Listening) -> None:
    from maia.services import http

    address = f"{'http' if listening.certificate is None else 'https'}://{listening.host}:{listening.port}"
    http.serve(service, listening, started=lambda _port: note(f"the {what} serves on {address}"))
    note(f"the {what} has stopped")
