"""Score the product's search on the labelled set, beside a plain any-word search (SPEC 16.1.8).

    python -m session_query.bench.relevance [--json] [--kind KIND] [--match MATCH] [--show-misses]
    python -m session_query.bench.relevance --ablations                     what each idea brings
    python -m session_query.bench.relevance --searcher MODULE:FACTORY       another searcher, see README.md
    python -m session_query.bench.relevance --external FILE.json            somebody else's question set

Exit status 1 if the set breaks one of its rules.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, cast

from .ablations import ABLATIONS, ablated
from .engine import index_searcher
from .external import by_sessions, read_external
from .labelled_set import LabelledSet, load
from .notation import KINDS
from .plain import plain_searcher
from .report import Run, as_json, as_lines, as_text, misses
from .rules import defects, near_duplicates
from .scoring import Case, Outcome, run
from .searching import Match, Searcher, SearcherFactory

MATCHES: Final[tuple[Match, ...]] = ("exact", "words", "some", "auto")


def cases_of(labelled: LabelledSet, kinds: Sequence[str] = KINDS) -> list[Case]:
    """The set's queries as cases, grouped by kind."""
    return [
        Case(
            text=query.text,
            group=query.kind,
            answers=tuple(labelled.answers(slug) for slug in query.targets),
            workspace=query.workspace,
        )
        for kind in kinds
        for query in labelled.queries
        if query.kind == kind
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the scorer; returns the exit status."""
    options = _parser().parse_args(arguments)
    matches = cast("tuple[Match, ...]", (options.match,) if options.match else MATCHES)
    factory = _factory(options.searcher) if options.searcher else index_searcher
    if options.external:
        runs, names = _external_runs(options.external, factory, options.searcher or "index", matches[-1:]), {}
    else:
        labelled = load()
        if broken := defects(labelled):
            print(*broken, sep="\n", file=sys.stderr)
            return 1
        names = {session.header.id: session.slug for session in labelled.sessions}
        cases = cases_of(labelled, [options.kind] if options.kind else KINDS)
        if options.ablations:
            runs = ablation_runs(labelled, cases, matches[-1])
        else:
            runs = measured(labelled, cases, factory, options.searcher or "index", matches)
        if not options.json:
            print(statistics_line(labelled), end="\n\n")
    text = as_lines(runs) if options.ablations else as_text(runs)
    print(json.dumps(as_json(runs), indent=2) if options.json else text)
    if options.show_misses:
        for shown in runs:
            print(f"\n{shown.searcher}, match {shown.match}:", *misses(shown, names), sep="\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m session_query.bench.relevance")
    parser.add_argument("--json", action="store_true", help="print the scores as JSON")
    parser.add_argument("--kind", choices=KINDS, help="queries of one kind only")
    parser.add_argument("--match", choices=MATCHES, help="one match only; all four otherwise")
    parser.add_argument("--show-misses", action="store_true", help="list what was not first")
    parser.add_argument("--ablations", action="store_true", help="take away one idea at a time")
    parser.add_argument("--searcher", metavar="MODULE:FACTORY", help="score another searcher")
    parser.add_argument(
        "--external", type=Path, metavar="FILE", help="a question set of the shape in external.py"
    )
    return parser


def _factory(name: str) -> SearcherFactory:
    module, _, attribute = name.partition(":")
    return cast("SearcherFactory", getattr(import_module(module), attribute))


def measured(
    labelled: LabelledSet,
    cases: Sequence[Case],
    factory: SearcherFactory,
    name: str,
    matches: Sequence[Match],
) -> list[Run]:
    """The plain comparison first, then the searcher with each match."""
    with plain_searcher(labelled.sessions) as plain:
        runs = [_timed("plain", plain, cases, "auto")]
    with factory(labelled.sessions) as searcher:
        runs += [_timed(name, searcher, cases, match) for match in matches]
    return runs


def ablation_runs(labelled: LabelledSet, cases: Sequence[Case], match: Match) -> list[Run]:
    """The plain comparison, then the product's searcher, whole and without one idea after the other."""
    with plain_searcher(labelled.sessions) as plain:
        runs = [_timed("plain", plain, cases, match)]
    for name in ABLATIONS:
        with ablated(name)(labelled.sessions) as searcher:
            runs.append(_timed(name, searcher, cases, match))
    return runs


def _timed(name: str, searcher: Searcher, cases: Sequence[Case], match: Match) -> Run:
    began = time.process_time()
    found = run(searcher, cases, match)
    return Run(searcher=name, match=match, outcomes=found, seconds=time.process_time() - began)


def _external_runs(path: Path, factory: SearcherFactory, name: str, matches: Sequence[Match]) -> list[Run]:
    """Plain and the searcher over every entry's own sessions."""
    outcomes: dict[str, list[Outcome]] = {"plain": [], name: []}
    seconds = dict.fromkeys(outcomes, 0.0)
    for sessions, cases in by_sessions(read_external(path)):
        for label, make in (("plain", plain_searcher), (name, factory)):
            with make(sessions) as searcher:
                began = time.process_time()
                outcomes[label] += run(searcher, cases, matches[-1])
                seconds[label] += time.process_time() - began
    return [
        Run(searcher=label, match=matches[-1], outcomes=found, seconds=seconds[label])
        for label, found in outcomes.items()
    ]


def statistics_line(labelled: LabelledSet) -> str:
    """How large the set is, for the head of a report."""
    events = sum(len(session.events) for session in labelled.sessions)
    near = near_duplicates(labelled.sessions)
    return (
        f"{len(labelled.sessions)} sessions of {len(near)} topics (at least {min(near.values())}"
        f" near-duplicates each), {events} events, {len(labelled.queries)} queries: "
        + ", ".join(f"{kind} {count}" for kind, count in labelled.kinds().items())
    )


if __name__ == "__main__":
    sys.exit(main())
