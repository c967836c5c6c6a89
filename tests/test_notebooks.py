"""Every worked notebook keeps the house rules; what runs them is in study/test_notebooks.py."""

import ast
import dis
import re
import shlex
import statistics
from functools import cache
from itertools import groupby

import pytest
from attempts.pairs import ATTEMPTS

from workbook.bench import recorded
from workbook.classroom import cli
from workbook.classroom.checks.machinery import worker
from workbook.classroom.problems import PROBLEMS, time_in_words
from workbook.classroom.study import notebooks
from workbook.classroom.study.notebooks import CELL_ROLES, role

PATHS = {path.stem: path for path in notebooks.find_worked()}
ANATOMY = ["prompt", "try", "check", "hint", "reveal", "evidence", "answer"]
MUST_HAVE = {
    "code": ["prompt", "try", "check", "hint", "reveal", "evidence"],
    "written": ["prompt", "hint", "evidence", "answer"],
}
MOST_LINES, MEDIAN_LINES, STUB_LINES, MOST_WORDS = 25, 6, 15, 120


def every_notebook(test):
    """Hold a rule against all notebooks, and name each that breaks it."""

    def on_all():
        broken = {}
        for name in PATHS:
            try:
                test(name)
            except AssertionError as error:
                broken[name] = str(error)
        assert broken == {}

    on_all.__name__ = test.__name__
    return on_all


@cache
def cells_of(name):
    return notebooks.read_notebook(PATHS[name]).cells


def code_cells(name, *roles):
    """The code cells of a notebook, or those with one of these roles."""
    return [c for c in cells_of(name) if c.cell_type == "code" and (not roles or role(c) in roles)]


def about(cell, key):
    return cell.metadata.get("workbook", {}).get(key)


def worked_in(name):
    """The problems that the registry assigns to a notebook."""
    return [problem for problem in PROBLEMS.values() if problem.notebook == name]


def outputs(name):
    """(cell, output) for everything that a notebook shows."""
    return [(cell, output) for cell in code_cells(name) for output in cell.outputs]


@every_notebook
def test_it_is_in_normal_form(name):
    assert notebooks.is_normal(PATHS[name])


@every_notebook
def test_every_code_cell_ran_in_order(name):
    counts = [cell.execution_count for cell in code_cells(name)]
    assert counts == list(range(1, len(counts) + 1))


@every_notebook
def test_nothing_failed_or_complained(name):
    for cell, output in outputs(name):
        assert output.output_type != "error" and output.get("name") != "stderr", (cell.id, output)


@every_notebook
def test_cells_are_small(name):
    lines = {cell.id: cell.source.count("\n") + 1 for cell in code_cells(name)}
    words = {c.id: len(c.source.split()) for c in cells_of(name) if c.cell_type == "markdown"}
    stubs = {cell.id: lines[cell.id] for cell in code_cells(name, "try")}
    assert {cell: n for cell, n in lines.items() if n > MOST_LINES} == {}
    assert {cell: n for cell, n in stubs.items() if n > STUB_LINES} == {}
    assert {cell: n for cell, n in words.items() if n > MOST_WORDS} == {}
    assert statistics.median(lines.values()) <= MEDIAN_LINES


@every_notebook
def test_every_figure_is_told_in_words(name):
    for cell, output in outputs(name):
        if any(mime.startswith("image/") for mime in output.get("data", {})):
            alt = output.data.get("text/plain", "")
            assert len(alt.split()) >= 5 and not alt.startswith("<"), f"{cell.id}: {alt!r}"


@every_notebook
def test_it_opens_with_goals_minutes_modules_and_the_one_import_cell(name):
    first = cells_of(name)[0]
    assert first.cell_type == "markdown" and first.source.startswith("# ")
    assert re.search("you will be able to", first.source, re.I)
    planned = sum(problem.minutes for problem in worked_in(name))
    said = first.source.partition("**Time:**")[2]
    assert re.search(r"\d+ minutes to read", said) and time_in_words(planned) in said
    assert "`workbook." in first.source
    setup, *others = code_cells(name)
    assert role(setup) == "setup" and imports(setup)
    assert not [cell.id for cell in others if imports(cell)]


def nodes(cell):
    return ast.walk(ast.parse(cell.source))


def imports(cell):
    return any(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes(cell))


@every_notebook
def test_every_cell_says_what_it_is_for(name):
    assert [cell.id for cell in cells_of(name) if role(cell) not in CELL_ROLES] == []


@every_notebook
def test_it_works_the_problems_that_the_registry_gives_it(name):
    # In any order: attention, say, is easier to follow before RoPE than after it.
    prompts = [about(cell, "problem") for cell in cells_of(name) if role(cell) == "prompt"]
    assert sorted(prompts) == sorted(p.id for p in worked_in(name))


@every_notebook
def test_every_problem_has_its_cells_in_order(name):
    for problem in worked_in(name):
        cells = [cell for cell in cells_of(name) if about(cell, "problem") == problem.id]
        roles = [role(cell) for cell in cells]
        assert roles[0] == "prompt" and roles.count("prompt") == 1, problem.id
        assert set(MUST_HAVE[problem.kind]) <= set(roles), problem.id
        for part in {about(cell, "part") for cell in cells}:
            of_part = [role(c) for c in cells if about(c, "part") == part and role(c) in ANATOMY]
            first_seen = list(dict.fromkeys(of_part))
            assert first_seen == sorted(first_seen, key=ANATOMY.index), (problem.id, part)
            assert "answer" not in of_part[:-1], (problem.id, part)


@every_notebook
def test_every_part_is_answered_once(name):
    for problem in worked_in(name):
        answers = [c for c in code_cells(name, "answer") if about(c, "problem") == problem.id]
        parts = [about(cell, "part") for cell in answers]
        if problem.kind == "written" or problem.parts:
            assert sorted(parts, key=str) == sorted(problem.parts or [None], key=str), problem.id
        else:
            assert parts in ([], [None]), problem.id


@every_notebook
def test_every_attempt_is_checked_in_one_line(name):
    tries = [(about(c, "problem"), about(c, "part")) for c in code_cells(name, "try")]
    checks = [(about(c, "problem"), about(c, "part")) for c in code_cells(name, "check")]
    assert [place for place, _ in groupby(tries)] == checks
    for cell in code_cells(name, "check"):
        assert re.fullmatch(r"check\(.*\)", cell.source), cell.id


@every_notebook
def test_prompts_are_headed_by_id_and_points(name):
    for cell in cells_of(name):
        if role(cell) == "prompt":
            heading = cell.source.partition("\n")[0]
            problem = PROBLEMS[about(cell, "problem")]
            assert re.match("#+ ", heading)
            assert set(problem.ids.values()) <= set(re.findall(r"\w+", heading)), heading
            for points in {points for points in problem.points.values() if points is not None}:
                assert re.search(rf"\b{points} points?\b", heading), heading


@every_notebook
def test_no_later_cell_needs_what_the_learner_writes(name):
    """In study/ try-it cells hold the learner's code, and our answers are gone."""
    made = {"try": set(), "answer": set()}
    for cell in code_cells(name):
        used = {n.id for n in nodes(cell) if isinstance(n, ast.Name)}
        used -= bound_by(cell)
        if role(cell) in made:
            made[role(cell)] |= bound_by(cell)
        elif role(cell) != "check":
            made["try"] -= bound_by(cell)
            made["answer"] -= bound_by(cell)
            assert used & made["try"] == set(), cell.id
        assert role(cell) == "answer" or used & made["answer"] == set(), cell.id


def bound_by(cell):
    """The names that a cell gives a value at its top level, outside comprehensions."""
    steps = dis.get_instructions(compile(cell.source, cell.id, "exec"))
    return {step.argval for step in steps if step.opname == "STORE_NAME"}


@every_notebook
def test_nothing_after_an_exercise_stands_outside_its_folds(name):
    """Evidence without a problem is never folded: it may stand only below a heading of its own."""
    after_try = own_section = False
    last = {about(cell, "problem"): cell.id for cell in cells_of(name)}
    for cell in cells_of(name):
        problem = about(cell, "problem")
        if problem:
            after_try = (after_try or role(cell) == "try") and cell.id != last[problem]
            own_section = False
        elif cell.source.startswith("## "):
            own_section = True
        elif role(cell) == "evidence" and "now_yours" not in cell.source:
            assert own_section or not after_try, cell.id


def test_stored_speeds_agree_with_their_neighbours():
    """Those of one quiet machine do, within these factors; those of a busy one seldom."""

    def stored(name, pattern):
        shown = (output.get("text", "") for _, output in outputs(name))
        return [float(number) for text in shown for number in re.findall(pattern, text)]

    bench = recorded("train")["shapes"]["laptop"]
    flops = max(bench["tokens_a_second"]["workbook"]) * bench["flops_a_token"]["workbook"]
    mfu = 100 * flops / bench["peak_flops_a_second"]
    for one, others, factor in (
        (
            stored("04_accounting", r"at n = 512: float32 ([\d.]+)"),
            stored("04_accounting", r"one thread: peak (\d+) GFLOP/s"),
            1.5,
        ),
        (
            stored("04_accounting", r"at n = 512: float32 ([\d.]+)"),
            stored("04_accounting", r"float64 ([\d.]+), bfloat16"),
            4,
        ),
        ([mfu], stored("06_training", r"MFU .*?(\d+)%"), 2.5),
    ):
        assert all(1 / factor < here / there < factor for here in one for there in others)


@every_notebook
def test_numbers_in_answers_come_from_variables(name):
    for cell in code_cells(name, "answer"):
        calls = [node for node in nodes(cell) if isinstance(node, ast.Call)]
        (call,) = [node for node in calls if ast.unparse(node.func) == "answer"]
        assert loose_numbers(call.args[2]) == [], cell.id


def loose_numbers(text):
    """The numbers typed into a text: outside of {}, code, formulas, and words such as UTF-8."""
    literals = [
        "x" if isinstance(node, ast.FormattedValue) else getattr(node, "value", "x")
        for node in (text.values if isinstance(text, ast.JoinedStr) else [text])
    ]
    words = re.sub(r"`[^`]*`|\$[^$]*\$|\bU\+\w+|[A-Za-z_][\w+-]*\d\w*", "", "".join(literals))
    return re.findall(r"\d+", words)


@every_notebook
def test_evidence_that_varies_asserts_what_it_claims(name):
    for cell in code_cells(name, "evidence"):
        if notebooks.OUTPUT_VARIES in cell.metadata.get("tags", []):
            assert any(isinstance(node, ast.Assert) for node in nodes(cell)), cell.id


@every_notebook
def test_no_cell_needs_one_that_make_test_skips(name):
    """What compiles a model or starts `torchrun` is left to `make stress`, which runs all cells."""
    skipped = set()
    for cell in code_cells(name):
        if "nbval-skip" in cell.metadata.get("tags", []):
            skipped |= bound_by(cell)
        else:
            skipped -= bound_by(cell)
            used = {node.id for node in nodes(cell) if isinstance(node, ast.Name)}
            assert used & skipped == set(), cell.id


@every_notebook
def test_no_path_of_a_machine_is_typed(name):
    homes = re.compile(r"/(?:home|root|Users|tmp|work|var|private)/|[A-Z]:\\\\?Users")
    assert [cell.id for cell in cells_of(name) if homes.search(cell.source)] == []


@every_notebook
def test_every_link_leads_to_a_file(name):
    """To a folder, JupyterLab answers with an error."""
    for cell in cells_of(name):
        for target in re.findall(r"\]\((\.\./[^)#]+)", cell.source):
            assert (PATHS[name].parent / target).is_file(), (cell.id, target)


@every_notebook
def test_every_command_that_is_told_is_accepted(name):
    from workbook.training import presets  # loads torch

    told = "\n".join(cell.source for cell in cells_of(name) if cell.cell_type == "markdown")
    told = told.replace("\\\n", " ").replace("$seed", "1")
    for words in re.findall(r"\bworkbook ([^`;\n]* --(?!help)[^`;\n]*)", told):
        options = cli.parser().parse_args(shlex.split(words))
        if words.startswith("train "):
            presets.chosen(options)


@pytest.mark.slow
@pytest.mark.parametrize("name", PATHS)
def test_check_judges_untouched_right_and_wrong_attempts(name, monkeypatch):
    cells = code_cells(name, "try", "check")
    names = {}
    exec(code_cells(name)[0].source, names)
    for cell in cells:
        if role(cell) == "try":
            exec(cell.source, names)
            continue
        place = about(cell, "problem"), about(cell, "part")
        # In this process, but for what trains: a learner's script is a process anyway.
        monkeypatch.setattr(worker, "is_inside", place[0] != "training_together")
        assert eval(cell.source, names).status == "not attempted", place
        attempt = ast.unparse(ast.parse(cell.source).body[0].value.args[1])
        right, wrong = ATTEMPTS.get(place) or (our_answer(name, *place), None)
        report = eval(cell.source, {**names, attempt: right})
        passed = ["correct", "possible"]
        assert report.status in (passed if place in ATTEMPTS else [*passed, "read"]), report
        if wrong is not None:
            report = eval(cell.source, {**names, attempt: wrong})
            assert report.status == "wrong", report


def our_answer(name, problem, part):
    """The text of our answer to a written part, as it is stored."""
    for cell, output in outputs(name):
        stored = output.get("data", {}).get("application/vnd.workbook.answer+json")
        if stored and (about(cell, "problem"), about(cell, "part")) == (problem, part):
            return stored["text"]
    raise AssertionError(f"no stored answer to {problem} ({part}), and no entry in ATTEMPTS")
