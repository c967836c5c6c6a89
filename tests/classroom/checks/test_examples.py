"""Tests of learners: good ones accept and catch, others are refused or counted as nothing."""

import inspect

import numpy as np
import pytest
import torch
from attempts import own_tests
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from workbook.classroom.checks import examples
from workbook.classroom.checks.machinery.loading import load_file
from workbook.classroom.checks.programs import SUBJECTS
from workbook.classroom.problems import PROBLEMS, STEPS


def test_all_that_has_examples_has_programs():
    with_examples = {name for name, each in (PROBLEMS | STEPS).items() if each.has_examples}
    assert SUBJECTS.keys() == with_examples | {"resuming"}


@pytest.mark.slow
@pytest.mark.parametrize("problem", SUBJECTS)
def test_a_good_test_accepts_what_is_right_and_catches_what_is_not(problem):
    torch.manual_seed(0)
    tried = examples.outcome_of(problem, getattr(own_tests, f"test_{problem}"))
    assert tried.trouble == "" and not tried.is_refused
    assert tried.tried >= 4 and tried.caught >= 0.8 * tried.tried, tried.away
    assert len(SUBJECTS[problem].right) == 2
    assert all(wrong_for != mistake for mistake, wrong_for in tried.away)


@pytest.mark.slow
@pytest.mark.parametrize("problem", SUBJECTS)
def test_a_test_that_asserts_nothing_catches_nothing(problem):
    def test(program):
        assert program is not None

    tried = examples.outcome_of(problem, test)
    assert tried.caught == 0 and not tried.is_refused
    assert tried.trouble == examples.FIXED


def columns(softmax):
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    assert torch.allclose(softmax(x, 0), torch.tensor([[0.2689, 0.7311], [0.1192, 0.8808]]))


def hidden_where_true(attention):
    q = torch.randn(2, 3)
    mask = torch.tensor([[False, True], [True, False]])
    assert torch.allclose(attention(q, q, q, mask), q)


def in_bits(cross_entropy):
    assert cross_entropy(torch.tensor([[0.0, 0.0]]), torch.tensor([1])) == 1


def in_halves(rope):
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    turned = rope(10_000.0, 4, 8)(x, torch.tensor([1]))
    assert torch.allclose(turned[0, 0], x[0, 0] * np.cos(1) - x[0, 2] * np.sin(1))


def mean_subtracted(norm):
    x = torch.tensor([[1.0, 2.0, 6.0]])
    assert torch.allclose(norm(3)(x), F.layer_norm(x, (3,)), atol=1e-4)


def gate_on_w3(swiglu):
    layer = swiglu(2, 4)
    x = torch.randn(1, 2)
    assert torch.allclose(layer(x), layer.w2(F.silu(layer.w3(x)) * layer.w1(x)))


def first_step_is_one(schedule):
    assert schedule(0, 1.0, 0.1, 10, 100) == 0.1


def each_by_itself(clip):
    one = nn.Parameter(torch.zeros(1))
    two = nn.Parameter(torch.zeros(1))
    one.grad = torch.tensor([3.0])
    two.grad = torch.tensor([4.0])
    clip([one, two], 1.0)
    assert one.grad.item() == pytest.approx(1.0, abs=1e-3)


def decay_in_the_gradient(adamw):
    parameter = nn.Parameter(torch.tensor([1.0]))
    parameter.grad = torch.zeros(1)
    adamw([parameter], lr=0.1, weight_decay=0.5).step()
    assert parameter.item() == pytest.approx(0.9, abs=1e-3)


def one_start_less(get_batch):
    starts = {int(get_batch(np.arange(5), 1, 3, "cpu")[0][0, 0]) for _ in range(60)}
    assert starts == {0}


def prompt_comes_back(decode):
    assert list(decode(own_tests.Counting(), [1, 2], 2))[:2] == [1, 2]


def smallest_pair_wins(train_naive):
    assert train_naive({"ab": 1, "cd": 1}, 1) == [(b"a", b"b")]


def in_order_of_the_text(encode_word):
    assert encode_word(b"abc", [(b"b", b"c"), (b"a", b"b")]) == [b"ab", b"c"]


def merged_across_words(count_pretokens):
    assert dict(count_pretokens("low low", [])) == {"low": 2}


MISUNDERSTOOD = {
    "softmax": columns,
    "scaled_dot_product_attention": hidden_where_true,
    "cross_entropy": in_bits,
    "rope": in_halves,
    "rmsnorm": mean_subtracted,
    "positionwise_feedforward": gate_on_w3,
    "learning_rate_schedule": first_step_is_one,
    "gradient_clipping": each_by_itself,
    "adamw": decay_in_the_gradient,
    "data_loading": one_start_less,
    "decoding": prompt_comes_back,
    "train_naive": smallest_pair_wins,
    "encode_word": in_order_of_the_text,
    "count_pretokens": merged_across_words,
}


@pytest.mark.parametrize("problem", MISUNDERSTOOD)
def test_a_usual_misunderstanding_is_refused_with_its_line(problem):
    test = MISUNDERSTOOD[problem]
    tried = examples.outcome_of(problem, test)
    assert tried.is_refused and tried.caught == 0
    assert f", in {test.__name__}: `assert " in tried.trouble
    assert "is right" not in tried.trouble


def of_several(merge_pair):
    want = b"ba"
    assert merge_pair((b"a", b"b"), (b"a", b"b")) == (want,) or merge_pair((), ()) == 3


def negated(merge_pair):
    assert not merge_pair((b"a", b"b"), (b"a", b"b")) == (b"ab",)  # noqa: SIM201


def in_a_loop(merge_pair):
    for want in ((b"ab",), (b"ba",)):
        got = merge_pair((b"a", b"b"), (b"a", b"b"))
        assert got == want


def says_the_value(merge_pair):
    got = merge_pair((b"a", b"b"), (b"a", b"b"))
    raise ValueError(f"it is {got}")


def of_two_parts(merge_pair):
    assert merge_pair((b"a", b"b"), (b"a", b"b")) == (b"ab",) and merge_pair is None


def says_it_in_the_message(merge_pair):
    assert merge_pair is None, str(merge_pair((b"x",), (b"a", b"b")) == (b"ab",))


def takes_the_next(merge_pair):
    wants = [(b"ba",), (b"ab",)]
    assert merge_pair((b"a", b"b"), (b"a", b"b")) == wants.pop(0)


def collects(merge_pair):
    out = []
    out.append(merge_pair((b"a", b"b"), (b"a", b"b")))
    assert merge_pair((b"a", b"b"), (b"a", b"b")) == out


def looks_it_up(merge_pair):
    {}[merge_pair((b"a", b"b"), (b"a", b"b"))]


def fails(merge_pair):
    merge_pair((b"a", b"b"), (b"a", b"b")).nothing  # noqa: B018


@pytest.mark.parametrize(
    ("test", "expects"),
    [
        (of_several, None),
        (negated, None),
        (of_two_parts, None),
        (says_it_in_the_message, None),
        (takes_the_next, None),
        (collects, None),
        (looks_it_up, None),
        (in_a_loop, "(b'ba',)"),
        (says_the_value, None),
    ],
)
def test_what_it_expects_is_told_where_it_is_known_and_a_right_value_never(test, expects):
    tried = examples.outcome_of("merge_pair", test)
    assert tried.is_refused
    told = f"Yours expects {expects}; right programs give something else."
    assert ("Yours expects" in tried.trouble) == (expects is not None)
    assert expects is None or tried.trouble.endswith(told)
    assert "b'ab'" not in tried.trouble.partition("`.")[2], "the right value is not handed over"


def test_a_test_that_fails_by_itself_is_told_its_error():
    tried = examples.outcome_of("merge_pair", fails)
    assert tried.is_refused and "AttributeError: 'tuple' object has no attribute" in tried.trouble


def before_the_step(adamw):
    parameter = nn.Parameter(torch.tensor([1.0]))
    parameter.grad = torch.tensor([2.0])
    adamw([parameter], lr=0.1, weight_decay=0.5).step()
    assert torch.allclose(parameter, torch.tensor([0.85]))


def as_torch_does(adamw):
    ours, theirs = (nn.Parameter(torch.ones(2)) for _ in range(2))
    settings = {"lr": 0.1, "eps": 0.1, "weight_decay": 0.5}
    both = adamw([ours], **settings), torch.optim.AdamW([theirs], **settings)
    for step in range(5):
        for parameter, optimizer in zip((ours, theirs), both, strict=True):
            parameter.grad = torch.tensor([1.0, -2.0]) * step
            optimizer.step()
    assert torch.allclose(ours, theirs, atol=1e-5)


def state_is_handed_on(adamw):
    parameter = nn.Parameter(torch.ones(2))
    first = adamw([parameter], lr=0.1)
    parameter.grad = torch.ones(2)
    first.step()
    second = adamw([parameter], lr=0.1)
    second.load_state_dict(first.state_dict())
    assert len(second.state) == 1


class Short(nn.Module):
    """A model that refuses more tokens than it has places for."""

    def __init__(self, length):
        super().__init__()
        self.context_length = length
        self.emb = nn.Embedding(10, 10)
        self.places = nn.Embedding(length, 10)

    def forward(self, ids):
        return self.emb(ids) + self.places(torch.arange(ids.shape[1]))


def a_short_context(decode):
    assert len(list(decode(Short(8), [1, 2, 3], 12))) == 12


def nearly_cold(decode):
    model = own_tests.Dice([0.1, 0.6, 0.3])
    for temperature in (1e-4, 1e-9):
        assert list(decode(model, [0], 4, temperature=temperature)) == [1] * 4


def no_gradients(clip):
    clip([], 1.0)
    clip([nn.Parameter(torch.ones(2))], 1.0)


def no_such_device(get_batch):
    with pytest.raises((RuntimeError, AssertionError), match=r"CUDA|NVIDIA"):
        get_batch(np.arange(100), 32, 7, "cuda:99")


def a_long_word(merge_pair):
    assert merge_pair((b"x",) * 3_000, (b"a", b"b")) == (b"x",) * 3_000


def bytes_of_two_ids(decode_ids):
    assert decode_ids([0, 1], {0: b"a", 1: b"a"}) == "aa"


def no_special_tokens(count_pretokens):
    assert count_pretokens("low", None) == {"low": 1}


def tied(swiglu):
    layer = swiglu(2, 2)
    layer.w1.weight = layer.w2.weight = layer.w3.weight = nn.Parameter(torch.eye(2))
    assert layer(torch.zeros(1, 2)).abs().sum() == 0


def in_a_branch(softmax):
    try:
        softmax(torch.ones(2), 7)
    except IndexError:
        assert True
    else:
        raise AssertionError
    assert softmax(torch.ones(2), 0)[0] == 0.5


RIGHT_TESTS = {
    "adamw": (before_the_step, as_torch_does, state_is_handed_on),
    "decoding": (a_short_context, nearly_cold),
    "gradient_clipping": (no_gradients,),
    "count_pretokens": (no_special_tokens,),
    "data_loading": (no_such_device,),
    "decode_ids": (bytes_of_two_ids,),
    "merge_pair": (a_long_word,),
    "positionwise_feedforward": (tied,),
    "softmax": (in_a_branch,),
}


@pytest.mark.parametrize(
    ("problem", "test"), [(name, test) for name, tests in RIGHT_TESTS.items() for test in tests]
)
def test_what_is_right_by_the_handout_is_not_refused(problem, test):
    tried = examples.outcome_of(problem, test)
    assert not tried.is_refused, tried.trouble


def returns(softmax):
    return softmax(torch.ones(2), 0)[0] == 0.5


def skips(softmax):
    pytest.skip(str(softmax))


def without_the_program(merge_pair):
    assert 1 + 1 == 2


def endless(merge_pair):
    while True:
        merge_pair((b"x",), (b"a", b"b"))


def replaces_its_code(softmax):
    softmax.__code__ = (lambda x, dim: x).__code__
    assert softmax(1, 0) == 1


def replaces_torch(softmax):
    torch.softmax = softmax
    assert softmax(torch.ones(2), 0).sum() == 1


def replaces_torch_in_steps(adamw):
    torch.softmax = adamw
    assert adamw([nn.Parameter(torch.ones(1))]).defaults["lr"] == 0.001


def widens(softmax):
    torch.set_default_dtype(torch.float64)
    assert softmax(torch.zeros(2), 0).sum() == 1


@pytest.mark.parametrize(
    ("problem", "test", "words"),
    [
        ("softmax", returns, "It has no `assert`: what a test returns is looked at by nobody."),
        ("softmax", skips, "It skips itself."),
        ("merge_pair", without_the_program, "It never uses `merge_pair`"),
        ("merge_pair", endless, "It was stopped after"),
        ("softmax", replaces_its_code, "It changes `the program's code`"),
        ("softmax", replaces_torch, "It changes `torch.softmax`"),
        ("softmax", widens, "It changes `torch's default dtype`"),
        ("adamw", replaces_torch_in_steps, "It changes `torch.softmax`"),
    ],
)
def test_what_judges_nothing_counts_as_nothing(monkeypatch, problem, test, words):
    monkeypatch.setattr(torch, "softmax", torch.softmax)  # it is put back
    monkeypatch.setattr(examples, "EACH_SECONDS", 0.3)
    right = SUBJECTS[problem].right[0][0]
    code = getattr(right, "__code__", None)
    try:
        tried = examples.outcome_of(problem, test)
    finally:
        torch.set_default_dtype(torch.float32)
        if code:
            right.__code__ = code
    assert words in tried.trouble
    assert not tried.is_refused and tried.caught == tried.tried == 0


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_each_assertion_of_a_line_is_looked_at(tmp_path):
    path = tmp_path / "mine.py"  # here the formatter would take the line apart
    path.write_text(
        "def pair(f):\n    x = f((), ())\n    assert (x, ())\n\n"
        "def two(f):\n    assert f((1,), (1, 2)) == (1,); assert f((2,), (1, 2)) == 3\n"
    )
    mine = load_file(path, "mine")
    tried = examples.outcome_of("merge_pair", mine.pair)
    assert tried.trouble.startswith("`assert (x, ())` cannot fail") and tried.tried == 0
    tried = examples.outcome_of("merge_pair", mine.two)
    assert tried.trouble.endswith("Yours expects 3; right programs give something else.")


def test_every_faulty_program_takes_what_the_right_ones_take():
    for problem, subject in SUBJECTS.items():
        for versions in subject.versions:
            made = versions.shaped(versions.exercise.program.edited())
            right = inspect.signature(subject.right[0][0])
            assert [*inspect.signature(made).parameters] == [*right.parameters], problem
