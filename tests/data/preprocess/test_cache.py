from __future__ import annotations

import numpy as np
import torch

from tg_mlc.data.preprocess.cache import fitted_once

X = np.arange(50.0)


def test_what_was_kept_with_a_flipped_bit_is_fitted_again(tmp_path, caplog):
    fits = []

    def fit():
        fits.append(1)
        return {"x": X}

    def read():
        return fitted_once(tmp_path, "svm", (), [X], fit)["x"]

    assert torch.equal(read(), read())
    assert len(fits) == 1
    (kept,) = tmp_path.iterdir()
    content = bytearray(kept.read_bytes())
    content[content.index(X.tobytes()) + 100] ^= 1
    kept.write_bytes(content)
    for _ in range(2):
        assert torch.equal(read(), torch.from_numpy(X))
    assert len(fits) == 2
    assert "wrong checksum" in caplog.text
