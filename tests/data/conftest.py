from tests.datasets.conftest import nci, sider

__all__ = ["nci", "sider"]
