import pytest

from tg_mlc.datasets import SIDER, NCIFunctionalGroups


@pytest.fixture(scope="session")
def sider(real_file, tmp_path_factory):
    real_file("sider/raw/sider.csv")
    return SIDER(tmp_path_factory.getbasetemp() / "sider")


@pytest.fixture(scope="session")
def nci(tmp_path_factory):
    return NCIFunctionalGroups(tmp_path_factory.getbasetemp() / "nci")
