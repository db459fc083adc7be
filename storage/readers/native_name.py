"""The native type of a record as part of an event type: what a hostile log writes there must not matter."""

from __future__ import annotations

import re
from typing import Final

from ...protocol.json_value import JSON

_NAME: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def native_name(kind: JSON, *finer: JSON) -> str:
    """``kind``, then each of ``finer`` that is text, with slashes between (``system/api_error``).

    A kind that is no plain name of at most 64 characters reads as ``record``, a finer one as ``other``.
    """
    names = [kind if isinstance(kind, str) and _NAME.fullmatch(kind) else "record"]
    names += [name if _NAME.fullmatch(name) else "other" for name in finer if isinstance(name, str) and name]
    return "/".join(names)
