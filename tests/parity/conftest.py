"""What PyTorch says of its own old functions once in a process, to whichever test comes first, is no test's matter."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(r"ignore:torch\.\w+ is deprecated in favor of"), append=False)
