"""Captures of ``codex exec --json``: ``thread.*``, ``turn.*`` and ``item.*`` lines without times.

An item comes as ``started``, any number of ``updated``, ``completed``; a command or MCP call becomes a call
when it starts and a result when it completes.
"""

from __future__ import annotations

from ....protocol.json_value import JSON
from ..corelog.session_log import SessionLog
from ..corelog.shapes import dict_of, first_text, json_text, list_of, text_blocks, text_of
from .content import command_text, output_blocks

_TOOLS = frozenset(("command_execution", "mcp_tool_call", "file_change", "web_search", "collab_tool_call"))
_WITHOUT_OUTPUT = frozenset(("file_change", "web_search"))


def is_stream_type(kind: str) -> bool:
    return kind.startswith(("thread.", "turn.", "item."))


def stream_line(log: SessionLog, kind: str, line: dict[str, JSON]) -> str:
    """Map one line; returns its native type."""
    if kind == "turn.started":
        log.turn_start()
    elif kind == "turn.completed":
        log.turn_end("completed")
    elif kind == "turn.failed":
        log.turn_end("error", text=text_of(dict_of(line.get("error")).get("message")))
    elif kind.startswith("item."):
        return _item(log, kind, dict_of(line.get("item")))
    return kind


def _item(log: SessionLog, kind: str, item: dict[str, JSON]) -> str:
    what = first_text(item.get("type"), item.get("item_type"))
    done = kind == "item.completed"
    if what in ("agent_message", "assistant_message") and done:
        log.assistant(text_blocks(text_of(item.get("text"))), message_id=text_of(item.get("id")))
    elif what == "todo_list":
        log.todos([_todo(entry) for entry in list_of(item.get("items"))])
    elif what in _TOOLS:
        _tool(log, kind, what, item)
    return f"{kind}/{what}" if what else kind


def _todo(entry: JSON) -> JSON:
    done = dict_of(entry).get("completed") is True
    return {"content": text_of(dict_of(entry).get("text")), "status": "completed" if done else "pending"}


def _tool(log: SessionLog, kind: str, what: str, item: dict[str, JSON]) -> None:
    call_id = text_of(item.get("id"))
    if kind == "item.started" or (kind == "item.completed" and call_id not in log.state.calls):
        log.call(call_id, *_call(what, item))
    if kind != "item.completed":
        return
    if what in _WITHOUT_OUTPUT:
        log.state.calls.pop(call_id, None)
        return
    failed = item.get("status") == "failed" or item.get("exit_code") not in (None, 0)
    if what == "command_execution":
        blocks = text_blocks(text_of(item.get("aggregated_output")))
    else:
        blocks, _ = output_blocks(item.get("result"))
        blocks += text_blocks(text_of(dict_of(item.get("error")).get("message")))
    log.result(call_id, blocks, is_error=failed)


def _call(what: str, item: dict[str, JSON]) -> tuple[str, str]:
    if what == "command_execution":
        return "command_execution", command_text(item.get("command"))
    if what == "mcp_tool_call":
        server, tool = text_of(item.get("server")), text_of(item.get("tool"))
        return f"{server}.{tool}" if server else tool, json_text(item.get("arguments"))
    if what == "file_change":
        return what, json_text(item.get("changes"))
    if what == "web_search":
        return what, text_of(item.get("query"))
    return first_text(item.get("tool"), what), json_text(item.get("arguments") or item.get("prompt"))
