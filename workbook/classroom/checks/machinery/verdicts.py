"""The tools of every checker: two verdicts, a call under a timer, and values put into words.

A checker is a function like `train_bpe(attempt)`. It raises `Wrong` or `NotAttempted`,
or returns a sentence of praise or None (status: correct) or `Facts` (for prose; status: read).
"""

import ast
import builtins
import dis
import inspect
import linecache
import os
import re
import reprlib
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, InitVar, dataclass
from difflib import get_close_matches
from functools import cached_property, lru_cache, partial, partialmethod, singledispatchmethod
from pathlib import Path
from types import FrameType, FunctionType, MethodType
from typing import Any, Literal, get_args

from workbook.classroom.checks.machinery.timeout import Stopped, TimedOut, limited
from workbook.config import PACKAGE

OWN_FOLDER = "A check runs in an empty folder of its own. Open files by the path that is passed in."
# How serious a finding is: it goes wrong in use; only in an edge case that the handout's wording
# covers, such as an empty list; the values are right but not from scratch. Only the first is
# "wrong".
Weight = Literal["use", "corner", "style"]
WEIGHTS = get_args(Weight)
POOL_SECONDS = 20.0  # for a call that waits for processes of its own: starting them takes time
WORKERS = "Its worker processes take long to start, or crash: start them only for large files."
IN_A_FILE = (
    "Its worker processes cannot find a function of your notebook: if they are spawned, as on macOS"
    " and Windows, they can only import. Put what they call into a `.py` file, and import it."
)
POOLS = ("multiprocessing", "concurrent/futures", "joblib")  # in the paths of their files
# Methods that do the work when an instance is called, and others that do the work of a class.
CALLED = ("forward", "__call__")
USUAL_WORK = (*CALLED, "train", "generate", "decode", "sample", "get_lr", "get_batch", "clip")
CACHED = type(lru_cache(len))  # of a function with a cache
# The types of methods.
METHODS = (FunctionType, staticmethod, classmethod, CACHED, partialmethod, singledispatchmethod)
# Whatever wraps a function, and the attributes that may hold it.
WRAPPERS: tuple[type, ...] = (
    CACHED,
    MethodType,
    classmethod,
    staticmethod,
    property,
    cached_property,
    partial,
    partialmethod,
    singledispatchmethod,
)
WRAPPED_AS = ("__func__", "func", "fget", "__wrapped__")
NO_LEARNERS = ("builtins", "torch.", "abc", "typing", "collections")
# In a NotImplementedError from torch, for an operation that a dtype or a device lacks.
TORCHS = re.compile("not implemented for '|aten::|bool tensors? is not supported")
# In an error: a package is missing here (or only our stand-in is there), a build of torch for GPUs,
# or what a newer Python has.
LACKS = re.compile(
    r"^ModuleNotFoundError|NVTX functions not|cannot import name .* from '(typing|itertools)'"
    "|MagicMock|from the '(CUDA|MPS)' backend|not compiled with CUDA|no NVIDIA driver"
)
OF_DEVICE = re.compile(r"backend|CUDA|NVIDIA")
# In an error: there is no network.
NETWORK = re.compile(
    r"^(Connection|Connect|URL|HTTP|SSL|Proxy|MaxRetry|LocalEntryNotFound)Error\b|^gaierror"
    "|^ConnectTimeout|^OfflineModeIsEnabled|[Cc]ouldn't connect to"
)
# Names that the notebooks' first code cells import, and others that learners import themselves.
IMPORTED = {"math", "torch", "regex", "np", "Counter", "pairwise", "einsum", "rearrange", "reduce"}
IMPORTED |= {"re", "os", "sys", "json", "heapq", "random", "time", "defaultdict", "nn", "Path", "F"}
IMPORT = "run the notebook's first code cell, or write the import above your code."
ALIKE, FEW_KEYS = 0.75, 20  # two names so much alike (of 1) are one, misspelt; no vocabulary
REFUSED = (
    "Your own `assert` or `raise` stops here: either what comes before it is wrong, or it refuses "
    "what the problem allows."
)
ENDLESS = "Either a loop never ends, or each step does far more work than it needs to."
RESULT_IS_RIGHT = "The result is right, but"  # begins what is said of a fault beside it
KILLED = (
    "The system ends what takes the last memory. Close other programs, or let the attempt hold "
    "less at a time, and check again."
)
# The byte code of `super().__init__()` and of `raise NotImplementedError("...")`.
OF_STUBS = {
    *("RESUME", "NOP", "RETURN_VALUE", "RAISE_VARARGS", "POP_TOP", "COPY_FREE_VARS"),
    *("PUSH_NULL", "PRECALL", "CALL"),
}
CONSTANTS = {"LOAD_CONST", "RETURN_CONST"}
STUB_NAMES = {"NotImplementedError", "super", "__init__", "__class__", "self"}
# How the paths of files begin that contain none of the learner's lines, and what is in others.
LIBRARIES = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
OTHERS_FOLDERS = (PACKAGE, *LIBRARIES, *map(os.path.realpath, LIBRARIES))
NOT_THEIRS = (*(f"{path}{os.sep}" for path in OTHERS_FOLDERS), "<frozen", "<reference>")
INSTALLED = re.compile(r"\b(site|dist)-packages\b")
NOT_GIVEN = object()  # stands for "no value", because None is a value that a learner may return


class Facts(tuple):
    """Facts to tick, from a checker that does not judge; () for the problem's own facts."""

    claim = "Only you can judge this text. Does it say the following?"


class Prose(str):
    """A text that is shown as it is; a plain str is shown as a literal in quotes."""


class Praise(str):
    """What a check says of numbers that are possible, and the best `loss` among them, if any."""

    loss: float | None

    def __new__(cls, words: str, loss: float | None = None) -> "Praise":
        praise = super().__new__(cls, words)
        praise.loss = loss
        return praise


class NotAttempted(Exception):  # noqa: N818 - a verdict, not an error
    """Nothing to judge yet. The message, if any, says what passes and what is not written yet."""


class NotJudged(NotAttempted):
    """It is there, but the check has no way to judge it; the message says why, and what to do."""


@dataclass(eq=False, repr=False)
class Wrong(Exception):  # noqa: N818 - a verdict, not an error
    """One sentence on what fails, the input with expected beside got, and the likely mistake.

    `given` is the call, a str or what `str` turns into one; `expected` and `got` are shown as
    literals unless they are `Prose`.
    """

    claim: str
    _: KW_ONLY
    given: InitVar[Any] = None
    expected: InitVar[Any] = NOT_GIVEN
    got: InitVar[Any] = NOT_GIVEN
    mistake: str | None = None
    timed_out: bool = False
    error: BaseException | None = None  # that the attempt raised
    weight: Weight = "use"
    case: Any = None  # the one of an exercise that fails
    also: tuple["Wrong", ...] = ()  # the lighter findings

    def __post_init__(self, given: Any, expected: Any, got: Any):
        super().__init__(self.claim)
        # Put into words at once, while the timer runs: a learner's __repr__ may never end.
        if expected is not NOT_GIVEN and got is not NOT_GIVEN:
            expected, got = map(Prose, contrast(expected, got))
        asked = NOT_GIVEN if given is None else Prose(given)
        values = {"input": asked, "expected": expected, "got": got}
        self.rows = [(label, shown(x)) for label, x in values.items() if x is not NOT_GIVEN]


class OurFault(ValueError):  # noqa: N818 - read as a fact
    """The workbook itself failed, which says nothing of the learner's code."""


class Unreadable(NotAttempted):
    """A value in another form than a part takes; `judging` adds the form that it takes.

    `why` says in a sentence what is not of that form, where that is not plain to see.
    """

    def __init__(self, attempt: Any, why: str | None = None):
        super().__init__(why or f"The check cannot read {kind_of(attempt)}.")


class NumberInWords(Unreadable):
    """A short text that begins with a number: no sentence to read, and in no form to judge."""

    def __init__(self, attempt: str):
        super().__init__(attempt, "This begins with a number, but no number in a text is judged.")


def expect(holds: Any, claim: str, mistake: str | None = None, **values: Any) -> None:
    """Raise `Wrong` with this claim and the likely mistake, and with `values`, unless it holds."""
    if not holds:
        raise Wrong(claim, mistake=mistake, **values)


class Findings:
    """Everything that is wrong with an attempt, by weight, so that it is reported in one go.

    >>> findings = Findings()
    >>> with findings("corner"):
    ...     raise Wrong("An empty list fails.")
    >>> len(findings)
    1
    """

    def __init__(self):
        self.wrongs: list[Wrong] = []
        self.passes: list[str] = []  # sentences on what is right in an attempt that is wrong

    def __len__(self) -> int:
        return len(self.wrongs)

    @property
    def in_use(self) -> bool:
        """Whether something goes wrong in ordinary use."""
        return any(wrong.weight == "use" for wrong in self.wrongs)

    @contextmanager
    def __call__(self, weight: "Weight") -> Iterator[None]:
        """Keep a `Wrong` that is raised in the block, and go on after it.

        It weighs no more than `weight`.
        """
        try:
            yield
        except Wrong as wrong:
            wrong.weight = max(weight, wrong.weight, key=WEIGHTS.index)
            self.wrongs.append(wrong)

    def verdict(self, praise: str, remarks: Iterable[str] = ()) -> str:
        """Return the praise and the remarks; raise the heaviest finding, if there is one."""
        if not self.wrongs:
            remarks = list(remarks)
            return " ".join([praise, "Worth knowing:", *remarks] if remarks else [praise])
        worst, *others = sorted(self.wrongs, key=lambda wrong: WEIGHTS.index(wrong.weight))
        worst.also = (*worst.also, *others)
        worst.claim = " ".join([*self.passes, worst.claim])
        raise worst


class _Shortener(reprlib.Repr):
    """Reprs of at most a few lines, whatever the size of the value."""

    def __init__(self):
        super().__init__()
        self.maxstring = self.maxother = 240
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = 16
        self.maxdict = 10
        self.maxlong = 60


def shown(value: Any) -> str:
    """Show `value` as a short literal; a value whose repr fails is named by its type."""
    if type(value) is Prose:
        return str(value)
    try:
        return _Shortener().repr(value)
    except Exception as error:
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"


def contrast(expected: Any, got: Any) -> tuple[str, ...]:
    """Show both values as short literals; two long sequences from where they begin to differ."""
    start = 0
    # Words are short enough to be shown whole.
    if type(expected) is type(got) is not Prose and isinstance(got, list | tuple | str | bytes):
        start = max(0, difference_at(expected, got) - 4)
    if start < 12:  # it is in sight
        return shown(expected), shown(got)
    return tuple(f"(from position {start} of {len(x)}) {shown(x[start:])}" for x in (expected, got))


def difference_at(expected: Any, got: Any) -> int:
    """Find where two sequences begin to differ: an index; where one begins the other, its length.

    Items that cannot be compared differ.
    """
    for i, (a, b) in enumerate(zip(expected, got, strict=False)):
        with suppress(Exception):
            if a == b:
                continue
        return i
    return min(len(expected), len(got))


def call(function: Callable, *args, given: Any, seconds: float = 5.0, **kwargs) -> Any:
    """Call the learner's function under a time limit, and put its failures into words.

    A stub or a `NotImplementedError` becomes `NotAttempted`, everything else that goes wrong
    becomes `Wrong`. `given` is the call in words. An iterator must be used up inside the call.
    A call that is stopped while it waits for processes is made once more, with more time.
    """
    try:
        result = limited(seconds, lambda: function(*args, **kwargs))
    except (Wrong, NotAttempted, Stopped, KeyboardInterrupt):
        raise
    except TimedOut as error:
        mistake = why_stopped(error.__cause__)
        if mistake == WORKERS and seconds < POOL_SECONDS:
            return call(function, *args, seconds=POOL_SECONDS, given=given, **kwargs)
        raise Wrong(
            f"It was stopped after {seconds:g} s.",
            given=given,
            got=Prose(f"no result{where(error.__cause__)}"),
            mistake=mistake,
            timed_out=True,
        ) from error
    except BaseException as error:
        if isinstance(error, NotImplementedError) and not TORCHS.search(str(error)):
            raise NotAttempted from error
        if needed := lacking(error):
            raise NotJudged(needed) from error
        mistake = OWN_FOLDER if isinstance(error, FileNotFoundError) else slip(error)
        raise Wrong(
            "It raised an error.",
            given=given,
            got=Prose(failure(error)),
            mistake=mistake,
            error=error,
        ) from error
    if result is None and is_untouched(function):
        raise NotAttempted(f"`{function.__name__}` is still missing.")
    return result


def lacking(error: BaseException) -> str:
    """What this computer lacks, and what to do, if an error comes from that; else ""."""
    text = f"{type(error).__name__}: {error}"
    if LACKS.search(text):
        remedy = "Install or build it, correct its name, or do without it."
        if OF_DEVICE.search(str(error)):
            remedy = "Make tensors on the device of the inputs, `device=x.device`."
        return f"This computer lacks what it needs ({failure(error)}). {remedy}"
    if NETWORK.search(text):  # which is long, and of addresses
        return f"It needs the network ({type(error).__name__}{where(error)}), and has none."
    return ""


def slow(what: str, used: float, allowed: float, given: Any, mistake: str) -> Wrong:
    """Return the finding on a right result that took too long; it makes an attempt *almost*."""
    claim = f"{what}, but slow: {used:.0f} s of processor time, where {allowed:g} s are plenty."
    finding = Wrong(claim, given=given, mistake=mistake)
    finding.weight = "style"
    return finding


def failure(error: BaseException) -> str:
    """Show an error with its place, such as `KeyError: 3, at line 7, in encode: ids[3]`."""
    try:
        text = re.sub(r"\x1b\[[\d;]*m", "", str(error))  # without a terminal's colours
        # What follows is long: torch lists every backend or signature, jaxtyping all parameters.
        text = re.split(r"\. This could be because|\n-{4}|,\s+but expected one of:", text)[0]
        text = " ".join(text.split()).rstrip(".")
        message = _Shortener().repr_str(text, 1)[1:-1] if text else ""
    except Exception:
        message = ""
    name = type(error).__name__
    return f"{name}: {message}{where(error)}" if message else f"{name}{where(error)}"


def is_learners(path: str) -> bool:
    """Whether a file is a learner's, by its full path: not ours, Python's or installed."""
    return not (path.startswith(NOT_THEIRS) or INSTALLED.search(path))


def where(error: BaseException | None) -> str:
    """Name the learner's line that an error came from: ", at line 7, in encode: `ids[3]`"."""
    last = _learners_last(error)
    if last is None:
        return ""
    (frame,) = traceback.StackSummary.extract([last])
    code = f": `{frame.line}`" if frame.line else ""
    return f", at line {frame.lineno}, in {frame.name}{code}"


def is_refusal(error: BaseException | None) -> bool:
    """Whether a learner's own `raise` or `assert` raised an error, in words of their own."""
    at = error.__traceback__ if error else None
    while at and at.tb_next:
        at = at.tb_next
    code = at.tb_frame.f_code if at else None
    if code is None or not is_learners(code.co_filename):
        return False
    return dis.opname[code.co_code[at.tb_lasti]] == "RAISE_VARARGS"


def _learners_last(error: BaseException | None) -> tuple[FrameType, int] | None:
    """The innermost frame that ran a learner's line, and the number of that line."""
    last = None
    for at in traceback.walk_tb(error.__traceback__ if error else None):
        if is_learners(at[0].f_code.co_filename):
            last = at  # one by one: an endless recursion leaves millions
    return last


def none_in(error: BaseException | None) -> str:
    """The name of what is None in the learner's line that an error came from; "" if nothing is."""
    return next((name for name, value in _values_in(error) if value is None), "")


def _values_in(error: BaseException | None) -> Iterator[tuple[str, Any]]:
    """The names in the learner's line that an error came from, such as `self.ids`, with values."""
    last = _learners_last(error)
    line = last and traceback.StackSummary.extract([last])[0].line
    for dotted in re.findall(r"[a-zA-Z_][\w.]*", line or ""):
        first, *others = dotted.split(".")
        with suppress(Exception):  # no name, or a learner's `__getattr__` that fails
            value = last[0].f_locals[first]
            yield first, value
            for other in others:
                first = f"{first}.{other}"
                value = getattr(value, other)
                yield first, value


def slip(error: BaseException) -> str | None:
    """Name the slip of the pen behind an error, where the error and the learner's names show it."""
    if is_refusal(error):
        return REFUSED
    last = _learners_last(error)
    names = last[0].f_locals if last else {}
    own = names.get("self")
    around = last[0].f_globals if last else {}
    with suppress(Exception):  # a learner's `__dir__` may fail
        if isinstance(error, NameError):
            if error.name in dir(own):
                return f"`{error.name}` belongs to the object: write `self.{error.name}`."
            if error.name in IMPORTED:
                return f"Nothing has imported `{error.name}`: {IMPORT}"
            if last and error.name in _set_by_script(last[0].f_code.co_filename):
                return f"`{error.name}` is there only if the file runs as a script: pass it in."
            return _misspelt(error.name, [*names, *around, *dir(builtins)])
        if isinstance(error, AttributeError):
            known = {*dir(error.obj)} - {"encode", "decode"}  # which no slip of the pen mixes up
            if error.obj is own:  # what the learner gave it, and nothing that torch did
                bases = [b for b in type(own).__mro__ if b.__module__.startswith(NO_LEARNERS)]
                known = known.difference(*map(vars, bases))
            return _misspelt(error.name, sorted(known))
        if isinstance(error, KeyError):
            held = [*names.values(), *vars(own).values()] if own else names.values()
            dicts = [value for value in held if isinstance(value, dict) and len(value) < FEW_KEYS]
            key = error.args[0]
            for name, keys in _values_in(error):
                there = isinstance(keys, dict) and [k for k in _spelt_otherwise(key) if k in keys]
                if there and key not in keys:
                    return f"`{name}` has no key {key!r}, but {there[0]!r}: of another type."
            return _misspelt(key, [key for keys in dicts for key in keys])
    return None


def _set_by_script(file: str) -> set[str]:
    """The names that a file sets under `if __name__ == "__main__":`."""
    scripts = [
        node
        for node in ast.parse("".join(linecache.getlines(file))).body
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
    ]
    names = (n for script in scripts for n in ast.walk(script) if isinstance(n, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}


def _spelt_otherwise(key: Any) -> Iterator[Any]:
    """What a key may be as a value of another type: a str as bytes or a number, and so on."""
    if isinstance(key, int):
        yield str(key)
        yield bytes([key % 256])
    elif isinstance(key, bytes):
        yield key.decode(errors="replace")
    elif isinstance(key, str):
        yield key.encode()
        if key.isdecimal():
            yield int(key)


def _misspelt(name: str, others: Iterable[Any]) -> str | None:
    """Ask whether a name that is not there is one of these, misspelt."""
    known = [other for other in others if isinstance(other, str)]
    near = get_close_matches(name, known, n=1, cutoff=ALIKE)
    return f"There is no `{name}` here: is `{near[0]}` meant?" if near else None


def fault_of_ours(error: BaseException) -> str | None:
    """Say so where an error is the workbook's own: no line of the learner's code was running."""
    frames = list(traceback.walk_tb(error.__traceback__))
    inner = [at for at in frames if at[0].f_code.co_filename.startswith(str(PACKAGE))]
    if not isinstance(error, Exception) or where(error) or not inner:
        return None
    frame, line = inner[-1]
    path = Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix()
    return (
        f"The check itself failed ({failure(error)}, in {path}, line {line}). This is a fault of "
        "the workbook, not of your code; please report it, with this sentence and your code."
    )


def expect_not_ours(error: Exception, *others: type[Exception]) -> None:
    """Raise `OurFault` for an error that no line of the learner's raised, unless it is of `others`.

    These are what our own code raises on purpose, or torch for a learner's tensors.
    """
    fault = str(error) if isinstance(error, OurFault) else fault_of_ours(error)
    if fault and not isinstance(error, others):
        raise OurFault(fault) from error


def why_stopped(stopped: BaseException | None) -> str:
    """Say why a call took too long: it may have waited for processes that it had started."""
    frames = traceback.walk_tb(stopped.__traceback__ if stopped else None)
    paths = [frame.f_code.co_filename.replace("\\", "/") for frame, _ in frames]
    return WORKERS if any(pool in path for path in paths for pool in POOLS) else ENDLESS


def is_untouched(attempt: Any) -> bool:
    """Tell whether an attempt at a code problem is a stub still: no function of it does anything.

    A function does nothing if it is `pass`, `...`, a docstring or `return None`, or raises a
    NotImplementedError; `__init__` may call that of its base class before.
    """
    if inspect.isclass(attempt):
        attempt = methods_of(attempt)
    if isinstance(attempt, tuple | list | dict):
        return all(map(is_untouched, attempt.values() if isinstance(attempt, dict) else attempt))
    function = innermost(attempt)
    if type(function) is not FunctionType:
        return function is None or function is ...
    steps = [*dis.get_instructions(function)]
    raises = any(step.opname == "RAISE_VARARGS" for step in steps)

    def does_nothing(step: dis.Instruction) -> bool:
        if step.opname in CONSTANTS and (raises or step.argval in (None, ...)):
            return True
        return step.opname in OF_STUBS or step.argval in STUB_NAMES

    return all(map(does_nothing, steps)) and not (raises and _goes_on(function))


def layers_of(value: Any) -> Iterator[FunctionType]:
    """The functions that wrap one another, from the outside to the inside."""
    seen: set[int] = set()  # by `update_wrapper(f, f)`, a function wraps itself
    while value is not None and id(value) not in seen:
        seen.add(id(value))
        if isinstance(value, FunctionType):
            yield value
            value = getattr(value, "__wrapped__", None)
        elif isinstance(value, WRAPPERS):
            value = next(getattr(value, name) for name in WRAPPED_AS if hasattr(value, name))
        else:
            return


def innermost(value: Any) -> Any:
    """The innermost function that a value wraps; the value itself if it is or wraps none."""
    *_, last = (value, *layers_of(value))
    return last


def _goes_on(function: FunctionType) -> bool:
    """Whether lines follow the `raise` of a stub: Python compiles none of them."""
    with suppress(OSError, TypeError):  # where there is no source
        after = inspect.getsource(function).rpartition("NotImplementedError")[2]
        return bool(re.search(r"""\n\s*[^\s#)"']""", after))  # not the rest of its message
    return False


def unfinished(nothing: NotAttempted) -> Wrong:
    """Return the verdict on an attempt of which only a part is missing."""
    if str(nothing) or nothing.__cause__ is None:
        return Wrong(str(nothing) or "It returned None: is a `return` missing?")
    *_, (frame, line) = traceback.walk_tb(nothing.__cause__.__traceback__)
    name = frame.f_code.co_name
    kind = type(frame.f_locals.get("self"))
    if is_learners(frame.f_code.co_filename):
        left = "The stub's `raise NotImplementedError` is still there"
        return Wrong(f"{left}, in line {line}, in `{name}`.")
    missing = "forward" if "forward" in name else name  # of torch, in place of a learner's own
    return Wrong(f"The class `{kind.__name__}` has no `{missing}`{meant(kind, missing)}")


def meant(kind: type, name: str, others: Iterable[str] = ()) -> str:
    """End a sentence on a method that a class lacks: ask whether another name is a slip of the pen.

    `others` are names that the class should have as well.
    """
    own = methods_of(kind).keys() - {name, *others}  # torch adds a `step` to optimizers without one
    near = get_close_matches(name, sorted(own), n=1)
    return f"; is `{near[0]}` meant?" if near else "."


def expect_function(attempt: Any, signature: str) -> None:
    """Raise unless `attempt` can be a function; `signature` is how it is called, in words.

    A class may take its place, as in `Softmax(dim)(x)` or `Trainer(vocab_size).train(path)`.
    """
    works = work_of(attempt) if inspect.isclass(attempt) else callable(attempt)
    _expect(works, "function", f"the function itself: {signature}", attempt)


def expect_class(attempt: Any, signature: str) -> None:
    """Raise unless `attempt` is a class; `signature` is how it is made, in words."""
    wanted = f"the class itself, not an instance: {signature}"
    _expect(inspect.isclass(attempt), "class", wanted, attempt)
    own = methods_of(attempt)
    init = "`__init__`, with two underscores on each side"
    if is_untouched(own.get("__init__", len)) and not own["__init__"].__code__.co_names:
        raise NotAttempted("`__init__` is still missing.")  # others raise, or call the base class's
    if "__init__" in own:
        return
    for name in own:
        if re.fullmatch(rf"(_{attempt.__name__})?_*(init|int|inti)_*", name, re.I):
            raise Wrong(f"`{attempt.__name__}` has no {init}; is `{name}` meant?")


def _expect(fits: Any, kind: str, wanted: str, attempt: Any) -> None:
    if attempt is None or attempt is ... or (inspect.isroutine(attempt) and is_untouched(attempt)):
        raise NotAttempted
    expect(fits, f"This is not a {kind}.", expected=Prose(wanted), got=Prose(kind_of(attempt)))


def work_of(kind: type) -> str | None:
    """The name of the method that does the work of a class; None if no method clearly does.

    It is `forward` or `__call__`, one with a usual name such as `train` or `get_lr`, or the only
    public method of a class that inherits nothing.
    """
    own = methods_of(kind)
    public = [name for name in own if not name.startswith("_")]
    only = public if len(public) == 1 and kind.__mro__ == (kind, object) else ()
    return next((name for name in (*USUAL_WORK, *only) if name in own), None)


def methods_of(kind: type) -> dict[str, Any]:
    """The methods of a class that are a learner's, by name; what overrides comes first."""
    own: dict[str, Any] = {}
    for base in kind.__mro__:
        if not base.__module__.startswith(NO_LEARNERS):
            own |= {n: m for n, m in vars(base).items() if isinstance(m, METHODS) and n not in own}
    return own


def kind_of(value: Any) -> str:
    """Name what a value is: "the function `encode`", "the module `math`", "an int: 3"."""
    kind = "class" if inspect.isclass(value) else type(value).__name__
    name = getattr(value, "__name__", None)
    if isinstance(name, str) and (callable(value) or inspect.ismodule(value)):
        return f"the {kind} `{name}`"
    article = "an" if kind[0] in "aeiouAEIOU" else "a"
    return f"{article} {kind}: {shown(value)}" if hasattr(builtins, kind) else f"{article} {kind}"
