"""The cells "Now yours" of the notebooks: quiet, with a learner's parts, and with broken ones."""

from pathlib import Path

import made_records
import matplotlib.pyplot as plt
import pytest
import tiny_runs
import torch
from made_repositories import FOLDER

from classroom.mine.test_own_parts import BYTES, MODEL
from workbook.classroom.mine import adopt
from workbook.classroom.study import notebooks
from workbook.corpora.corpora import END_OF_TEXT
from workbook.tokenization import bpe, spans
from workbook.tokenization.tokenizer import Tokenizer
from workbook.transformer import inspect
from workbook.transformer.model import TransformerLM

pytestmark = pytest.mark.usefixtures("in_study")
CELLS = {
    "02_bpe": ["train_bpe", "tokenizer"],
    "03_transformer": ["scaled_dot_product_attention"],
    "05_optimizer": ["optimizer"],
    "06_training": [],
    "07_generation": ["decode"],
    "08_experiments": [],
}
TEXT = "low lower newest widest, it's 3 times lower" + END_OF_TEXT + " tête-à-tête\n\n"
WORD = "abcdefgabcdefg"


def spelt(ids):
    return "".join(chr(ord("a") + int(each)) for each in ids)


def before(name, folder):
    """What the cells of a notebook have by their names when "Now yours" is run, in miniature."""
    if name == "02_bpe":
        text = folder / "text.txt"
        specials = [END_OF_TEXT]
        text.write_text(TEXT * 3, encoding="utf-8")
        vocab, merges = bpe.train_bpe(text, 280, specials)
        made = {"simple_held_out": text, "specials": specials, "vocab": vocab, "merges": merges}
        made |= {"ten_simple": [TEXT], "ten_web": [TEXT, "if x:\n    y = 3"]}
        made |= {"SIMPLE": "stories", "WEB": "docstrings"}
        made["proper"] = spans.count_pretokens(text, specials)
        return made | {"simple": Tokenizer(vocab, merges, specials)}
    if name == "03_transformer":
        seen = torch.tensor([ord(each) - ord("a") for each in WORD])
        copier = small(26)
        after = inspect.attention_maps(copier, seen)
        return {
            "word": WORD,
            "seen": seen,
            "copier": copier,
            "after": after,
            "second": 1,
            "spelt": spelt,
        }
    if name == "05_optimizer":
        names = {}
        rules = (c for c in cells(name) if c.source.startswith("RULES = "))
        exec(next(c for c in cells(name) if c.cell_type == "code").source, names)
        exec(next(rules).source, names)
        return {"RULES": names["RULES"]}
    if name == "06_training":
        run_config = tiny_runs.tiny(precision="float32")
        return {"run_config": run_config, "splits": tiny_runs.data()}
    if name == "07_generation":
        return {"model": small(64), "tokenizer": BYTES, "opening": "ABC"}
    run = made_records.record(folder, made_records.config(seed=1), [4.0, 3.0, 2.0])
    return {"swept": {0.01: run}}


def small(vocab_size):
    torch.manual_seed(0)
    return TransformerLM(vocab_size, 96, 16, 2, 2, 32).eval()


def cells(name):
    (path,) = notebooks.find_worked([name])
    return notebooks.read_notebook(path).cells


def run(name, folder):
    """Run the cells of a notebook in a place where its names are there."""
    code = [c.source for c in cells(name) if c.cell_type == "code"]
    names = {}
    exec(code[0], names)  # the imports
    torch.set_num_threads(1)
    names |= before(name, folder)
    mine = [source for source in code if source.startswith("@mine.now_yours(")]
    assert len(mine) == max(1, len(CELLS[name]))
    for source in mine:
        exec(source, names)
    plt.close("all")


def test_every_notebook_with_parts_has_its_cell():
    having = {}
    for path in notebooks.find_worked():
        sources = [cell.source for cell in cells(path.stem)]
        having[path.stem] = [source for source in sources if "@mine.now_yours(" in source]
    assert {name for name, found in having.items() if found} == {*CELLS}
    for name, asked in CELLS.items():
        for part, source in zip(asked, having[name], strict=False):
            assert f'@mine.now_yours("{part}")' in source


@pytest.mark.parametrize("name", CELLS)
def test_it_is_quiet_with_nothing_solved_and_elsewhere(name, tmp_path, monkeypatch, capsys):
    run(name, tmp_path)
    Path("mine", f"{BROKEN['05_optimizer'][0]}.py").write_text(BROKEN["05_optimizer"][1])
    monkeypatch.delenv("WORKBOOK_STUDY")
    monkeypatch.chdir(tmp_path)
    run(name, tmp_path)
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("clean_imports")
def test_a_repository_of_ones_own_is_shown_beside_ours(tmp_path, capsys):
    adopt.adopt(FOLDER / "renamed", {}, Path.cwd())

    def shown(notebook):
        run(notebook, tmp_path)
        said = capsys.readouterr().out
        assert "does not run" not in said
        return said

    said = shown("02_bpe")
    assert "merges, the same merges as ours" in said
    table = said.splitlines()[-4:]
    assert [line.count("True") for line in table] == [2, 2, 2, 2]
    said = shown("03_transformer")
    assert "Two maps of a head" in said and "your model:" in said
    said = shown("05_optimizer")
    assert float(said.split("at most ")[1].split()[0]) < 1e-9
    said = shown("06_training")
    assert "model      yours" in said and "Your run beside ours. The losses" in said
    assert "step 100 of 100" in said and "bits_per_byte" in said
    said = shown("07_generation")
    assert "At temperature 0.001, yours writes the same text" in said
    said = shown("08_experiments")
    assert "Validation losses in bits per byte." in said and "short-" in said and "all" in said


BROKEN = {
    "05_optimizer": ("adamw", "class AdamW(:\n    pass\n", "SyntaxError", "(adamw.py, line 1)"),
    "06_training": (
        "transformer_lm",
        MODEL.replace("{forward}", "self.head(self.table(token_ids))[:, -1]"),
        "instead of logits of shape (2, 16, 64)",
        "mine.transformer_lm",
    ),
    "02_bpe": (
        "train_bpe",
        "def train_bpe(path, size, specials):\n    return {}[path]\n",
        "KeyError",
        "at line 2, in train_bpe",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_part_is_told_in_a_panel(name, tmp_path, capsys):
    problem, source, *words = BROKEN[name]
    Path("mine", f"{problem}.py").write_text(source)
    run(name, tmp_path)
    said = capsys.readouterr()
    assert "✗ Your part does not run here: your " in said.out and "Traceback" not in said.out
    assert [word for word in words if word not in said.out] == [] and said.err == "", said.out
