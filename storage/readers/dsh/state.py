"""What a dsh mapper remembers between two reads of a growing log."""

from __future__ import annotations

from typing import Final

import msgspec

from ....protocol.header import SessionHeader

VERSION: Final = 1


class HeaderState(msgspec.Struct, array_like=True, frozen=True):
    """A session header, field by field: attrs classes do not pass through msgpack."""

    id: str
    created_at: int
    cwd: str | None
    parent_session: str | None
    seed_length: int | None
    origin: str | None
    delegation_depth: int | None
    agent_preset: str | None

    @classmethod
    def of(cls, header: SessionHeader) -> HeaderState:
        return cls(
            header.id,
            header.created_at,
            header.cwd,
            header.parent_session,
            header.seed_length,
            header.origin,
            header.delegation_depth,
            header.agent_preset,
        )

    def header(self, seed_length: int | None = None) -> SessionHeader:
        """The header again, with the length of a seed that the log told later."""
        return SessionHeader(
            id=self.id,
            created_at=self.created_at,
            cwd=self.cwd,
            parent_session=self.parent_session,
            seed_length=self.seed_length if seed_length is None else seed_length,
            origin=self.origin,
            delegation_depth=self.delegation_depth,
            agent_preset=self.agent_preset,
        )


class MapperState(msgspec.Struct, array_like=True):
    """Owned by one mapper.

    ``calls`` holds open calls by the place of their ``tool/call``; ``result_ids`` the message ids that
    results without identity took over from what they replace. ``adrift``: a record was lost in a log
    without seqs, so what it says about earlier events cannot be resolved any more.
    """

    version: int = VERSION
    header: HeaderState | None = None
    seeded: bool = False
    inherited: int = 0
    time: int = 0
    known: bool = False
    adrift: bool = False
    noted: int = 0
    refusal: tuple[str, str] | None = None
    runs: list[tuple[int, int, int]] = msgspec.field(default_factory=list)
    calls: dict[int, str] = msgspec.field(default_factory=dict)
    result_ids: dict[int, str] = msgspec.field(default_factory=dict)
    surface: bytes = b""


def decode_state(state: bytes) -> MapperState:
    """Raises: ValueError: not a state of this version of the mapper."""
    decoded = msgspec.msgpack.decode(state, type=MapperState)
    if decoded.version != VERSION:
        raise ValueError("the state of another version of the mapper")
    return decoded
