"""A seeded corpus of made-up sessions, the same everywhere, one session at a time.

Words follow a Zipf law over 120,000 made-up ones, among them identifiers, paths, calls, error codes and
numbers; three events in ten hold a unique id, one in ten Chinese. An event has 556 characters in the mean,
a session about 150 events. Planted words stand in a known share of events. It is synthetic: vocabulary
growth and skew of real logs differ, mostly in what the index weighs.
"""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Iterator
from typing import Final

import attrs

from ...protocol.documents import Document
from ...protocol.header import SessionHeader
from ...storage.index import SessionKey, SessionState

VOCABULARY: Final = 120_000
ZIPF: Final = 1.05
MEAN_WORDS: Final = 74
EVENTS_A_SESSION: Final = 150
PLANTED: Final = {"zqrare": 0.0001, "zqone": 0.01, "zqten": 0.10, "zqhalf": 0.50}
PHRASE: Final = ("zqalpha zqbeta", 0.02)
SMALL_WORKSPACE: Final = "/proj/one-percent"
LARGE_WORKSPACE: Final = "/proj/ten-percent"
_HAN: Final = (
    "数据库连接失败重试用户登录文件缓存服务器请求配置测试代码更新错误日志网络时间参数函数对象索引查询结果"
)
_TYPES: Final = ("user/message", "assistant/message", "tool/call", "tool/result")
_TYPE_WEIGHTS: Final = (8, 30, 60, 100)


@attrs.frozen
class MadeSession:
    key: SessionKey
    state: SessionState
    documents: list[Document]


class Corpus:
    """``events`` events, the same for the same seed."""

    def __init__(self, events: int, seed: int = 1) -> None:
        self.events = events
        self.seed = seed
        rng = random.Random(seed)
        self.words = [_word(rng, n) for n in range(VOCABULARY)]
        weights = (1.0 / (n + 1) ** ZIPF for n in range(VOCABULARY))
        self.cumulative = list(itertools.accumulate(weights))

    def sessions(self) -> Iterator[MadeSession]:
        """Every session, in order of creation."""
        left, number = self.events, 0
        while left > 0:
            rng = random.Random(self.seed * 1_000_003 + number)
            size = min(left, max(2, int(rng.lognormvariate(4.8, 0.6))))
            yield self._session(rng, number, size)
            left -= size
            number += 1

    def _session(self, rng: random.Random, number: int, size: int) -> MadeSession:
        share = rng.random()
        if share < 0.01:
            cwd = SMALL_WORKSPACE
        elif share < 0.11:
            cwd = LARGE_WORKSPACE
        else:
            cwd = f"/proj/project-{rng.randrange(40)}"
        created = 1_700_000_000_000 + number * 60_000
        identity = f"{number:08x}-{rng.getrandbits(64):016x}"
        header = SessionHeader(id=identity, created_at=created, cwd=cwd)
        documents = [
            Document(
                seq=seq,
                type=rng.choices(_TYPES, _TYPE_WEIGHTS)[0],
                time=created + seq * 1_000 + rng.randrange(900),
                surface="current",
                text=self.text(rng),
            )
            for seq in range(size)
        ]
        state = SessionState(header=header, rank=1, length=size, revision="1")
        return MadeSession(SessionKey("journal", "", identity), state, documents)

    def text(self, rng: random.Random) -> str:
        """One event's text."""
        count = max(3, int(rng.lognormvariate(3.9, 0.9)))
        found = rng.choices(self.words, cum_weights=self.cumulative, k=count)
        for word, share in (*PLANTED.items(), PHRASE):
            if rng.random() < share:
                found.insert(rng.randrange(len(found) + 1), word)
        if rng.random() < 0.3:
            found.insert(rng.randrange(len(found) + 1), f"{rng.getrandbits(64):016x}")
        if rng.random() < 0.1:
            found.insert(rng.randrange(len(found) + 1), "".join(rng.choices(_HAN, k=rng.randrange(2, 40))))
        for at in range(11, len(found), 12):
            found[at] += rng.choice((".", ",", ";", ".\n", ":\n"))
        return " ".join(found)

    def sentences(self, count: int, words: int = 10) -> list[str]:
        """Ten-word queries: half of them consecutive words of some event, half drawn like its words."""
        rng = random.Random(self.seed + 7)
        found = []
        for number in range(count):
            if number % 2:
                chosen = self.text(rng).split()
                start = rng.randrange(max(1, len(chosen) - words))
                found.append(" ".join(chosen[start : start + words]))
            else:
                ranks = [
                    bisect.bisect(self.cumulative, rng.random() * self.cumulative[-1]) for _ in range(words)
                ]
                found.append(" ".join(self.words[rank] for rank in ranks))
        return found


def _word(rng: random.Random, rank: int) -> str:
    plain = _plain(rng, rank)
    kind = rng.random()
    if kind < 0.76 or rank < 60:
        return plain
    other = _plain(rng, rank)
    if kind < 0.82:
        return plain + other.capitalize()
    if kind < 0.90:
        return f"{plain}_{other}"
    if kind < 0.94:
        return f"src/{plain}/{other}.py"
    if kind < 0.97:
        return f"{plain}.{other}()"
    if kind < 0.98:
        return f"ERR_{plain.upper()}"
    return str(rng.randrange(100_000))


def _plain(rng: random.Random, rank: int) -> str:
    syllables = 1 + min(3, rank.bit_length() // 5) + (rng.random() < 0.3)
    return "".join(rng.choice("bcdfglmnprstv") + rng.choice("aeiou") for _ in range(syllables)) + rng.choice(
        ("", "n", "s", "t", "r")
    )
