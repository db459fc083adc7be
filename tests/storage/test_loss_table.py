"""The committed loss table is what the readers do, and counting apart from them agrees."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_query.bench import loss_table
from session_query.bench.physical_records import records_of_lines
from support.corpus import need_corpus
from support.hazard_formats import FORMATS
from support.hazards import HAZARDS
from support.mutations import mutate
from support.reader_conformance import read_unit, unit_of

TABLE = Path(loss_table.__file__).parent / "results" / "loss-table.md"


@pytest.mark.slow
def test_the_committed_table_holds() -> None:
    corpus = need_corpus()
    found = list(loss_table.rows(corpus))
    assert [row.path for row in found if not row.adds_up] == []
    committed = TABLE.read_text(encoding="utf-8")
    date = committed.split("Written on ")[1].split(" ")[0]
    assert loss_table.markdown(found, date).splitlines() == committed.splitlines()


def test_every_file_of_the_corpus_is_in_the_table() -> None:
    corpus = need_corpus()
    committed = TABLE.read_text(encoding="utf-8")
    for path in corpus.rglob("*"):
        relative = path.relative_to(corpus).as_posix()
        if path.is_file() and path.suffix != ".md" and not relative.startswith(loss_table.TREES):
            assert f"| {relative} |" in committed


@pytest.mark.parametrize("name", FORMATS)
def test_readers_and_the_independent_count_agree_on_damage(tmp_path: Path, name: str) -> None:
    form = FORMATS[name]
    log = tmp_path / form.name
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(form.line(0))
    unit = unit_of(form.reader, tmp_path, log)
    raw = b"".join(line + b"\n" for line in [*form.head, *(form.line(number) for number in range(5))])
    contents = [hazard(form).content for hazard in HAZARDS if hazard.__name__ != "nested_deep"]
    for content in [*contents, *(mutate(seed, raw).content for seed in range(60))]:
        log.write_bytes(content)
        collected = read_unit(form.reader, unit)
        if collected.refusal is None:
            assert collected.records == records_of_lines(content)


@pytest.mark.parametrize(
    ("raw", "records"),
    [
        (b"", 0),
        (b"\n\x00\x00\n// comment\n", 0),
        (b'{"a":1}\n{"b":2}\n', 2),
        (b'{"a":1}\nnull\n[1]\n{"b":2', 1),
        (b'{"a":1}{"b":2}\n', 2),
        (b'{"a":1}\n{"x":"cut{"b":2}\n', 3),
        (b'{"a":1}\n{"x":{"y":1}\n', 2),
        (b'{"a":1}\n\x00\x00{"b":2}\x00\n', 2),
        (b'{\n "a": 1\n}\n', 1),
        (b'[{"a":1},\n{"b":2}]', 2),
        (b"no log\nat all\n", 2),
    ],
)
def test_the_independent_count(raw: bytes, records: int) -> None:
    assert records_of_lines(raw) == records
