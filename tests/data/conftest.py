from __future__ import annotations

import os
from pathlib import Path

import pytest

from tg_mlc.datasets import SIDER, NCIFunctionalGroups


@pytest.fixture(scope="session")
def sider(tmp_path_factory):
    folder = os.environ.get("TG_MLC_DATA")
    if not folder or not (Path(folder) / "sider" / "raw" / "sider.csv").exists():
        pytest.skip("there is no sider/raw/sider.csv in the folder that TG_MLC_DATA names")
    return SIDER(tmp_path_factory.getbasetemp() / "sider")


@pytest.fixture(scope="session")
def nci(tmp_path_factory):
    return NCIFunctionalGroups(tmp_path_factory.getbasetemp() / "nci")
