"""Made-up sessions for the bench: the same for the same seed, about 550 characters an event."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from ...protocol.json_value import JSON

CREATED_MS: Final = 1_790_000_000_000
VOCABULARY: Final = 20_000
MEAN_WORDS: Final = 74
HAN: Final = "数据库连接失败重试用户登录文件缓存服务器请求配置测试代码更新错误日志网络时间参数"


class Material:
    """Texts after Zipf's law: words, identifiers, unique ids in three of ten, Chinese in one of ten."""

    def __init__(self, seed: int = 1) -> None:
        self.rng = random.Random(seed)

    def text(self) -> str:
        count = max(3, int(self.rng.lognormvariate(3.9, 0.9)))
        words, weights = _vocabulary()
        found = self.rng.choices(words, cum_weights=weights, k=count)
        if self.rng.random() < 0.3:
            found.append(f"{self.rng.getrandbits(64):016x}")
        if self.rng.random() < 0.1:
            found.append("".join(self.rng.choices(HAN, k=self.rng.randrange(2, 40))))
        return " ".join(found)

    def event(self, seq: int, text: str | None = None) -> JSON:
        """A prompt, an answer or a tool call, in turn; without ``seq``, as runtimes send them."""
        text = self.text() if text is None else text
        time = CREATED_MS + seq * 1_000
        blocks: JSON = [{"type": "text", "text": text}]
        if seq % 3 == 0:
            source: JSON = {"kind": "user"}
            data: JSON = {"id": f"m{seq}", "role": "user", "source": source, "content": blocks}
            return {"type": "user/message", "time": time, "surfaceOp": "append", "data": data}
        if seq % 3 == 1:
            model: JSON = {"kind": "model", "provider": "p", "model": "m"}
            message: JSON = {"id": f"m{seq}", "role": "assistant", "source": model, "content": blocks}
            answer: JSON = {"turn": 1, "step": 1, "message": message}
            return {"type": "assistant/message", "time": time, "surfaceOp": "append", "data": answer}
        arguments = json.dumps({"command": text})
        call: JSON = {"turn": 1, "step": 1, "callId": f"c{seq}", "name": "bash", "arguments": arguments}
        return {"type": "tool/call", "time": time, "data": call}

    def events(self, count: int, first: int = 0) -> list[JSON]:
        return [self.event(seq) for seq in range(first, first + count)]


def header(session_id: str, cwd: str = "/bench") -> dict[str, JSON]:
    return {"version": 0, "id": session_id, "createdAt": CREATED_MS, "cwd": cwd}


def write_logs(root: Path, material: Material, sessions: int, events: int, workspaces: int = 40) -> int:
    """Write stored sessions as dsh logs below ``root``, one file each. Returns their bytes."""
    size = 0
    for number in range(sessions):
        session_id = f"stored-{number:06d}"
        folder = root / f"--work-{number % workspaces}--" / session_id
        folder.mkdir(parents=True, exist_ok=True)
        cwd = f"/projects/{number % workspaces}"
        lines: list[JSON] = [{"type": "session", "delegationDepth": 0, **header(session_id, cwd)}]
        for seq, event in enumerate(material.events(events)):
            assert isinstance(event, dict)
            lines.append({"type": event["type"], "seq": seq, **event})
        content = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
        size += (folder / "session.jsonl").write_bytes(content)
    return size


def numbered(prefix: str) -> Iterator[str]:
    """Session ids that never repeat in one process."""
    return (f"{prefix}-{number}" for number in itertools.count())


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    """All words, and their weights added up."""
    rng = random.Random(1)
    words = [_word(rng, rank) for rank in range(VOCABULARY)]
    return words, list(itertools.accumulate(1 / (rank + 1) for rank in range(VOCABULARY)))


def _word(rng: random.Random, rank: int) -> str:
    syllables = 1 + min(3, rank.bit_length() // 5) + (rng.random() < 0.3)
    plain = "".join(rng.choice("bcdfglmnprstv") + rng.choice("aeiou") for _ in range(syllables))
    kind = rng.random() if rank >= 60 else 0.0
    if kind < 0.8:
        return plain
    other = "".join(rng.choice("bcdfglmnprstv") + rng.choice("aeiou") for _ in range(2))
    return (f"{plain}_{other}", f"{plain}{other.capitalize()}", f"src/{plain}/{other}.py")[rank % 3]
