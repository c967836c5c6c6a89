"""A student's week, played in a real JupyterLab from an installed wheel, in a folder of their own.

Needs Chromium, as `test_browser.py` does.
"""

import os
import shutil
import textwrap
from pathlib import Path
from zipfile import ZipFile

import pytest
from installed import Installed, build_wheel, copy_checkout, run
from real_lab import browse, menu, require_browser

from workbook.classroom.study import notebooks

BPE = (
    """
    import regex as re
    from collections import Counter

    # GPT-2's pattern
    PAT = r"'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
    """,
    """
    def pieces(text, special_tokens):
        if special_tokens:
            longest = sorted(special_tokens, key=len, reverse=True)
            texts = re.split("|".join(map(re.escape, longest)), text)
        else:
            texts = [text]
        words = (word for part in texts for word in re.findall(PAT, part))
        return Counter(tuple(bytes([b]) for b in word.encode()) for word in words)
    """,
    """
    def merged(word, pair):
        out, i = [], 0
        while i < len(word):
            if word[i : i + 2] == pair:
                out.append(word[i] + word[i + 1])
                i += 2
            else:
                out.append(word[i])
                i += 1
        return tuple(out)

    def train_bpe(input_path, vocab_size, special_tokens):
        with open(input_path, encoding="utf-8", newline="") as file:
            words = pieces(file.read(), special_tokens)
        vocab = [token.encode() for token in special_tokens] + [bytes([b]) for b in range(256)]
        merges = []
        while len(vocab) < vocab_size:
            pairs = Counter()
            for word, n in words.items():
                for pair in zip(word, word[1:]):
                    pairs[pair] += n
            if not pairs:
                break
            best = max(pairs, key=lambda pair: (pairs[pair], pair))
            merges.append(best)
            vocab.append(best[0] + best[1])
            new = Counter()
            for word, n in words.items():
                new[merged(word, best)] += n
            words = new
        return dict(enumerate(vocab)), merges
    """,
)
SOFTMAX = (
    "import torch\nfrom torch import nn\n\nlargest = lambda x, dim: x.amax(dim, keepdim=True)",
    """
    def softmax(x, dim):
        e = torch.exp(x - largest(x, dim))
        return e / e.sum(dim, keepdim=True)
    """,
)
LINEAR = (
    """
    class Drawn(nn.Module):
        def __init__(self, *shape, device=None, dtype=None):
            super().__init__()
            self.weight = nn.Parameter(torch.empty(*shape, device=device, dtype=dtype))
            std = STD_OF(*shape)
            nn.init.trunc_normal_(self.weight, std=std, a=-3 * std, b=3 * std)
    """,
    "STD_OF = lambda d_out, d_in: (2 / (d_in + d_out)) ** 0.5",
    """
    class Linear(Drawn):
        def __init__(self, in_features, out_features, device=None, dtype=None):
            super().__init__(out_features, in_features, device=device, dtype=dtype)

        def forward(self, x):
            return x @ self.weight.T
    """,
)
SCHEDULE = (
    "import math as m",
    """
    def schedule(it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters):
        if it < warmup_iters:
            return it / warmup_iters * max_learning_rate
        if it > cosine_cycle_iters:
            return min_learning_rate
        done = (it - warmup_iters) / (cosine_cycle_iters - warmup_iters)
        rest = (1 + m.cos(m.pi * done)) / 2
        return min_learning_rate + rest * (max_learning_rate - min_learning_rate)
    """,
)
RMSNORM = """
import torch
from shared import in_float32

class Norm(torch.nn.Module):
    def __init__(self, d_model, eps=1e-5, device=None, dtype=None):
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(d_model, device=device, dtype=dtype))

    @in_float32
    def forward(self, x):
        return x / (x.pow(2).mean(-1, keepdim=True) + self.eps).sqrt() * self.weight
"""
SHARED = """
import functools
import torch

def in_float32(forward):
    @functools.wraps(forward)
    def wrapped(self, x):
        return forward(self, x.to(torch.float32)).to(x.dtype)
    return wrapped
"""
FIGURE = """
import matplotlib.pyplot as plt

figure, axes = plt.subplots()
axes.bar(["repr", "print"], [len(repr("a" + chr(0))), 2])
"""


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    """The workbook, installed, and a folder to work in."""
    require_browser()
    checkout = copy_checkout(tmp_path_factory.mktemp("week") / "checkout")
    found = Installed(build_wheel(checkout), checkout.parent)
    settings = checkout.parent / "settings"
    tracker = settings / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    tracker.parent.mkdir(parents=True)
    tracker.write_text('{"windowingMode": "none"}')  # all cells are drawn, not only those in sight
    found.environment["JUPYTERLAB_SETTINGS_DIR"] = str(settings)
    return found


class Desk:
    """One notebook of a study folder, open in a browser."""

    def __init__(self, page, address: str, token: str, study: Path, name: str):
        self.page, self.path = page, study / f"{name}.ipynb"
        self.typed: list[str] = []
        self.page.goto(f"{address}lab/tree/study/{name}.ipynb?reset&token={token}")
        self.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        self.page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').wait_for()

    def cell(self, role: str, problem: str, part: str | None = None):
        """The cell of a problem in this role, scrolled into sight and selected."""
        cells = notebooks.read_notebook(self.save()).cells
        wanted = (role, problem, part)
        found = [
            (about.get("role"), about.get("problem"), about.get("part"))
            for about in (cell.metadata.get("workbook", {}) for cell in cells)
        ]
        return self.select(found.index(wanted))

    def select(self, place: int):
        cell = self.page.locator(".jp-Notebook .jp-Cell").nth(place)
        cell.scroll_into_view_if_needed()
        cell.locator(".jp-InputPrompt").click()
        return cell

    def run(self, cell):
        """Run the selected cell; wait until the kernel is idle again, and return what it shows."""
        self.page.keyboard.press("Control+Enter")
        prompt = cell.locator(".jp-InputPrompt")
        self.page.wait_for_function(
            "prompt => /\\d/.test(prompt.textContent)", arg=prompt.element_handle()
        )
        outputs = cell.locator(".jp-OutputArea-output")
        return "\n".join(outputs.all_inner_texts())

    def fill(self, cell, source: str) -> str:
        """Type a source over what a cell holds, and run it."""
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+a")
        source = textwrap.dedent(source).strip()
        self.page.keyboard.insert_text(source)
        self.typed.append(source)
        self.page.keyboard.press("Escape")
        return self.run(cell)

    def above(self, cell, source: str) -> str:
        """Type a source into a new cell above the selected one, and run it."""
        self.page.keyboard.press("a")
        return self.fill(self.page.locator(".jp-Notebook .jp-Cell.jp-mod-selected"), source)

    def solve(self, problem: str, *sources: str, part: str | None = None) -> str:
        """Type helpers into cells of their own, the attempt into its cell, and check it."""
        *helpers, attempt = sources
        for helper in helpers:
            self.above(self.cell("try", problem, part), helper)
        self.fill(self.cell("try", problem, part), attempt)
        return self.run(self.cell("check", problem, part))

    def save(self) -> Path:
        """Save the notebook, and wait until the file is there."""
        menu(self.page, "File", "Save Notebook")
        self.page.locator(".jp-mod-dirty").first.wait_for(state="detached")
        self.page.wait_for_timeout(300)
        return self.path

    def restart(self) -> None:
        menu(self.page, "Kernel", "Restart Kernel…")
        self.page.get_by_role("button", name="Confirm Kernel Restart").click()
        self.page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').wait_for()


def table(student: Installed) -> dict[str, str]:
    """The lines of `workbook study` by problem, and the last ones under "" """
    said = student.workbook("study")
    lines = {line.split()[0]: line.strip() for line in said.splitlines() if line.startswith("  ")}
    return {**lines, "": said}


@pytest.mark.skipif(os.name != "posix", reason="the server is stopped by a signal")
def test_a_week(student):
    study, desks = student.work / "study", []
    with student.lab() as (address, _, token), browse() as (context, left):

        def sit_down(name: str) -> Desk:
            desks.append(Desk(context.new_page(), address, token, study, name))
            return desks[-1]

        # Monday: Unicode. No setup cell has run; `check` is there all the same.
        monday = sit_down("01_unicode")
        assert "a, b, c ○ open" in table(student)["unicode1"]
        said = monday.solve("unicode1", 'my_character = "U+0041"', part="a")
        assert "✗ unicode1 (a): wrong" in said
        assert "a ✗ wrong · b, c ○ open" in table(student)["unicode1"]
        said = monday.solve("unicode1", 'my_character = "U+0000"', part="a")
        assert "✓ unicode1 (a): correct" in said
        said = monday.fill(
            monday.cell("answer", "unicode1", "a"),
            'answer("unicode1", "a", """\nIt is the null character, U+0000: mine.\n""")',
        )
        assert "null character, U+0000: mine" in said and "unicode1 (a): " in said
        said = monday.fill(
            monday.cell("answer", "unicode1", "b"),
            FIGURE + 'answer("unicode1", "b", """\nThe repr escapes it, my words.\n""", figure)',
        )
        assert "✎ unicode1 (b): read" in said and 'tick("unicode1", "b")' in said
        assert "a ✓ correct, answered · b ✎ read, answered · c ○ open" in table(student)["unicode1"]
        monday.above(monday.cell("answer", "unicode1", "c"), 'tick("unicode1", "b")')
        assert (
            "a ✓ correct, answered · b ✓ ticked, answered · c ○ open" in table(student)["unicode1"]
        )
        monday.save()

        # Tuesday: BPE, with helpers in cells of their own.
        tuesday = sit_down("02_bpe")
        said = tuesday.solve("train_bpe", *BPE)
        assert "✓ train_bpe: correct" in said and "study/mine/train_bpe.py" in said
        tuesday.save()

        # Wednesday: the model; the kernel is restarted between two parts.
        wednesday = sit_down("03_transformer")
        assert "✓ softmax: correct" in wednesday.solve("softmax", *SOFTMAX)
        wednesday.restart()
        wednesday.above(wednesday.cell("try", "linear"), SOFTMAX[0])
        assert "✓ linear: correct" in wednesday.solve("linear", *LINEAR)
        wednesday.save()

        # Thursday: a file in another folder, checked from the command line.
        code = student.work / "code"
        code.mkdir()
        (code / "norm.py").write_text(RMSNORM)
        (code / "shared.py").write_text(SHARED)
        program = student.python.with_name("workbook")
        said = run([program, "check", "rmsnorm", "norm.py:Norm"], code, student.environment)
        assert "✓ rmsnorm: correct" in said and "study/mine/rmsnorm.py" in said
        thursday = sit_down("05_optimizer")
        said = thursday.solve("learning_rate_schedule", *SCHEDULE)
        assert "✓ learning_rate_schedule: correct" in said
        thursday.save()
        lines = table(student)
        for solved in ("train_bpe", "softmax", "linear", "rmsnorm", "learning_rate_schedule"):
            assert "✓ correct" in lines[solved]
        assert "Solved: 18.7 of 107 points" in lines[""]
        assert "Answered for the write-up: 2 of 35" in lines[""]
        assert "Next: unicode1 (b)" not in lines[""] and "Next: unicode1 (c), open" in lines[""]
        assert left == []

    # Friday: a newer version of the workbook.
    original = student.packages / "workbook" / "shipped" / "notebooks" / "01_unicode.ipynb"
    newer = notebooks.read_notebook(original)
    [prompt] = [
        cell
        for cell in newer.cells
        if cell.metadata.get("workbook", {}).get("role") == "prompt"
        and cell.metadata.workbook.problem == "unicode1"
    ]
    prompt.source = prompt.source.replace("play with", "PLAY with")
    newer.cells[3].source += "\n\nAND THIS IS NEW."
    notebooks.write_notebook(original, newer)
    assert "study/01_unicode.ipynb is older than its original" in student.workbook("study")
    assert "is up to date now" in student.workbook("study", "--update")
    assert "older" not in student.workbook("study")
    cells = notebooks.read_notebook(study / "01_unicode.ipynb").cells
    updated = "\n".join(cell.source for cell in cells)
    assert "PLAY with" in updated and "AND THIS IS NEW." in updated

    # The weekend: the folder gets another name, and is written up from there.
    shutil.copytree(study, student.work / "my first week", ignore=shutil.ignore_patterns(".*"))
    study.rename(student.work / "week one")
    for folder in ("week one", "my first week"):
        said = student.workbook("export", folder, "--name", "Ada Lovelace", "--to", "handed in")
        write_up = (student.work / "handed in" / "writeup.md").read_text(encoding="utf-8")
        assert "**Name** Ada Lovelace" in write_up and "**Date** 20" in write_up
        for mine in ("U+0000: mine", "my words", "class Drawn", "def merged", "m.cos(m.pi"):
            assert mine in write_up
        assert "Figure 1." in write_up and "answered: a, b; unanswered: c" in write_up
        packed = ZipFile(student.work / "handed in" / "code.zip")
        assert sorted(packed.namelist()) == [
            "learning_rate_schedule.py", "linear.py", "rmsnorm.py", "softmax.py", "train_bpe.py",
        ]  # fmt: skip
        shutil.rmtree(student.work / "unpacked", ignore_errors=True)
        packed.extractall(student.work / "unpacked")
        for name in packed.namelist():
            run([student.python, "-I", name], student.work / "unpacked", student.environment)
    for name in packed.namelist():
        assert "✓" in student.workbook("check", Path(name).stem, f"unpacked/{name}")

    # Nothing that was typed is lost.
    for desk in desks:
        kept = notebooks.read_notebook(student.work / "week one" / desk.path.name)
        sources = [cell.source for cell in kept.cells]
        typed = [source for source in desk.typed if source != 'my_character = "U+0041"']
        assert [source for source in typed if source not in sources] == []
