from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.quick import train_little


@pytest.fixture(scope="module", autouse=True)
def _little() -> Iterator[None]:
    """Shortens training, because estimators are fitted some hundred times."""
    with pytest.MonkeyPatch.context() as patch:
        train_little(patch)
        yield
