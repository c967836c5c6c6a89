"""The write-up of both editions: order, what `--strict` demands, what is told in one line."""

import inspect
import re
import sys
import zipfile
from datetime import date
from itertools import pairwise

import pytest
from export_folders import answered, learner, notebook, png, shown

from workbook import config
from workbook.classroom import cli, problems
from workbook.classroom.export import export, status, web, write
from workbook.classroom.export.document import compose
from workbook.classroom.study.progress import Progress
from workbook.tokenization import bpe

WORKED = config.shipped() / "notebooks"


@pytest.mark.parametrize("edition", config.EDITIONS)
def test_every_problem_comes_in_the_order_of_the_handout_with_points_and_state(edition):
    text = web.as_markdown(compose(status.assess(WORKED, edition)))
    rows = re.findall(r"^\| \d \| \[`(\w+)`\]\(#[\w-]+\) \| [^|]+ \| (\S+) \| (.+) \|$", text, re.M)
    expected = problems.PROBLEMS.values()
    assert [id for id, _, _ in rows] == [problem.ids[edition] for problem in expected]
    points = [problem.points[edition] for problem in expected]
    assert [row[1] for row in rows] == ["—" if worth is None else str(worth) for worth in points]
    headings = [text.index(f"### `{problem.ids[edition]}`") for problem in expected]
    assert all(one < next for one, next in pairwise(headings))
    assert f"edition {edition}" in text and "**Name**" not in text and "**Date**" not in text
    states_in_table = {id: state for id, _, state in rows}
    assert states_in_table["unicode1"] == "✓ answered"
    assert states_in_table["train_bpe"] == "✓ code correct"
    assert states_in_table["tokenizer_experiments"] == "≈ answered on a stand-in corpus"


def test_the_reference_says_what_it_is_and_shows_answers_figures_and_the_package(tmp_path):
    said = export(edition="2025", to=tmp_path)
    text = (tmp_path / "writeup.md").read_text("utf-8")
    before, _, after = text.partition("| Problem")
    assert "reference write-up" in before and "follow its policy" in before
    assert "def train_bpe(" in after and "**Figure 1.**" in after
    assert after.index("Which character") < after.index("U+0000") < after.index("**(b)**")
    assert said[0].startswith("Reference write-up, edition 2025: 38 problems")
    assert list((tmp_path / "figures").iterdir())
    with zipfile.ZipFile(tmp_path / "code.zip") as archive:
        names = archive.namelist()
        assert names == sorted(names)
        assert {entry.date_time for entry in archive.infolist()} == {write.EPOCH}
        files = {name: archive.read(name).decode() for name in names}
    assert inspect.getsource(bpe.train_bpe) in files["workbook_tokenization_bpe_train_bpe.py"]
    for name, source in files.items():
        exec(compile(source, name, "exec"), {"__name__": name})
    assert text.count("    def forward(") == text.count("def forward("), "a method is printed twice"


def missing(folder, to) -> str:
    """What `--strict` says is missing; it writes nothing."""
    with pytest.raises(ValueError, match="this is missing") as error:
        export(folder, strict=True, to=to)
    assert not to.exists()
    return str(error.value)


def test_strict_lists_what_is_missing_and_code_that_does_not_import(tmp_path):
    answer = answered("unicode1", "a", "It is NUL.")
    folder = learner(tmp_path / "study", answer, passed={"softmax": "softmax = torch.softmax\n"})
    listed = missing(folder, tmp_path / "build")
    assert "unicode1 (b): unanswered" in listed and "unicode1 (a)" not in listed
    assert "softmax: its code does not import by itself: NameError" in listed
    (folder / "mine").mkdir()
    kept = "# softmax, kept when its check said correct\nimport torch\n\nsoftmax = torch.softmax\n"
    (folder / "mine" / "softmax.py").write_text(kept)
    assert "softmax" not in missing(folder, tmp_path / "build")


def test_wrong_answers_and_attempts_are_marked_as_such(tmp_path):
    right = answered("unicode1", "a", "It is NUL.", verdict="correct")
    wrong = answered("unicode1", "b", "It is A.", verdict="wrong")
    folder = learner(tmp_path / "study", right, wrong)
    for problem, part in (("unicode1", "c"), ("rope", None)):
        with Progress(folder).changing(problem, part) as entry:
            entry.reach("wrong")
    listed = missing(folder, tmp_path / "build")
    assert "unicode1 (b): wrong\n" in listed and "unicode1 (c): wrong\n" in listed
    said = export(folder, to=tmp_path / "build")
    assert "2 wrong" in said[0]
    text = (tmp_path / "build" / "writeup.md").read_text("utf-8")
    assert "✗ answered: a; wrong: b, c" in text and "Its check found it wrong." in text
    assert "0 of 38 problems, worth 0 of 107 points" in text


def test_without_a_folder_your_study_folder_is_exported(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path / "study"))
    assert cli.main(["export", "--to", str(tmp_path / "build")]) == 2
    assert f"name the folder with yours (ours: {WORKED})" in capsys.readouterr().err
    assert not (tmp_path / "build").exists()
    learner(tmp_path / "study", answered("unicode1", "a", "It is NUL."))
    assert cli.main(["export", "--to", str(tmp_path / "build")]) == 0
    assert capsys.readouterr().out.startswith("Write-up, edition 2025")


def test_name_and_date_stand_on_the_first_page_of_a_learners_write_up(tmp_path, capsys):
    folder = learner(tmp_path / "study", answered("unicode1", "a", "It is NUL."))
    build = tmp_path / "build"
    assert cli.main(["export", str(folder), "--name", "Ada <b>Lovelace", "--to", str(build)]) == 0
    assert cli.main(["export", str(folder), "--to", str(build)]) == 0  # it is remembered
    first = (build / "writeup.md").read_text("utf-8").split("# The state")[0]
    assert "**Name** Ada \\<b\\>Lovelace" in first
    assert f"**Date** {date.today().isoformat()}" in first
    assert cli.main(["export", str(WORKED), "--name", "Ada", "--to", str(build)]) == 2
    assert "carries no name" in capsys.readouterr().err


def test_strict_is_content_with_a_whole_write_up(tmp_path):
    said = "5 s, 47 MB, 2 MB/s, `b'x'`, 64 and 128, loss 1.40 before the end of text, 3 days"
    figure = shown(png=png(), alt="A curve.")
    cells = []
    passed = {}
    for problem in problems.PROBLEMS.values():
        if problem.kind == "code":
            passed[problem.id] = f"def solution_of_{problem.id}():\n    return 1\n"
        else:
            for part in problem.parts or [None]:
                cells.append(answered(problem.id, part, said, figure, figure=True, loss=1.4))
    learner(tmp_path / "study", *cells, passed=passed)
    said = export(tmp_path / "study", strict=True, to=tmp_path / "build")
    assert "unanswered" not in said[0] and len(said) == 2


def test_a_place_where_nothing_can_be_written_is_named(tmp_path, capsys):
    learner(tmp_path / "study", answered("unicode1", "a", "It is NUL."))
    (tmp_path / "file").touch()
    (tmp_path / "build" / "writeup.pdf").mkdir(parents=True)
    for to in ("file", "file/sub", "build"):
        assert cli.main(["export", str(tmp_path / "study"), "--to", str(tmp_path / to)]) == 2
        said = capsys.readouterr().err
        assert f"cannot write to {tmp_path / to} (" in said and said.count("\n") == 1
        assert "name another folder (--to)" in said and "None" not in said


@pytest.mark.parametrize("missing", ["pypandoc", "typst"])
def test_without_the_extra_the_way_to_install_it_is_told(monkeypatch, tmp_path, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ValueError, match=r'needs \w+, .* pip install "cs336-workbook\[export\]"'):
        export(notebook(tmp_path / "a.ipynb").parent)
