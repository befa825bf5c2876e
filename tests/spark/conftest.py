"""One Spark session for the run, and both engines as our side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark import client


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.timeout(1200))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[client.Spark]:
    reason = client.require_or_skip()
    if reason:
        pytest.skip(f"SPARK TESTS ARE SKIPPED: {reason}")
    session = client.Spark(tmp_path_factory.mktemp("spark") / "spark.log")
    yield session
    session.close()
