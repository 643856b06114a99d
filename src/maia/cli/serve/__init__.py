"""`maia serve key-manager|acs`: run a service of a home until it is told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app

if TYPE_CHECKING:
    from fastapi import FastAPI

    from maia.home import Home
    from maia.services import http

app = new_app("Run a service of a home.")

_Host = Annotated[str, typer.Option("--host", help="Where to listen; other than loopback needs TLS.")]
_Port = Annotated[int, typer.Option("--port", min=1, max=65535, help="The port to listen on.")]
_Certificate = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="The server's certificate chain, PEM.")
]
_PrivateKey = Annotated[
    Path | None, typer.Option("--tls-key", metavar="FILE", help="The certificate's private key, PEM.")
]
_Names = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="HOST[:PORT]", help="A further name by which clients know the service."),
]
_Database = Annotated[
    str | None,
    typer.Option(
        "--database", metavar="URL", envvar="MAIA_DATABASE_URL", help="The database, in place of the home's setting."
    ),
]


@app.command(
    "key-manager",
    epilog=examples(
        "maia serve key-manager --home pito",
        "maia serve key-manager --home pito --host 0.0.0.0 --port 8443 --tls-cert cert.pem --tls-key key.pem",
    ),
)
def serve_key_manager(
    home: options.Home = Path(),
    host: _Host = "127.0.0.1",
    port: _Port = 8471,
    tls_cert: _Certificate = None,
    tls_key: _PrivateKey = None,
    name: _Names = None,
    database: _Database = None,
) -> None:
    """Run the key manager of the home's types: it admits brokers and publishes rekey messages into the log.

    Several processes may run over one database: one leads, and the others take over when it is gone.
    """
    from maia.services import key_manager

    opened, listening = _open(home, host, port, tls_cert, tls_key, name, database)
    _serve("key manager", key_manager.make_key_manager(opened, listening), listening)


@app.command(
    "acs",
    epilog=examples(
        "maia serve acs --home met",
        "maia serve acs --home met --database postgresql://maia@db.example/met",
    ),
)
def serve_acs(
    home: options.Home = Path(),
    host: _Host = "127.0.0.1",
    port: _Port = 8472,
    tls_cert: _Certificate = None,
    tls_key: _PrivateKey = None,
    name: _Names = None,
    database: _Database = None,
) -> None:
    """Run the access control service of the home's domain: role policy in, capabilities out.

    Several processes may run over one database: one leads, and the others take over when it is gone.
    """
    from maia.services.access_control import make_access_control

    opened, listening = _open(home, host, port, tls_cert, tls_key, name, database)
    _serve("access control service", make_access_control(opened, listening), listening)


def _open(
    home: Path,
    host: str,
    port: int,
    certificate: Path | None,
    private_key: Path | None,
    names: list[str] | None,
    database: str | None,
) -> tuple[Home, http.Listening]:
    from dataclasses import replace

    from maia.home import Home
    from maia.services import http

    opened = Home.open(home)
    if database is not None:
        opened = replace(opened, config=replace(opened.config, database=database))
    listening = http.Listening(
        host=host, port=port, certificate=certificate, private_key=private_key, names=tuple(names or ())
    )
    return opened, listening


def _serve(what: str, service: FastAPI, listening: http.Listening) -> None:
    from maia.cli.show.output import note
    from maia.services import http

    address = f"{'http' if listening.certificate is None else 'https'}://{listening.host}:{listening.port}"
    http.serve(service, listening, started=lambda _port: note(f"the {what} serves on {address}"))
    note(f"the {what} has stopped")
