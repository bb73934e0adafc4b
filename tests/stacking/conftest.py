from __future__ import annotations

import pytest

from tg_mlc.stacking import classifiers


@pytest.fixture(scope="module", autouse=True)
def _small_forests():
    """Limits forests to 15 trees on every machine."""
    with pytest.MonkeyPatch.context() as patched:
        for name in ("NUM_TREES", "MIN_TREES", "MAX_TREES"):
            patched.setattr(classifiers, name, 15)
        yield
