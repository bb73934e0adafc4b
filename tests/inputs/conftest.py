import pytest


@pytest.fixture
def save(tmp_path):
    """Writes the text or the bytes of a table to a file, and returns its path."""

    def save(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return save
