"""Receipts: why an answer can be believed, counted inside the reach and nowhere else (SPEC 16.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs

from ..protocol.collected import Caller
from ..protocol.records import Receipt, UnreadSession, WorkspaceReceipt
from ..storage.index.door import Facts, IndexReader, Reach, Share, StoredSession
from .corpus import Corpus
from .freshness import Freshness


@attrs.frozen
class Receipts:
    """Makes the receipt of one search, from the snapshot that answered it."""

    corpus: Corpus
    freshness: Freshness

    def make(
        self,
        index: IndexReader,
        caller: Caller,
        reach: Reach,
        facts: Facts,
        *,
        within: StoredSession | bool = False,
    ) -> Receipt:
        """In the search's thread. What lies outside the reach is not counted, named or hinted at.

        Args: within: one session was searched, so workspaces are not told apart; damage is counted in the
            session if it is given.
        """
        shares = index.shares(reach)
        unread = index.unread(reach)
        named = (
            self.corpus.gathering.circle(index, caller, {row.key.id for row in unread}, None)
            if unread
            else None
        )
        names = {} if named is None else {entry.key: named.name(entry) for entry in named.entries}
        return Receipt(
            sessions_in_reach=sum(share.sessions for share in shares),
            checked_ago_s=self.freshness.checked_ago_s(),
            tiers=facts.tiers,
            filters_excluded_everything=facts.filters_excluded_everything,
            only_common_words=facts.only_common_words,
            too_broad=facts.too_broad,
            unread=tuple(
                UnreadSession(session_id=names.get(row.key, row.key.id), code=row.state.error or "")
                for row in unread
            ),
            lost_records=within.state.losses
            if isinstance(within, StoredSession)
            else sum(share.losses for share in shares),
            unread_logs=0 if reach.workspaces is not None or within else self.freshness.unread_logs,
            indexing=self._indexing(reach),
            by_workspace=() if within else _by_workspace(caller, shares, unread),
        )

    def _indexing(self, reach: Reach) -> tuple[int, int] | None:
        """How far a first index is: in bytes for who sees all of it, else in percent."""
        progress = self.freshness.first_index()
        if progress is None or reach.workspaces is None:
            return progress
        done, total = progress
        return (100 * done // total if total else 0), 100


def _by_workspace(
    caller: Caller, shares: Sequence[Share], unread: Sequence[StoredSession]
) -> tuple[WorkspaceReceipt, ...]:
    """One entry for each workspace of an operator that looks at several; those it named also when empty."""
    if caller.kind != "operator":
        return ()
    by_cwd = {share.workspace: share for share in shares}
    unreadable = Counter(row.state.header.cwd for row in unread)
    named = by_cwd.keys() | unreadable.keys() if caller.workspaces is None else set(caller.workspaces)
    if len(named) < 2:
        return ()
    return tuple(
        WorkspaceReceipt(
            workspace=cwd,
            sessions_in_reach=by_cwd[cwd].sessions if cwd in by_cwd else 0,
            unread=unreadable[cwd],
            lost_records=by_cwd[cwd].losses if cwd in by_cwd else 0,
        )
        for cwd in sorted(named, key=lambda cwd: (cwd is None, cwd or ""))
    )
