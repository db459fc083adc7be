"""The command group: `session-query --help` is where a newcomer starts."""

from __future__ import annotations

import sys

import click

from .errors import EXIT_HELP, EXIT_INTERRUPTED, CommandError, fail
from .options import common

EPILOG = """\b
Start here:
  session-query demo                      a real search over sample sessions, served over WebSocket
  session-query index                     read the logs of every tool found on this machine
  session-query search "words you remember"
  session-query serve                     one service for all your agents
"""


class _Group(click.Group):
    """Finds each command's module when it is asked for: `--help` should not import a database."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = _COMMANDS.get(cmd_name)
        if module is None:
            return None
        from importlib import import_module

        commands: dict[str, click.Command] = import_module(f".{module}", __package__).COMMANDS
        return commands[cmd_name]


_COMMANDS = {
    "demo": "demo",
    "index": "logs",
    "sources": "logs",
    "doctor": "logs",
    "forget": "logs",
    "retained": "retained",
    "sessions": "lookup",
    "search": "lookup",
    "events": "lookup",
    "trace": "lookup",
    "event-trace": "lookup",
    "read": "lookup",
    "serve": "serving",
    "token": "tokens",
    "health": "operating",
    "statistics": "operating",
    "mcp": "mcp",
    "tools": "describe",
    "schema": "describe",
}


@click.group(
    cls=_Group,
    epilog=EPILOG + EXIT_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="session-query")
@common
def app() -> None:
    """Search, trace and read what earlier agent sessions did.

    Logs of Claude Code, Codex, dsh and other tools are read where they lie and never written to.
    Commands use the running service of the data directory if there is one, and otherwise do the work
    themselves.
    """


def main() -> None:
    """Entry point. Expected failures become one line on standard error and an exit status."""
    as_json = "--json" in sys.argv
    try:
        app.main(prog_name="session-query", standalone_mode=False)
    except click.exceptions.Exit as done:
        raise SystemExit(done.exit_code) from None
    except click.ClickException as wrong:
        if as_json:
            fail(CommandError(wrong.format_message()), as_json=True)
        wrong.show()
        raise SystemExit(wrong.exit_code) from None
    except (KeyboardInterrupt, click.Abort):
        raise SystemExit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None
    except Exception as error:
        fail(error, as_json=as_json)
