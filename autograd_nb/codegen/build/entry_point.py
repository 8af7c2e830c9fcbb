"""The entry points of kernels: how Python calls machine code.

Numba's own wrapper makes for each array an owner that is counted, looks for the interpreter to free it, and takes the
arguments from a tuple: half of what a small op costs. A kernel only borrows its arguments from its caller, which holds them
until it returns; so an entry point here takes them from where the interpreter has put them (the "fastcall" convention) and
reads the address and the size of each array.

The code that does so depends on the types of the arguments alone, and all kernels of the same types share it: it finds the
kernel in the object that Python hands to a built-in function as its ``self``. It is written as LLVM's text, of which there is nothing
to optimise, and calls functions that all entry points share (`_SHARED`) for what is long or rare: a tenth of what Numba's builder and
LLVM's passes took for each.
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core.callconv import excinfo_ptr_t
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from ..arrays import Arrays
from .hashed import hashed
from .linking import Code

# where CPython and NumPy keep, in bytes from the start of an object, what their public structs declare
_VALUE = object.__basicsize__  # behind the head of any object: the length of a tuple
_TYPE, _ITEMS = _VALUE - 8, tuple.__basicsize__
_DATA, _NDIM, _SHAPE = _VALUE, _VALUE + 8, _VALUE + 16  # of an array
_BYTES = bytes.__basicsize__ - 1  # the first one of a bytes object

#: elements of all arrays together from which a call lets other threads run Python: to let go and take hold costs 50 ns
SMALL = 2048

#: whether an object's type is ``wanted`` or derived from it; ``int(obj)``, and whether that is a number of 64 bits; the table of the arrays in
#: a list, whose elements are counted (-1: there is something else in it); the error for arguments of other types
_SHARED = f"""
define i1 @is_NAME(ptr %kind, ptr %wanted) {{
  %same = icmp eq ptr %kind, %wanted
  br i1 %same, label %yes, label %ask
yes:
  ret i1 1
ask:
  %found = call i32 @PyType_IsSubtype(ptr %kind, ptr %wanted)
  %within = icmp ne i32 %found, 0
  ret i1 %within
}}
define {{ i64, i1 }} @int_NAME(ptr %obj) {{
  %at = getelementptr i8, ptr %obj, i64 {_TYPE}
  %kind = load ptr, ptr %at
  %known = icmp eq ptr %kind, @PyLong_Type
  br i1 %known, label %read, label %other
other:
  %number = call ptr @PyNumber_Long(ptr %obj)
  %none = icmp eq ptr %number, null
  br i1 %none, label %bad, label %convert
convert:
  %converted = call i64 @PyLong_AsLongLong(ptr %number)
  call void @Py_DecRef(ptr %number)
  br label %test
read:
  %direct = call i64 @PyLong_AsLongLong(ptr %obj)
  br label %test
test:
  %value = phi i64 [ %converted, %convert ], [ %direct, %read ]
  %suspect = icmp eq i64 %value, -1
  br i1 %suspect, label %doubt, label %good
doubt:
  %error = call ptr @PyErr_Occurred()
  %wrong = icmp ne ptr %error, null
  br i1 %wrong, label %bad, label %good
good:
  %found = insertvalue {{ i64, i1 }} {{ i64 0, i1 1 }}, i64 %value, 0
  ret {{ i64, i1 }} %found
bad:
  ret {{ i64, i1 }} {{ i64 -1, i1 0 }}
}}
define i64 @table_NAME(ptr %list, i64 %count, ptr %ndarray, ptr %table) {{
  %items_at = getelementptr i8, ptr %list, i64 {_VALUE + 8}
  %items = load ptr, ptr %items_at
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %i1, %put ]
  %elements = phi i64 [ 0, %0 ], [ %more, %put ]
  %through = icmp eq i64 %i, %count
  br i1 %through, label %done, label %look
look:
  %item_at = getelementptr ptr, ptr %items, i64 %i
  %item = load ptr, ptr %item_at
  %kind_at = getelementptr i8, ptr %item, i64 {_TYPE}
  %kind = load ptr, ptr %kind_at
  %is = call i1 @is_NAME(ptr %kind, ptr %ndarray)
  br i1 %is, label %dims, label %wrong
dims:
  %ndim_at = getelementptr i8, ptr %item, i64 {_NDIM}
  %ndim = load i32, ptr %ndim_at
  %flat = icmp eq i32 %ndim, 1
  br i1 %flat, label %put, label %wrong
put:
  %data_at = getelementptr i8, ptr %item, i64 {_DATA}
  %data = load i64, ptr %data_at
  %shape_at = getelementptr i8, ptr %item, i64 {_SHAPE}
  %shape = load ptr, ptr %shape_at
  %size = load i64, ptr %shape
  %i2 = shl i64 %i, 1
  %first = getelementptr i64, ptr %table, i64 %i2
  store i64 %data, ptr %first
  %second = getelementptr i64, ptr %first, i64 1
  store i64 %size, ptr %second
  %more = add i64 %elements, %size
  %i1 = add i64 %i, 1
  br label %next
wrong:
  ret i64 -1
done:
  ret i64 %elements
}}
@message_NAME = internal constant [43 x i8] c"an argument of a kernel is not of its type\\00"
define void @wrong_NAME() {{
  call void @PyErr_SetString(ptr @PyExc_TypeError, ptr @message_NAME)
  ret void
}}
@PyLong_Type = external global i8
@PyExc_TypeError = external global i8
declare i32 @PyType_IsSubtype(ptr, ptr)
declare ptr @PyNumber_Long(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_SetString(ptr, ptr)
"""

#: what the text of an entry point begins with
_DECLARED = """
@PyTuple_Type = external global i8
@PyList_Type = external global i8
@_Py_NoneStruct = external global i8
declare i1 @is_NAME(ptr, ptr)
declare { i64, i1 } @int_NAME(ptr)
declare i64 @table_NAME(ptr, i64, ptr, ptr)
declare void @wrong_NAME()
declare ptr @raise_NAME(i32, ptr)
declare i32 @PyObject_IsTrue(ptr)
declare double @PyFloat_AsDouble(ptr)
declare i32 @numba_complex_adaptor(ptr, ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
"""


class _Text:
    """The LLVM text of the entry point ``entry_NAME`` to kernels whose arguments are of ``kinds``, in three functions.

    All get as ``self`` the address of a bytes object that holds the addresses of the type of arrays and of the kernel. ``parse_NAME`` writes what
    the arguments stand for into a block of 64-bit words; without a block it says how many words that needs; in both cases -1 where an
    argument is not of its kind, else how many elements arrays have together. ``call_NAME`` calls the kernel with what stands in a block,
    which needs no interpreter: so threads share the work of one launch (`pool`). ``entry_NAME`` does both.
    """

    def __init__(self, kinds: tuple[Any, ...]):
        self.kinds = kinds
        self.lines: list[str] = []
        self._values = 0
        self.lists = sum(isinstance(k, Arrays) for k in kinds)
        self.fixed = sum(_words(k) for k in kinds)
        self._parse()
        self._call()
        self._entry()

    def new(self, text: str) -> str:
        """Return the name of what an instruction gives."""
        self._values += 1
        self.lines.append(f"%v{self._values} = {text}")
        return f"%v{self._values}"

    def at(self, base: str, offset: int) -> str:
        """Return the address so many bytes behind another."""
        return self.new(f"getelementptr i8, ptr {base}, i64 {offset}")

    def field(self, base: str, offset: int, kind: str) -> str:
        """Return what lies so many bytes behind an address."""
        return self.new(f"load {kind}, ptr {self.at(base, offset)}")

    def unless(self, condition: str, target: str, otherwise: str) -> None:
        """Go on at the new block ``otherwise``, or at ``target`` where the condition holds."""
        self.lines += [f"br i1 {condition}, label %{target}, label %{otherwise}", f"{otherwise}:"]

    def any(self, conditions: list[str]) -> str:
        """Return whether one of the conditions holds."""
        found = conditions[0]
        for c in conditions[1:]:
            found = self.new(f"or i1 {found}, {c}")
        return found

    # what the arguments stand for

    def _parse(self) -> None:
        self.lines.append("define i64 @parse_NAME(ptr %self, ptr %args, i64 %count, ptr %block) {")
        self.ndarray = self.field("%self", _BYTES, "ptr")
        self.unless(self.new(f"icmp ne i64 %count, {len(self.kinds)}"), "wrong", "objects")
        self.objects = [self.field("%args", 8 * i, "ptr") for i in range(len(self.kinds))]
        self._containers()
        room = str(self.fixed)
        if self.lists:
            room = self.new(f"add i64 {self.fixed}, {self.new(f'mul i64 {self.listed}, {2 * self.lists}')}")
        self.unless(self.new("icmp eq ptr %block, null"), "asked", "given")
        self.place = 0
        self.tables = 0
        self.sizes: list[str] = []
        self.doubts: list[str] = []
        for o, k in zip(self.objects, self.kinds, strict=True):
            self._read(o, k)
        if self.doubts:
            self.unless(self.any(self.doubts), "doubt", "go")
        total = self.sizes[0] if self.sizes else "0"
        for size in self.sizes[1:]:
            total = self.new(f"add i64 {total}, {size}")
        self.lines += [f"ret i64 {total}", "asked:", f"ret i64 {room}", "wrong:", "call void @wrong_NAME()", "ret i64 -1"]
        if self.doubts:
            self.lines += ["doubt:", "%error = call ptr @PyErr_Occurred()", "%certain = icmp ne ptr %error, null"]
            self.lines += ["br i1 %certain, label %failed, label %go", "failed:", "ret i64 -1"]
        if hasattr(self, "_derived"):
            self.lines.append("derived:")
            good = [self.new(f"call i1 @is_NAME(ptr {pair})") for pair in self._derived]
            self.lines.append(f"br i1 {self.any([self.new(f'xor i1 {g}, true') for g in good])}, label %wrong, label %look")
        self.lines.append("}")

    def _containers(self) -> None:
        """Make sure that arrays are flat arrays, and tuples and lists are such and as long as they must be."""
        wanted = {types.Array: self.ndarray, types.UniTuple: "@PyTuple_Type", Arrays: "@PyList_Type"}
        found = [(o, k, self.field(o, _TYPE, "ptr")) for o, k in zip(self.objects, self.kinds, strict=True) if type(k) in wanted]
        if not found:
            return
        self.unless(self.any([self.new(f"icmp ne ptr {kind}, {wanted[type(k)]}") for _, k, kind in found]), "derived", "look")
        lists = [self.field(o, _VALUE, "i64") for o, k, _ in found if isinstance(k, Arrays)]
        self.listed = lists[0] if lists else ""
        differ = [self.new(f"icmp ne i64 {other}, {self.listed}") for other in lists[1:]]
        for o, k, _ in found:
            if isinstance(k, types.Array):
                differ.append(self.new(f"icmp ne i32 {self.field(o, _NDIM, 'i32')}, 1"))
            elif isinstance(k, types.UniTuple):
                differ.append(self.new(f"icmp ne i64 {self.field(o, _VALUE, 'i64')}, {k.count}"))
        if differ:
            self.unless(self.any(differ), "wrong", "read")
        self._derived = [f"{kind}, ptr {wanted[type(k)]}" for _, k, kind in found]

    def put(self, value: str) -> None:
        """Write a value of 64 bits or less, ``type value``, into the block's next word."""
        self.lines.append(f"store {value}, ptr {self.at('%block', 8 * self.place)}")
        self.place += 1

    def _read(self, o: str, k: Any) -> None:
        if isinstance(k, types.Array):
            size = self.field(self.field(o, _SHAPE, "ptr"), 0, "i64")
            self.put(f"i64 {size}")
            self.put(f"ptr {self.field(o, _DATA, 'ptr')}")
            self.sizes.append(size)
        elif isinstance(k, Arrays):
            behind = self.new(f"add i64 {self.fixed}, {self.new(f'mul i64 {self.listed}, {2 * self.tables}')}")
            table = self.new(f"getelementptr i64, ptr %block, i64 {behind}")
            size = self.new(f"call i64 @table_NAME(ptr {o}, i64 {self.listed}, ptr {self.ndarray}, ptr {table})")
            self.unless(self.new(f"icmp slt i64 {size}, 0"), "wrong", f"listed{self.tables}")
            self.put(f"ptr {table}")
            self.put(f"i64 {self.listed}")
            self.sizes.append(size)
            self.tables += 1
        elif isinstance(k, types.UniTuple) and k.dtype is types.int64:
            for i in range(k.count):
                self._int(self.field(o, _ITEMS + 8 * i, "ptr"))
        elif k is types.int64:
            self._int(o)
        elif k is types.boolean:
            value = self.new(f"call i32 @PyObject_IsTrue(ptr {o})")
            self.doubts.append(self.new(f"icmp slt i32 {value}, 0"))
            self.put(f"i8 {self.new(f'trunc i32 {value} to i8')}")
        elif k is types.float64:
            value = self.new(f"call double @PyFloat_AsDouble(ptr {o})")
            self.doubts.append(self.new(f"fcmp oeq double {value}, -1.0"))
            self.put(f"double {value}")
        elif k is types.complex128:
            done = self.new(f"call i32 @numba_complex_adaptor(ptr {o}, ptr {self.at('%block', 8 * self.place)})")
            self.doubts.append(self.new(f"icmp eq i32 {done}, 0"))
            self.place += 2

    def _int(self, o: str) -> None:
        pair = self.new(f"call {{ i64, i1 }} @int_NAME(ptr {o})")
        good = self.new(f"extractvalue {{ i64, i1 }} {pair}, 1")
        self.doubts.append(self.new(f"xor i1 {good}, true"))
        self.put(f"i64 {self.new(f'extractvalue {{ i64, i1 }} {pair}, 0')}")

    # what the kernel gets

    def _call(self) -> None:
        self.lines.append("define i32 @call_NAME(ptr %self, ptr %block, ptr %excinfo) {")
        self.place = 0
        kernel, retptr = self.field("%self", _BYTES + 8, "ptr"), self.new("alloca ptr")
        self.lines.append(f"store ptr null, ptr {retptr}")
        self.given: list[str] = [given for k in self.kinds for given in self._given(k)]
        self.passed = [g.split()[0] for g in self.given]  #: the types of what the kernel gets
        status = self.new(f"call i32 {kernel}({', '.join([f'ptr {retptr}', 'ptr %excinfo', *self.given])})")
        self.lines += [f"ret i32 {status}", "}"]

    def word(self, kind: str) -> str:
        """Return the block's next word, as its type and name."""
        found = self.field("%block", 8 * self.place, kind)
        self.place += 1
        return f"{kind} {found}"

    def _given(self, k: Any) -> list[str]:
        if isinstance(k, types.Array):
            width = f"i64 {_width(k.dtype)}"
            size, data = self.word("i64"), self.word("ptr")
            return ["ptr null", "ptr null", size, width, data, size, width]
        if isinstance(k, Arrays):
            return [self.word("ptr"), self.word("i64")]
        kind = {types.boolean: "i8", types.float64: "double", types.complex128: "double"}.get(k, "i64")
        return [self.word(kind) for _ in range(_words(k))]

    # what Python calls

    def _entry(self) -> None:
        """Call the kernel, without the interpreter's lock where there is much to do, and return None or raise what it raises."""
        self.lines.append("define ptr @entry_NAME(ptr %self, ptr %args, i64 %count) {")
        excinfo = self.new("alloca ptr")
        self.lines.append(f"store ptr null, ptr {excinfo}")
        if self.lists:
            room = self.new("call i64 @parse_NAME(ptr %self, ptr %args, i64 %count, ptr null)")
            self.unless(self.new(f"icmp slt i64 {room}, 0"), "failed", "known")
            block = self.new(f"alloca i64, i64 {room}")
        else:
            block = self.new(f"alloca [{max(self.fixed, 1)} x i64]")
        total = self.new(f"call i64 @parse_NAME(ptr %self, ptr %args, i64 %count, ptr {block})")
        self.unless(self.new(f"icmp slt i64 {total}, 0"), "failed", "parsed")
        self.unless(self.new(f"icmp sge i64 {total}, {SMALL}"), "free", "hold")
        call = f"call i32 @call_NAME(ptr %self, ptr {block}, ptr {excinfo})"
        self.lines += [f"%s1 = {call}", "br label %after", "free:", "%state = call ptr @PyEval_SaveThread()", f"%s2 = {call}"]
        self.lines += ["call void @PyEval_RestoreThread(ptr %state)", "br label %after"]
        self.lines += ["after:", "%status = phi i32 [ %s1, %hold ], [ %s2, %free ]"]
        self.lines.append("switch i32 %status, label %raises [ i32 0, label %good i32 -2, label %good ]")  # 0 or None
        self.lines.append("good:")
        self.lines += ["call void @Py_IncRef(ptr @_Py_NoneStruct)", "ret ptr @_Py_NoneStruct"]
        self.lines += ["raises:", f"%why = load ptr, ptr {excinfo}", "%e2 = call ptr @raise_NAME(i32 %status, ptr %why)", "ret ptr %e2"]
        self.lines += ["failed:", "ret ptr null", "}"]


def _words(kind: Any) -> int:
    """Return how many words of a block an argument of a kind takes."""
    if isinstance(kind, (types.Array, Arrays)) or kind is types.complex128:
        return 2
    if isinstance(kind, types.UniTuple) and kind.dtype is types.int64:
        return int(kind.count)
    if kind in (types.int64, types.boolean, types.float64):
        return 1
    raise TypeError(f"a kernel takes no {kind}")


def _width(kind: Any) -> int:
    """Return the bytes of an element."""
    context = cpu_target.target_context
    return int(context.get_abi_sizeof(context.get_data_type(kind)))


def _as_passed(kinds: tuple[Any, ...]) -> list[str]:
    """Return the types of a kernel's arguments as Numba's calling convention has them, behind the two that stand for its result."""
    passed = cpu_target.target_context.call_conv.get_function_type(types.none, kinds).args[2:]
    return ["ptr" if isinstance(p, ir.PointerType) else str(p) for p in passed]


@functools.cache
def _target_machine() -> Any:
    """Return what makes machine code as it stands: of calls and checks it is made in a fifth of the time, and runs 4 ns longer."""
    codegen = cpu_target.target_context.codegen()
    options: dict[str, Any] = {"opt": 0}
    codegen._customize_tm_options(options)
    return binding.Target.from_triple(codegen._tm.triple).create_target_machine(**options)


def _object_code(module: Any) -> bytes:
    """Return the machine code of an LLVM module."""
    machine = _target_machine()
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    return bytes(machine.emit_object(module))


@functools.cache
def _support() -> tuple[str, bytes]:
    """Return what tells the names of the functions that entry points call from others, and their object code."""
    context = cpu_target.target_context
    module = context.create_module("raise")
    # whatever a kernel raises becomes Python's error: (what it returned, where it has left what it raises)
    kind = ir.FunctionType(ir.IntType(8).as_pointer(), [ir.IntType(32), excinfo_ptr_t])
    function = ir.Function(module, kind, "raise_NAME")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    api, convention = context.get_python_api(builder), context.call_conv
    convention.raise_error(builder, api, convention._get_return_status(builder, *function.args))
    builder.ret(api.get_null_object())
    raising = str(module)
    name = hashed((raising + _SHARED).encode()).hexdigest()[:16]
    linked = binding.parse_assembly(raising.replace("NAME", name))
    linked.link_in(binding.parse_assembly(_SHARED.replace("NAME", name)))
    return name, _object_code(linked)


_shared: dict[tuple[Any, ...], tuple[str, bytes]] = {}  # by the types of the arguments: symbol, object code


def shared(kinds: tuple[Any, ...]) -> tuple[str, bytes]:
    """Return the code that entry points to kernels of these types share: its symbol and object code."""
    known = _shared.get(kinds)
    if known is None:
        with global_compiler_lock:
            support = _support()[0]
            text = _Text(kinds)
            if text.passed != _as_passed(kinds):
                raise RuntimeError(f"this version of Numba passes arguments of the types {kinds} in another way")
            lines = "\n".join([_DECLARED, *text.lines]).replace("_NAME", f"_{support}")
            own = hashed(lines.encode()).hexdigest()[:32]
            for part in ("entry", "parse", "call"):
                lines = lines.replace(f"@{part}_{support}", f"@{part}_{own}")
            known = _shared[kinds] = (f"entry_{own}", _object_code(binding.parse_assembly(lines)))
    return known


def code_of(result: Any) -> Code:
    """Return the machine code of what Numba has compiled, ready to be linked and kept."""
    name = result.fndesc.qualname
    assert result.signature.return_type is types.none, f"{name}: a kernel returns nothing, as its outputs are arguments"
    library = result.library
    entry = shared(tuple(result.signature.args))
    support, code = _support()
    return Code(name, (f"int_{support}", code), entry, (result.fndesc.llvm_func_name, library.object_code()), library.environments())
