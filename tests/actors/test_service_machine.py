"""One state machine drives a whole service against a model of plain dictionaries.

Attach, append, detach, mount, unmount, remount, change a store, search, page, cancel, close, reopen: after
any of them, every question is answered as the model says.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import trio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from models.service_model import Known, ServiceModel
from session_query import Code, LiveHandle, ServiceConfig, Signal
from support.doors import Answer, World, open_world
from support.providers import FakeProvider, Hang
from support.sessions import HERE, T0, THERE, head, header, prompts, sent

T = TypeVar("T")
IDS, STORES, CWDS = ("a", "b", "c", "d"), ("p", "q"), (HERE, THERE)
TEXTS = ("fox", "fox bear", "the owl", "fox fox")
WORDS = ("fox", "bear", "owl")
REACH: dict[str, tuple[str, ...] | None] = {"operator": None, "here": (HERE,), "there": (THERE,)}

ids, cwds = st.sampled_from(IDS), st.sampled_from(CWDS)
texts, askers = st.sampled_from(TEXTS), st.sampled_from(sorted(REACH))
stores = st.sampled_from(STORES)


class Loop:
    """A Trio loop in a thread of its own, with an open world; the machine's steps are run in it."""

    def __init__(self, config: ServiceConfig) -> None:
        self._config = config
        self._ready, self._stop = threading.Event(), trio.Event()
        self._token: trio.lowlevel.TrioToken
        self.world: World
        self._thread = threading.Thread(target=trio.run, args=(self._main,))
        self._thread.start()
        self._ready.wait()

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        try:
            async with open_world(self._config, wire=False) as self.world:
                self._ready.set()
                await self._stop.wait()
        finally:
            self._ready.set()

    def run(self, step: Callable[[World], Awaitable[T]]) -> T:
        async def stepped() -> T:
            with trio.fail_after(30):
                return await step(self.world)

        return trio.from_thread.run(stepped, trio_token=self._token)

    def end(self) -> None:
        trio.from_thread.run_sync(self._stop.set, trio_token=self._token)
        self._thread.join()


class ServiceMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model = ServiceModel(stores={name: {} for name in STORES})
        self.handles: dict[tuple[str, str], LiveHandle] = {}
        self.providers = {name: FakeProvider(name) for name in STORES}
        self.closed = False

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.loop = Loop(ServiceConfig(data_dir=Path(self.folder.name)))
        self.mount("p")
        for number, id_ in enumerate(IDS):
            self.store("p", id_, CWDS[number % 2], "fox")
            self.attach(id_, CWDS[number // 2])
            self.append(id_, CWDS[number // 2], "fox")

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.loop.end()
            self.folder.cleanup()

    def ask(self, method: str, who: str, **params: Any) -> Answer:
        return self.loop.run(lambda world: world.door.query(method, params, who=who))  # type: ignore[arg-type]

    # -- publishing --------------------------------------------------------------------------------

    @rule(id_=ids, cwd=cwds)
    def attach(self, id_: str, cwd: str) -> None:
        key = id_, cwd
        fields = head(id_, cwd, at=T0 + IDS.index(id_))
        self.handles[key] = self.loop.run(lambda world: world.service.attach(fields))
        assert self.handles[key].next_seq == len(self.model.published.get(key, []))
        if key not in self.model.live:
            self.model.moved(cwd)
        self.model.published.setdefault(key, [])
        self.model.live.add(key)

    @rule(id_=ids, cwd=cwds, text=texts)
    def append(self, id_: str, cwd: str, text: str) -> None:
        key = id_, cwd
        if key not in self.model.live:
            return
        handle = self.handles[key]
        batch = sent(prompts(text, start=handle.next_seq))
        assert self.loop.run(lambda _: handle.append(batch)) == len(self.model.published[key])
        self.model.published[key].append(text)
        self.model.moved(cwd)

    @rule(id_=ids, cwd=cwds)
    def detach(self, id_: str, cwd: str) -> None:
        key = id_, cwd
        if key in self.handles:
            self.loop.run(lambda _: self.handles[key].detach())
            if key in self.model.live:
                self.model.live.discard(key)
                self.model.moved(cwd)

    # -- stores ------------------------------------------------------------------------------------

    @rule(name=stores, id_=ids, cwd=cwds, text=texts)
    def store(self, name: str, id_: str, cwd: str, text: str) -> None:
        """A store holds an id once: putting it elsewhere moves it."""
        held = self.model.stores[name]
        for old in [key for key in held if key[0] == id_]:
            self.model.stored_moved(name, old)
            del held[old]
        held[id_, cwd] = [text]
        self.providers[name].put(header(id_, cwd, at=T0 + IDS.index(id_)), prompts(text))
        self.model.stored_moved(name, (id_, cwd))

    @rule(name=stores, id_=ids)
    def drop(self, name: str, id_: str) -> None:
        for key in [key for key in self.model.stores[name] if key[0] == id_]:
            del self.model.stores[name][key]
            del self.providers[name].sessions[id_]
            self.model.stored_moved(name, key)

    @rule(name=stores)
    def mount(self, name: str) -> None:
        """Also when it is mounted: replaced by itself."""

        async def step(world: World) -> None:
            world.service.mount(name, self.providers[name])

        self.loop.run(step)
        if name not in self.model.mounted:
            self.model.mounted.append(name)
        self.model.moved_everywhere_of(name)

    @rule(name=stores)
    def unmount(self, name: str) -> None:
        async def step(world: World) -> bool:
            return world.service.unmount(name)

        assert self.loop.run(step) == (name in self.model.mounted)
        if name in self.model.mounted:
            self.model.mounted.remove(name)
            self.model.moved_everywhere_of(name)

    @rule(name=stores, operation=st.sampled_from(["list", "list_snapshots", "inspect"]))
    def fail_once(self, name: str, operation: str) -> None:
        """A store out of order for one search fails nothing, and is forgiven."""
        provider = self.providers[name]
        provider.faults = {operation: OSError("gone")}
        answer = self.ask("search_sessions", "operator", query="fox")
        assert answer.code == (Code.INDEX_FAILED.value if self.closed else None)
        provider.faults = {}

    # -- asking ------------------------------------------------------------------------------------

    @rule()
    def search(self) -> None:
        for who, workspaces in REACH.items():
            for word in WORDS:
                answer = self.ask("search_sessions", who, query=word, limit=100)
                if self.closed:
                    assert answer.code == Code.INDEX_FAILED.value
                    continue
                assert sorted(answer.ids()) == self.model.matching(workspaces, word)
                receipt = answer.value["receipt"]
                assert receipt["sessions_in_reach"] == len(self.model.seen(workspaces))
                assert receipt["unread"] == []
                self.model.reconciled()

    @precondition(lambda self: not self.closed)
    @rule(who=askers, limit=st.integers(1, 2))
    def page(self, who: str, limit: int) -> None:
        """Pages to the end give each result once and in order."""
        whole = self.ask("search_sessions", who, query="fox", limit=100).ids()
        found: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            answer = self.ask("search_sessions", who, query="fox", limit=limit, **cursor)
            found += answer.ids()
            if "next_cursor" not in answer.value:
                break
            cursor = {"cursor": answer.value["next_cursor"]}
        assert found == whole

    @precondition(lambda self: not self.closed)
    @rule(change=st.sampled_from(["append", "mount", "store", "detach", "drop", "attach"]), id_=ids, cwd=cwds)
    def change_between_pages(self, change: str, id_: str, cwd: str) -> None:
        """A change makes the cursors stale that are bound to what it changed, and no others (SPEC 6.9)."""
        cursors = {}
        for who in REACH:
            answer = self.ask("search_sessions", who, query="fox", limit=1)
            cursors[who] = answer.value.get("next_cursor")
        self.model.reconciled()
        before = self.model.moves.copy()
        self.model.unsure.clear()
        {
            "append": lambda: self.append(id_, cwd, "fox"),
            "mount": lambda: self.mount("p"),
            "store": lambda: self.store("p", id_, cwd, "fox owl"),
            "detach": lambda: self.detach(id_, cwd),
            "drop": lambda: self.drop("p", id_),
            "attach": lambda: self.attach(id_, cwd),
        }[change]()
        for who, cursor in cursors.items():
            if cursor is None:
                continue
            bound = {"operator": None, "here": HERE, "there": THERE}[who]
            moved = self.model.moves[bound] != before[bound]
            answer = self.ask("search_sessions", who, query="fox", limit=1, cursor=cursor)
            if moved or bound not in self.model.unsure:
                assert answer.code == (Code.STALE_CURSOR.value if moved else None), who

    @rule(who=askers)
    def read(self, who: str) -> None:
        for known in self.model.seen(REACH[who]):
            log = self.ask("read_session", who, session_id=known.name).value
            assert [event["data"]["content"][0]["text"] for event in log["events"]] == list(known.words)
            assert log["header"]["id"] == known.name

    @precondition(lambda self: not self.closed and self.model.mounted)
    @rule(operation=st.sampled_from(["list_snapshots", "inspect"]), stubborn=st.booleans())
    def cancel(self, operation: str, stubborn: bool) -> None:
        """A search that hangs in a store is given up; it changes nothing."""
        name = self.model.mounted[0]
        provider, gate, signal = self.providers[name], Hang(stubborn=stubborn), Signal()
        provider.faults = {operation: gate}

        async def step(world: World) -> str | None:
            codes: list[str | None] = []

            async def search() -> None:
                answer = await world.door.query("search_sessions", {"query": "fox"}, signal=signal)
                codes.append(answer.code)
                gate.entered.set()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(search)
                await gate.entered.wait()
                hangs = not codes
                signal.abort("enough")
                gate.go.set()
            return codes[0] if hangs else None

        assert self.loop.run(step) in (None, Code.ABORTED.value)
        provider.faults = {}

    # -- closing -----------------------------------------------------------------------------------

    @rule()
    def close(self) -> None:
        self.loop.run(lambda world: world.service.close())
        self.closed = True

    @rule()
    def reopen(self) -> None:
        """What was published is there again; nobody is live, nothing is mounted."""
        self.loop.end()
        self.loop = Loop(ServiceConfig(data_dir=Path(self.folder.name)))
        self.model.live.clear()
        self.model.mounted.clear()
        self.handles.clear()
        self.closed = False

    @invariant()
    def listings_agree(self) -> None:
        if not hasattr(self, "loop"):
            return
        for who, workspaces in REACH.items():
            rows = self.ask("list_sessions", who).value["sessions"]
            told = sorted(self.model.record(row) for row in rows)
            expected: list[Known] = self.model.seen(workspaces)
            assert told == [(one.name, one.source, one.cwd, one.live) for one in expected]


TestService = ServiceMachine.TestCase
TestService.settings = settings(
    max_examples=25,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
