"""The numbers of the wire protocol: what is announced, what is refused (SPEC 16.13)."""

from __future__ import annotations

from typing import Final

PROTOCOL_VERSION: Final = 1

SUBPROTOCOL_JSON: Final = "session-query.v1.json"
SUBPROTOCOL_MSGPACK: Final = "session-query.v1.msgpack"
SUBPROTOCOLS: Final = (SUBPROTOCOL_JSON, SUBPROTOCOL_MSGPACK)

FRAME_BYTES: Final = 16 * 1024 * 1024
"""Largest frame a client may send. One event must fit into it."""

FRAME_CONTAINERS: Final = 500_000
"""Most arrays and objects a frame may hold. Decoded they take 30 to 120 MB: ``[],`` is three bytes on the
wire and sixty in memory, so that 16 MB of them would be 300 MB and hold the loop up for seconds."""

FRAME_VALUES: Final = 2_000_000
"""Most values of an ``attach`` or ``append``: arrays, objects, and members of either."""

REQUEST_VALUES: Final = 150_000
"""Most values of any other request. They are decoded in one call, which holds the loop up: 0.1 s for so many
keys (0.65 s for those of a whole frame). A list of 125,000 ids is refused by the service (SPEC 6.8)."""

PART_BYTES: Final = 128 * 1024
"""Answers above this are sent in parts holding at most this many bytes of the encoded answer each.

A JSON part carries JSON text inside a JSON string: quotes double, so a frame stays below twice this.
"""

FETCH_BYTES: Final = 128 * 1024
"""Most bytes one ``chunk`` carries, and the default of ``fetch.limit_bytes``."""

IN_FLIGHT: Final = 64
"""Requests one connection may have running; above, they are answered ``BUSY``."""

DEADLINE_MS_MAX: Final = 2_147_483_647

HELLO_BYTES: Final = 64 * 1024
"""Bytes a connection may send before it is authenticated, the HTTP handshake included."""

TOKEN_CHARS_MAX: Final = 4096
NAME_CHARS_MAX: Final = 200
