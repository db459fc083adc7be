"""A strict reader of Prometheus' text format 0.0.4, with the conventions that its linter asks for.

Stricter than a scraper: every family has one HELP and one TYPE before its samples and stands in one place,
names keep to base units, counters and only counters end in ``_total``, and a histogram is whole: rising
bounds, rising counts, ``+Inf`` equal to ``_count``, and a ``_sum``.
"""

from __future__ import annotations

import re
from itertools import pairwise

import attrs

NAME = re.compile(r"[a-z][a-z0-9_]*")
NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]+)?"
SAMPLE = re.compile(rf'([a-z][a-z0-9_]*)(?:\{{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\}})? ({NUMBER})')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"')
KINDS = ("counter", "gauge", "histogram")
NO_BASE_UNITS = ("ms", "milliseconds", "us", "kb", "mb", "kilobytes", "megabytes", "minutes", "percent")
PARTS = ("_bucket", "_sum", "_count")

Labels = tuple[tuple[str, str], ...]


@attrs.define
class Family:
    """One metric. ``samples``: by the sample's name and its labels, in the order of the text."""

    name: str
    help: str
    kind: str = ""
    samples: dict[tuple[str, Labels], float] = attrs.field(factory=dict)

    def value(self, **labels: str) -> float:
        """The one sample of a counter or gauge with these labels."""
        return self.samples[self.name, tuple(labels.items())]


def read(text: str) -> dict[str, Family]:
    """The families by name. Raises: AssertionError with the line that is not as it should be."""
    assert text.endswith("\n"), "the last line ends, too"
    families: dict[str, Family] = {}
    current: Family | None = None
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# HELP "):
            name, _, meaning = line.removeprefix("# HELP ").partition(" ")
            assert NAME.fullmatch(name), line
            assert name not in families, f"one family, one place: {line}"
            assert meaning.strip(), line
            current = families[name] = Family(name, meaning)
        elif line.startswith("# TYPE "):
            name, _, kind = line.removeprefix("# TYPE ").partition(" ")
            assert current is not None, line
            assert (current.name, current.kind, current.samples) == (name, "", {}), line
            assert kind in KINDS, line
            current.kind = kind
        else:
            _take(current, line)
    for family in families.values():
        _judge(family)
    return families


def _take(family: Family | None, line: str) -> None:
    match = SAMPLE.fullmatch(line)
    assert match is not None, line
    assert family is not None, line
    assert family.kind, f"no TYPE before {line}"
    parts = PARTS if family.kind == "histogram" else ("",)
    assert match[1] in {family.name + part for part in parts}, f"not of {family.name}: {line}"
    labels = tuple((name, value) for name, value in LABEL.findall(match[2] or ""))
    assert len({name for name, _ in labels}) == len(labels), line
    key = (match[1], labels)
    assert key not in family.samples, f"said twice: {line}"
    family.samples[key] = float(match[3])


def _judge(family: Family) -> None:
    name, kind = family.name, family.kind
    assert family.samples, f"{name} says nothing"
    assert (kind == "counter") == name.endswith("_total"), f"{name} is a {kind}"
    assert not name.endswith(PARTS), name
    assert not set(name.split("_")) & set(NO_BASE_UNITS), f"{name} is in no base unit"
    assert kind != "counter" or min(family.samples.values()) >= 0, name
    if kind == "histogram":
        _judge_histogram(family)


def _judge_histogram(family: Family) -> None:
    of_each: dict[Labels, list[tuple[float, float]]] = {}
    for (name, labels), value in family.samples.items():
        if name.endswith("_bucket"):
            bounds = dict(labels)
            of = tuple(pair for pair in labels if pair[0] != "le")
            of_each.setdefault(of, []).append((float(bounds["le"].replace("+Inf", "inf")), value))
        else:
            assert "le" not in dict(labels), name
    for labels, buckets in of_each.items():
        assert all(lower < upper for (lower, _), (upper, _) in pairwise(buckets)), "bounds rise"
        assert all(fewer <= more for (_, fewer), (_, more) in pairwise(buckets)), "each holds those below"
        bound, everything = buckets[-1]
        assert bound == float("inf")
        assert family.samples[f"{family.name}_count", labels] == everything
        assert family.samples[f"{family.name}_sum", labels] >= 0
    counted = {labels for name, labels in family.samples if name.endswith("_count")}
    assert counted == of_each.keys(), "each has all its parts"
