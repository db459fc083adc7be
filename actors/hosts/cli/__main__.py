"""``python -m session_query.actors.hosts.cli``: the same as the ``session-query`` script."""

from __future__ import annotations

from .app import main

if __name__ == "__main__":
    main()
