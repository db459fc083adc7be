"""A receipt as one closing line (SPEC 16.3): why an answer can be believed, also when it is empty.

"No match" and "could not look" are different sentences: what was not looked at is always named as such.
"""

from __future__ import annotations

from typing import Final

from ..records import Receipt, WorkspaceReceipt
from .lines import one_line, shown_id

_UNREAD_SHOWN: Final = 5


def receipt_line(receipt: Receipt, *, within_session: bool = False) -> str:
    """Return the closing line of a search result: its sentences in a fixed order.

    An operator who searched several workspaces gets the totals and then one line for each.

    Args: within_session: the search was confined to one session, so other sessions are not counted.
    """
    sentences = [_looked_at(receipt, within_session)]
    if receipt.tiers:
        sentences.append(f"Tiers used: {', '.join(receipt.tiers)}.")
    if receipt.only_common_words:
        sentences.append("Only common words were given, so only the exact phrase was looked for.")
        sentences.append("Add a rarer word.")
    if receipt.filters_excluded_everything:
        sentences.append("The filters left nothing to search.")
    if receipt.too_broad:
        sentences.append("Could not look everywhere: this query of symbols alone is too broad.")
        sentences.append("Add a word.")
    sentences.extend(_not_looked_at(receipt))
    return "\n".join([" ".join(sentences), *map(_workspace_line, receipt.by_workspace)])


def _workspace_line(share: WorkspaceReceipt) -> str:
    name = "without a workspace" if share.workspace is None else one_line(share.workspace)
    parts = [_count(share.sessions_in_reach, "session")]
    if share.unread:
        parts.append(f"could not look in {share.unread} more")
    if share.lost_records:
        parts.append(_count(share.lost_records, "damaged record"))
    return f"- {name}: {', '.join(parts)}"


def _looked_at(receipt: Receipt, within_session: bool) -> str:
    if receipt.indexing is not None:
        fresh = "those indexed so far"
    elif receipt.checked_ago_s is None:
        fresh = "current"
    else:
        fresh = f"checked {_seconds(receipt.checked_ago_s)} ago"
    if within_session:
        return f"Looked in this session, {fresh}."
    return f"Looked in {_count(receipt.sessions_in_reach, 'session')}, {fresh}."


def _not_looked_at(receipt: Receipt) -> list[str]:
    sentences = []
    if receipt.indexing is not None:
        done, total = receipt.indexing
        share = min(99, 100 * done // total) if total > 0 else 0
        sentences.append(f"Could not look everywhere yet: the first index is {share} % built.")
        sentences.append("Ask again soon.")
    if receipt.unread:
        shown = [
            f"{shown_id(item.session_id)} ({one_line(item.code)})" for item in receipt.unread[:_UNREAD_SHOWN]
        ]
        if len(receipt.unread) > _UNREAD_SHOWN:
            shown.append(f"{len(receipt.unread) - _UNREAD_SHOWN} more")
        sentences.append(f"Could not look in {_count(len(receipt.unread), 'session')}: {', '.join(shown)}.")
    if receipt.unread_logs:
        sentences.append(f"Could not read {_count(receipt.unread_logs, 'log')} at all; `doctor` names them.")
    if receipt.lost_records:
        sentences.append(f"Could not read {_count(receipt.lost_records, 'damaged record')}.")
    return sentences


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _seconds(seconds: float) -> str:
    return f"{max(0, round(seconds))} s"
