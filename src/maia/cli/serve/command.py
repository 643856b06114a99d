"""`maia serve key-manager|acs|gateway|log|console`: run a service of a home until it is told to stop."""

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
        typer.Option(
            "--port",
            min=1,
            max=65535,
            help="The port; 8471 for the key manager, 8472 for the ACS, 8473 for the gateway, 8474 for the log, "
            "8475 for the console.",
        ),
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


@app.command(
    "gateway",
    epilog=examples(
        "maia serve gateway --home met",
        "maia serve gateway --home met --host 0.0.0.0 --port 8443 --tls-cert cert.pem --tls-key key.pem",
    ),
)
@unpacked
def serve_gateway(hosting: Hosting) -> None:
    """Run the gateway of the home's broker, for clients that are not Spark programs.

    They advertise, publish and subscribe over WebSocket, and publish over HTTP; each proves its key, and the broker its
    own. What is acknowledged is in the log, and what is delivered lies in the home's outbox until it is fetched.
    """
    from maia.services import gateway
    from maia.wire import MAX_FRAME

    listening = hosting.listening(8473)
    _serve("gateway", gateway.make_gateway(hosting.opened(), listening), listening, websocket=MAX_FRAME)


@app.command(
    "log",
    epilog=examples(
        "maia serve log --home met",
        "maia serve log --home met --host 0.0.0.0 --port 8443 --tls-cert cert.pem --tls-key key.pem",
    ),
)
@unpacked
def serve_log(hosting: Hosting) -> None:
    """Serve the home's log, read-only, to the brokers that may connect to its network: `maia link pull` copies it.

    What is served is sealed and signed by those who published it. Who asks proves its key and shows what lets it
    connect; so does this home's broker.
    """
    from maia.services import log

    listening = hosting.listening(8474)
    _serve("log", log.make_log(hosting.opened(), listening), listening)


@app.command(
    "console",
    epilog=examples(
        "maia serve console --home met",
        "maia serve console --home met --host 0.0.0.0 --port 8443 --tls-cert cert.pem --tls-key key.pem",
    ),
)
@unpacked
def serve_console(*, passphrase_file: options.PassphraseFile = None, hosting: Hosting) -> None:
    """Run the console of the home's domain: pages for the domain's key, and for whom it names officers and auditors.

    Officers may look and revoke, auditors look; everybody logs in by key, in the browser or with `maia login`. Without
    TLS it listens on this machine only. Revoking takes the private key of the list's signer, in this home.
    """
    from maia.cli.read.passphrases import passphrase_source
    from maia.services import console

    listening = hosting.listening(8475)
    ask = None if passphrase_file is None else passphrase_source(passphrase_file, what="the list's key")
    _serve("console", console.make_console(hosting.opened(), listening, passphrase=ask), listening)


def _serve(what: str, service: http.App, listening: http.Listening, *, websocket: int | None = None) -> None:
    from maia.services import http

    address = f"{'http' if listening.certificate is None else 'https'}://{listening.host}:{listening.port}"
    http.serve(service, listening, started=lambda _port: note(f"the {what} serves on {address}"), websocket=websocket)
    note(f"the {what} has stopped")
