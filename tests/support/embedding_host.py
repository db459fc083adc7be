from collections.abc import Sequence
from typing import Any

import trio

import session_query as sq

NOTES = sq.SessionHeader(id="notes", created_at=1, cwd="/proj")


def message(text: str) -> Any:
    content = [{"type": "text", "text": text}]
    return {"id": "m1", "role": "user", "source": {"kind": "user"}, "content": content}


class Archive:
    """The host's own store. Any object with these four methods will do."""

    async def list(self, signal: sq.Signal) -> Sequence[sq.SessionHeader]:
        return [NOTES]

    async def list_snapshots(self, signal: sq.Signal) -> Sequence[sq.SessionSnapshot]:
        return [sq.SessionSnapshot(header=NOTES, revision="1")]  # moves whenever the log does

    async def inspect(self, session_id: str, signal: sq.Signal) -> sq.Inspected:
        return sq.Inspected(header=NOTES, events=await self.read_from(session_id, 0, signal))

    async def read_from(self, session_id: str, seq: int, signal: sq.Signal) -> Sequence[sq.Event]:
        data = message("foxes cannot be trusted")
        return [sq.Event(type="user/message", seq=0, time=1, data=data, surface_op="append")][seq:]


async def agent(service: sq.Service, name: str, said: list[Any]) -> None:
    live = await service.attach({"version": 0, "id": name, "createdAt": 1, "cwd": "/proj"})
    data = message(f"{name} saw the quick brown fox")
    prompt: Any = {"type": "user/message", "time": 1, "surfaceOp": "append", "data": data}
    await live.append([prompt])  # durable, and found by the next search
    result = await service.call_tool("session_search", {"query": "fox"}, live.caller, deadline_ms=5_000)
    said.append((name, result.text, result.receipt))


async def main(said: list[Any], beats: list[float]) -> None:
    async def heartbeat() -> None:  # the host's other work goes on beside it
        while True:
            beats.append(trio.current_time())
            await trio.sleep(0.01)

    async with trio.open_nursery() as host:
        host.start_soon(heartbeat)
        async with sq.open_service(sq.ServiceConfig()) as service:  # in memory; data_dir=… keeps it
            service.mount("archive", Archive())
            async with trio.open_nursery() as agents:
                for name in ("ada", "bob"):
                    agents.start_soon(agent, service, name, said)
            anyone = sq.Caller(kind="workspace", workspaces=("/proj",))
            target = {"session_id": "notes", "seq": 0}
            read = await service.call_tool("session_event_read", target, anyone)
            said.append(("host", read.text, None))
        host.cancel_scope.cancel()  # the service has ended by now; nothing of it is left


if __name__ == "__main__":
    said: list[Any] = []
    trio.run(main, said, [])
    print(*said, sep="\n\n")
