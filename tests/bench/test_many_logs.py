"""The case of many logs measures what it says: nothing is opened when nothing changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_query.bench.many_logs import measure, table


@pytest.mark.parametrize(("files", "size_bytes"), [(300, 0), (20, 400_000)])
def test_an_unchanged_look_opens_no_log(tmp_path: Path, files: int, size_bytes: int) -> None:
    result = measure(tmp_path, files, size_bytes)
    assert result.files == files
    assert result.bytes >= size_bytes * 0.8
    assert result.first_index_opens >= files, "the count counts"
    assert result.unchanged_opens == result.reopened_opens == 0
    assert f"| looking again, nothing changed | {result.unchanged_s:.3f} |" in table(result)
