"""Codex content as core blocks: messages, tool arguments, tool outputs."""

from __future__ import annotations

from typing import Final

from ....protocol.json_value import JSON
from ..corelog.shapes import dict_of, image_block, json_text, list_of, text_blocks, text_of
from ..decode import decode_record

_TEXT_TYPES: Final = frozenset(("input_text", "output_text", "text", "summary_text", "Text"))
_INJECTED: Final = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<turn_aborted>",
    "<collaboration_mode>",
    "<skill>",
    "<skills_instructions>",
    "<apps_instructions>",
    "<plugins_instructions>",
    "<subagent_notification>",
    "<user_shell_command>",
    "<model_switch>",
    "<personality_spec>",
    "<realtime_conversation>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
)


def message_blocks(content: JSON) -> list[JSON]:
    """The blocks of a message; its content is text, a list of parts, or one part."""
    if isinstance(content, str):
        return text_blocks(content)
    blocks: list[JSON] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            blocks += text_blocks(part)
            continue
        kind = text_of(dict_of(part).get("type"))
        if kind in _TEXT_TYPES:
            blocks += text_blocks(text_of(dict_of(part).get("text")))
        elif kind == "input_image" and dict_of(part).get("image_url"):
            blocks.append(image_block(detail=dict_of(part).get("detail")))
    return blocks


def texts(blocks: list[JSON]) -> str:
    """The text of blocks as one string."""
    return "\n".join(text_of(dict_of(block).get("text")) for block in blocks if dict_of(block).get("text"))


def source_of(role: str, text: str) -> dict[str, JSON]:
    """Who put a user-role message there: a person, the program, or another role of the model's input."""
    if role not in ("user", ""):
        return {"kind": role}
    if text.lstrip().startswith(_INJECTED):
        return {"kind": "context"}
    return {"kind": "user"}


def output_blocks(output: JSON) -> tuple[list[JSON], bool | None]:
    """Blocks of a tool output and whether it failed, as far as it says so.

    ``output`` is text, text that is itself ``{"output", "metadata"}``, ``{"content", "success"}``, or parts.
    """
    if isinstance(output, str):
        return _unwrap(output)
    if isinstance(output, dict) and ("content" in output or "output" in output or "stdout" in output):
        return _structured(output)
    if isinstance(output, (list, dict)):
        blocks = message_blocks(output)
        return (blocks, None) if blocks or not output else (text_blocks(json_text(output)), None)
    return text_blocks(json_text(output)), None


def _unwrap(output: str) -> tuple[list[JSON], bool | None]:
    if not output.startswith("{") or '"output"' not in output:
        return text_blocks(output), None
    try:
        value = decode_record(output.encode("utf-8", "replace"))
    except ValueError:
        return text_blocks(output), None
    if not isinstance(value, dict) or not isinstance(value.get("output"), str):
        return text_blocks(output), None
    return _structured(value)


def _structured(value: dict[str, JSON]) -> tuple[list[JSON], bool | None]:
    metadata = dict_of(value.get("metadata"))
    code = next(
        (
            c
            for c in (metadata.get("exit_code"), value.get("exit_code"), value.get("exitCode"))
            if c is not None
        ),
        None,
    )
    failed: bool | None = None
    if isinstance(value.get("success"), bool):
        failed = not value["success"]
    elif isinstance(code, int) and not isinstance(code, bool):
        failed = code != 0
    parts = [
        value[key] for key in ("content", "output", "stdout", "stderr", "error") if value.get(key) is not None
    ]
    blocks: list[JSON] = []
    for part in parts:
        blocks += message_blocks(part) if isinstance(part, (str, list)) else text_blocks(json_text(part))
    return blocks, failed


def command_text(command: JSON) -> str:
    """A command line, or the words of one."""
    if isinstance(command, list):
        return " ".join(text_of(word) for word in list_of(command))
    return json_text(command)
