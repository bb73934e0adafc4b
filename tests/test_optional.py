import sys

import pytest

from tg_mlc._optional import require


def test_require_returns_the_module_of_the_dotted_name():
    import json.decoder

    assert require("json", extra="train") is json
    assert require("json.decoder", extra="train") is json.decoder


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.part", "json.no_such_part"])
def test_require_names_the_extra_of_a_missing_package(module):
    message = r'pip install "tg_mlc\[molecules\]", or ".\[molecules\]" in a clone'
    with pytest.raises(ImportError, match=message) as caught:
        require(module, extra="molecules")
    assert f"'{module}'" in str(caught.value)
    assert not isinstance(caught.value, ModuleNotFoundError)


def test_require_raises_import_errors_of_an_installed_package(tmp_path, monkeypatch):
    (tmp_path / "needs_another.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "needs_another", raising=False)
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_package'"):
        require("needs_another", extra="molecules")
