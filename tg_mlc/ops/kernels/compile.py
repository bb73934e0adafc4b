"""Compilation of kernels by Numba, and vectors: neighbouring numbers of an array, in registers.

Numba vectorises loops only where it can prove that arrays do not overlap, and never keeps a row of
sums in registers from one edge to the next, which is what a weighted sum of rows wants (measured:
three times as fast). A vector may be wider than a register: LLVM takes as many registers as it
fills, so that kernels need not know a machine's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from tg_mlc import __version__

Array = np.ndarray[Any, Any]


_FILES = sorted(Path(__file__).parent.glob("*.py"))
_BYTES = b"".join(map(Path.read_bytes, _FILES))
#: A digest of all kernels; the version where their sources are not at hand.
_SOURCES = hashlib.sha256(_BYTES).hexdigest()[:16] if _FILES else __version__
#: Sums may be reordered, but NaN and infinity keep their meaning.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "_nrt": False,
    "error_model": "numpy",
    "fastmath": {"arcp", "contract", "nsz", "reassoc"},
}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function at its first call, cached on disk until any kernel changes."""
    function.__qualname__ += f"@{_SOURCES}"
    try:
        compiled: Callable[..., Any] = njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # there is no folder to keep it in
        compiled = njit(**OPTIONS)(function)
    return compiled


def named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Compiles a function under a name of its own, by which Numba's cache tells functions apart."""
    function.__name__ = function.__qualname__ = name
    return kernel(function)


try:
    _HAS_WIDE_REGISTERS = bool(binding.get_host_cpu_features().get("avx512f", False))
except RuntimeError:  # LLVM does not know this machine
    _HAS_WIDE_REGISTERS = False

#: Numbers of the widest vector of a kernel: half of a machine's registers in single precision.
WIDEST = 128 if _HAS_WIDE_REGISTERS else 64

_FAST = ("contract", "reassoc")


class Vector(types.Type):
    """The type of a vector."""

    def __init__(self, dtype: Any, lanes: int) -> None:
        self.dtype, self.lanes = dtype, lanes
        super().__init__(name=f"Vector({dtype}, {lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Vector) -> None:
        element = manager.lookup(vector.dtype).get_data_type()
        kind = ir.VectorType(element, vector.lanes)
        super().__init__(manager, vector, kind)  # type: ignore[no-untyped-call]


#: Makes a function of kernels of one from Numba's types to a signature and its code.
_function: Callable[[Callable[..., Any]], Any] = intrinsic(prefer_literal=True)


@_function
def zeros(_: Any, like: Any, lanes: Any) -> Any:
    """A vector of zeros of an array's type."""
    vector = Vector(like.dtype, lanes.literal_value)
    generate = lambda context, *_: ir.Constant(context.get_value_type(vector), None)  # noqa: E731
    return vector(like, lanes), generate


@_function
def load(_: Any, array: Any, offset: Any, lanes: Any) -> Any:
    """A vector of the numbers from an offset on."""
    vector = Vector(array.dtype, lanes.literal_value)

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        pointer = _address(context, builder, array, arguments, vector)
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return vector(array, types.uintp, lanes), generate


@_function
def store(_: Any, array: Any, offset: Any, vector: Any) -> Any:
    """Writes a vector from an offset on."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        pointer = _address(context, builder, array, arguments, vector)
        builder.store(arguments[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.uintp, vector), generate


@_function
def stream(_: Any, array: Any, offset: Any, vector: Any) -> Any:
    """Writes a vector past the caches, to an address aligned to 64 bytes or to the vector."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        pointer = _address(context, builder, array, arguments, vector)
        alignment = min(64, vector.lanes * array.dtype.bitwidth // 8)
        yes = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
        builder.store(arguments[2], pointer, align=alignment).set_metadata("nontemporal", yes)
        return context.get_dummy_value()

    return types.void(array, types.uintp, vector), generate


@_function
def add_scaled(_: Any, total: Any, factor: Any, vector: Any) -> Any:
    """``total + factor * vector``."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        empty = ir.Constant(ir.VectorType(arguments[1].type, vector.lanes), ir.Undefined)
        word = ir.IntType(32)
        single = builder.insert_element(empty, arguments[1], word(0))
        repeated = ir.Constant(ir.VectorType(word, vector.lanes), [0] * vector.lanes)
        factors = builder.shuffle_vector(single, empty, repeated)
        product = builder.fmul(factors, arguments[2], flags=_FAST)
        return builder.fadd(arguments[0], product, flags=_FAST)

    return vector(vector, vector.dtype, vector), generate


@_function
def dot(_: Any, one: Any, other: Any) -> Any:
    """The dot product of two vectors."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        element = context.get_value_type(one.dtype)
        terms = [ir.Constant(element, 0.0), builder.fmul(*arguments, flags=_FAST)]
        return _call(builder, "vector.reduce.fadd", one, element, terms, fastmath=_FAST)

    return one.dtype(one, one), generate


@_function
def larger(_: Any, one: Any, other: Any) -> Any:
    """The larger of each two numbers, or the one that is not NaN."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        return _call(builder, "maxnum", one, arguments[0].type, arguments)

    return one(one, one), generate


@_function
def largest(_: Any, vector: Any) -> Any:
    """The largest number of a vector that is not NaN."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        element = context.get_value_type(vector.dtype)
        return _call(builder, "vector.reduce.fmax", vector, element, arguments)

    return vector.dtype(vector), generate


@_function
def prefetch(_: Any, array: Any, offset: Any) -> Any:
    """Asks for the cache line around an offset, which may lie outside of the array."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = context.make_array(array)(context, builder, arguments[0]).data
        first = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        # The last arguments say: to read, to keep in all caches, and that it is data.
        options = [word(0), word(3), word(1)]
        _call(builder, "prefetch.p0i8", None, ir.VoidType(), [first, *options])
        return context.get_dummy_value()

    return types.void(array, types.uintp), generate


def _call(
    builder: Any, name: str, vector: Vector | None, out: Any, arguments: Any, **options: Any
) -> Any:
    """Calls one of LLVM's own functions, which returns a type, for vectors of a type if any."""
    suffix = "" if vector is None else f".v{vector.lanes}f{vector.dtype.bitwidth}"
    signature = ir.FunctionType(out, [argument.type for argument in arguments])
    insert: Any = cgutils.get_or_insert_function
    function = insert(builder.module, signature, f"llvm.{name}{suffix}")
    return builder.call(function, arguments, **options)


def _address(context: Any, builder: Any, array: Any, arguments: Any, vector: Vector) -> Any:
    """Address of a vector in a contiguous array; the first arguments are array and offset."""
    data = context.make_array(array)(context, builder, arguments[0]).data
    pointer = context.get_value_type(vector).as_pointer()
    return builder.bitcast(builder.gep(data, [arguments[1]]), pointer)
