"""Response items that are no messages: tool calls and outputs of every kind Codex knows (README.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from ....protocol.json_value import JSON
from ..corelog.session_log import SessionLog
from ..corelog.shapes import dict_of, first_text, json_text, list_of, text_blocks, text_of
from .content import message_blocks, output_blocks

Item: TypeAlias = dict[str, JSON]


def _name(item: Item) -> str:
    """A tool's name; a namespace (an MCP server) goes before it."""
    name = first_text(item.get("name"), dict_of(item.get("function")).get("name"))
    namespace = text_of(item.get("namespace"))
    return f"{namespace}.{name}" if namespace and name and not name.startswith(namespace) else name


def _call_id(item: Item) -> str:
    """Items without any id are paired by the name of their tool."""
    named = _name(item)
    return first_text(item.get("call_id"), item.get("id"), f"name:{named}" if named else "")


def _function_call(log: SessionLog, item: Item) -> None:
    arguments = item.get("arguments")
    if arguments is None:
        arguments = dict_of(item.get("function")).get("arguments")
    log.call(_call_id(item), _name(item), json_text(arguments))


def _custom_call(log: SessionLog, item: Item) -> None:
    log.call(_call_id(item), _name(item), json_text(item.get("input")))


def _shell_call(log: SessionLog, item: Item) -> None:
    log.call(_call_id(item), "local_shell", json_text(item.get("action")))


def _web_search(log: SessionLog, item: Item) -> None:
    log.call(_call_id(item), "web_search", json_text(item.get("action")))


def _tool_search(log: SessionLog, item: Item) -> None:
    log.call(_call_id(item), "tool_search", json_text(item.get("arguments")))


def _image(log: SessionLog, item: Item) -> None:
    # ``result`` is the picture itself: it stays in the native record.
    log.call(_call_id(item), "image_generation", text_of(item.get("revised_prompt")))


def _output(log: SessionLog, item: Item) -> None:
    value = item.get("output") if "output" in item else item.get("result")
    blocks, failed = output_blocks(value)
    log.result(_call_id(item), blocks, is_error=failed)


def _tools_found(log: SessionLog, item: Item) -> None:
    names = [text_of(dict_of(tool).get("name")) for tool in list_of(item.get("tools"))]
    log.result(_call_id(item), text_blocks("\n".join(name for name in names if name)))


def _agent_message(log: SessionLog, item: Item) -> None:
    """A message another agent put before this one."""
    source: dict[str, JSON] = {"kind": "agent"}
    source.update({key: item[key] for key in ("author", "recipient") if isinstance(item.get(key), str)})
    log.user(message_blocks(item.get("content")), source, message_id=text_of(item.get("id")))


TOOL_ITEMS: Final[dict[str, Callable[[SessionLog, Item], None]]] = {
    "function_call": _function_call,
    "tool_call": _function_call,
    "custom_tool_call": _custom_call,
    "local_shell_call": _shell_call,
    "web_search_call": _web_search,
    "tool_search_call": _tool_search,
    "image_generation_call": _image,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    "local_shell_call_output": _output,
    "mcp_tool_call_output": _output,
    "tool_result": _output,
    "function_result": _output,
    "tool_search_output": _tools_found,
    "agent_message": _agent_message,
}
BARE_ITEMS: Final = frozenset((*TOOL_ITEMS, "message", "reasoning", "ghost_snapshot"))
"""Item types as they stand in logs without an envelope."""
