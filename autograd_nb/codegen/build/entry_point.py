"""The entry points of kernels: how Python calls machine code.

Numba's own wrapper makes for each array an owner that is counted, looks for the interpreter to free it, and takes the
arguments from a tuple: half of what a small op costs. A kernel only borrows its arguments from its caller, which holds them
until it returns; so an entry point here takes them from where the interpreter has put them (the "fastcall" convention) and
reads the address and the size of each array.

The code that does so depends on the types of the arguments alone, and all kernels of the same types share it: it finds the
kernel in the object that Python hands to a built-in function as its ``self``.
"""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.callwrapper import PyCallWrapper
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from ..arrays import Arrays
from ..library import Simple
from .linking import Code

_WORD, _BYTE = ir.IntType(64), ir.IntType(8)
# where CPython and NumPy keep, in bytes from the start of an object, what their public structs declare
_VALUE = object.__basicsize__  # behind the head of any object: the length of a tuple
_TYPE, _ITEMS = _VALUE - 8, tuple.__basicsize__
_DATA, _NDIM, _SHAPE = _VALUE, _VALUE + 8, _VALUE + 16  # of an array
_BYTES = bytes.__basicsize__ - 1  # the first one of a bytes object

#: elements of all arrays together from which a call lets other threads run Python: to let go and take hold costs 50 ns
SMALL = 2048


class Wrapper(PyCallWrapper):
    """The function that an entry point calls: (addresses of the type of arrays and of a kernel in a bytes object, pointer to
    the arguments, their number)."""

    api: Any  # of Numba
    builder: Any  # of llvmlite, as are the values and blocks below
    ndarray: Any
    wrong: Any
    failed: Any
    listed: Any

    def build_wrapper(self, api: Any, builder: Any, closure: Any, args: Any, kws: Any) -> None:
        self.api, self.builder = api, builder
        kinds, convention = self.fndesc.argtypes, self.context.call_conv
        self.ndarray = self._field(closure, _BYTES, api.pyobj)
        kernel = self._field(closure, _BYTES + 8, convention.get_function_type(types.none, kinds).as_pointer())
        self.wrong, self.failed = (builder.append_basic_block(name) for name in ("wrong", "failed"))
        with builder.goto_block(self.wrong):
            api.err_set_string("PyExc_TypeError", "an argument of a kernel is not of its type")
            builder.branch(self.failed)
        with builder.goto_block(self.failed):
            builder.ret(api.get_null_object())
        self._unless(builder.icmp_unsigned("==", builder.ptrtoint(kws, _WORD), _WORD(len(kinds))), self.wrong)
        self.count: Any = None  # of the arrays in each list
        self.listed = cgutils.alloca_once_value(builder, _WORD(0))  # their elements
        sizes: list[Any] = []
        given = []
        for i, kind in enumerate(kinds):
            value = self._read(self._field(args, 8 * i, api.pyobj), kind)
            given.append(value)
            if isinstance(kind, types.Array):
                sizes.append(builder.extract_value(builder.extract_value(value, 5), 0))
        total: Any = builder.load(self.listed)
        for size in sizes:
            total = builder.add(total, size)
        large = builder.icmp_signed(">=", total, _WORD(SMALL))
        state = cgutils.alloca_once_value(builder, ir.Constant(api.voidptr, None))
        with builder.if_then(large):
            builder.store(api.save_thread(), state)
        status, _ = convention.call_function(builder, kernel, types.none, kinds, given)
        with builder.if_then(large):
            api.restore_thread(builder.load(state))
        with builder.if_then(status.is_ok, likely=True):
            api.return_none()
        convention.raise_error(builder, api, status)
        builder.ret(api.get_null_object())

    def _call(self, name: str, result: Any, *args: Any) -> Any:
        function = self.api._get_function(ir.FunctionType(result, [a.type for a in args]), name=name)
        return self.builder.call(function, args)

    def _field(self, base: Any, offset: int, kind: Any) -> Any:
        place = self.builder.gep(self.builder.bitcast(base, _BYTE.as_pointer()), [_WORD(offset)])
        return self.builder.load(self.builder.bitcast(place, kind.as_pointer()))

    def _unless(self, holds: Any, target: Any) -> None:
        with cgutils.if_unlikely(self.builder, self.builder.not_(holds)):
            self.builder.branch(target)

    def _is(self, obj: Any, kind: Any) -> Any:
        return self.builder.icmp_unsigned("==", self._field(obj, _TYPE, self.api.pyobj), kind)

    def _must_be(self, obj: Any, kind: Any) -> None:
        with cgutils.if_unlikely(self.builder, self.builder.not_(self._is(obj, kind))):
            within = self._call("PyType_IsSubtype", ir.IntType(32), self._field(obj, _TYPE, self.api.pyobj), kind)
            self._unless(cgutils.is_not_null(self.builder, within), self.wrong)

    def _read(self, obj: Any, kind: Any) -> Any:
        """Return the native value of an argument."""
        if isinstance(kind, types.Array):
            return self._array(obj, kind)
        if isinstance(kind, Arrays):
            return self._arrays(obj, kind)
        if isinstance(kind, types.UniTuple) and kind.dtype is types.int64:
            return self._tuple(obj, kind)
        if kind is types.int64:
            return self._int(obj)
        if kind is types.float64:
            return self._float(obj)
        native = self.api.to_native_value(kind, obj)
        self._unless(self.builder.not_(native.is_error), self.failed)
        return native.value

    def _array(self, obj: Any, kind: Any) -> Any:
        builder = self.builder
        size = self._size(obj)
        array = self.context.make_array(kind)(self.context, builder)
        width = self.context.get_abi_sizeof(self.context.get_data_type(kind.dtype))
        array.meminfo = ir.Constant(array.meminfo.type, None)
        array.parent = ir.Constant(array.parent.type, None)
        array.nitems, array.itemsize = size, _WORD(width)
        array.data = self._field(obj, _DATA, array.data.type)
        array.shape = cgutils.pack_array(builder, [size])
        array.strides = cgutils.pack_array(builder, [_WORD(width)])
        return array._getvalue()

    def _size(self, obj: Any) -> Any:
        """Return how many elements there are in what must be a flat array."""
        self._must_be(obj, self.ndarray)
        flat = self.builder.icmp_unsigned("==", self._field(obj, _NDIM, ir.IntType(32)), ir.IntType(32)(1))
        self._unless(flat, self.wrong)
        return self._field(self._field(obj, _SHAPE, _WORD.as_pointer()), 0, _WORD)

    def _arrays(self, obj: Any, kind: Any) -> Any:
        """Return the table of a list of arrays, on the stack, as long as every other list of the call."""
        builder = self.builder
        self._must_be(obj, self.api.get_c_object("PyList_Type"))
        count = self._field(obj, _VALUE, _WORD)
        items = self._field(obj, _VALUE + 8, self.api.pyobj.as_pointer())
        if self.count is not None:
            self._unless(builder.icmp_unsigned("==", count, self.count), self.wrong)
        self.count = count
        table = builder.alloca(_WORD, builder.shl(count, _WORD(1)))
        with cgutils.for_range(builder, count) as loop:
            array = builder.load(builder.gep(items, [loop.index]))
            size = self._size(array)
            place = builder.gep(table, [builder.shl(loop.index, _WORD(1))])
            builder.store(self._field(array, _DATA, _WORD), place)
            builder.store(size, builder.gep(place, [_WORD(1)]))
            builder.store(builder.add(builder.load(self.listed), size), self.listed)
        listed = cgutils.create_struct_proxy(kind)(self.context, builder)
        listed.table, listed.count = table, count
        return listed._getvalue()

    def _tuple(self, obj: Any, kind: Any) -> Any:
        self._must_be(obj, self.api.get_c_object("PyTuple_Type"))
        self._unless(self.builder.icmp_unsigned("==", self._field(obj, _VALUE, _WORD), _WORD(kind.count)), self.wrong)
        items = [self._int(self._field(obj, _ITEMS + 8 * i, self.api.pyobj)) for i in range(kind.count)]
        return self.context.make_tuple(self.builder, kind, items)

    def _int(self, obj: Any) -> Any:
        """Return the native value of ``int(obj)``, read by a function of the module's own, as kernels take many integers."""
        builder, module = self.builder, self.builder.module
        function = module.globals.get("read_int")
        place = cgutils.alloca_once(builder, _WORD)
        if function is None:
            function = ir.Function(module, ir.FunctionType(ir.IntType(1), [self.api.pyobj, place.type]), "read_int")
            function.linkage = "internal"
            function.attributes.add("noinline")
            self._write_int(function)
        self._unless(builder.call(function, [obj, place]), self.failed)
        return builder.load(place)

    def _write_int(self, function: Any) -> None:
        obj, place = function.args
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        api = self.context.get_python_api(builder)
        outer, self.builder, self.api = (self.builder, self.api), builder, api
        known, other, done, good, bad = (function.append_basic_block(n) for n in ("known", "other", "done", "good", "bad"))
        builder.cbranch(self._is(obj, api.get_c_object("PyLong_Type")), known, other)
        builder.position_at_end(known)
        first = api.long_as_longlong(obj)
        builder.branch(done)
        builder.position_at_end(other)
        number = api.number_long(obj)
        is_number, read = cgutils.is_not_null(builder, number), function.append_basic_block("read")
        builder.cbranch(is_number, read, bad)
        builder.position_at_end(read)
        second = api.long_as_longlong(number)
        api.decref(number)
        builder.branch(done)
        builder.position_at_end(done)
        value = builder.phi(_WORD)
        value.add_incoming(first, known)
        value.add_incoming(second, read)
        builder.store(value, place)
        suspect = function.append_basic_block("suspect")
        builder.cbranch(builder.icmp_signed("==", value, _WORD(-1)), suspect, good)
        builder.position_at_end(suspect)
        builder.cbranch(cgutils.is_not_null(builder, api.err_occurred()), bad, good)
        builder.position_at_end(good)
        builder.ret(ir.IntType(1)(1))
        builder.position_at_end(bad)
        builder.ret(ir.IntType(1)(0))
        self.builder, self.api = outer

    def _float(self, obj: Any) -> Any:
        builder = self.builder
        value = self._call("PyFloat_AsDouble", ir.DoubleType(), obj)
        with builder.if_then(builder.fcmp_ordered("==", value, ir.DoubleType()(-1.0)), likely=False):
            self._unless(cgutils.is_null(builder, self.api.err_occurred()), self.failed)
        return value


_shared: dict[tuple, tuple[str, bytes]] = {}  # by the types of the arguments: symbol, object code


def shared(kinds: tuple[Any, ...]) -> tuple[str, bytes]:
    """Return the code that entry points to kernels of these types share: its symbol and object code."""
    known = _shared.get(kinds)
    if known is None:
        name = "entry_" + hashlib.sha256(repr(kinds).encode()).hexdigest()[:32]
        context = cpu_target.target_context
        library = Simple(context.codegen(), name)
        module = context.create_module(name)
        with global_compiler_lock, context.push_code_library(library):
            about = SimpleNamespace(llvm_cpython_wrapper_name=name, argtypes=kinds)
            Wrapper(context, module, None, about, None, None, False).build()
            library.add_ir_module(module)
            known = _shared[kinds] = (name, library.object_code())
    return known


def code_of(result: Any) -> Code:
    """Return the machine code of what Numba has compiled, ready to be linked and kept."""
    name = result.fndesc.qualname
    assert result.signature.return_type is types.none, f"{name}: a kernel returns nothing, as its outputs are arguments"
    library = result.library
    entry = shared(tuple(result.signature.args))
    return Code(name, entry, (result.fndesc.llvm_func_name, library.object_code()), library.environments())
