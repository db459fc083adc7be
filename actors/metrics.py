"""The service's statistics as Prometheus text (exposition format 0.0.4).

The names are part of the product: a dashboard outlives a release; they keep to Prometheus' conventions (base
units, ``_total`` for counters, histograms whole). A number that is not known (memory on a system that does
not say) is left out rather than written as zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import attrs

from ..protocol.json_value import JSON

Kind: TypeAlias = Literal["counter", "gauge"]
Labels: TypeAlias = tuple[tuple[str, str], ...]
PREFIX: Final = "session_query_"
_UNLABELLED: Final[Labels] = ()


@attrs.frozen
class _Metric:
    """One number of the statistics: its metric's name, its meaning, where it stands, and in which unit."""

    name: str
    kind: Kind
    path: tuple[str, ...]
    help: str
    unit: float = 1.0

    def of(self, place: JSON) -> JSON:
        """The number under ``place``, in base units; None where there is none."""
        value = _at(place, self.path)
        if self.unit == 1.0 or not isinstance(value, (int, float)):
            return value
        return round(value * self.unit, 9)


@attrs.frozen
class _Family:
    """An object of counts: one metric, one label value for each key."""

    name: str
    label: str
    path: tuple[str, ...]
    help: str


_SERVICE: Final = (
    _Metric("up", "gauge", ("open",), "1 while the store is open."),
    _Metric("uptime_seconds", "gauge", ("uptime_s",), "Seconds since the service was made."),
    _Metric("live_sessions", "gauge", ("live_sessions",), "Sessions that runtimes publish now."),
    _Metric("searches_queued", "gauge", ("searches", "queued"), "Searches that wait for a slot."),
    _Metric("searches_running", "gauge", ("searches", "running"), "Searches that run."),
    _Metric("searches_served_total", "counter", ("searches", "served"), "Searches that have ended."),
    _Metric("searches_refused_total", "counter", ("searches", "refused"), "Searches answered BUSY."),
    _Metric("reads_under_way", "gauge", ("reads_under_way",), "Reads and traces that are not answered yet."),
    _Metric("writes_total", "counter", ("writes",), "Turns of the writer, appends included."),
    _Metric("appends_total", "counter", ("appends",), "Batches of events handed to the disk."),
    _Metric("append_groups_total", "counter", ("append_groups",), "Commits that carried those batches."),
    _Metric("appends_queued", "gauge", ("appends_queued",), "Batches that wait for the writer."),
    _Metric("appended_unindexed", "gauge", ("appended_unindexed",), "Appended events not indexed yet."),
    _Metric("index_turns_total", "counter", ("index_turns", "count"), "Times the index took appends in."),
    _Metric(
        "index_turn_p99_seconds", "gauge", ("index_turns", "p99_ms"), "CPU time of such a turn, lately.", 1e-3
    ),
    _Metric(
        "index_event_p99_seconds",
        "gauge",
        ("index_of_an_event", "p99_ms"),
        "CPU time of indexing an appended event, its share of a turn, lately.",
        1e-3,
    ),
    _Metric("merge_steps_total", "counter", ("merge_steps", "count"), "Steps of merging the index."),
    _Metric(
        "merge_step_p99_seconds", "gauge", ("merge_steps", "p99_ms"), "CPU time of such a step, lately.", 1e-3
    ),
    _Metric("index_changes_total", "counter", ("index", "generation"), "Changes of the index, ever."),
    _Metric("index_sessions", "gauge", ("index", "sessions"), "Readable sessions."),
    _Metric("index_unread_sessions", "gauge", ("index", "unread_sessions"), "Sessions nobody could read."),
    _Metric("index_lost_records", "gauge", ("index", "lost_records"), "Damaged records of readable logs."),
    _Metric("index_bytes", "gauge", ("index", "bytes"), "Size of the index file."),
    _Metric("sources_watched", "gauge", ("sources", "watched"), "1 while changes of logs are watched."),
    _Metric(
        "sources_checked_ago_seconds",
        "gauge",
        ("sources", "checked_ago_s"),
        "Age of the last look; absent: current.",
    ),
    _Metric("parsed_cache_bytes", "gauge", ("parsed_cache", "bytes"), "Memory of parsed logs, estimated."),
    _Metric("parsed_cache_hits_total", "counter", ("parsed_cache", "hits"), "Reads served from it."),
    _Metric("parsed_cache_misses_total", "counter", ("parsed_cache", "misses"), "Reads that parsed a log."),
    _Metric(
        "memory_resident_bytes", "gauge", ("memory", "resident_bytes"), "Resident memory of the process."
    ),
    _Metric("memory_peak_bytes", "gauge", ("memory", "peak_bytes"), "Its highest value so far."),
    _Metric("disk_free_bytes", "gauge", ("disk_free_bytes",), "Free space where the data lies."),
)
_CONNECTIONS: Final = (
    _Metric("connections_open", "gauge", ("open",), "Connections, those before their hello included."),
    _Metric("connections_unauthenticated", "gauge", ("unauthenticated",), "Connections before their hello."),
    _Metric(
        "connections_dropped_total",
        "counter",
        ("unauthenticated_dropped",),
        "Peers dropped before their hello: newer ones needed the places.",
    ),
    _Metric("connections_total", "counter", ("opened",), "Connections that authenticated."),
    _Metric("failed_logins_total", "counter", ("failed_logins",), "Refused tokens."),
)
_FAMILIES: Final = (
    _Family("requests_total", "type", ("requests",), "Messages received, by type."),
    _Family("request_errors_total", "code", ("errors",), "Requests answered with an error, by code."),
    _Family("connections_ended_total", "reason", ("ends",), "Ended connections, by reason."),
    _Family("handshakes_refused_total", "reason", ("refused",), "Peers that did not become a connection."),
)
_TIMES: Final = _Family(
    "request_duration_seconds",
    "class",
    ("request_times",),
    "From the arrival of a request until its answer is known, waiting included, by what it asks for.",
)
_SOURCE: Final = (
    _Metric("source_logs", "gauge", ("logs",), "Logs of a source."),
    _Metric("source_sessions", "gauge", ("sessions",), "Sessions of a source."),
    _Metric("source_lost_records", "gauge", ("lost_records",), "Damaged records of a source."),
    _Metric("source_skipped", "gauge", ("skipped",), "Files of a source that yield nothing."),
    _Metric("source_missing", "gauge", ("missing",), "1 while the source's folder is not there."),
)


def prometheus_text(statistics: JSON) -> str:
    """The answer of the query method ``statistics`` as Prometheus text; ends with a line feed."""
    service, connections = _at(statistics, ("service",)), _at(statistics, ("connections",))
    lines: list[str] = []
    for metrics, place in ((_SERVICE, service), (_CONNECTIONS, connections)):
        for metric in metrics:
            lines += _block(metric.name, metric.kind, metric.help, [(_UNLABELLED, metric.of(place))])
    for family in _FAMILIES:
        counts = _at(connections, family.path)
        samples = [(((family.label, key),), value) for key, value in _members(counts)]
        lines += _block(family.name, "counter", family.help, samples)
    lines += _histogram(_TIMES, _at(connections, _TIMES.path))
    sources = _at(service, ("sources", "listed"))
    listed = sources if isinstance(sources, list) else []
    for metric in _SOURCE:
        of_each = [(_source_labels(source), metric.of(source)) for source in listed]
        lines += _block(metric.name, metric.kind, metric.help, of_each)
    return "".join(f"{line}\n" for line in lines)


def _block(name: str, kind: Kind, meaning: str, samples: Sequence[tuple[Labels, JSON]]) -> list[str]:
    """One metric with its comments; nothing at all while no sample is known."""
    known = [(labels, value) for labels, value in samples if isinstance(value, (int, float))]
    if not known:
        return []
    head = [f"# HELP {PREFIX}{name} {meaning}", f"# TYPE {PREFIX}{name} {kind}"]
    return head + [f"{PREFIX}{name}{_shown(labels)} {_number(value)}" for labels, value in known]


def _histogram(family: _Family, of_each: JSON) -> list[str]:
    """``_bucket`` with its bounds rising to +Inf, ``_sum`` and ``_count`` for each label value."""
    name, lines = f"{PREFIX}{family.name}", list[str]()
    for key, one in _members(of_each):
        label = (family.label, key)
        buckets = _at(one, ("buckets",))
        told = [((label, ("le", bound)), count) for bound, count in _in_order(buckets)]
        lines += [f"{name}_bucket{_shown(labels)} {count}" for labels, count in told]
        for part, value in (("sum", _at(one, ("sum_s",))), ("count", _at(one, ("count",)))):
            if isinstance(value, (int, float)):
                lines.append(f"{name}_{part}{_shown((label,))} {_number(value)}")
    return [f"# HELP {name} {family.help}", f"# TYPE {name} histogram", *lines] if lines else []


def _shown(labels: Labels) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inside}}}" if inside else ""


def _escaped(value: str) -> str:
    """A label's value: paths and reasons may hold anything."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return escaped.encode("utf-8", "replace").decode()


def _number(value: float) -> str:
    return str(int(value)) if isinstance(value, (bool, int)) else repr(value)


def _source_labels(source: JSON) -> Labels:
    return tuple((name, str(_at(source, (name,)))) for name in ("format", "path"))


def _at(value: JSON, path: tuple[str, ...]) -> JSON:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _in_order(value: JSON) -> Iterator[tuple[str, JSON]]:
    return iter(value.items()) if isinstance(value, dict) else iter(())


def _members(value: JSON) -> Iterator[tuple[str, JSON]]:
    return iter(sorted(value.items())) if isinstance(value, dict) else iter(())
