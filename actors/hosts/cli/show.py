"""How results look to a person. Data arrives as the JSON the query methods give; nothing is read here."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ....protocol.json_encode import pretty_json
from ....protocol.json_value import JSON
from ....protocol.timestamps import render_time

if TYPE_CHECKING:
    from rich.console import Console

Row = dict[str, JSON]

WORKSPACES_SHOWN: Final = 8
"""Lines of workspaces under a search everywhere."""

# Terminals obey control and bidirectional characters; log content must not move a cursor or hide text.
_UNSAFE: dict[int, str | None] = dict.fromkeys(
    (*range(0x20), *range(0x7F, 0xA0)), "\N{REPLACEMENT CHARACTER}"
)
_UNSAFE |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C))
_UNSAFE[0x0A] = "\n"
_UNSAFE[0x09] = "\t"


def plain(value: JSON) -> str:
    """Text safe to print: no terminal escapes, no bidirectional marks, no lone surrogates."""
    text = "" if value is None else str(value)
    return text.translate(_UNSAFE).encode("utf-8", "replace").decode("utf-8")


def one_line(value: JSON, limit: int = 200) -> str:
    """``plain`` on one line, cut at ``limit`` characters."""
    text = " ".join(plain(value).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def when(value: JSON) -> str:
    """Epoch milliseconds as a readable UTC time."""
    return render_time(value)[:16].replace("T", " ") if isinstance(value, int) else "-"


def rows(value: JSON) -> list[Row]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def row(value: JSON) -> Row:
    return value if isinstance(value, dict) else {}


def print_json(value: JSON) -> None:
    """JSON for programs, on standard output; lone surrogates become U+FFFD."""
    sys.stdout.write(pretty_json(value) + "\n")


def show_session_list(console: Console, answer: Row) -> None:
    listed = rows(answer.get("sessions"))
    show_sessions(console, listed)
    total = answer.get("total")
    if isinstance(total, int) and total > len(listed):
        console.print(f"[dim]{len(listed)} of {total} sessions; --limit shows more[/dim]")


def show_sessions(console: Console, records: Iterable[Row]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("created", "source", "events", "session", "title", "workspace"):
        table.add_column(
            name, overflow="fold" if name == "session" else "ellipsis", no_wrap=name != "session"
        )
    for record in records:
        table.add_row(
            when(record.get("created_at")),
            one_line(record.get("source")),
            one_line(record.get("events")),
            one_line(record.get("session_id")),
            one_line(record.get("title") or "untitled", 60),
            one_line(record.get("workspace") or "-"),
        )
    console.print(table)


def show_hits(console: Console, answer: Row) -> None:
    from rich.markup import escape

    hits = rows(answer.get("hits"))
    for number, hit in enumerate(hits, 1):
        best = row(hit.get("best_match"))
        tier = hit.get("tier")
        mark = "" if tier == "exact" else f" [dim]({escape(one_line(tier))})[/dim]"
        title = escape(one_line(hit.get("title") or "untitled"))
        console.print(f"[bold]{number}. {title}[/bold]{mark}", highlight=False)
        facts = [
            when(hit.get("created_at")),
            one_line(hit.get("source")),
            one_line(hit.get("workspace") or "-"),
        ]
        console.print(f"   [dim]{escape(' · '.join(facts))}[/dim]", highlight=False)
        console.print(f"   [dim]session[/dim] {escape(one_line(hit.get('session_id')))}", highlight=False)
        console.print(
            f"   [dim]#{escape(one_line(best.get('seq')))} {escape(one_line(best.get('type')))}[/dim] "
            f"{escape(one_line(best.get('snippet'), 400))}",
            highlight=False,
        )
        for child in rows(hit.get("sub_agents")):
            child_best = row(child.get("best_match"))
            console.print(
                f"     [dim]└ sub-agent {escape(one_line(child.get('session_id')))} "
                f"#{escape(one_line(child_best.get('seq')))}[/dim] "
                f"{escape(one_line(child_best.get('snippet'), 200))}",
                highlight=False,
            )
    if not hits:
        console.print("No match.")
    if answer.get("capped"):
        console.print("[dim]More sessions matched; add words or filters to narrow it down.[/dim]")
    show_receipt(console, row(answer.get("receipt")))


def show_event_hits(console: Console, answer: Row) -> None:
    from rich.markup import escape

    console.print(f"[bold]{escape(one_line(answer.get('title') or 'untitled'))}[/bold]", highlight=False)
    hits = rows(answer.get("hits"))
    for hit in hits:
        console.print(
            f"  [dim]#{escape(one_line(hit.get('seq')))} {when(hit.get('time'))} "
            f"{escape(one_line(hit.get('type')))} {escape(one_line(hit.get('surface')))}[/dim]",
            highlight=False,
        )
        console.print(f"    {escape(one_line(hit.get('snippet'), 400))}", highlight=False)
    if not hits:
        console.print("No match.")
    show_receipt(console, row(answer.get("receipt")))


def show_receipt(console: Console, receipt: Row) -> None:
    from rich.markup import escape

    text = receipt.get("text")
    if not isinstance(text, str):
        return
    summary, *workspaces = plain(text).split("\n")
    console.print(f"[dim]{escape(summary)}[/dim]", highlight=False)
    workspaces.sort(key=_is_whole)  # those with something unread first; the order stays otherwise
    for line in workspaces[:WORKSPACES_SHOWN]:
        console.print(f"[dim]{escape(one_line(line))}[/dim]", highlight=False)
    if len(workspaces) > WORKSPACES_SHOWN:
        more = f"and {len(workspaces) - WORKSPACES_SHOWN} more workspaces; --json lists all"
        console.print(f"[dim]{more}[/dim]", highlight=False)


def _is_whole(line: str) -> bool:
    """Whether a receipt's line of one workspace names nothing that could not be read."""
    return "could not look" not in line and "damaged record" not in line


def show_lineage(console: Console, answer: Row) -> None:
    from rich.markup import escape
    from rich.text import Text

    def line(record: Row, depth: int, mark: str) -> None:
        title = one_line(record.get("title") or "untitled", 70)
        text = Text("  " * depth + mark)
        text.append(f"{one_line(record.get('session_id'))} ", style="bold" if mark == "● " else "")
        text.append(f"{title} · {when(record.get('created_at'))}", style="dim")
        console.print(text)

    ancestors = rows(answer.get("ancestors"))
    if not answer.get("complete") and answer.get("unresolved_parent_id") is not None:
        console.print(f"[dim]parent not found: {escape(one_line(answer['unresolved_parent_id']))}[/dim]")
    for depth, record in enumerate(reversed(ancestors)):
        line(record, depth, "↑ ")
    base = len(ancestors)
    line(row(answer.get("target")), base, "● ")
    for record in rows(answer.get("descendants")):
        below = record.get("depth")
        line(record, base + (below if isinstance(below, int) else 1), "↳ ")


def show_event_list(console: Console, events: Iterable[Row]) -> None:
    from rich.text import Text

    for event in events:
        text = Text(f"{one_line(event.get('seq')):>6}  ", style="dim")
        text.append(f"{when(event.get('time'))}  ", style="dim")
        text.append(one_line(event.get("type")), style="" if event.get("surface") == "current" else "dim")
        text.append(f"  {one_line(event.get('surface'))}", style="dim")
        console.print(text)


def show_event_trace(console: Console, answer: Row) -> None:
    from rich.text import Text

    target = row(answer.get("target"))
    console.print(
        Text(
            f"#{one_line(target.get('seq'))} {one_line(target.get('type'))} "
            f"{one_line(target.get('surface'))} {when(target.get('time'))}",
            style="bold",
        )
    )
    for key, label in (
        ("replaced_by", "replaced by"),
        ("replacement_chain", "replacement chain"),
        ("replaced_event_seqs", "replaces"),
        ("source_event_seqs", "made from"),
        ("derived_event_seqs", "used by"),
    ):
        value = answer.get(key)
        seqs = value if isinstance(value, list) else [] if value is None else [value]
        console.print(Text(f"  {label}: {', '.join(map(str, seqs)) or 'none'}"))


def show_window(console: Console, answer: Row) -> None:
    """Every event as indented JSON, the target marked; the JSON is complete, only controls are masked."""
    from rich.syntax import Syntax
    from rich.text import Text

    target = row(answer.get("target")).get("seq")
    for event in rows(answer.get("events")):
        mark = "●" if event.get("seq") == target else "·"
        head = f"{mark} #{one_line(event.get('seq'))} {one_line(event.get('type'))} {when(event.get('time'))}"
        console.print(Text(head, style="bold" if mark == "●" else "dim"))
        console.print(Syntax(plain(pretty_json(event)), "json", background_color="default", word_wrap=True))


def console() -> Console:
    """A console for standard output. Width is unbounded when piped, so that lines stay whole."""
    from rich.console import Console as RichConsole

    made = RichConsole(soft_wrap=False)
    return made if made.is_terminal else RichConsole(width=10_000, no_color=True)


def show_index(console: Console, answer: Row) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("source", "path", "logs", "sessions", "events", "bytes", "skipped records", "logs read now"):
        table.add_column(name, overflow="fold", justify="left" if name in ("source", "path") else "right")
    for source in rows(answer.get("sources")):
        table.add_row(
            *(
                one_line(source.get(key))
                for key in (
                    "format",
                    "path",
                    "logs",
                    "sessions",
                    "events",
                    "bytes",
                    "lost_records",
                    "logs_read",
                )
            )
        )
    console.print(table)


def show_sources(console: Console, answer: Row) -> None:
    show_index(console, answer)
    for source in rows(answer.get("sources")):
        if source.get("missing") is True and source.get("logs"):
            text = "is not there now; searches still find what was read from it"
            console.print(f"  missing {one_line(source.get('path'))}: {text}", markup=False, highlight=False)
        for skipped in rows(source.get("skipped")):
            console.print(
                f"  skipped {one_line(skipped.get('path'))}: {one_line(skipped.get('reason'))}",
                markup=False,
                highlight=False,
            )


def show_doctor(console: Console, answer: Row) -> None:
    def line(text: str) -> None:
        console.print(text, markup=False, highlight=False)

    for check in rows(answer.get("checks")):
        mark = "ok  " if check.get("ok") is True else "FAIL"
        line(f"{mark} {one_line(check.get('name'))}: {one_line(check.get('detail'))}")
    losses = rows(answer.get("losses"))
    for loss in losses:
        line(
            f"lost {one_line(loss.get('path'))} at byte {one_line(loss.get('offset'))}: "
            f"{one_line(loss.get('cause'))}"
        )
    unread = rows(answer.get("unread"))
    for item in unread:
        line(f"unread {one_line(item.get('path'))}: {one_line(item.get('reason'))}")
    line(f"{len(losses)} damaged places, {len(unread)} logs not read")
