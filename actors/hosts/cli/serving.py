"""Commands that run or govern the service: serve, token, mcp."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import click

from ....protocol.wire.identity import Role
from .errors import CommandError
from .options import common, parse_sources, settings, source_option


@click.command()
@common
@source_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0 picks a free port."
)
@click.option("--tls-cert", type=click.Path(path_type=Path, exists=True), help="Certificate chain (PEM).")
@click.option("--tls-key", type=click.Path(path_type=Path, exists=True), help="Private key (PEM).")
@click.option(
    "--allow-plain-remote", is_flag=True, help="Listen beyond loopback without TLS. You were warned."
)
@click.option("--origin", "origins", multiple=True, help="A browser origin that may connect. Repeatable.")
@click.option("--retain", is_flag=True, help="Keep copies of all logs, so that history outlives its source.")
@click.option("--grace", type=click.FloatRange(0), default=5.0, show_default=True, help="Seconds to drain.")
@click.option("--search-off", is_flag=True, help="Run without search; traces and reads work.")
@click.option("--verbose", is_flag=True, help="Log to standard error at debug level (may show log content).")
@click.pass_context
def serve(
    ctx: click.Context,
    sources: tuple[str, ...],
    host: str,
    port: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    allow_plain_remote: bool,
    origins: tuple[str, ...],
    retain: bool,
    grace: float,
    search_off: bool,
    verbose: bool,
) -> None:
    """Serve one data directory over WebSocket until told to stop.

    Prints one line of JSON when ready: {"type":"ready","url":…,"token_file":…,"pid":…}. SIGTERM or Ctrl-C
    drains (goaway, grace, then abort); a second one stops at once.
    """
    import attrs
    import trio

    from ...server_config import ServerConfig
    from ..assembly import host_config
    from ..running import run_server

    chosen = parse_sources(sources)
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    data_dir = settings(ctx).data_dir.expanduser().absolute()
    config = host_config(data_dir, chosen, retain=retain, watch=True)
    if search_off:
        config = attrs.evolve(config, open_at="never")

    def edge(token_file: Path) -> ServerConfig:
        return ServerConfig(
            host=host,
            port=port,
            token_file=token_file,
            tls_cert=tls_cert,
            tls_key=tls_key,
            allow_plain_remote=allow_plain_remote,
            allowed_origins=frozenset(origins),
        )

    def ready(url: str, token_file: Path, pid: int) -> None:
        line = {"type": "ready", "url": url, "token_file": str(token_file), "pid": pid}
        print(json.dumps(line), flush=True)

    trio.run(run_server, config, edge, ready, grace)


@click.group()
def token() -> None:
    """Make, list and revoke the tokens that other programs connect with."""


@token.command("create")
@common
@click.argument("name")
@click.option("--role", type=click.Choice(["runtime", "reader", "operator"]), required=True)
@click.option("--workspace", "workspaces", multiple=True, help="A folder the token may see. Repeatable.")
@click.option("--no-workspace", is_flag=True, help="Sessions without a folder, too.")
@click.pass_context
def create(ctx: click.Context, name: str, role: str, workspaces: tuple[str, ...], no_workspace: bool) -> None:
    """Make a token and print it once.

    runtime: publishes sessions and calls tools. reader: calls tools and queries. operator: everything.
    """
    from ....storage.tokens import TOKEN_FILE, Workspaces, add_token

    path = settings(ctx).data_dir / TOKEN_FILE
    if role != "operator" and not workspaces and not no_workspace:
        raise CommandError("a runtime or reader token needs at least one --workspace")
    scope: Workspaces = (
        "*" if role == "operator" and not workspaces else [str(Path(item).absolute()) for item in workspaces]
    )
    stored, secret = add_token(
        path,
        name=name,
        role=cast(Role, role),
        workspaces=scope,
        no_workspace=no_workspace,
    )
    if settings(ctx).as_json:
        click.echo(json.dumps({"id": stored.id, "token": secret, "role": role, "workspaces": scope}))
    else:
        click.echo(f"token id {stored.id}; the token itself, shown only now:", err=True)
        click.echo(secret)


@token.command("list")
@common
@click.pass_context
def list_tokens(ctx: click.Context) -> None:
    """List the tokens (never the secrets)."""
    from ....storage.tokens import TOKEN_FILE, read_tokens

    tokens = read_tokens(settings(ctx).data_dir / TOKEN_FILE)
    if settings(ctx).as_json:
        click.echo(
            json.dumps(
                [
                    {
                        "id": item.id,
                        "name": item.name,
                        "role": item.role,
                        "workspaces": item.workspaces,
                        "no_workspace": item.no_workspace,
                        "created_at": item.created_at,
                        "revoked_at": item.revoked_at,
                    }
                    for item in tokens
                ],
                ensure_ascii=False,
            )
        )
        return
    for item in tokens:
        made = datetime.fromtimestamp(item.created_at / 1000, UTC).strftime("%Y-%m-%d")
        where = "everything" if item.workspaces == "*" else ", ".join(item.workspaces) or "no workspace"
        state = "" if item.revoked_at is None else "  revoked"
        click.echo(f"{item.id}  {item.role}  {made}  {item.name}  {where}{state}")


@token.command("revoke")
@common
@click.argument("token_id")
@click.pass_context
def revoke(ctx: click.Context, token_id: str) -> None:
    """Revoke a token by its id; its connections are closed within a second or so."""
    from ....storage.tokens import TOKEN_FILE, revoke_token

    if not revoke_token(settings(ctx).data_dir / TOKEN_FILE, token_id):
        raise CommandError(f"no such token: {token_id}", code="UNKNOWN_TOKEN", exit_code=3)
    click.echo(f"revoked: {token_id}")


COMMANDS: dict[str, click.Command] = {"serve": serve, "token": token}
