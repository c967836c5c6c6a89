"""What was solved is kept with all that it needs, from whatever cells, and imports by itself."""

import hashlib
import json
import math
import subprocess
import sys
from functools import cache

import pytest
import torch

from workbook.classroom import problems
from workbook.classroom.checks.machinery.loading import load_file
from workbook.classroom.study import copy, notebooks, solutions
from workbook.classroom.study.progress import Part
from workbook.classroom.study.solutions import collect, why_not_alone

PLAY = """
def play():  # everything is local: the shell's reset empties the names around it
    import json, sys, __main__
    from IPython.core.interactiveshell import InteractiveShell
    from workbook.classroom.study.solutions import collect

    shell = InteractiveShell.instance(user_module=__main__)
    for cells, attempt, ours in json.load(sys.stdin):
        shell.reset()
        shell.user_ns["open"] = lambda *a: open(*a)  # as a kernel does
        for cell in cells:
            shell.run_cell(cell, store_history=True)
        gathered = collect(eval(attempt, shell.user_ns), ("attempt",), ours)
        sys.__stdout__.write(f"\\nplayed {json.dumps(gathered)}\\n")

play()
"""


def values(source):
    """The names of a module of this source."""
    names = {"__name__": "kept"}
    exec(source, names)
    return names


# Cells, and last what then holds of the attempt.
KEPT = {
    "imports, a constant, a table that is filled, helpers, a magic": [
        "import re, json\nfrom collections import Counter, OrderedDict\nimport os.path",
        "# as in the paper\nPAT = r'x+'  # one or more\nTABLE = {}\nfor i in range(3):\n"
        "    TABLE[i] = bytes([i])",
        "def pieces(text):\n    assert open\n    return re.findall(PAT, text)\n"
        "TABLE.update({3: b'ab'})",
        "%%time\ndef merged(text):\n    return Counter(pieces(text)), os.path.sep",
        "noise = print('noise')\ndef attempt(text):\n    return merged(text)[0], TABLE[3]",
        "(attempt('xxyxx')[0]['xx'], attempt('')[1]) == (2, b'ab')",
    ],
    "a base class, a method that is set later, a class that is defined after its use": [
        "class Base:\n    def size(self):\n        return Other.n + LATE",
        "class attempt(Base):\n    pass\nattempt.twice = lambda self: 2 * self.size()",
        "class Other:\n    n = 3\nLATE = 1\nLATE += 1",
        "attempt().twice() == 10",
    ],
    "cells that were run twice, and one that no longer is Python": [
        "def attempt():\n    return 'noise'",
        *("n = []", "n.append(1)", "n.append(1)", "def broken(:"),
        *("def attempt():\n    return n", "def attempt():\n    return n"),
        "attempt() == [1, 1]",
    ],
    "decorated functions, a dataclass, a comment at the end": [
        "from dataclasses import dataclass\nfrom functools import cache, wraps",
        "@dataclass\nclass Sizes:\n    n: int = 4",
        "def loud(f):\n    @wraps(f)\n    def g(*a):\n        return f(*a) + 1\n    return g",
        "@cache\ndef zero():\n    return 0\n    # no more\n",
        "@loud\ndef attempt(sizes: Sizes = Sizes()):\n    return sizes.n + zero()",
        "attempt() == 5",
    ],
    "conditions, a context, an import that may fail, a counter": [
        "size = 1\nif size:\n    size = 2",
        "try:\n    import no_such_module as fast\nexcept ImportError:\n    import math as fast",
        "from __future__ import annotations",
        "K, cache = 1, {}\nif not K:\n    K = cache['K']\nelse:\n    cache['K'] = K",
        "def attempt(x: NoSuchName = None):\n    global size\n    size += cache['K']\n"
        "    return size + fast.floor(0.5)",
        "attempt() == 3",
    ],
    "names that are local, and names of the notebook's own cells": [
        "from collections import Counter\nfrom contextlib import nullcontext",
        "counts = words = best = i = n = self = 'noise'",
        "total = len(counts)\nK = 2\nsize = 3",
        "class Sizes:\n    size: int = size\n    n = 0\n    n += size",
        "with nullcontext([]) as table:\n    n = 1\n    n += len(table)\n    more = n",
        "squares = [i * i for i in range(K)]",
        "def attempt(text, n=more):\n    words, total = Counter(text.split()), 0\n"
        "    counts = Counter()\n    for word, n in words.items():\n        counts[word] += n\n"
        "        total += n\n    best = max(counts, key=lambda i: counts[i])\n"
        "    return best, total, [n + i for i in squares], Sizes.n",
        "attempt('ab abc ab') == ('ab', 3, [1, 2], 3)",
    ],
}
OURS = "vocabulary = 3\nimport math\ndef noise():\n    return 1"
# Cells, what is checked, and what is said.
TOLD = {
    "star imports": (
        ["from math import *", "def attempt(x):\n    return floor(x)"],
        ("attempt", "no statement of your cells or files makes `floor`"),
    ),
    "a base that is another class by now": (
        ["class Base:\n    n = 1", "class attempt(Base):\n    pass", "class Base:\n    n = 2"],
        ("attempt", "NameError: name 'Base' is not defined"),
    ),
    "what a function sets from outside": (
        ["n = 0\ndef start():\n    global n\n    n = 1\nstart()", "def attempt():\n    return n"],
        ("attempt", "`def start():` sets what it needs, by `global`"),
    ),
    "no name": (
        ["K = 5\nfound = [lambda x: x + K]"],
        ("found[0]", "it has no name; write `attempt"),
    ),
    "not the learner's own": (["from math import floor"], ("floor", "not your own code")),
    "what only a notebook can do": (
        ["def attempt():\n    !ls"],
        ("attempt", "no statement of your cells or files makes `get_ipython`"),
    ),
    "what the notebook's own cell makes": (
        [OURS, "def attempt():\n    return math.floor(vocabulary)"],
        ("attempt", "it uses `vocabulary`, which the notebook's own cell makes"),
    ),
}


@cache
def results():
    """What is gathered and said for each case, in one process for all."""
    ours = hashlib.sha256(f"code\n{OURS}".encode()).hexdigest()[:8]
    plays = [(cells, "attempt", []) for *cells, _ in KEPT.values()]
    plays += [(cells, attempt, [ours]) for cells, (attempt, _) in TOLD.values()]
    run = [sys.executable, "-c", PLAY]
    done = subprocess.run(run, input=json.dumps(plays), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("played ")]
    gathered = [json.loads(line.removeprefix("played ")) for line in lines]
    return dict(zip([*KEPT, *TOLD], gathered, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("case", KEPT)
def test_what_cells_made_is_gathered(case):
    source, told = results()[case]
    assert told == "", source
    names = values(source)
    assert names["__all__"] == ["attempt"]
    assert eval(KEPT[case][-1], names), source
    assert "noise" not in source and "OrderedDict" not in source


@pytest.mark.parametrize("case", TOLD)
def test_what_the_rule_does_not_find_is_told(case):
    source, told = results()[case]
    assert TOLD[case][1][1] in (told or why_not_alone(source, "attempt"))
    assert "noise" not in source and "vocabulary = 3" not in source


def test_it_reads_as_it_was_typed():
    source, _ = results()["imports, a constant, a table that is filled, helpers, a magic"]
    assert source.startswith("import os.path\nimport re\nfrom collections import Counter\n\n")
    assert "\n\n# as in the paper\nPAT = r'x+'  # one or more\n\n" in source
    assert source.index("TABLE = {}") < source.index("TABLE[i]") < source.index("TABLE.update")


def test_cells_of_ours_are_known_also_from_an_older_copy(tmp_path):
    (worked,) = notebooks.find_worked(["02_bpe"])
    notebook = copy.fresh(worked)
    old = next(one for one in notebook.cells if notebooks.role(one) == "evidence")
    old.source, old.metadata.workbook["original"] = "old = 1", "0123abcd-2"
    notebooks.write_notebook(tmp_path / "02_bpe.ipynb", notebook)
    ours = solutions.own_cells(tmp_path, problems.with_id("train_bpe"))
    assert "0123abcd" in ours
    for cell in copy.fresh(worked).cells:
        assert (notebooks.digest(cell) in ours) == (notebooks.role(cell) not in copy.STUBS)


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """A function that writes files and imports the one that is called `main`."""

    def load(**files):
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
            monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.syspath_prepend(str(tmp_path))
        return __import__("main")

    return load


def test_files_are_gathered_into_one(loaded):
    main = loaded(
        low_part="import logging\nlogger = logging.getLogger(__name__)\n"
        "N = 2\ndef low(x): logger.debug(x); return x * N\ndef _low(x): return x * N\n",
        high_part="import low_part\nfrom low_part import low as lowest\nN = 2\n"
        "import logging\nlogger = logging.getLogger(__name__)\n"
        "class High:\n    def run(self, x): return logger and lowest(x) + low_part.N\n",
        main="import json\nimport high_part as high\nclass Mine(high.High):\n"
        "    def no(low_part): return low_part._low\n"
        "if __name__ == '__main__':\n    print(json)\n",
    )
    source, told = collect(main.Mine, ("Mine",))
    assert told == "" and why_not_alone(source, "x") == ""
    assert values(source)["Mine"]().run(5) == 12
    assert "json" not in source and "def _low" not in source


# What is said, and a file that shares code with another in a way that one file cannot.
TORN = {
    "mean different things by `f`": "from other import use\ndef f(x): return 2",
    "f` is not at the top of your file": "def use(x):\n    from other import f\n    return f(x)",
    "`import other` takes a whole file": "import other\ndef use(x): return vars(other)",
}


@pytest.mark.parametrize("said", TORN)
def test_what_several_files_cannot_share_is_told(loaded, said):
    main = f"{TORN[said]}\ndef run(x): return use(x), globals().get('f') and f(x)\n"
    module = loaded(other="def f(x): return 1\ndef use(x): return f(x)\n", main=main)
    module.run(1)
    assert said in collect(module.run, ("run",))[1]


def test_plain_values_of_our_package_are_kept_without_it(loaded):
    main = loaded(
        main="import regex\nfrom workbook.tokenization import bpe, pretokens\n"
        "from workbook.tokenization.pretokens import PATTERN as SAME\n"
        "def f(text): return regex.findall(pretokens.PATTERN, text), SAME\n"
        "def g(text): return bpe.train_bpe\n",
    )
    source, told = collect(main.f, ("f",))
    assert told == "" and "workbook" not in source and why_not_alone(source, "x") == ""
    assert values(source)["f"]("a b") == (["a", " b"], values(source)["SAME"])
    assert "from workbook.tokenization import bpe\n" in collect(main.g, ("g",))[0]


def test_a_name_that_stands_for_something_else_stays(loaded):
    text = "def softmax(x):\n    return x\ndef stable(x):\n    return softmax(x) + 1\n"
    main = loaded(main=f"{text}def load(): pass\ndef keep(): pass\n")
    assert values(collect(main.stable, ("softmax",))[0])["__all__"] == ["stable"]
    assert values(collect(main.stable, ("steady",))[0])["steady"](1) == 2
    pair = collect((main.load, main.keep), ("save", "read"))[0]
    assert values(pair)["save"].__name__ == "keep"
    assert "got 2 objects" in collect((1, 2), ("softmax",))[1]


@pytest.mark.slow
@pytest.mark.parametrize("is_inside", [False, True])
def test_a_module_that_does_not_import_says_why(monkeypatch, is_inside):
    monkeypatch.setattr(solutions.worker, "is_inside", is_inside)  # a worker's way differs
    missing = "ModuleNotFoundError: No module named 'no_such_thing'"
    assert why_not_alone("import no_such_thing", "x") == missing
    assert "ended with status 4" in why_not_alone("import os\nos._exit(4)", "numpy")
    monkeypatch.setattr(solutions, "IMPORT_SECONDS", 0.5)
    assert "stopped after 0.5 s" in why_not_alone("while True: pass", "x")


def test_a_file_is_read_as_python_reads_it(tmp_path, monkeypatch):
    text = "# -*- coding: latin-1 -*-\r\nNAME = 'caf\xe9'\r\n\x0cM = 5\r\ndef f(): return NAME, M"
    (tmp_path / "accented.py").write_bytes(text.encode("latin-1"))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert values(collect(__import__("accented").f, ("f",))[0])["f"]() == ("caf\xe9", 5)


SOFTMAX = problems.with_id("softmax")


def square(x, dim):
    return x * x


def cube(x, dim):
    return x * x * x


def test_a_file_that_was_edited_by_hand_is_moved_aside(tmp_path, monkeypatch):
    (kept, trouble), said = solutions.keep_code(tmp_path, SOFTMAX, square, "correct", Part())
    assert trouble == "" and "imported on its own" in said
    file = tmp_path / "mine" / "softmax.py"
    assert file.read_text() == kept
    monkeypatch.setattr(solutions, "why_not_alone", None)  # the same again is not proved again
    solutions.keep_code(tmp_path, SOFTMAX, square, "correct", Part(source=kept, trouble=""))
    monkeypatch.setattr(solutions, "why_not_alone", lambda *_: "")
    solutions.keep_code(tmp_path, SOFTMAX, cube, "correct", Part(source=kept))
    assert [path.name for path in file.parent.iterdir()] == ["softmax.py"]
    file.write_text("# my own notes")
    solutions.keep_code(tmp_path, SOFTMAX, square, "almost", Part(source=kept))
    assert solutions.status_of(file.read_text(), "softmax") == "almost"
    assert solutions.status_of(file.read_text(), "rope") is None
    assert (file.parent / "softmax-1.py").read_text() == "# my own notes"


WRONG = """
import torch

class Way:
    def of(self, x, dim):
        return x

def softmax(x, dim):
    return x
"""
RIGHT = """
def softmax(x, dim):
    y = torch.exp(x - x.amax(dim, keepdim=True))
    return y / y.sum(dim, keepdim=True)
"""
OTHER_WAYS = {
    "exec": f"exec({RIGHT!r})",
    "globals": f"""
made = {{"torch": torch}}
exec({RIGHT!r}, made)
globals()["softmax"] = made["softmax"]
""",
    "setattr": f"""
import sys
made = {{"torch": torch}}
exec({RIGHT!r}, made)
setattr(sys.modules[__name__], "softmax", made["softmax"])
""",
    "a method put into its class": """
def right(self, x, dim):
    return torch.softmax(x, dim)
setattr(Way, "of", right)
globals()["softmax"] = Way().of
""",
    "a code object": f"""
made = {{}}
exec({RIGHT!r}, made)
softmax.__code__ = made["softmax"].__code__
""",
}


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_what_is_kept_is_what_was_judged(tmp_path, monkeypatch, way):
    """Not the older wrong version, which is all that the text of the file shows."""
    (tmp_path / "judged_anew.py").write_text(WRONG + OTHER_WAYS[way])
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "judged_anew", raising=False)
    attempt = __import__("judged_anew").softmax
    kept, said = solutions.keep_code(tmp_path, SOFTMAX, attempt, "correct", Part())
    file = tmp_path / "mine" / "softmax.py"
    if kept is None or kept[1]:
        assert not file.exists() and "not kept" in said
        return
    _, again = solutions.imported(file, SOFTMAX)
    x = torch.tensor([[1.0, 2.0, 3.0]])
    torch.testing.assert_close(again(x, -1), x.softmax(-1))


def test_a_comment_in_another_encoding_costs_nothing(tmp_path):
    path = tmp_path / "in_latin.py"
    text = f"import torch\n{RIGHT}"
    path.write_bytes(b"# caf\xe9: Python reads over it\n" + text.encode())
    attempt = load_file(path, "in_latin").softmax
    kept, said = solutions.keep_code(tmp_path, SOFTMAX, attempt, "correct", Part())
    assert kept is not None, said
    assert kept[1] == "" and "def softmax" in kept[0]


def test_another_version_replaces_no_file(tmp_path, monkeypatch):
    (tmp_path / "judged_once_more.py").write_text(f"{WRONG}\nexec({RIGHT!r})")
    monkeypatch.syspath_prepend(str(tmp_path))
    attempt = __import__("judged_once_more").softmax
    file = tmp_path / "mine" / "softmax.py"
    file.parent.mkdir()
    file.write_text("# what was kept before")
    kept, said = solutions.keep_code(tmp_path, SOFTMAX, attempt, "correct", Part())
    assert kept is None and "Define the right one in a cell" in said
    assert file.read_text() == "# what was kept before"
    assert [path.name for path in file.parent.iterdir()] == ["softmax.py"]


def test_what_does_not_import_by_itself_is_told_and_no_file(tmp_path, monkeypatch):
    (kept, _), _ = solutions.keep_code(tmp_path, SOFTMAX, square, "almost", Part())
    monkeypatch.setattr(solutions, "why_not_alone", lambda *_: "OSError: no such file")
    before = Part(source=kept, trouble="")
    again, said = solutions.keep_code(tmp_path, SOFTMAX, cube, "almost", before)
    assert again is None and "What was kept before stays" in said
    assert (tmp_path / "mine" / "softmax.py").read_text() == kept
    (source, trouble), said = solutions.keep_code(tmp_path, SOFTMAX, cube, "correct", before)
    assert "def cube" in source and trouble == "OSError: no such file" and trouble in said
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["softmax-1.py"]
    none, said = solutions.keep_code(tmp_path, SOFTMAX, math.floor, "correct", Part())
    assert none is None and "It is not kept" in said


def test_the_first_line_says_nothing_to_python():
    # "# decoding: ..." would declare an encoding.
    for name in [problem.id for problem in problems.PROBLEMS.values() if problem.form]:
        first = solutions.KEPT.format(name, "correct")
        compile(f"{first}\n".encode(), "kept", "exec")
        assert solutions.status_of(first, name) == "correct"


def test_what_cannot_be_written_is_kept_in_the_record(tmp_path):
    (tmp_path / "mine").write_text("a file where a folder should be")
    (kept, trouble), said = solutions.keep_code(tmp_path, SOFTMAX, square, "correct", Part())
    assert "def square" in kept and trouble == "" and "not as a file" in said
