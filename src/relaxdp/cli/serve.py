"""`relaxdp serve`: collector and market as one service."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relaxdp.cli.admin import DEFAULT, DatabaseOption, say_token
from relaxdp.errors import ArgumentError, MissingDependencyError, add_consequence
from relaxdp.service.settings import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from relaxdp.service.observe import MetricsServer


@add_consequence("Nothing was started.")
def serve(
    db: DatabaseOption = DEFAULT,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 8000,
    token_file: Annotated[
        Path | None, typer.Option(help="Write a new operator's token here instead of showing it.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate chain, PEM.")] = None,
    certificate_key: Annotated[Path | None, typer.Option(help="TLS private key, PEM.")] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Address or network whose X-Forwarded-For is believed, like 10.0.0.0/8; may be repeated.",
        ),
    ] = None,
    rate: Annotated[float, typer.Option(help="Requests a second of one client; 0 for no limit.", min=0)] = 100.0,
    burst: Annotated[float, typer.Option(help="Requests of one client at once.", min=1)] = 1000.0,
    body_limit: Annotated[int, typer.Option(help="Largest body of a request, in bytes.", min=1000)] = 1 << 20,
    upload_limit: Annotated[
        int, typer.Option(help="Largest file of a level that is published on the market, in bytes.", min=1000)
    ] = 256 << 20,
    embed: Annotated[
        list[str] | None,
        typer.Option(help="Site that may show the survey in a frame, like https://example.org; may be repeated."),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            help="Port on 127.0.0.1 that serves /metrics without a token, and nothing else; 0 takes a free one.",
            min=0,
            max=65535,
        ),
    ] = None,
    request_log: Annotated[bool, typer.Option(help="Log requests, without addresses or contents.")] = True,
) -> None:
    """Serve the collector, the market and their pages; SQLite by default, PostgreSQL by URL."""
    try:
        # Both parts declare their tables when they are imported, and the database is prepared with all of them.
        import relaxdp.collector.component  # noqa: PLC0415
        import relaxdp.market.component  # noqa: F401, PLC0415
        from relaxdp.service import maintenance, observe, pages, run  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError("the service needs more packages: pip install 'relaxdp[server]'.") from None
    if (certificate is None) != (certificate_key is None):
        raise ArgumentError("TLS needs both --certificate and --certificate-key.")
    settings = Settings(
        database=db, host=host, port=port, rate=rate, burst=burst, body_limit=body_limit,
        trusted_proxies=tuple(trusted_proxy or ()), request_log=request_log, certificate=certificate,
        certificate_key=certificate_key, embed=tuple(pages.sites_of(embed or ())), upload_limit=upload_limit,
    )  # fmt: skip
    with ExitStack() as stack:
        listening, address = run.listen(settings)
        stack.callback(listening.close)
        metrics_server = None if metrics_port is None else observe.MetricsServer(metrics_port)
        if metrics_server is not None:
            stack.callback(metrics_server.server_close)
        token = maintenance.prepare(settings, token_file)
        stack.pop_all()  # everything is in order: they stay open
    if token is not None:
        say_token(token, token_file)
    typer.echo(f"dashboard {address}/   market {address}/market")
    if metrics_server is not None:
        typer.echo(f"metrics {metrics_server.address}")
    listening.listen(run.BACKLOG)  # from here on clients wait for us, and are not refused
    # The last line: whoever started us through a pipe waits for the address, and may close the pipe then.
    typer.echo(f"listening on {address}")
    sys.stdout.flush()
    run.serve(partial(build, metrics_server=metrics_server), settings, listening)


def build(settings: Settings, metrics_server: MetricsServer | None = None) -> ASGIApp:
    """Return the application; its database is prepared already."""
    from relaxdp.collector.component import CollectorComponent  # noqa: PLC0415
    from relaxdp.market.component import MarketComponent  # noqa: PLC0415
    from relaxdp.service.application import build_application  # noqa: PLC0415

    return build_application(
        settings, lambda resources: [CollectorComponent(resources), MarketComponent(resources)], metrics_server
    )
