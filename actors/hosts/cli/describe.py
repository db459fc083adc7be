"""Commands that describe the product to programs: tools, schema."""

from __future__ import annotations

import json

import click

from ....protocol.json_value import JSON
from .options import common, settings


@click.command()
@common
@click.pass_context
def tools(ctx: click.Context) -> None:
    """Show the five model tools: names, descriptions, parameters."""
    from ....protocol.tools.prompt import PROMPT_TEXT
    from ....protocol.tools.schemas import SPECS

    listed: list[JSON] = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters(),
            "concurrency": tool.concurrency,
        }
        for tool in SPECS.values()
    ]
    if settings(ctx).as_json:
        click.echo(json.dumps({"tools": listed, "prompt": PROMPT_TEXT}, ensure_ascii=False, indent=2))
        return
    for tool in SPECS.values():
        click.echo(f"{tool.name}  ({tool.concurrency})")
        click.echo("  " + tool.description.replace("\n", "\n  "))
        schema = tool.parameters()
        parameters = schema if isinstance(schema, dict) else {}
        properties = parameters.get("properties")
        required = parameters.get("required")
        for name, shape in properties.items() if isinstance(properties, dict) else ():
            needed = " (required)" if isinstance(required, list) and name in required else ""
            meaning = shape.get("description", "") if isinstance(shape, dict) else ""
            click.echo(f"    {name}{needed}: {meaning}")
        click.echo()


@click.command()
def schema() -> None:
    """Print the JSON Schema of every wire message."""
    from ....protocol.wire.schema import wire_schema

    click.echo(json.dumps(wire_schema(), ensure_ascii=False, indent=2))


COMMANDS = {"tools": tools, "schema": schema}
