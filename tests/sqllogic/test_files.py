"""Every *.test file on every engine."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_sql
from tests.conftest import engines
from tests.sqllogic.runner import dialect_of, read_steps, run_step

FILES = sorted(Path(__file__).parent.glob("*.test"))


@engines
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file(engine: str, path: Path, tmp_path: Path) -> None:
    steps = list(read_steps(path))
    assert steps
    with hudi_sql.connect(engine, dialect=dialect_of(path)) as session:
        for step in steps:
            run_step(session, step, tmp_path)
