"""Kernels: functions that are compiled to machine code once on a machine, and afterwards loaded.

    first use      kernels --numba--> LLVM IR --LLVM--> machine code --> a file     seconds
    afterwards     the file --> memory --> a call                                       0.1 s

Importing numba takes longer than training on ten megabytes. Machine code that is there needs only
llvmlite, the binding to LLVM that numba is built on. So `@compiled` and `@kernel` leave numba alone
until there is something to compile.

A kernel allocates nothing and raises nothing: it works in the caller's arrays, and returns before
they would overflow.
"""

import ctypes
import os
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cache, cached_property, partial, wraps
from hashlib import sha256
from pathlib import Path
from typing import Any

import llvmlite
import numpy as np
from llvmlite import binding as llvm

from workbook.files import atomic_write, locked, say
from workbook.tokenization import engine
from workbook.tokenization.engine import code_folders, sources_digest

# Types of parameters, as numba spells them: a number, and arrays of one and of two dimensions.
INT, INTS, ROWS = "int64", "int64[::1]", "int64[:, ::1]"
INTS_32, BYTES = "int32[::1]", "uint8[::1]"
# Without `_nrt=False`, the code would count references to arrays, by calls to numba's runtime.
OPTIONS: dict[str, Any] = {"_nrt": False, "boundscheck": False, "error_model": "numpy"}
Function = Callable[..., Any]


class Compiled:
    """A function that compiled code may call.

    Where compiled code names it, numba asks it for its `_numba_type_`, and gets that of the
    function that `njit` makes of it.
    """

    def __init__(self, function: Function) -> None:
        self.function = function

    @cached_property
    def _numba_type_(self) -> Any:
        # Not at the top of the file: with machine code on disk, numba is never loaded.
        from numba import njit

        # LLVM inlines these functions only if told to, and a call for each pre-token costs time.
        # What `njit` makes is held here, because its type does not hold it.
        self.by_numba = njit(forceinline=True, **OPTIONS)(self.function)
        return self.by_numba._numba_type_


class Intrinsic:
    """A function that compiled code may call, and whose LLVM IR is written by `emit`.

    `emit(builder, *arguments)` returns the result, or nothing. `types` are those of the result and
    of the arguments, as in "int64(int64, uint64)".
    """

    def __init__(self, emit: Function, types: str) -> None:
        self.emit = emit
        self.types = types

    @cached_property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target
        from numba.core.sigutils import normalize_signature
        from numba.extending import intrinsic

        # numba's own reading of "int64(int64, uint64)".
        arguments, result = normalize_signature(self.types)

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            # A function without a result still has to give numba something: a dummy.
            return self.emit(builder, *values) or context.get_dummy_value()

        @wraps(self.emit)  # numba counts its parameters; the first is the context, or the builder
        def define(context: Any, *_: Any) -> Any:
            # What the types are, and the function that writes the code.
            return result(*arguments), generate

        made = intrinsic(define)
        cpu_target.typing_context.refresh()  # or it would not know the new one
        return cpu_target.typing_context.resolve_value_type(made)


class Kernel(Compiled):
    """A function that Python calls. It returns an integer; None becomes 0."""

    def __init__(self, function: Function, types: tuple[str, ...]) -> None:
        super().__init__(function)
        self.types = types
        self.name = f"{function.__module__}.{function.__name__}"
        KERNELS.append(self)

    def __call__(self, *arguments: int | np.ndarray) -> int:
        call, result = self.prepared(*arguments)
        call()
        return result.value

    def prepared(self, *arguments: int | np.ndarray) -> tuple[partial[int], ctypes.c_int64]:
        """A call that can be made again and again and holds the arrays, and where its result is.

        Raises: TypeError for arguments of other types than the kernel's.
        """
        # numba's convention: the function returns a status, writes its result to an address, and
        # what it raises to another one: nothing here, so that is none.
        result = ctypes.c_int64()
        # Turning arguments into C's takes longer than a short text does: so once, for many calls.
        call = partial(self._code, ctypes.byref(result), None, *self._flat(arguments))
        call.held = arguments  # type: ignore[attr-defined]  # whose addresses it uses
        return call, result

    @cached_property
    def _code(self) -> Callable[..., int]:
        """The machine code as a function. ctypes lets other threads run while it does."""
        address = load_kernels().get_function_address(self.name)
        if address == 0:  # to call it would end Python
            raise RuntimeError(f"{self.name} was defined after the kernels were loaded")
        # CFUNCTYPE and not PYFUNCTYPE: Python's lock is released, so threads work side by side.
        return ctypes.CFUNCTYPE(ctypes.c_int32)(address)

    def _flat(self, arguments: tuple[int | np.ndarray, ...]) -> Iterator[Any]:
        """The arguments as numba passes them, an array as several numbers."""
        # A wrong type would be read as an address, and end Python: so each is checked.
        for argument, expected in zip(arguments, self.types, strict=True):
            if not fits(argument, expected):
                raise TypeError(f"{self.name} takes {expected}, got {argument_in_words(argument)}")
            numbers: tuple[Any, ...] = (argument,)
            if isinstance(argument, np.ndarray):
                # The two zeros would be its owners, but nobody counts references.
                data = 0, 0, argument.size, argument.itemsize, argument.ctypes.data
                numbers = (*data, *argument.shape, *argument.strides)
            yield from map(ctypes.c_int64.from_param, numbers)

    def lowered(self) -> llvm.ModuleRef:
        """The LLVM IR of the kernel and of all that it calls, as numba makes it."""
        from numba import njit

        # ctypes calls the function itself, so wrappers for Python and C are left out.
        options = OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        dispatcher = njit(f"({', '.join(self.types)},)", **options)(self.function)
        made: Any = next(iter(dispatcher.overloads.values()))
        # As text: numba's module belongs to its own engine, and this one goes into a file.
        module = llvm.parse_assembly(made.library.get_llvm_str())
        # A name that the next process can ask for: numba's differs from process to process.
        module.get_function(made.fndesc.llvm_func_name).name = self.name
        return module


def fits(argument: int | np.ndarray, expected: str) -> bool:
    """Whether an argument is of a type of parameters, which machine code takes for granted."""
    if not isinstance(argument, np.ndarray):
        return expected == INT
    kind, _, axes = expected.partition("[")
    if argument.dtype != kind or argument.ndim != axes.count(":") - 1:  # "::1" is the last axis
        return False
    # The kernels step from element to element by their size alone.
    return argument.flags.c_contiguous


def argument_in_words(argument: object) -> str:
    """The type of an argument in words."""
    if not isinstance(argument, np.ndarray):
        return f"a {type(argument).__name__}"
    gaps = "" if argument.flags.c_contiguous else ", with gaps between its elements"
    return f"an array of {argument.dtype} with the shape {argument.shape}{gaps}"


compiled = Compiled  # as a decorator
KERNELS: list[Kernel] = []
_engine: llvm.ExecutionEngine | None = None
_lock = threading.RLock()
if hasattr(os, "register_at_fork"):  # a fork waits until no other thread loads: numba and LLVM
    # have locks too, and a copy of a held one would never be released
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


def kernel(*types: str) -> Callable[[Function], Kernel]:
    """A decorator that makes a kernel of a function with parameters of these types."""
    return lambda function: Kernel(function, types)


def intrinsic(types: str) -> Callable[[Function], Intrinsic]:
    """A decorator that makes an intrinsic of a function that writes LLVM IR."""
    return lambda emit: Intrinsic(emit, types)


def load_kernels() -> llvm.ExecutionEngine:
    """All kernels in memory; compiled first if this machine has not kept them."""
    global _engine
    # Two threads may ask for the first kernel at once, and only one may compile.
    with _lock:
        if _engine is None:
            _engine = load_anew()
            engine.loaded = True
        return _engine


def load_anew() -> llvm.ExecutionEngine:
    """All kernels in memory, for this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # For this very processor: its vectors decide how fast the scan is.
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="static" if target.name.startswith("x86") else "default",  # as numba has it
        codemodel="jitdefault",
        jit=True,
    )
    file = code_file()
    # From disk if it is there, else compiled; kept for the next process if there is a place.
    code = (read_code(file) or compile_into(file, machine)) if file else compile_all(machine)
    # An empty module: all code comes from the object file.
    jit = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    jit.add_object_file(llvm.ObjectFileRef.from_data(code))
    jit.finalize_object()
    return jit


def compile_into(file: Path, machine: llvm.TargetMachine) -> bytes:
    """The machine code of all kernels, kept in the file: compiled by one of several processes."""
    with ExitStack() as stack:
        with suppress(OSError):  # a file system without locks, as some network drives
            stack.enter_context(locked(file.parent))
        # Asked again under the lock.
        code = read_code(file)
        if code is None:  # else another process has compiled it meanwhile
            code = compile_all(machine)
            with suppress(OSError), atomic_write(file, "wb") as stream:  # the disk may be full
                stream.write(sha256(code).digest() + code)
        return code


def compile_all(machine: llvm.TargetMachine) -> bytes:
    """The machine code of all kernels."""
    say("workbook: compiling the fast engine, once, about 10 s ...")
    # One module for all, so that functions that several kernels call are linked once.
    module, *others = [kernel.lowered() for kernel in KERNELS]
    for other in others:
        module.link_in(other)
    return machine.emit_object(module)


def read_code(file: Path) -> bytes | None:
    """The machine code in a file; None if there is none, or not what was written."""
    if not file.is_file():
        return None
    # A file that is cut short, or damaged, must not run: its hash stands before the code.
    content = file.read_bytes()
    # As `compile_into` wrote them.
    digest = content[:32]
    code = content[32:]
    return code if sha256(code).digest() == digest else None


@cache
def code_file() -> Path | None:
    """Where the machine code is kept: in a checkout beside the sources, else in the user's cache.

    None if neither can be written to; then every process compiles for itself. The name is a hash of
    all that the code depends on.
    """
    # A home on a network is shared by machines with different processors.
    host = platform.machine(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    compiler = sha256(repr((llvmlite.__version__, host)).encode()).hexdigest()[:12]
    for folder in code_folders():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        if folder.is_dir() and os.access(folder, os.W_OK):
            return folder / f"kernels-{sources_digest()}-{compiler}.o"
    return None
