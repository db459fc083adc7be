"""Each kind of damage found in real logs, in each format: it costs what it destroyed and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.hazard_formats import FORMATS
from support.hazards import HAZARDS, Hazard, check_hazard


@pytest.mark.parametrize("hazard", HAZARDS, ids=lambda hazard: hazard.__name__)
@pytest.mark.parametrize("name", FORMATS)
def test_damage_costs_what_it_destroyed(tmp_path: Path, name: str, hazard: Hazard) -> None:
    check_hazard(FORMATS[name], hazard, tmp_path)
