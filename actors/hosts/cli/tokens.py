"""Commands about tokens: who else may connect, as what, to which workspaces (SPEC 18)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import click

from ....protocol.header import is_absolute
from ....protocol.wire.identity import Role
from . import show
from .errors import EXIT_REFUSED, CommandError
from .options import common, settings


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

    path = _data_dir(ctx) / TOKEN_FILE
    if role != "operator" and not workspaces and not no_workspace:
        raise CommandError("a runtime or reader token needs at least one --workspace")
    everything = role == "operator" and not workspaces
    scope: Workspaces = "*" if everything else [_workspace(item) for item in workspaces]
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

    tokens = read_tokens(_data_dir(ctx) / TOKEN_FILE)
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
        click.echo(
            f"{item.id}  {item.role}  {made}  {show.one_line(item.name)}  {show.one_line(where)}{state}"
        )


@token.command("revoke")
@common
@click.argument("token_id")
@click.pass_context
def revoke(ctx: click.Context, token_id: str) -> None:
    """Revoke a token by its id; its connections are closed within a second or so."""
    from ....storage.tokens import TOKEN_FILE, revoke_token

    if not revoke_token(_data_dir(ctx) / TOKEN_FILE, token_id):
        raise CommandError(f"no such token: {token_id}", code="UNKNOWN_TOKEN", exit_code=EXIT_REFUSED)
    click.echo(f"revoked: {token_id}")


@token.command("rotate")
@common
@click.argument("token_id")
@click.pass_context
def rotate(ctx: click.Context, token_id: str) -> None:
    """Give a token a new secret; id, role and workspaces stay.

    The old secret is void at once: connections that used it are closed within a second or so. The local
    operator's new secret is written to its file instead of being shown.
    """
    from ....storage.tokens import OPERATOR_FILE, rotate_token

    secret, is_local = rotate_token(_data_dir(ctx), token_id)
    if secret is None:
        raise CommandError(f"no such token: {token_id}", code="UNKNOWN_TOKEN", exit_code=EXIT_REFUSED)
    if is_local:
        where = str(_data_dir(ctx) / OPERATOR_FILE)
        click.echo(
            json.dumps({"id": token_id, "file": where}) if settings(ctx).as_json else f"written: {where}"
        )
    elif settings(ctx).as_json:
        click.echo(json.dumps({"id": token_id, "token": secret}))
    else:
        click.echo(f"token id {token_id}; the new token, shown only now:", err=True)
        click.echo(secret)


def _workspace(given: str) -> str:
    """An absolute path stays as it is written: workspaces are compared letter by letter (SPEC 0).

    ``~`` is the home folder, also where the shell left it alone.
    """
    return given if is_absolute(given) else str(Path(given).expanduser().absolute())


def _data_dir(ctx: click.Context) -> Path:
    return settings(ctx).data_dir.expanduser().absolute()


COMMANDS: dict[str, click.Command] = {"token": token}
