from __future__ import annotations

import bz2
import pickle
import pickletools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tg_mlc.datasets._pickled_arrays import read_pickled_arrays


def python2(x, y):
    """What Python 2 wrote for ``pickle.dumps({"y": y, "X": x})``."""
    return b"(dp0\n" + _entry(b"y", y) + _entry(b"X", x) + b"."


def _entry(name, array):
    shape = b"".join(b"I%d\n" % size for size in array.shape)
    data = repr(array.tobytes()).removeprefix("b").encode()
    order, code = array.dtype.str[:1].encode(), array.dtype.str[1:].encode()
    parts = [
        b"S'" + name + b"'\np1\ncnumpy.core.multiarray\n_reconstruct\np2\n",
        b"(cnumpy\nndarray\np3\n(I0\ntp4\nS'b'\np5\ntp6\nRp7\n(I1\n(" + shape + b"tp8\n",
        b"cnumpy\ndtype\np9\n(S'" + code + b"'\np10\nI0\nI1\ntp11\nRp12\n",
        b"(I3\nS'" + order + b"'\np13\nNNNI-1\nI-1\nI0\ntp14\nb",
        b"I00\nS" + data + b"\np15\ntp16\nbs",
    ]
    return b"".join(parts)


X = np.array([[0.5, -1e30], [np.pi, 0]])
Y = np.array([[1, 0, 1], [0, 0, 255]])
CONTENT = python2(X, Y)


def test_arrays_are_read():
    arrays = read_pickled_arrays(CONTENT)
    assert list(arrays) == ["y", "X"]
    np.testing.assert_array_equal(arrays["X"], X)
    np.testing.assert_array_equal(arrays["y"], Y)
    assert arrays["y"].dtype == np.int64


def test_the_sample_is_a_true_pickle():
    found = pickle.loads(CONTENT, encoding="latin1")
    np.testing.assert_array_equal(found["X"], X)


class Command:
    def __reduce__(self):
        return exec, ("raise SystemExit('ran')",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "its end; it is cut off"),
        (CONTENT[:-1], "its end; it is cut off"),
        (CONTENT[:400], "pickle content: "),
        (pickle.dumps(Command(), protocol=0), "the name '__builtin__.exec', which is none of NumPy's arrays"),
        (pickle.dumps(Command(), protocol=5), "the operation b'.x80'"),
        (b"cos\nsystem\n(S'true'\ntR.", "the name 'os.system'"),
        (b"(S'true'\nios\nsystem\n.", "the operation b'i'"),
        (CONTENT.replace(b"cnumpy\nndarray", b"cnumpy\nmemmap"), "the name 'numpy.memmap'"),
        (pickle.dumps({"a": 1}, protocol=0), "operation b'V'"),
        (b"(dp0\nS'a'\nI1\ns.", "an entry that is no array"),
        (b"(dp0\n.", "dictionary of arrays"),
        (b"I1\n.", "dictionary of arrays"),
        (CONTENT.replace(b"S'i8'", b"S'O8'"), "an array of objects"),
        (CONTENT.replace(b"I2\nI3\n", b"I2\nI4\n"), "cannot reshape"),
        (CONTENT.replace(b"I2\nI3\n", b"I-1\nI6\n"), "without a shape"),
        (CONTENT.replace(b"I2\nI3\n", b"I%d\nI3\n" % 10**30), "pickle content: "),
        (b"I" + b"9" * 10_000 + b"\n.", "pickle content: "),
        (b"g7\n.", "pickle content: "),
        (b"tR.", "pickle content: "),
        (b"S'a\n.", "without quotes"),
    ],
)
def test_anything_else_is_refused(content, message):
    with pytest.raises(ValueError, match=message):
        read_pickled_arrays(content)


def test_nothing_of_it_takes_much_time_or_memory():
    doubled = b"(dp0\nS'a'\np1\n" + b"".join(b"(g%d\ng%d\ntp%d\n" % (i, i, i + 1) for i in range(1, 60)) + b"I1\ns."
    tracemalloc.start()
    for content in (doubled, doubled.replace(b"I1\ns.", b"g60\nd."), b"Np%d\n0." % 10**15):
        with pytest.raises(ValueError, match="pickle content"):
            read_pickled_arrays(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**6


OPERATIONS = sorted(code.code.encode("latin1") for code in pickletools.opcodes)


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(CONTENT)),
            st.integers(0, 3),
            st.one_of(st.binary(max_size=4), st.sampled_from(OPERATIONS)),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_mutated_pickles_are_read_or_refused(changes):
    content = CONTENT
    for at, length, new in changes:
        content = content[:at] + new + content[at + length :]
    try:
        arrays = read_pickled_arrays(content)
    except ValueError:
        return
    assert all(array.dtype.kind in "iufb" for array in arrays.values())


def test_the_beginning_of_the_real_file(real_file):
    with bz2.open(real_file("mediamill/raw/mediamill-test.dump.bz2")) as file:
        content = file.read(10_000)
    assert content.startswith(b"(dp0\nS'y'\np1\ncnumpy.core.multiarray\n_reconstruct\n")
    with pytest.raises(ValueError, match=r"^test\.dump: "):
        read_pickled_arrays(content, "test.dump")
