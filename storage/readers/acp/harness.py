"""DeepSeek Harness's own notifications, ``session.event``: whole core events inside JSON-RPC frames."""

from __future__ import annotations

from ....protocol.json_value import JSON
from ..corelog.session_log import SessionLog
from ..corelog.shapes import dict_of, json_text, list_of, text_of


def harness_event(log: SessionLog, event: dict[str, JSON]) -> str:
    """Map one event by telling it again (its seqs are another log's); returns its native type."""
    kind, data = text_of(event.get("type")), dict_of(event.get("data"))
    message = dict_of(data.get("message"))
    if kind == "user/message":
        source = dict_of(data.get("source")) or {"kind": "user"}
        log.user([*list_of(data.get("content"))], source, message_id=text_of(data.get("id")))
    elif kind == "assistant/message":
        source = dict_of(message.get("source"))
        log.assistant(
            [block for block in list_of(message.get("content")) if dict_of(block).get("type") != "tool-call"],
            provider=text_of(source.get("provider")),
            model=text_of(source.get("model")),
            message_id=text_of(message.get("id")),
        )
    elif kind == "tool/call":
        log.call(text_of(data.get("callId")), text_of(data.get("name")), json_text(data.get("arguments")))
    elif kind == "tool/result":
        block = dict_of(next(iter(list_of(message.get("content"))), None))
        failed = block.get("isError")
        log.result(
            text_of(block.get("toolCallId")),
            [*list_of(block.get("content"))],
            is_error=failed if isinstance(failed, bool) else None,
        )
    elif kind == "session/title":
        log.title(text_of(data.get("title")), {"kind": "provider", "provider": "dsh"})
    elif kind == "turn/start":
        log.turn_start()
    elif kind == "turn/end":
        reason = dict_of(data.get("reason"))
        error = dict_of(reason.get("error"))
        log.turn_end(
            text_of(reason.get("kind")) or "completed",
            text=text_of(error.get("message")),
            code=text_of(error.get("code")),
        )
    elif kind == "step/start":
        log.step_start()
    elif kind == "step/end":
        log.step_end()
    return f"session.event/{kind}"
