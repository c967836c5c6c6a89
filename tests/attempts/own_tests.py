"""Tests that careful learners write of a program that is still to be written, by problem.

Each takes the program, and asserts what it gives: torch's own functions, sums by hand, and a naive
program of the tests' own are what it compares with.
"""

import math
import tempfile
from itertools import repeat
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from attempts import bpe_right, steps
from workbook.tokenization.tokenizer import PlainTokenizer

END = "<|endoftext|>"


def test_softmax(softmax):
    x = torch.tensor([[1.0, 2.0, 3.0], [0.0, 5.0, -1.0]])
    far = torch.tensor([[1000.0, 1001.0], [-1000.0, -1001.0]])
    for values in (x, far, torch.randn(2, 3, 4)):
        for dim in range(-1, values.ndim):
            assert torch.allclose(softmax(values, dim), values.softmax(dim), atol=1e-6)


def test_scaled_dot_product_attention(attention):
    for lead in ((), (2,), (2, 3)):
        q = 3 * torch.randn(*lead, 3, 4)
        k = 3 * torch.randn(*lead, 5, 4)
        v = torch.randn(*lead, 5, 6)
        mask = torch.rand(3, 5) < 0.6
        mask[:, 0] = True
        for given in ((q, k, v, mask), (q, k, v), (100 * q, k, v)):
            expected = F.scaled_dot_product_attention(*given)
            assert torch.allclose(attention(*given), expected, atol=1e-5)


def test_cross_entropy(cross_entropy):
    for shape in ((4,), (2, 3), (2, 3, 4)):
        logits = 3 * torch.randn(*shape, 7)
        targets = torch.randint(7, shape)
        expected = F.cross_entropy(logits.reshape(-1, 7), targets.reshape(-1))
        assert torch.allclose(cross_entropy(logits, targets), expected, atol=1e-5)
    far = cross_entropy(torch.tensor([[1000.0, 0.0, -1000.0]]), torch.tensor([1]))
    assert far.item() == 1000


def test_rmsnorm(norm):
    for eps in (1e-5, 0.5):
        layer = norm(4, eps=eps)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        x = torch.randn(2, 3, 4)
        assert torch.allclose(layer(x), F.rms_norm(x, (4,), layer.weight, eps), atol=1e-5)


def test_positionwise_feedforward(swiglu):
    layer = swiglu(4, 8)
    x = torch.randn(2, 3, 4)
    gate = F.silu(x @ layer.w1.weight.T)
    expected = (gate * (x @ layer.w3.weight.T)) @ layer.w2.weight.T
    assert torch.allclose(layer(x), expected, atol=1e-5)


def test_rope(rope):
    turn = rope(10_000.0, 4, 20)
    x = torch.randn(2, 5, 4)
    for positions in (
        torch.arange(5).expand(2, 5),
        torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]]),
    ):
        angles = positions[..., None] / 10_000 ** torch.tensor([0.0, 0.5])
        turns = torch.polar(torch.ones_like(angles), angles)
        expected = torch.view_as_complex(x.reshape(2, 5, 2, 2)) * turns
        pairs = torch.view_as_real(expected)
        assert torch.allclose(turn(x, positions), pairs.flatten(2), rtol=0, atol=1e-5)


def test_learning_rate_schedule(schedule):
    settings = 1.0, 0.1, 10, 50
    quarter = 0.1 + 0.45 * (1 + math.cos(math.pi / 4))
    known = {0: 0, 1: 0.1, 5: 0.5, 10: 1, 20: quarter, 30: 0.55, 50: 0.1, 51: 0.1, 999: 0.1}
    for it, rate in known.items():
        assert math.isclose(schedule(it, *settings), rate, abs_tol=1e-9)
    assert schedule(0, 1.0, 0.1, 0, 10) == 1
    assert schedule(7, 1.0, 0.1, 6, 6) == 0.1


def test_gradient_clipping(clip):
    def clipped(gradients, limit, kind=list):
        parameters = [nn.Parameter(torch.zeros(len(gradient))) for gradient in gradients]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = torch.tensor(gradient)
        clip(kind([*parameters, nn.Parameter(torch.zeros(2))]), limit)
        return [value for parameter in parameters for value in parameter.grad.tolist()]

    for gradients, limit, scale in (
        ([[3.0, 4.0]], 1.0, 1 / 5),
        ([[0.3, 0.4]], 1.0, 1),
        ([[1.5, 2.0]], 3.0, 1),
        ([[3.0], [4.0]], 2.0, 2 / 5),
        ([[3.0], [4.0], [-2.0]], 2.0, 2 / 29**0.5),
        ([[0.0, 0.0]], 1.0, 1),
        ([[1.0, 1.0]], 1.5, 1),
    ):
        expected = [scale * value for gradient in gradients for value in gradient]
        for kind in (list, iter):
            assert np.allclose(clipped(gradients, limit, kind), expected, atol=1e-4)


def test_adamw(adamw):
    for lr, beta1, beta2, eps, decay in (
        (0.001, 0.9, 0.999, 1e-8, 0.01),
        (0.1, 0.8, 0.9, 0.1, 0.0),
        (0.02, 0.95, 0.7, 1e-8, 0.3),
    ):
        parameters = [nn.Parameter(torch.tensor([1.0, -2.0])), nn.Parameter(torch.tensor([0.5]))]
        expected = [parameter.detach().double() for parameter in parameters]
        steps_of = adamw(parameters, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=decay)
        first = [0, 0]
        second = [0, 0]
        for step in range(1, 5):
            if step == 3:
                lr /= 2
                steps_of.param_groups[0]["lr"] = lr
            rate = lr * math.sqrt(1 - beta2**step) / (1 - beta1**step)
            for i, parameter in enumerate(parameters):
                gradient = step * (i + 1) * 0.3 * (-1) ** step
                parameter.grad = torch.full_like(parameter, gradient)
                first[i] = beta1 * first[i] + (1 - beta1) * gradient
                second[i] = beta2 * second[i] + (1 - beta2) * gradient**2
                moved = expected[i] - rate * first[i] / (second[i] ** 0.5 + eps)
                expected[i] = moved * (1 - lr * decay)
            steps_of.step()
            for parameter, value in zip(parameters, expected, strict=True):
                assert torch.allclose(parameter.double(), value, rtol=1e-4, atol=1e-6)


def test_data_loading(get_batch):
    tokens = np.arange(12, dtype=np.uint16)
    starts = set()
    for _ in range(80):
        inputs, targets = get_batch(tokens, 8, 3, "cpu")
        assert inputs.shape == targets.shape == (8, 3)
        assert inputs.dtype == torch.int64
        assert torch.equal(targets, inputs + 1)
        assert torch.equal(inputs[:, 1:], inputs[:, :-1] + 1)
        starts.update(inputs[:, 0].tolist())
    assert starts == {*range(9)}
    large, _ = get_batch(np.arange(40_000, 40_020, dtype=np.uint16), 4, 3, "cpu")
    assert large.min() >= 40_000
    drawn = get_batch(np.arange(100_000), 50, 3, "cpu")[0][:, 0]
    assert len(set(drawn.diff().tolist())) > 3
    assert not torch.equal(drawn, get_batch(np.arange(100_000), 50, 3, "cpu")[0][:, 0])


TEXTS = {
    f"low low low lower newest newest widest{END}low lower aaaa aaa banana abab": 24,
    f"hello  world\n\n it's 2024 naïve 猫猫狗 don't{END}x aa\r\nb ": 33,
    f"b<|pad|>abc{END}abc<|pad|>{END}abb": 9,
    "ab ab cd ef": 14,
}


def test_train_bpe(train_bpe):
    for text, merges in TEXTS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "text.txt")
            path.write_bytes(text.encode())
            vocab, merged = train_bpe(path, 258 + merges, [END, "<|pad|>"])
            right = bpe_right.recount(path, 258 + merges, [END, "<|pad|>"])
        expected, expected_merges = right
        assert merged == expected_merges
        assert sorted(vocab.values()) == sorted(expected.values())


def test_tokenizer(tokenizer):
    text = "the cat ate the hat don't naïve 猫猫  \n\n2024 banana aaaa" * 3
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text.txt")
        path.write_text(text, "utf-8")
        vocab, merges = bpe_right.recount(path, 320, ["<|e|>", "<|e|><|e|>"])
    for special in (None, ["<|e|>"], ["<|e|>", "<|e|><|e|>"], ["<|new|>"]):
        made = tokenizer(vocab, merges, special)
        right = PlainTokenizer(vocab, merges, special)
        for given in (text, "", "the<|e|><|e|>cat<|e|> x<|new|>", "Ünï 🙂  a\n\n\n b\tc it's 12"):
            ids = made.encode(given)
            assert ids == right.encode(given)
            assert made.decode(ids) == given
            for size in (1, 3, 7):
                pieces = [given[at : at + size] for at in range(0, len(given), size)]
                assert list(made.encode_iterable(iter(pieces))) == right.encode(given)
    half = next(number for number, token in vocab.items() if token == b"\xc3")
    assert tokenizer(vocab, merges).decode([half]) == "\ufffd"


class Counting(nn.Module):
    """A model that leaves no choice: what comes next is a sum over the last four tokens."""

    context_length = 4

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, ids):
        logits = torch.full((*ids.shape, 7), -30.0)
        for row in range(ids.shape[0]):
            for place in range(ids.shape[1]):
                window = ids[row, max(0, place - 3) : place + 1].tolist()
                logits[row, place, follower(window)] = 30.0
        return logits


def follower(window):
    return (sum(factor * token for factor, token in enumerate(window, 1)) + 1) % 7


class Dice(nn.Module):
    """A model that gives each token the same share, whatever comes before it."""

    context_length = 8

    def __init__(self, shares):
        super().__init__()
        self.shares = shares

    def forward(self, ids):
        return torch.tensor(self.shares).log().expand(*ids.shape, len(self.shares))


def test_decoding(decode):
    def expected(prompt, count, end=None):
        ids = list(prompt)
        for _ in range(count):
            token = follower(ids[-4:])
            if token == end:
                break
            ids.append(token)
        return ids[len(prompt) :]

    for prompt, count in (([1, 2], 5), ([3], 8), ([1, 2, 3, 4, 5], 4)):
        for end in (None, *range(7)):
            assert decode(Counting(), prompt, count, end_id=end) == expected(prompt, count, end)
    shares = [0.1, 0.5, 0.15, 0.25]
    for options, wanted in (
        ({}, shares),
        ({"temperature": 0.5}, [0.029, 0.725, 0.065, 0.181]),
        ({"top_p": 0.7}, [0, 2 / 3, 0, 1 / 3]),
        ({"top_p": 0.8}, [0, 5 / 9, 1.5 / 9, 2.5 / 9]),
        ({"top_p": 0.1}, [0, 1, 0, 0]),
        ({"temperature": 2.0, "top_p": 0.6}, [0, 0.586, 0, 0.414]),
    ):
        drawn = decode(Dice(shares), [0], 600, **options)
        assert np.allclose(np.bincount(drawn, minlength=4) / 600, wanted, atol=0.1)


def test_encode_utf8(encode_utf8):
    for point in (*range(0, 0x3000, 7), 0x7F, 0x80, 0xFC, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF):
        assert encode_utf8(point) == chr(point).encode()


def test_count_pretokens(count_pretokens):
    for text, special in (
        ("Bob's dog<|e|>Bob dog", ["<|e|>"]),
        ("a  b\n\nx<|e|><|e|>  é猫 don't 12<|f|>b<|f|>", ["<|e|>"]),
        ("<|a|>b<|a|>c. a.b", ["<|a|>", "<|a|>b"]),
        ("x|y", ["|", "x|y"]),
        ("It's\r\n A B a", ["<|.|>"]),
        ("<|e|>a <|f|> b <|e|>c", ["<|e|>", "<|f|>"]),
        (f"ab{END}", []),
    ):
        assert dict(count_pretokens(text, special)) == dict(steps.count_pretokens(text, special))


def test_count_pairs(count_pairs):
    assert count_pairs({(b"a", b"a", b"a"): 5}) == {(b"a", b"a"): 10}
    assert count_pairs({(b"x",): 3}) == {}
    words = {(b"a", b"b", b"c"): 2, (b"b", b"c", b"b", b"a"): 3}
    expected = {(b"a", b"b"): 2, (b"b", b"c"): 5, (b"c", b"b"): 3, (b"b", b"a"): 3}
    assert count_pairs(words) == expected


def test_merge_pair(merge_pair):
    for symbols, pair, expected in (
        ((b"a",) * 3, (b"a", b"a"), (b"aa", b"a")),
        ((b"a",) * 4, (b"a", b"a"), (b"aa", b"aa")),
        ((b"a", b"b", b"c", b"a", b"b"), (b"a", b"b"), (b"ab", b"c", b"ab")),
        ((b"ab", b"c"), (b"a", b"bc"), (b"ab", b"c")),
        ((b"x", b"a", b"b", b"y"), (b"a", b"b"), (b"x", b"ab", b"y")),
        ((b"x",), (b"a", b"b"), (b"x",)),
        ((b"b", b"a"), (b"a", b"b"), (b"b", b"a")),
    ):
        assert merge_pair(symbols, pair) == expected


def test_train_naive(train_naive):
    for counts, merges in (
        ({"low": 5, "lower": 2, "newest": 6, "widest": 3}, 6),
        ({"aaaa": 3, "aaa": 2, "banana": 1, "abab": 4}, 9),
        ({"é猫": 2, "猫狗": 2, "ba": 1, "zz": 2}, 8),
        ({"abc": 1, "cab": 1, "bb": 1}, 7),
        ({"ab": 1}, 5),
        ({}, 3),
    ):
        assert list(train_naive(counts, merges)) == steps.train_naive(counts, merges)


def test_decode_ids(decode_ids):
    vocab = {0: b"a", 1: b"\xc3", 2: b"\xa9", 3: b" the\n", 300: b"<|e|>"}
    assert decode_ids([0, 1, 2], vocab) == "aé"
    assert decode_ids([0, 1], vocab) == "a\ufffd"
    assert decode_ids([], vocab) == ""
    assert decode_ids([3, 0, 3, 300], vocab) == " the\na the\n<|e|>"


def test_encode_word(encode_word):
    merges = [(b"s", b"t"), (b"e", b"st"), (b"l", b"o"), (b"lo", b"w")]
    assert encode_word(b"lowest", merges) == [b"low", b"est"]
    assert encode_word(b"lowx", merges) == [b"low", b"x"]
    assert encode_word(b"", merges) == []
    assert encode_word("é".encode(), merges) == [b"\xc3", b"\xa9"]
    assert encode_word(b"aaaaa", [(b"a", b"a"), (b"aa", b"aa")]) == [b"aaaa", b"a"]
    assert encode_word(b"abc", [(b"b", b"c"), (b"a", b"b")]) == [b"a", b"bc"]
    assert encode_word(b"xabab", [(b"a", b"b")]) == [b"x", b"ab", b"ab"]
    crossing = [(b"a", b"b"), (b"c", b"d"), (b"b", b"c"), (b"ab", b"cd")]
    assert encode_word(b"abcd", crossing) == [b"abcd"]
    twice = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]
    assert encode_word(b"abcbc", twice) == [b"a", b"bc", b"bc"]


def test_split_special(split_special):
    assert split_special("Hi<|end|>!", ["<|end|>"]) == ["Hi", "<|end|>", "!"]
    assert split_special("a|b", []) == ["a|b"]
    assert split_special("a.b*c", ["."]) == ["a", ".", "b*c"]
    assert split_special(" <|e|>\n ", ["<|e|>"]) == [" ", "<|e|>", "\n "]
    several = ["<|a|>", "<|b|>", "<|a|><|b|>"]
    parts = ["x", "<|a|><|b|>", "y", "<|a|>"]
    assert split_special("".join(parts), several) == parts
    assert split_special(f"{END}x", ["<|e|>"]) == [f"{END}x"]


def test_stream_pretokens(stream_pretokens):
    assert list(stream_pretokens(["It'", "s  la", "te"], [])) == ["It", "'s", " ", " late"]
    text = "the  end<|e|>\n\n don't 12 "
    expected = ["the", " ", " end", "<|e|>", "\n\n", " don", "'t", " 12", " "]
    for size in (1, 2, 3, 5, 50):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert list(stream_pretokens(pieces, ["<|e|>"])) == expected
    assert next(iter(stream_pretokens(repeat("ab cd "), []))) == "ab"


def test_momentum(momentum):
    for lr, factor in ((0.1, 0.9), (0.01, 0.5)):
        parameters = [nn.Parameter(torch.tensor([1.0, 2.0])), nn.Parameter(torch.tensor([3.0]))]
        expected = [parameter.detach().clone() for parameter in parameters]
        steps_of = momentum(parameters, lr=lr, momentum=factor)
        velocity = [0, 0]
        for step in range(4):
            if step == 2:
                lr /= 2
                steps_of.param_groups[0]["lr"] = lr
            for i, parameter in enumerate(parameters):
                parameter.grad = torch.full_like(parameter, step - 1.5 + i)
                velocity[i] = factor * velocity[i] + parameter.grad
                expected[i] -= lr * velocity[i]
            steps_of.step()
            for parameter, value in zip(parameters, expected, strict=True):
                assert torch.allclose(parameter, value, atol=1e-6)


def test_training_loop(training_loop):
    model = nn.Linear(2, 1, bias=False)
    nn.init.ones_(model.weight)
    batches = [(torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0]]))] * 3
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = training_loop(model, sgd, F.mse_loss, batches)
    weight = torch.ones(2)
    expected = []
    for x, y in batches:
        error = x[0] @ weight - y[0, 0]
        expected.append(error.item() ** 2)
        weight = weight - 0.1 * 2 * error * x[0]
    assert all(isinstance(loss, float) for loss in losses)
    assert np.allclose(losses, expected, rtol=1e-4)
    assert torch.allclose(model.weight[0], weight, atol=1e-4)


def test_accumulate(accumulate):
    inputs = torch.randn(8, 2)
    targets = torch.randn(8, 1)
    for parts in (1, 2, 4):
        model = nn.Linear(2, 1, bias=False)
        sizes = []
        model.register_forward_hook(
            lambda module, given, out, sizes=sizes: sizes.append(len(given[0]))
        )
        loss = accumulate(model, F.mse_loss, inputs, targets, parts)
        gradient = model.weight.grad.clone()
        assert max(sizes) == 8 // parts
        model.zero_grad()
        whole = F.mse_loss(model(inputs), targets)
        whole.backward()
        assert math.isclose(loss, whole.item(), abs_tol=1e-5)
        assert torch.allclose(gradient, model.weight.grad, atol=1e-5)


def test_resuming(train):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.pt")
        whole = train(30, Path(folder, "whole.pt"))
        assert train(20, path) + train(10, path, resume=True) == whole
