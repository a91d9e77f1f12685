"""Named tuples that functions with ``@kernel`` take by reference: one pointer for all fields.

Without this, each call of a kernel copies what numba keeps of each array of the tuple: memory
block, owner, length, item size, data, shape and strides. For dozens of arrays the copies take most
of the time of compiling.
"""

from __future__ import annotations

import ctypes
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed
from numba.core.types.containers import BaseTuple, NamedTuple
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numpy.typing import NDArray

Named = TypeVar("Named", bound=type)

Record = NDArray[np.void]
"""An array of one record, whose fields kernels read and write by name."""


def record(integers: str, floats: str = "") -> np.dtype[np.void]:
    """Return the type of a record with these fields."""
    fields = [(name, "i8") for name in integers.split()]
    return np.dtype((np.record, fields + [(name, "f8") for name in floats.split()]))


class Reference(types.Type):
    """Type of a named tuple that is passed by reference."""

    def __init__(self, to: NamedTuple) -> None:
        self.to = to
        super().__init__(f"reference({to.name})")

    @property
    def key(self) -> tuple[type, str]:
        """What tells types apart: classes may have the same name, and fields of the same types."""
        return self.to.instance_class, self.name


register_model(Reference)(models.OpaqueModel)


def by_reference(named: Named) -> Named:
    """Let kernels take named tuples of a class by reference.

    Kernels can read the fields and pass the tuple on, but not create, unpack or return one.

    `named`: the class; all fields are of types that kernels take.
    """

    @typeof_impl.register(named)
    def typeof(value: Any, context: Any) -> Reference:
        return Reference(NamedTuple([typeof_impl(one, context) for one in value], named))

    return named


@infer_getattr
class Fields(AttributeTemplate):  # type: ignore[misc]
    """Types of the fields."""

    key = Reference

    def generic_resolve(self, reference: Reference, name: str) -> types.Type | None:
        """Return the type of a field."""
        fields = reference.to.fields
        return reference.to[fields.index(name)] if name in fields else None


@lower_getattr_generic(Reference)
def read(context: Any, builder: Any, reference: Reference, pointer: Any, name: str) -> Any:
    """Read a field."""
    index = reference.to.fields.index(name)
    whole = context.get_value_type(reference.to)
    place = builder.bitcast(pointer, whole.as_pointer())
    field = whole.elements[index]
    value = loaded(builder, cgutils.gep_inbounds(builder, place, 0, index), field)
    return impl_ret_borrowed(context, builder, reference.to[index], value)


def loaded(builder: Any, place: Any, kind: Any) -> Any:
    """Read a value in parts, so that the parts that are not used cost nothing."""
    if not isinstance(kind, ir.Aggregate):
        return builder.load(place)
    value = ir.Constant(kind, ir.Undefined)
    for part in range(len(kind)):
        inner = cgutils.gep_inbounds(builder, place, 0, part)
        inner_kind = kind.elements[part] if isinstance(kind, ir.BaseStructType) else kind.element
        value = builder.insert_value(value, loaded(builder, inner, inner_kind), part)
    return value


@unbox(Reference)
def unboxed(reference: Reference, value: Any, context: Any) -> NativeValue:
    """Take the address of a block of fields; keep those of a tuple until the kernel returns.

    The pointer to a tuple is to the stack of the wrapper that Python calls, so that kernels cannot
    return or keep it.
    """
    builder, nrt = context.builder, context.context.nrt
    place = cgutils.alloca_once(builder, context.context.get_value_type(reference.to), zfill=True)
    is_error = cgutils.alloca_once_value(builder, cgutils.false_bit)
    address = context.pyapi.long_as_voidptr(value)
    pointer = cgutils.alloca_once_value(builder, address)
    cleanups = []
    with builder.if_then(cgutils.is_null(builder, address)):
        context.pyapi.err_clear()
        native = context.unbox(reference.to, value)
        builder.store(native.value, place)
        builder.store(native.is_error, is_error)
        builder.store(builder.bitcast(place, cgutils.voidptr_t), pointer)
        cleanups.append(native.cleanup)

    def release() -> None:
        for cleanup in filter(None, cleanups):
            cleanup()
        # numba releases what arguments hold by their types, and a pointer holds nothing
        if context.context.enable_nrt:
            nrt.decref(builder, reference.to, builder.load(place))

    return NativeValue(builder.load(pointer), is_error=builder.load(is_error), cleanup=release)


class Block:
    """The fields of a tuple in memory, as kernels read them; a call takes the address alone.

    To read the fields of a tuple of 22 arrays at each call takes three times as long.
    """

    def __init__(self, named: Any, reference: Reference) -> None:
        self._kept: list[Any] = [named]  # what the addresses refer to
        self._fields = self._field(named, reference.to)
        self.address = ctypes.addressof(self._fields)

    def _field(self, value: Any, kind: types.Type) -> Any:
        if isinstance(kind, types.Array):
            # numba's own count of references, the owner, and what describes the entries
            words = [0, id(value), value.size, value.itemsize, value.ctypes.data]
            words += [*value.shape, *value.strides]
            return (ctypes.c_int64 * len(words))(*words)
        if isinstance(kind, Reference):
            self._kept.append(Block(value, kind))
            return ctypes.c_int64(self._kept[-1].address)
        if isinstance(kind, BaseTuple):
            fields = [self._field(one, own) for one, own in zip(value, kind)]
            layout = [(f"field{place}", type(field)) for place, field in enumerate(fields)]
            return type("Fields", (ctypes.Structure,), {"_fields_": layout})(*fields)
        numbers = {"bool": ctypes.c_bool, "int64": ctypes.c_int64, "float64": ctypes.c_double}
        return numbers[kind.name](value)
