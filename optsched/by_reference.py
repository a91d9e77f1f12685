"""Named tuples that functions with ``@kernel`` take by reference: one pointer for all fields.

Without this, each call of a kernel copies what numba keeps of each array of the tuple: memory
block, owner, length, item size, data, shape and strides. For dozens of arrays the copies take most
of the time of compiling.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed
from numba.core.types.containers import NamedTuple
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
    """Keep the fields in the wrapper that Python calls, until the kernel returns.

    The pointer is to the stack of the wrapper, so that kernels cannot return or keep it.
    """
    native = context.unbox(reference.to, value)
    place = cgutils.alloca_once_value(context.builder, native.value)

    def release() -> None:
        if native.cleanup is not None:
            native.cleanup()
        # numba releases what arguments hold by their types, and a pointer holds nothing
        if context.context.enable_nrt:
            context.context.nrt.decref(context.builder, reference.to, native.value)

    pointer = context.builder.bitcast(place, cgutils.voidptr_t)
    return NativeValue(pointer, is_error=native.is_error, cleanup=release)
