import pytest


@pytest.fixture
def save(tmp_path):
    """Returns a function that writes a text or bytes to a file, and returns the path."""

    def save(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return save
