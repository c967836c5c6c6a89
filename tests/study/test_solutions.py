"""What was solved is kept with all that it needs, from whatever cells, and imports by itself."""

import json
import math
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from workbook.study import problems, solutions
from workbook.study.progress import Part
from workbook.study.solutions import NotKeptError, gather, why_not_alone

PLAY = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
import __main__
from workbook.study.solutions import NotKeptError, gather, why_not_alone

def play(cells, attempt, names):
    shell = InteractiveShell.instance(user_module=__main__)
    shell.user_ns["open"] = lambda *a: open(*a)  # as a kernel does
    for cell in cells:
        shell.run_cell(cell, store_history=True)
    try:
        source = gather(eval(attempt, shell.user_ns), tuple(names))
        return source, why_not_alone(source, names[0])
    except NotKeptError as error:
        return None, str(error)

print(f"\\n{json.dumps(play(*json.load(sys.stdin)))}")
"""


def played(cells, attempt, *names):
    """The module that is gathered after these cells ran, and why it does not import."""
    asked = json.dumps([cells, attempt, names or [attempt]])
    run = [sys.executable, "-c", PLAY]
    done = subprocess.run(run, input=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def values(source):
    """The names of a module of this source."""
    names = {"__name__": "kept"}
    exec(source, names)
    return names


# Cells, the attempt, and a call of it with what it returns.
CASES = {
    "imports, a constant, a table that is filled, helpers, a magic": (
        [
            "import re, json\nfrom collections import Counter, OrderedDict\nfrom math import *",
            "# as in the paper\nPAT = r'x+'  # one or more\nTABLE = {}\nfor i in range(3):\n"
            "    TABLE[i] = bytes([i])",
            "def pieces(text):\n    assert open\n    return re.findall(PAT, text)\n"
            "TABLE.update({3: b'ab'})",
            "%%time\ndef merged(text):\n    return Counter(pieces(text)), floor(2.5)",
            "noise = print('noise')\ndef attempt(text):\n    return merged(text), TABLE[3]",
        ],
        "attempt",
        ("(attempt('xxyxx')[0][0]['xx'], attempt('')[0][1], attempt('')[1])", (2, 2, b"ab")),
    ),
    "a base class, a method that is set later, a class that is defined after its use": (
        [
            "class Base:\n    def size(self):\n        return Other.n + LATE",
            "class attempt(Base):\n    pass\nattempt.twice = lambda self: 2 * self.size()",
            "class Other:\n    n = 3\nLATE = 1\nLATE += 1",
        ],
        "attempt",
        ("attempt().twice()", 10),
    ),
    "the version that is defined now, not one that came before or was never reached": (
        [
            "def attempt():\n    return 1",
            "def attempt():\n    return 2\n1/0\ndef attempt():\n    return 3",
        ],
        "attempt",
        ("attempt()", 2),
    ),
    "a cell that was run twice, and one that no longer is Python": (
        ["n = []", "n.append(1)", "n.append(1)", "def broken(:", "def attempt():\n    return n"],
        "attempt",
        ("attempt()", [1, 1]),
    ),
    "what a factory made": (
        [
            "def make(k):\n    def inner(x):\n        return k * x\n    return inner",
            "attempt = make(3)",
        ],
        "attempt",
        ("attempt(2)", 6),
    ),
    "a lambda in a list": (
        ["K = 5\nfound = [lambda x: x, lambda x: x + K]"],
        "found[1]",
        ("attempt(2)", 7),
    ),
    "a part of a function": (
        ["def power(x, n):\n    return x**n"],
        "__import__('functools').partial(power, n=3)",
        ("attempt(2)", 8),
    ),
    "a method, decorated functions, a dataclass, an annotation": (
        [
            "from dataclasses import dataclass\nfrom functools import cache, wraps",
            "@dataclass\nclass Sizes:\n    n: int = 4",
            "def loud(f):\n    @wraps(f)\n    def g(*a):\n        return f(*a) + 1\n    return g",
            "@cache\ndef zero():\n    return 0",
            "class Model:\n    @loud\n    def run(self, sizes: Sizes = Sizes()):\n"
            "        return sizes.n + zero()",
        ],
        "Model.run",
        ("attempt(None)", 5),
    ),
    "a condition, a context, an import that may fail": (
        [
            "size = 1\nif size:\n    size = 2",
            "try:\n    import no_such_module as fast\nexcept ImportError:\n    import math as fast",
            "from __future__ import annotations",
            "def attempt(x: NoSuchName = None):\n    global size\n    size += 1\n"
            "    return size + fast.floor(0.5)",
        ],
        "attempt",
        ("attempt()", 3),
    ),
    "a base that is another class by now, cells that ran again": (
        [
            "def again(k):\n    return again(k - 1) if k else 0",
            "class Base:\n    n = 1",
            "class attempt(Base):\n    def run(self):\n        return self.n + again(2)",
            "def again(k):\n    return again(k - 1) if k else 0",
            "class Base:\n    noise = 1",
        ],
        "attempt",
        ("attempt().run()", 1),
    ),
    "a table that a loop fills from what is deleted, other loops, what the attempt fills": (
        [
            "for i in range(2):\n    noise = i",
            "two = [5, 6]\nTABLE, SEEN = {}, []\n"
            "for i in range(2):\n    TABLE[i] = two[i]\ndel two",
            "def attempt():\n    SEEN.append(1)\n    return TABLE[1]",
            "for i in range(2):\n    SEEN.append(attempt())\n    noise = i",
        ],
        "attempt",
        ("attempt()", 6),
    ),
    "constants that are others by now, and one below an error": (
        [
            "K = 1\nM = 10",
            "def make():\n    return K",
            "N = make()",
            "def attempt(k=K):\n    return k + N + M",
            "K = 2",
            "1/0\nM = 'noise'",
        ],
        "attempt",
        ("attempt()", 12),
    ),
    "methods that are added later, a class that is its own base": (
        [
            "def add_to(made):\n    return lambda f: setattr(made, f.__name__, f)",
            "class attempt:\n    pass",
            "def __init__(self):\n    self.n = 3\nattempt.__init__ = __init__",
            "@add_to(attempt)\ndef run(self):\n    return self.n",
            "class attempt(attempt):\n    two = 2",
        ],
        "attempt",
        ("attempt().run() + attempt.two", 5),
    ),
    "names that functions set, names in strings, what Python's parser takes for one line": (
        [
            "n = None\ndef start():\n    global n\n    n = {'a': 1}\nstart()",
            "SIZE = 4\n\x0cWORD = 'a\u2028b'\nM = 5",
            "def attempt():\n    return n['a'] + globals()['SIZE'] + len(WORD) + M",
        ],
        "attempt",
        ("attempt()", 13),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_cells_made_is_gathered(case):
    cells, attempt, (call, wanted) = CASES[case]
    source, told = played(cells, attempt, "attempt")
    assert told is None, (told, source)
    names = values(source)
    assert names["__all__"] == ["attempt"]
    assert eval(call, names) == wanted, source
    assert "noise" not in source and "OrderedDict" not in source


def test_it_reads_as_it_was_typed():
    cells, attempt, _ = CASES["imports, a constant, a table that is filled, helpers, a magic"]
    source, _ = played(cells, attempt)
    assert source.startswith("import re\nfrom collections import Counter\nfrom math import floor\n")
    assert "\n\n# as in the paper\nPAT = r'x+'  # one or more\n\n" in source
    assert source.index("TABLE = {}") < source.index("TABLE[i]") < source.index("TABLE.update")


def test_a_cell_that_ran_again_is_written_once():
    cell = "SIZE = 1\ndef f(k):\n    return f(k - SIZE) if k else 0"
    source, told = played([cell, "table = [f(3)]", cell, "def g():\n    return f(2), table"], "g")
    assert told is None and source.count("def f") == source.count("SIZE = 1") == 1


def test_a_file_that_was_run_is_gathered_too(tmp_path):
    (tmp_path / "parts.py").write_text("import math\nN = 2.5\ndef low(): return math.floor(N)\n")
    cells = [f"%run {tmp_path / 'parts.py'}", "from einops import *\nM = low()"]
    source, told = played([*cells, "def f(): return M, rearrange"], "f")
    assert told is None and values(source)["f"]()[0] == 2
    assert "from einops import rearrange" in source


def test_what_only_a_notebook_can_do_is_named():
    words = played(["def f():\n    !ls"], "f")[1]
    assert "`def f():` contains a magic or a shell command" in words


def test_names_of_the_learners_own_files_are_found(tmp_path, monkeypatch):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").write_text("")
    (tmp_path / "parts" / "sizes.py").write_text("N = 2\n")
    main = loaded(
        tmp_path,
        monkeypatch,
        low_part="def low(x): return x + 1\n",
        main="import parts.sizes\nfrom low_part import *\n"
        "def run(x): return low(x) * parts.sizes.N\n",
    )
    source = gather(main.run, ("run",))
    assert why_not_alone(source, "x") is None and values(source)["run"](1) == 4


def test_a_name_that_stands_for_something_else_stays():
    cells = ["def softmax(x):\n    return x", "def stable(x):\n    return softmax(x) + 1"]
    source, told = played(cells, "stable", "softmax")
    assert told is None and values(source)["__all__"] == ["stable"]
    assert values(source)["stable"](1) == 2


def test_what_cannot_be_kept_says_why():
    assert "not your own" in played(["from math import floor"], "floor")[1]
    assert "it has no name" in played(["def f():\n    def g(): pass\n    return g"], "f()", "x")[1]
    made = "import sys\ndef f(): return stream\nsys.modules['__main__'].stream = sys.stderr"
    assert "no statement of a cell or file has made `stream`" in played([made], "f")[1]
    with pytest.raises(NotKeptError, match="2 objects"):
        gather((1, 2), ("softmax",))


def test_a_module_that_does_not_import_says_why():
    assert why_not_alone("import no_such_thing", "x") == (
        "ModuleNotFoundError: No module named 'no_such_thing'"
    )
    assert why_not_alone("import os\nos._exit(3)", "x") == "Python ended with status 3"
    assert why_not_alone("import os\nos._exit(4)", "numpy") == "Python ended with status 4"


def test_an_import_that_never_ends_is_stopped(monkeypatch):
    monkeypatch.setattr(solutions, "IMPORT_SECONDS", 0.5)
    assert "longer than 0.5 s" in why_not_alone("while True: pass", "x")


def loaded(tmp_path, monkeypatch, **files):
    """The module `main` of these files, imported."""
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    return __import__("main")


def test_files_are_gathered_into_one(tmp_path, monkeypatch):
    main = loaded(
        tmp_path,
        monkeypatch,
        low_part="import logging\nlogger = logging.getLogger(__name__)\n"
        "N = 2\ndef low(x): logger.debug(x); return x * N\ndef _low(x): return x * N\n",
        high_part="import low_part\nfrom low_part import low as lowest\nN = 2\n"
        "import logging\nlogger = logging.getLogger(__name__)\n"
        "class High:\n    def run(self, x): return logger and lowest(x) + low_part.N\n",
        main="import json\nfrom high_part import High as Base\nclass Mine(Base):\n    pass\n"
        "if __name__ == '__main__':\n    print(json)\n",
    )
    source = gather(main.Mine, ("Mine",))
    assert why_not_alone(source, "x") is None
    assert values(source)["Mine"]().run(5) == 12 and "json" not in source


def test_a_file_may_import_itself(tmp_path, monkeypatch):
    text = "import main as own\ndef low(x): return x + 1\ndef run(x): return own.low(x)\n"
    source = gather(loaded(tmp_path, monkeypatch, main=text).run, ("run",))
    assert why_not_alone(source, "x") is None and values(source)["run"](1) == 2


def test_two_meanings_of_one_name_are_refused(tmp_path, monkeypatch):
    main = loaded(
        tmp_path,
        monkeypatch,
        other="def helper(x): return 1\ndef use(x): return helper(x)\n",
        main="from other import use\ndef helper(x): return 2\n"
        "def run(x): return helper(x) + use(x)\n",
    )
    with pytest.raises(NotKeptError, match="mean different things by `helper`"):
        gather(main.run, ("run",))


def test_what_a_function_imports_from_another_file_is_found(tmp_path, monkeypatch):
    main = loaded(
        tmp_path,
        monkeypatch,
        inner="# a file of its own\nfrom __future__ import annotations\n"
        "N: NoSuchName = 2\ndef helper(x): return x * N\ndef more(x: NoSuchName): return x + 1\n",
        main="def run(x):\n    from inner import (\n        helper,\n        more as plus,\n    )\n"
        "    return plus(helper(x))\n",
    )
    assert main.run(3) == 7
    source = gather(main.run, ("run",))
    assert why_not_alone(source, "x") is None and values(source)["run"](3) == 7


def test_a_module_that_is_imported_inside_a_function_is_told(tmp_path, monkeypatch):
    main = loaded(
        tmp_path,
        monkeypatch,
        inner="def helper(x): return x\n",
        main="def run(x):\n    import inner\n    return inner.helper(x)\n",
    )
    assert main.run(3) == 3
    with pytest.raises(NotKeptError, match="import inner` is not at the top"):
        gather(main.run, ("run",))
    (source, trouble), said = solutions.keep(
        tmp_path, problems.get("softmax"), main.run, "correct", Part()
    )
    assert "return inner.helper(x)" in source and "not at the top" in trouble and trouble in said
    assert (
        solutions.keep(tmp_path, problems.get("softmax"), math.floor, "correct", Part())[0] is None
    )


def square(x, dim):
    return x * x


def test_a_file_that_was_edited_by_hand_is_moved_aside(tmp_path, monkeypatch):
    softmax = problems.get("softmax")
    (kept, trouble), said = solutions.keep(tmp_path, softmax, square, "correct", Part())
    assert trouble == "" and "imported on its own" in said
    file = tmp_path / "mine" / "softmax.py"
    assert file.read_text() == kept
    monkeypatch.setattr(solutions, "why_not_alone", None)  # the same again is not proved again
    solutions.keep(tmp_path, softmax, square, "correct", Part(source=kept, trouble=""))
    monkeypatch.undo()
    solutions.keep(tmp_path, softmax, partial(square, dim=1), "correct", Part(source=kept))
    assert [path.name for path in file.parent.iterdir()] == ["softmax.py"]
    file.write_text("# my own notes")
    solutions.keep(tmp_path, softmax, square, "almost", Part(source=kept))
    assert solutions.status_of(file.read_text(), "softmax") == "almost"
    assert solutions.status_of(file.read_text(), "rope") is None
    assert (file.parent / "softmax-1.py").read_text() == "# my own notes"


@pytest.mark.parametrize("id", [each.id for each in problems.PROBLEMS.values() if each.form])
def test_the_first_line_says_nothing_to_python(id):
    first = solutions.KEPT.format(id, "correct")
    compile(f"{first}\n".encode(), "kept", "exec")
    assert solutions.status_of(first, id) == "correct"


def test_what_works_by_itself_stays(tmp_path, monkeypatch):
    softmax = problems.get("softmax")
    (kept, _), _ = solutions.keep(tmp_path, softmax, square, "correct", Part())
    monkeypatch.setattr(solutions, "why_not_alone", lambda *_: "OSError: no such file")
    before = Part(source=kept, trouble="")
    again, said = solutions.keep(tmp_path, softmax, partial(square, dim=1), "correct", before)
    assert again is None and "What was kept before stays" in said
    assert (tmp_path / "mine" / "softmax.py").read_text() == kept


def test_a_file_is_read_as_python_reads_it(tmp_path, monkeypatch):
    text = "# -*- coding: latin-1 -*-\r\nNAME = 'caf\xe9'\r\ndef f(): return NAME\r\n"
    (tmp_path / "accented.py").write_bytes(text.encode("latin-1"))
    monkeypatch.syspath_prepend(str(tmp_path))
    source = gather(__import__("accented").f, ("f",))
    assert values(source)["f"]() == "caf\xe9"


def test_what_cannot_be_written_is_kept_in_the_record(tmp_path):
    (tmp_path / "mine").write_text("a file where a folder should be")
    (kept, trouble), said = solutions.keep(
        tmp_path, problems.get("softmax"), square, "correct", Part()
    )
    assert "def square" in kept and trouble == "" and "not as a file" in said


def test_what_does_not_import_by_itself_is_kept_and_told(tmp_path):
    hidden = tmp_path / "hidden.py"
    hidden.write_text(
        "import sys\nN = sys.modules['conftest_of_nobody']\ndef f(x, dim): return N\n"
    )
    sys.modules["conftest_of_nobody"] = sys
    try:
        sys.path.append(str(tmp_path))
        from hidden import f
    finally:
        sys.path.remove(str(tmp_path))
        del sys.modules["conftest_of_nobody"]
    (source, trouble), said = solutions.keep(
        tmp_path, problems.get("softmax"), f, "correct", Part()
    )
    assert trouble == "KeyError: 'conftest_of_nobody'" and trouble in said
    assert Path(tmp_path, "mine", "softmax.py").read_text() == source
