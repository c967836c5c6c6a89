"""The 38 problems of the assignment, for both editions: one record each, in the handout's order.

A record is all that the package knows about a problem: what is handed in, the hints, what an answer
must contain. The question itself is in the notebook. A new problem is one more record here, and a
check in `checks.by_problem`.
"""

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

from workbook.config import EDITIONS

PER_POINT = {"code": 25, "written": 15}  # minutes
TWO_DOTS = 30  # minutes, from which on a problem has two dots
THREE_DOTS = 100  # and three
# Code problems of which little can be stated but shapes, by the ids of 2025.
WITHOUT_EXAMPLES = {
    "linear",
    "embedding",
    "multihead_self_attention",
    "transformer_block",
    "transformer_lm",
    "checkpointing",
    "training_together",
}


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """What a written answer must contain beyond its words, as far as the answer itself shows it."""

    figure: bool = False
    quantities: tuple[str, ...] = ()  # of the kinds that `answers.QUANTITIES` knows
    loss_at_most: float | None = None
    tokens_at_least: int | None = None  # of a generated text that does not end by itself


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem. Dicts by part have the key "" where the problem has no parts."""

    id: str  # as edition 2025 spells it
    ids: dict[str, str]  # by edition
    title: str
    points: dict[str, int | None]  # by edition; None: the handout prints none
    chapter: int
    notebook: str  # such as "02_bpe"
    parts: tuple[str, ...] = ()  # such as ("a", "b")
    hints: dict[str, tuple[str, ...]]  # by part: a nudge, often a question, and the idea
    form: Literal["function", "class", "pair", "script", ""] = ""  # of code; "": a written problem
    signature: str = ""  # of that code, as in Python
    takes: dict[str, str] = field(default_factory=dict)  # by part: what a written problem takes
    facts: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by part: for a text, to tick
    seconds: float | None = None  # that its check may take; None: the usual limit
    requires: dict[str, Requirement] = field(default_factory=dict)  # by part
    asks_corpora: tuple[str, ...] = ()  # of "tinystories" and "owt"
    differs: str = ""  # what makes the right answer differ between the editions, if anything
    step_of: str = ""  # the problem that an optional step leads to; "": it is a problem itself

    @property
    def kind(self) -> Literal["code", "written"]:
        """The kind of what is handed in: code, or numbers and words."""
        return "code" if self.form else "written"

    @property
    def part_keys(self) -> tuple[str, ...]:
        """The keys of a dict by part: the parts, or "" where the problem has none."""
        return self.parts or ("",)

    @property
    def minutes(self) -> int:
        """A guess at the time that it takes, without waiting for runs: points times `PER_POINT`."""
        return PER_POINT[self.kind] * max(points or 0 for points in self.points.values())

    @property
    def difficulty(self) -> str:
        """One to three dots, by the time that it takes."""
        if self.minutes < TWO_DOTS:
            return "●"
        return "●●" if self.minutes < THREE_DOTS else "●●●"

    @property
    def needs_runs(self) -> bool:
        """Whether its numbers come from training runs, so that a check sees if they can be."""
        return self.chapter == 7

    @property
    def has_examples(self) -> bool:
        """Whether what it gives can be stated, as a test, before it is written."""
        return bool(self.form) and self.id not in WITHOUT_EXAMPLES

    @property
    def name(self) -> str:
        """The name of the function or class to hand in; "" if there is no single one."""
        return self.signature.partition("(")[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of what is handed in for a code problem: one, or two for a pair."""
        if self.form == "pair":
            return tuple(self.signature.strip("()").split(", "))
        return (self.name,) if self.name else ()

    @property
    def hand_in(self) -> str:
        """What is handed in for a code problem, in words; "" for a written one."""
        if self.form == "script":
            return f"the script (hand in its path) or the function {self.signature}"
        return f"the {self.form} {self.signature}" if self.form else ""


def time_in_words(minutes: float) -> str:
    """A guess at a time: in minutes up to an hour and a half, then in halves of an hour.

    >>> time_in_words(75), time_in_words(375)
    ('75 minutes', '6 hours')
    """
    return f"{minutes} minutes" if minutes <= 90 else f"{round(minutes / 30) / 2:g} hours"


def with_id(id: str) -> Problem:
    """Find the problem or the optional step with this id, in the spelling of either edition."""
    if not isinstance(id, str):
        raise ValueError(f"expected a problem's id such as 'train_bpe', not {type(id).__name__}")
    both = (PROBLEMS | STEPS).values()
    by_any_id = {name: problem for problem in both for name in problem.ids.values()}
    if id in by_any_id:
        return by_any_id[id]
    near = get_close_matches(id.lower(), by_any_id, n=1)
    known = f"did you mean {near[0]!r}?" if near else "`workbook study` lists them all"
    raise ValueError(f"no problem is called {id!r}; {known}")


def part_of(problem: Problem, part: str | None) -> str | None:
    """Name a part as the problem does: "A" and "(a)" are "a", and "" is None."""
    if part is not None and not isinstance(part, str):
        raise ValueError(f"expected a part such as 'a', not {type(part).__name__}")
    name = (part or "").strip("() ").lower()
    if not name:
        return None
    if name in problem.parts:
        return name
    has = f"the parts {', '.join(problem.parts)}" if problem.parts else "no parts"
    raise ValueError(f"{problem.id} has {has}; there is no part {part!r}")


def place(problem: str, part: str | None) -> tuple[Problem, str | None]:
    """Find a problem and its part. Raises: ValueError where a part is missing or unknown."""
    details = with_id(problem)
    part = part_of(details, part)
    if details.parts and part is None:
        raise ValueError(f"say which part of {details.id} is meant: {', '.join(details.parts)}")
    return details, part


def label(problem: str, part: str | None) -> str:
    """Write a problem's id and its part in words, such as "unicode2 (a)"."""
    return f"{problem} ({part})" if part else problem


def in_python(verb: str, problem: str, part: str | None, *rest: Any) -> str:
    """Write a call of a verb for a part as Python, such as `tick("unicode2", "a")`.

    `rest` is what follows, as it is written in Python.
    """
    place = [f'"{problem}"']
    if part:
        place.append(f'"{part}"')
    elif rest:
        place.append("None")
    return f"{verb}({', '.join([*place, *map(str, rest)])})"


def _problem(id: str, title: str, *, points: int | dict[str, int | None], **rest: Any) -> Problem:
    """Make a record. `points` and `ids` are dicts only where the editions differ.

    Without parts, what the record has by part is given as it is.
    """
    if not rest.get("parts"):
        by_part = rest.keys() & {"takes", "facts", "hints", "requires"}
        rest |= {key: {"": rest[key]} for key in by_part}
    rest["points"] = points if isinstance(points, dict) else dict.fromkeys(EDITIONS, points)
    rest.setdefault("ids", dict.fromkeys(EDITIONS, id))
    return Problem(id=id, title=title, **rest)


def _runs(run: str, remark: str = "") -> str:
    """Write what a problem about training runs takes, with a run as an example."""
    rows = f"a list with a dict per run, such as [{run}, ...]{remark}"
    return f"{rows}, a pandas table with these columns, the folders of your runs, or a text"


_RECORDS = (
    # Chapter 2: Unicode and tokenizers.
    _problem(
        "unicode1",
        "The character with number 0",
        points=1,
        chapter=2,
        notebook="01_unicode",
        parts=("a", "b", "c"),
        takes={
            "a": 'its code point, such as "U+0041", or a sentence',
            "b": 'a pair of its repr and what print shows, such as ("\'A\'", "A"), or a sentence',
            "c": 'a pair of a text with it inside and the length of that text, such as ("a-b", 3), '
            "or a sentence",
        },
        facts={
            "a": (
                "it gives the character's name, or its number in the form U+....",
                "the length is 1, although nothing can be seen",
            ),
            "b": (
                r"the repr shows an escape, '\x00', in quotes",
                "print writes the character itself",
                "it cannot be seen, but its length is 1",
            ),
            "c": (
                r"the text's repr shows the escape \x00 in its place",
                "when printed, the text looks as if nothing were there",
                "the length counts it: the character stays in the text",
            ),
        },
        hints={
            "a": (
                "Type `chr(0)` alone in a cell. Which number is in the escape that you see, and "
                "what does `ord` say?",
                "Every character has a number, and nearly every one a name. A table of ASCII "
                "names the control characters, which come first.",
            ),
            "b": (
                "Type `chr(0)` alone in a cell, then `print(chr(0))`. Which of the two outputs "
                "could you type back in?",
                "A cell that ends in a value shows its `repr`, which spells the character out as "
                "an escape; `print` sends the character itself to the screen. Compare "
                "`len(repr(chr(0)))` with `len(chr(0))`.",
            ),
            "c": (
                "Put the character between two words. Look at the text three ways: its `repr`, "
                "what `print` shows, and its length.",
                "A character that nobody can see is still a character: the length counts it, and "
                "a search finds it. Does the printed text show that it is there?",
            ),
        },
    ),
    _problem(
        "unicode2",
        "From characters to bytes",
        points=3,
        chapter=2,
        notebook="01_unicode",
        parts=("a", "b", "c"),
        takes={
            "a": 'the sizes of "hello" in bytes, such as {"UTF-8": 5, "UTF-16": ..., "UTF-32": '
            "...}, or a sentence",
            "b": 'bytes on which the function fails, written like b"hello", or a sentence',
            "c": "two bytes, such as bytes([0x68, 0x69]), or a sentence",
        },
        requires=dict.fromkeys("bc", Requirement(quantities=("example in bytes",))),
        facts={
            "a": (
                "it compares the sizes of several texts, English and others",
                "English is shorter in UTF-8; in UTF-16 and UTF-32 it is full of zero bytes",
                "256 byte values are enough for every text, so nothing is ever unknown",
                "UTF-8 has no byte order, and so needs no byte order mark",
            ),
            "b": (
                "it gives an input as bytes, or a character outside ASCII",
                "it says that such a character takes several bytes, which mean nothing alone",
            ),
            "c": (
                "it names two bytes, such as 41 42 in hexadecimal",
                "it says which rule of UTF-8 they break",
            ),
        },
        hints={
            "a": (
                "Encode one English, one Chinese and one emoji text in all three encodings. Look "
                "at the bytes, not only at how many there are.",
                "Look for zeros in the English text. Python's `utf-16` and `utf-32` also put two "
                "or four bytes in front: what for? And which encoding can do without?",
            ),
            "b": (
                "The function decodes one byte at a time. Which characters take only one byte in "
                "UTF-8, so that it works for them?",
                "In UTF-8 every byte above 7F is part of a longer character and means nothing "
                "alone. Encode any character outside ASCII, and run the function on it.",
            ),
            "c": (
                "After which first bytes does UTF-8 expect another byte, and which bytes may "
                "never come first?",
                "Bytes 80 to BF only ever continue a character, and C2 to F4 only ever begin one "
                "that takes more bytes. Break either rule in two bytes.",
            ),
        },
    ),
    _problem(
        "train_bpe",
        "Train a byte-pair encoding",
        points=15,
        chapter=2,
        notebook="02_bpe",
        form="function",
        signature="train_bpe(input_path, vocab_size, special_tokens)",
        seconds=120,
        hints=(
            "Make it right on one line of text before you make it fast: count the pre-tokens, "
            "keep each as a tuple of bytes with its count, and write the loop that merges the "
            "most frequent pair. Where must the text be cut before you count anything?",
            "Split at the special tokens first, escaped and the longest first, then by the "
            "pattern. Choose the pair with `max(counts, key=lambda pair: (counts[pair], "
            "pair))`, which breaks ties as asked. For speed, note which pre-tokens contain "
            "which pair: a merge changes the counts only inside those, so subtract their old "
            "pairs and add the new ones.",
        ),
    ),
    _problem(
        "train_bpe_tinystories",
        "A tokenizer for simple stories",
        points=2,
        chapter=2,
        notebook="02_bpe",
        parts=("a", "b"),
        asks_corpora=("tinystories",),
        takes={
            "a": 'a dict such as {"seconds": 62, "gigabytes": 1.9, "longest": b" hello"}, or with '
            "only some of these keys, or a sentence",
            "b": "a sentence: the slowest step, and how you know",
        },
        requires={"a": Requirement(quantities=("time", "memory"))},
        facts={
            "a": (
                "time and peak memory, child processes included, with units",
                "the longest token, its leading space included, and its length in bytes",
                "whether it makes sense: is it a word of the stories?",
            ),
            "b": (
                "which step takes most: cutting the text into pre-tokens, counting, or merging",
                "its share or its seconds, and how it was measured",
                "the workers were profiled: the parent of a pool only waits",
            ),
        },
        hints={
            "a": (
                "If your counting runs in child processes, whose memory and whose time does your "
                "measurement see? And is the leading space part of the longest token?",
                "Add up the memory of the whole process tree. Sort the vocabulary by length in "
                "bytes, and look whether the longest tokens are words of the stories.",
            ),
            "b": (
                "Training has three steps: cutting the text into pre-tokens, counting pairs, "
                "merging. Guess which is slowest; then let a profiler tell you.",
                "Profile a run that counts in one process: the parent of a pool only waits. Sort "
                "by the time inside each function alone, then by that with its callees.",
            ),
        },
    ),
    _problem(
        "train_bpe_expts_owt",
        "A tokenizer for the web",
        points=2,
        chapter=2,
        notebook="02_bpe",
        parts=("a", "b"),
        asks_corpora=("tinystories", "owt"),
        takes={
            "a": 'a dict such as {"longest": b" hello"}, with "hours" and "gigabytes" if you like, '
            "or a sentence",
            "b": "a sentence or two",
        },
        facts={
            "a": (
                "the longest token and its length in bytes",
                "what it is: a word, a line of symbols or spaces, or text that was encoded twice",
                "why the corpus contains it often",
            ),
            "b": (
                "what they share: short, frequent English words",
                "what differs: words of children's stories against names, markup and rarer words",
                "the different vocabulary sizes are taken into account",
            ),
        },
        hints={
            "a": (
                "Look at the ten longest tokens as bytes, not as text. Would a person have "
                "written them?",
                "Documents contain indentation, lines made of hyphens, and text that was decoded "
                "with the wrong encoding and encoded again, which doubles its non-ASCII bytes. "
                "What occurs often enough becomes a token, however long.",
            ),
            "b": (
                "Find words that are one token in one tokenizer and several in the other. What "
                "kind of words are they?",
                "Compare equally many tokens of each: a larger vocabulary has more of "
                "everything. Which tokens do the two share, and which has only one?",
            ),
        },
    ),
    _problem(
        "tokenizer",
        "Encode and decode",
        points=15,
        chapter=2,
        notebook="02_bpe",
        form="class",
        signature="Tokenizer(vocab, merges, special_tokens=None)",
        seconds=120,
        hints=(
            "Write `decode` first: join the bytes, and decode once at the end. For `encode`, "
            "take one pre-token: which of its pairs has to be merged first?",
            "Give each merge its rank. Inside a pre-token, merge the pair with the lowest rank "
            "until none is left. Split off special tokens first, with a pattern that tries the "
            "longest one first. In `encode_iterable` the end of a piece may go on in the next "
            "one: hold back up to two pre-tokens, and what may become a special token.",
        ),
    ),
    _problem(
        "tokenizer_experiments",
        "Two tokenizers at work",
        points=4,
        chapter=2,
        notebook="02_bpe",
        parts=("a", "b", "c", "d"),
        asks_corpora=("tinystories", "owt"),
        takes={
            "a": 'bytes per token by corpus ("stories", "docstrings", "tinystories", "owt"), such '
            'as {"stories": 2.5, "docstrings": 2.5}, a number alone for the stories, or a '
            "sentence",
            "b": "bytes per token, such as 2.5, or a sentence",
            "c": "a pair of bytes per second and hours, such as (2.5e6, 12), or a sentence",
            "d": "the largest number in uint16, such as 1000, or a sentence",
        },
        requires={"c": Requirement(quantities=("rate in bytes per second", "time"))},
        facts={
            "a": (
                "bytes per token, not tokens per byte",
                "each tokenizer is measured on its own corpus",
                "how many documents, and which",
            ),
            "b": (
                "bytes per token, not tokens per byte",
                "more, shorter tokens: rare words are spelled out",
                "how many documents, and which",
            ),
            "c": (
                "bytes per second, and on which machine",
                "825 * 10**9 bytes divided by that, in hours or days",
            ),
            "d": (
                "the largest token ID is below 65,536, so two bytes hold it",
                "half the space of int32, a quarter of int64",
                "no negative number is needed",
            ),
        },
        hints={
            "a": (
                "Which way round is the ratio: does a better tokenizer raise or lower it?",
                "Bytes per token: the length of the encoded text in bytes, divided by the number "
                "of tokens. Measure each tokenizer on documents from its own corpus.",
            ),
            "b": (
                "Which words of the web text are not in a story? What does the stories tokenizer "
                "make of them?",
                "It spells rare words out in short tokens, so the same text takes more of them. "
                "Divide the bytes of the web text by their number.",
            ),
            "c": (
                "Encode a whole file: in a short text nearly every word is new, and only a long "
                "one shows what the cache of known words is worth.",
                "Divide the bytes of the file by the seconds. The Pile's 825 GB are 825 · 10⁹ "
                "bytes; divide by your bytes per second for seconds, and by 3,600 for hours.",
            ),
            "d": (
                "What is the largest token ID that you have to store? And can an ID be negative?",
                "Two bytes hold 65,536 different values, from 0 on, and both vocabularies are "
                "smaller than that. How many bytes would int32 or int64 spend on each token?",
            ),
        },
    ),
    # Chapter 3: the model.
    _problem(
        "linear",
        "A linear layer",
        points=1,
        chapter=3,
        notebook="03_transformer",
        form="class",
        signature="Linear(in_features, out_features)",
        hints=(
            "Write down the shapes before the code: the last axis of the input, the two axes of "
            "the weight, the last axis of the output. Which axis is summed over?",
            "The weight has one row per output, so that y = W x. With any number of leading "
            "axes that is `x @ W.T`, or an einsum over d_in. Fill an empty tensor with "
            "`nn.init.trunc_normal_`: its limits `a` and `b` are not in standard deviations, so "
            "pass -3 and 3 times the standard deviation.",
        ),
    ),
    _problem(
        "embedding",
        "A table of vectors",
        points=1,
        chapter=3,
        notebook="03_transformer",
        form="class",
        signature="Embedding(num_embeddings, embedding_dim)",
        hints=(
            "What does a tensor give you when you index it with a tensor of integers?",
            "`weight[token_ids]` has the axes of `token_ids` and one more. That is the whole "
            "forward pass. Every row is learned, row 0 too.",
        ),
    ),
    _problem(
        "rmsnorm",
        "Keep vectors at one length",
        points=1,
        chapter=3,
        notebook="03_transformer",
        form="class",
        signature="RMSNorm(d_model, eps=1e-5)",
        hints=(
            "Take one vector and a large ε, and compute the result by hand. Where does ε go, "
            "inside the root or outside? And what is 300 squared in float16?",
            "Go to float32 first. Take the mean of the squares along the last axis with "
            "`keepdim=True`, add ε, take the root, divide, multiply by the gain, and convert "
            "back to the dtype that came in.",
        ),
    ),
    _problem(
        "positionwise_feedforward",
        "The gated feed-forward layer",
        points=2,
        chapter=3,
        notebook="03_transformer",
        form="class",
        signature="SwiGLU(d_model, d_ff)",
        hints=(
            "Two layers lead up to d_ff and one leads back. Which of the first two has a SiLU?",
            "W2 (SiLU(W1 x) ⊙ W3 x), and SiLU(x) is x times sigmoid(x), for which "
            "`torch.sigmoid` is allowed. The product is elementwise, before W2.",
        ),
    ),
    _problem(
        "rope",
        "Rotate by position",
        points=2,
        chapter=3,
        notebook="03_transformer",
        form="class",
        signature="RotaryPositionalEmbedding(theta, d_k, max_seq_len), called with (x, positions)",
        hints=(
            "Draw two numbers as an arrow in the plane, and rotate it by an angle. What happens "
            "to the arrow at position 0? And to the fastest pair at position 1?",
            "Cosines and sines of position · Θ^(-2k/d_k), k = 0, 1, ..., can be precomputed as "
            "a table with one row per position; index it with the positions. `x[..., 0::2]` and "
            "`x[..., 1::2]` are the first and the second numbers of all pairs. Rotate (x, y) to "
            "(x cos - y sin, x sin + y cos), `stack` on a new last axis, and flatten: that "
            "interleaves the pairs again.",
        ),
    ),
    _problem(
        "softmax",
        "Scores to probabilities",
        points=1,
        chapter=3,
        notebook="03_transformer",
        form="function",
        signature="softmax(x, dim)",
        hints=(
            "What is exp(1000) in float32? And what happens to softmax when the same number is "
            "subtracted from all its inputs?",
            "Subtract the maximum along `dim`, exponentiate, and divide by the sum along `dim`. "
            "`keepdim=True` in both keeps the shapes compatible.",
        ),
    ),
    _problem(
        "scaled_dot_product_attention",
        "Attention",
        points=5,
        chapter=3,
        notebook="03_transformer",
        form="function",
        signature="scaled_dot_product_attention(Q, K, V, mask)",
        hints=(
            "Name the axes: queries, keys, d_k, d_v. Which axis does the first matmul sum over, "
            "and along which one do the weights of a query add up to 1?",
            "Compute Q Kᵀ / √d_k, fill it with -inf where the mask is False, take the softmax "
            "over the keys, and multiply by V. An einsum with `...` in front takes care of all "
            "leading axes. exp(-inf) is 0, which is why you fill before the softmax.",
        ),
    ),
    _problem(
        "multihead_self_attention",
        "Many heads, no look-ahead",
        points=5,
        chapter=3,
        notebook="03_transformer",
        form="class",
        signature="MultiHeadSelfAttention(d_model, num_heads, max_seq_len=None, theta=None)",
        hints=(
            "A head sees d_model / num_heads features of every position. In which order must "
            "the axes heads, positions and features be so that your attention function works on "
            "heads as if they were a batch?",
            'Project, then `rearrange(x, "... seq (heads d) -> ... heads seq d", heads=...)`, '
            "and the inverse before the output projection. The causal mask is a lower triangle "
            "with its diagonal. RoPE comes after the split, on queries and keys: d_k = d_model "
            "/ num_heads.",
        ),
    ),
    _problem(
        "transformer_block",
        "One block",
        points=3,
        chapter=3,
        notebook="03_transformer",
        form="class",
        signature="TransformerBlock(d_model, num_heads, d_ff, max_seq_len=None, theta=None)",
        hints=(
            "Follow one vector through the block. What is added to what, and what is the input "
            "of the second norm?",
            "The same pattern twice: x = x + part(norm(x)), first with attention, then with the "
            "feed-forward layer. The block never normalises the residual stream itself.",
        ),
    ),
    _problem(
        "transformer_lm",
        "The whole model",
        points=3,
        chapter=3,
        notebook="03_transformer",
        form="class",
        signature="TransformerLM(vocab_size, context_length, d_model, num_layers, num_heads, d_ff, "
        "rope_theta)",
        hints=(
            "List the modules in the order in which the tokens meet them. Which one comes "
            "between the last block and the head, and why is it needed there?",
            "Embedding, blocks in an `nn.ModuleList`, a final norm, and a linear layer up to "
            "the vocabulary. Return the logits: the softmax belongs in the loss and in "
            "decoding. Pass `context_length` and `rope_theta` on to each block.",
        ),
    ),
    _problem(
        "transformer_accounting",
        "What a model costs",
        points=5,
        chapter=3,
        notebook="04_accounting",
        parts=("a", "b", "c", "d", "e"),
        differs="the inner width of the feed-forward layer",
        takes={
            "a": '{"parameters": 124e6, "gb": 0.49}, the number of parameters alone, or a sentence',
            "b": "the total of the FLOPs, such as 1.2e12, or a sentence",
            "c": 'the part ("ffn", "projections", "scores", "attention" or "head"), or shares in '
            'percent, such as {"head": 12, "attention": 50}; or a sentence',
            "d": 'FLOPs and shares in percent by size, such as {"small": {"flops": 1.2e11, "ffn": '
            '12, "head": 34}, "medium": {...}, "large": {...}}, or a sentence',
            "e": '{"flops": 5.1e13, "growth": 12, "scores": 40}, with the share of the scores in '
            "percent, the FLOPs alone, or a sentence",
        },
        requires={"a": Requirement(quantities=("memory",))},
        facts={
            "a": (
                "the number of parameters",
                "the bytes that they take in float32, and whether in GB or GiB",
            ),
            "b": (
                "each matmul with its shapes: Q, K, V, scores, weighted sum, output, "
                "feed-forward, head",
                "how often it occurs: once per block, the head once",
                "the total for one sequence of 1,024 tokens",
            ),
            "c": ("which part needs the most", "its share of the total"),
            "d": (
                "a total and the shares for each of the three sizes",
                "the rule that d_ff follows, since the handout gives it for XL alone",
                "which shares grow with the model (feed-forward, projections), and which shrink "
                "(head, scores)",
            ),
            "e": (
                "the new total, and how many times the old one it is",
                "that the T × T matmuls now need the most: they grow with the square of T",
            ),
        },
        hints={
            "a": (
                "Build the model on the meta device, where it takes no memory, and print the "
                "name and shape of every parameter.",
                "A block has four d × d matrices, three d × d_ff matrices in the feed-forward "
                "layer, and two norms with d gains each. Outside the blocks are the embedding, "
                "the final norm and the head. In float32 each parameter takes 4 bytes.",
            ),
            "b": (
                "Which of the parameters take part in a matmul, and which two matmuls in "
                "attention have no parameters at all?",
                "For T tokens an n × m matrix costs 2·T·n·m FLOPs; the scores and the weighted "
                "sum cost 2·T·T·d each, over all heads. The embedding is a table lookup. Count "
                "each once per block, the head once.",
            ),
            "c": (
                "Make each matmul of (b) a row of a table. Which rows belong together?",
                "Add up the rows by part: projections of attention, scores and weighted sum, "
                "feed-forward, head. Divide by the total.",
            ),
            "d": (
                "Only XL's d_ff is given. What rule does it follow, and what d_ff does the rule "
                "give for the smaller models?",
                "Repeat the table of (b) for each size, as shares. Matrices grow with the square "
                "of d, the head and the T × T matmuls only in proportion to d: so which shares "
                "rise, and which fall?",
            ),
            "e": (
                "Which of your terms contain T once, and which twice?",
                "Multiply the terms with T by 16, those with T·T by 256, and add up again.",
            ),
        },
    ),
    # Chapter 4: the loss, the optimizer, the schedule.
    _problem(
        "cross_entropy",
        "The loss",
        points={"2025": None, "2026": 1},
        chapter=4,
        notebook="03_transformer",
        form="function",
        signature="cross_entropy(logits, targets)",
        hints=(
            "Write log(softmax(x)) as a formula and simplify it before you type it. Which exp "
            "and which log are left?",
            "Subtract each row's maximum; then the loss of a target is log Σ exp(x) - "
            "x[target]. `gather` along the last axis picks the targets for any batch shape, and "
            "the mean runs over all of them.",
        ),
    ),
    _problem(
        "learning_rate_tuning",
        "Three learning rates",
        points=1,
        chapter=4,
        notebook="05_optimizer",
        takes="the losses of ten steps by learning rate, such as {10: [...], 100: [...], 1000: "
        "[...]}, or a sentence",
        facts=(
            "10: the loss falls at every step, faster than with 1",
            "100: the first step leaves the loss unchanged, then it falls; the fourth brings it "
            "to zero, up to rounding",
            "1,000: the loss grows from the first step on: it diverges",
        ),
        hints=(
            "Print all ten losses of each run with an exponent (`:.3g`), and divide each by the "
            "one before. At which learning rate does the loss fall fastest, and at which does "
            "it grow?",
            "The loss is a mean of 100 squares, so the gradient of a weight θ is 2θ/100. Each "
            "step multiplies all weights by the same number, 1 - 0.02 α / √(t + 1), and the "
            "loss by its square. Work it out for α = 10, 100 and 1,000 at t = 0, 1, 2, 3.",
        ),
    ),
    _problem(
        "adamw",
        "The optimizer",
        points=2,
        chapter=4,
        notebook="05_optimizer",
        form="class",
        signature="AdamW(params, lr, betas, eps, weight_decay)",
        hints=(
            "Follow the handout's SGD example: `__init__` passes a dict of settings to "
            "`super().__init__`, and `step` loops over `self.param_groups`. Where are m, v and "
            "t kept between two steps, and what are they before the first?",
            "`self.state[p]` is an empty dict at first: store m and v in it, zeros of p's "
            "shape, and t = 0. In each step increment t first, so that it starts at 1; then "
            "update m with g and v with g². Keep this step's learning rate, α √(1 - β2ᵗ) / (1 - "
            "β1ᵗ), in a variable of its own, because the decay uses α itself, times λ, and no "
            "gradient. Skip p if `p.grad` is None.",
        ),
    ),
    _problem(
        "adamwAccounting",
        "What training costs",
        ids={"2025": "adamwAccounting", "2026": "adamw_accounting"},
        points=2,
        chapter=4,
        notebook="04_accounting",
        parts=("a", "b", "c", "d"),
        differs="the feed-forward layer, the GPU and the unit of time",
        takes={
            "a": '{"parameters_gb": 1.5, "gradients_gb": 1.5, "optimizer_gb": 1.5}, all three '
            'together, such as 4.5e9 or "4.5 GB", or a sentence',
            "b": '{"a": 10.5, "b": 20.5, "batch": 7} with a and b in GB, the largest batch alone, '
            "or a sentence",
            "c": "FLOPs per parameter, such as 7, or a sentence",
            "d": 'days (edition 2025) or hours (2026), such as 12 or "12 days", or a sentence',
        },
        requires={"d": Requirement(quantities=("time",))},
        facts={
            "a": (
                "parameters, gradients and optimizer state: P, P and 2·P numbers, 4 bytes each",
                "the activations tensor by tensor: norms, attention with its T × T maps, "
                "feed-forward, last norm, logits, cross-entropy",
                "the sum of the four",
            ),
            "b": ("memory as a·batch + b, with units", "the largest whole batch in 80 GB"),
            "c": (
                "the operations for one parameter, step by step: moments, update, decay",
                "their number times P",
            ),
            "d": (
                "the FLOPs of one step: forward and twice as much backward, times the batch",
                "half the peak, in FLOP/s",
                "the time, in days or hours",
            ),
        },
        hints={
            "a": (
                "How many numbers does AdamW keep per parameter, counting the parameter and its "
                "gradient? And what is the shape of each activation on the list?",
                "Parameters, gradients and the two moments are 4·P numbers of 4 bytes each. List "
                "the activations in the order of the forward pass, each with a factor B, and "
                "mind that attention has a T × T map for each head.",
            ),
            "b": (
                "Which of the four kinds of memory grow with the batch, and which do not?",
                "The sum is a·B + b, in bytes. Put in the numbers of XL. A GB is 10⁹ bytes; "
                "solve a·B + b = 80 GB for B, and round down.",
            ),
            "c": (
                "Write out AdamW's lines for a single parameter. How many additions, "
                "multiplications, divisions and roots are there?",
                "Two moments, the update with its root and its division, and the decay. What is "
                "the same for all parameters, such as the bias corrections, is computed once and "
                "hardly counts. Multiply the rest by P.",
            ),
            "d": (
                "What does a backward pass cost, compared with a forward pass? And what does a "
                "utilisation of 50 % mean for the FLOP/s?",
                "One step takes three forward passes for every sequence of the batch, times the "
                "number of steps. Divide by half of the peak, in FLOP/s: a prefix such as tera "
                "is easily lost. A day has 86,400 seconds.",
            ),
        },
    ),
    _problem(
        "learning_rate_schedule",
        "Up, then down a cosine",
        points={"2025": None, "2026": 1},
        chapter=4,
        notebook="05_optimizer",
        form="function",
        signature="schedule(it, max_learning_rate, min_learning_rate, warmup_iters,"
        " cosine_cycle_iters)",
        hints=(
            "There are three branches: compare `it` with the two step numbers. What should the "
            "learning rate be at it = 0, and where the warm-up and the cosine end?",
            "In the middle branch, progress = (it - warmup_iters) / (cosine_cycle_iters - "
            "warmup_iters) goes from 0 to 1, and `math.cos(math.pi * progress)` from 1 to -1. "
            "Add 1 and halve: the result, s, is the share of the maximum. The learning rate is "
            "s · maximum + (1 - s) · minimum.",
        ),
    ),
    _problem(
        "gradient_clipping",
        "A limit on gradients",
        points=1,
        chapter=4,
        notebook="05_optimizer",
        form="function",
        signature="clip(parameters, max_l2_norm)",
        hints=(
            "There is one norm, not one for each parameter. Why would separate norms change the "
            "direction of the step? And how many times can you loop over `model.parameters()`?",
            "Collect the gradients that are not None in a list. Add up the squares of all their "
            "entries, and take one root. If the norm is above the limit, multiply every "
            "gradient in place by limit / (norm + 1e-6); otherwise leave them unchanged.",
        ),
    ),
    # Chapters 5 and 6: training, and writing text.
    _problem(
        "data_loading",
        "Batches from one long array of tokens",
        points=2,
        chapter=5,
        notebook="06_training",
        form="function",
        signature="get_batch(dataset, batch_size, context_length, device)",
        hints=(
            "With n tokens and windows of m, at how many positions can a window start so that "
            "its last target still exists? Try n = m + 1 in your head.",
            "There are n - m starts: 0 to n - m - 1. Draw `batch_size` of them at random, and "
            "cut `dataset[i : i + m]` and `dataset[i + 1 : i + 1 + m]` for each. Convert only "
            "these pieces to int64 tensors, so that the rest of a memory map stays on disk.",
        ),
    ),
    _problem(
        "checkpointing",
        "Stop and resume",
        points=1,
        chapter=5,
        notebook="06_training",
        form="pair",
        signature="(save_checkpoint, load_checkpoint)",
        hints=(
            "What does a run need to know if it is to resume tomorrow? Find out what "
            "`state_dict()` of a model and of an optimizer returns, and what `load_state_dict` "
            "does with it.",
            "Put both state dicts and the step number into one dict, and pass it to "
            "`torch.save`, which takes a path as well as an open file. Loading reverses this: "
            "`torch.load`, then `load_state_dict` of both, and return the step number.",
        ),
    ),
    _problem(
        "training_together",
        "The training script",
        points=4,
        chapter=5,
        notebook="06_training",
        form="script",
        signature="train(**settings)",
        seconds=300,
        hints=(
            "Overfit one small batch before anything else: if the loss does not fall to almost "
            "zero, something is broken. Which settings would you want to change without editing "
            "the file?",
            "One step: set the learning rate in `param_groups`, draw a batch, compute the loss, "
            "clear the gradients, then backward, clip and step. Around it: `numpy.memmap` (or "
            "`numpy.load` with `mmap_mode`) for the data and, every so many steps, the loss on "
            "validation batches under `torch.no_grad()` and a checkpoint. To resume, load one "
            "before the loop, and start at its step. `argparse` makes each setting an option.",
        ),
    ),
    _problem(
        "decoding",
        "Write text",
        points=3,
        chapter=6,
        notebook="07_generation",
        form="function",
        signature="decode(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0,"
        " end_id=None)",
        hints=(
            "Only the logits of the last position say what comes next. Get greedy decoding "
            "(always the likeliest token) to work first, with a model whose output you can "
            "predict. What must happen to a token once it is drawn?",
            "Divide the logits by the temperature, then take the softmax. For top-p, sort the "
            "probabilities in descending order, and keep each one as long as those before it "
            "add up to less than p: the one that reaches p is kept, so at least one remains. "
            "Divide by their sum, draw with `torch.multinomial`, and map the position in the "
            "sorted list back to the token id. Stop at the end token before you append it, and "
            "give the model no more tokens than its context length.",
        ),
    ),
    # Chapter 7: experiments.
    _problem(
        "experiment_log",
        "Keep a log",
        points=3,
        chapter=7,
        notebook="08_experiments",
        takes=_runs('{"name": "base", "loss": 1.41, "seconds": 80}'),
        facts=(
            "for each run: what was changed, why, and what came out",
            "runs that failed or improved nothing are in it too",
            "the loss of every run can be drawn against steps and against time",
            "seed, device and versions are written down, so that a run can be repeated",
        ),
        requires=Requirement(figure=True),
        hints=(
            "In a week you will not know what `run7_final2` was. What would you have to write "
            "down to make exactly the same run again, and to know why you made it?",
            "A folder for each run: all settings, seed, device and versions once, and a line "
            "for each logged step with step, tokens, seconds and loss. Take the time from "
            "`time.perf_counter()`, minus its value at the start. Above them one table: what "
            "changed, why, what came out. A run that failed is a row like any other.",
        ),
    ),
    _problem(
        "learning_rate",
        "Find the learning rate",
        points=3,
        chapter=7,
        notebook="08_experiments",
        parts=("a", "b"),
        asks_corpora=("tinystories",),
        takes={
            "a": _runs('{"learning_rate": 3e-3, "loss": 1.41}'),
            "b": _runs(
                '{"learning_rate": 3e-3, "loss": 1.41}',
                ', with the loss "diverged" for a run that did',
            ),
        },
        facts={
            "a": (
                "which learning rates were tried, on a logarithmic scale, and with what result",
                "the curves of all of them, the best one among them",
                "the best loss, with corpus, tokens and device",
            ),
            "b": (
                "a curve of a run that diverges",
                "between which two learning rates the edge lies, a factor of two or so apart",
                "how far below the edge the best learning rate is",
            ),
        },
        requires={"a": Requirement(figure=True, loss_at_most=2.0), "b": Requirement(figure=True)},
        hints={
            "a": (
                "Sweep over orders of magnitude first: is 2e-3 as far from 1e-3 as 1.001 is from "
                "1? How do you know that the best one is not beyond the last that you tried?",
                "Try learning rates a factor of three apart until the best has worse ones on "
                "both sides, then a finer step around it. Keep everything else the same: tokens, "
                "schedule, seed.",
            ),
            "b": (
                "Go up from the best learning rate. What does the curve of a run that breaks "
                "look like, and how will you tell breaking from learning badly?",
                "Once a run diverges, bisect on a logarithmic scale: the next learning rate is "
                "√(stable · diverging). Then compare the edge with the best learning rate: how "
                "many times is it larger?",
            ),
        },
    ),
    _problem(
        "batch_size_experiment",
        "Vary the batch size",
        points=1,
        chapter=7,
        notebook="08_experiments",
        asks_corpora=("tinystories",),
        takes=_runs('{"batch_size": 64, "tokens": 819200, "loss": 1.41}'),
        facts=(
            "batch sizes of 1, 64 and 128, and up to what fits in memory",
            "all of them compared at the same number of tokens, not of steps",
            "the learning rate was tuned again for each, or the answer says where not",
            "what a larger batch gains in time, and what it costs in loss",
        ),
        requires=Requirement(figure=True),
        hints=(
            "Two runs of 1,000 steps, one with batches of 1 and one of 128: which has read "
            "more? What must stay the same, so that only the batch size differs?",
            "Keep the number of tokens (steps × batch) the same, and shorten the warm-up with "
            "the steps. Tune the learning rate again: a larger batch usually allows a larger "
            "one. Plot the loss against steps, tokens and seconds: they tell different stories. "
            "If a large batch does not fit, accumulate the gradients of its parts.",
        ),
    ),
    _problem(
        "generate",
        "Read what it writes",
        points=1,
        chapter=7,
        notebook="07_generation",
        asks_corpora=("tinystories",),
        takes="the number of its tokens, such as 300, or the text and what you say about it, in "
        "one string",
        requires=Requirement(tokens_at_least=256),
        facts=(
            "a text of at least 256 tokens, or one that ended at its own end token",
            "how it was made: prompt, temperature, top-p",
            "how fluent it is: grammar, sense, names that stay the same",
            "two factors that make it better or worse",
        ),
        hints=(
            "Generate several texts at different temperatures before you choose one. And count "
            "the tokens: are there enough?",
            "Look at the grammar, whether names and things stay the same, and whether several "
            "sentences make sense together. What could make it better or worse? Think of how "
            "long and on how much text the model was trained, of its size, of temperature and "
            "top-p, and of a prompt unlike the training text.",
        ),
    ),
    _problem(
        "layer_norm_ablation",
        "Take the norms away",
        points=1,
        chapter=7,
        notebook="08_experiments",
        asks_corpora=("tinystories",),
        takes=_runs(
            '{"norm": "none", "learning_rate": 3e-3, "loss": 1.41}',
            ', where "norm" is "pre" or "none"',
        ),
        facts=(
            "what happens without norms at the learning rate that was best with them",
            "the best learning rate without norms, and the loss there",
            "what the norms are good for, judged by both",
        ),
        requires=Requirement(figure=True),
        hints=(
            "A run without norms that explodes says something about one learning rate. What "
            "else would you want to know before you say that norms are needed?",
            "First take the old best learning rate, with nothing else changed. Then go down by "
            "factors of three until it is stable, and on until the loss gets worse again: that "
            "is its own best learning rate. Look at the norm of the gradients in the log, too, "
            "just before the loss jumps.",
        ),
    ),
    _problem(
        "pre_norm_ablation",
        "Norm after, not before",
        points=1,
        chapter=7,
        notebook="08_experiments",
        asks_corpora=("tinystories",),
        takes=_runs('{"norm": "post", "loss": 1.41}', ', where "norm" is "pre" or "post"'),
        facts=(
            "both curves, with the same tokens and seed",
            "what happens at the beginning, where post-norm is the less stable of the two",
            "the difference in the end, beside the spread between seeds",
        ),
        requires=Requirement(figure=True),
        hints=(
            "In which of the two does the gradient flow from the last block to the first "
            "without passing a norm? And which needs one more norm after the last block?",
            "Post-norm normalises the sum: x = norm(x + part(x)), in place of x = x + "
            "part(norm(x)). Train with the same seed, tokens and learning rate, and look at the "
            "beginning of the curves; then tune the learning rate of both. Is the difference "
            "larger than that between two seeds?",
        ),
    ),
    _problem(
        "no_pos_emb",
        "No positions at all",
        points=1,
        chapter=7,
        notebook="08_experiments",
        asks_corpora=("tinystories",),
        takes=_runs('{"position": "none", "loss": 1.41}', ', where "position" is "rope" or "none"'),
        facts=(
            "both curves, with the same tokens and seed",
            "why it works at all: what a model without positions still knows",
            "the difference in the end, beside the spread between seeds",
        ),
        requires=Requirement(figure=True),
        hints=(
            "Without positions, can a causal model tell `dog bites man` from `man bites dog`? "
            "Think of what the first token sees, and the second.",
            "Leave out the rotation of queries and keys and change nothing else. Each token "
            "still knows itself, and through the mask which tokens came before it, though "
            "hardly in which order. How much worse is it, and is that more than the difference "
            "between two seeds?",
        ),
    ),
    _problem(
        "swiglu_ablation",
        "No gate",
        points=1,
        chapter=7,
        notebook="08_experiments",
        asks_corpora=("tinystories",),
        takes=_runs(
            '{"ffn": "silu", "d_ff": 512, "loss": 1.41}',
            ', where "ffn" is "swiglu" or "silu", at first without the losses',
        ),
        facts=(
            "both curves, with the same tokens and seed",
            "how many parameters each has: two matrices need a width half as large again",
            "the difference in the end, beside the spread between seeds",
        ),
        requires=Requirement(figure=True),
        hints=(
            "How many matrices does each feed-forward layer have? If both kept the same inner "
            "width, which model would be larger?",
            "SwiGLU has 3·d·d_ff parameters, the plain layer 2·d·d_ff'. They are equal at d_ff' "
            "= 3/2·d_ff; the handout's 4·d is close to that. Print both counts. Then train both "
            "with two or three seeds: the difference is small, so only the spread across seeds "
            "shows whether it is real.",
        ),
    ),
    _problem(
        "main_experiment",
        "The same model on the web",
        points=2,
        chapter=7,
        notebook="08_experiments",
        asks_corpora=("owt",),
        takes=_runs(
            '{"corpus": "owt", "loss": 3.9}',
            ', where "corpus" is "tinystories", "owt", "stories" or "docstrings"',
        ),
        facts=(
            "the curve, with corpus, tokens and device",
            "why the losses differ: text, size of the vocabulary, and how long a token is",
            "both in bits per byte as well, which can be compared where nats per token cannot",
            "a text that it wrote, and how fluent that is beside the stories",
        ),
        requires=Requirement(figure=True, tokens_at_least=256),
        hints=(
            "Nats per token: a token of which tokenizer? Can two losses be compared if a token "
            "stands for more text in one of them?",
            "Divide by ln 2 and by the bytes that a token stands for: bits per byte can be "
            "compared. What remains is the text itself. Web pages hold names, numbers, code and "
            "opinions. How well can you guess the next word of a simple story, and how well the "
            "next word of these?",
        ),
    ),
    _problem(
        "leaderboard",
        "The best loss in the time allowed",
        points=6,
        chapter=7,
        notebook="08_experiments",
        asks_corpora=("owt",),
        differs="the time allowed",
        takes=_runs('{"name": "tied", "corpus": "owt", "loss": 3.4, "seconds": 2640}'),
        facts=(
            "the final validation loss, and the time the run took",
            "a curve against time that ends before the limit",
            "what was changed, each change measured by itself",
        ),
        requires=Requirement(figure=True, loss_at_most=5.0),
        hints=(
            "The time is fixed, not the steps. What makes a step faster, what makes it teach "
            "the model more, and how do you find out which of your changes did it?",
            "Change one thing at a time against a baseline, each for a short run. Candidates: "
            "bfloat16 and compiling, the batch size, the learning rate and a schedule that ends "
            "with the time, tied embeddings (with the rows scaled as without), a shorter context "
            "at first, width against depth. Stop by the clock, and leave time to evaluate.",
        ),
    ),
)
PROBLEMS: dict[str, Problem] = {problem.id: problem for problem in _RECORDS}


def _step(of: str, signature: str, hint: str) -> Problem:
    """Make the record of an optional step on the way to a problem: it is worth no points.

    Its id is the name of its function, or that of its class in small letters.
    """
    name = signature.partition("(")[0]
    whole = PROBLEMS[of]
    form = "class" if name[0].isupper() else "function"
    rest = {"chapter": whole.chapter, "notebook": whole.notebook, "step_of": of}
    rest |= {"form": form, "signature": signature, "hints": (hint,)}
    return _problem(name.lower(), f"On the way to {of}", points=0, **rest)


_STEPS = (
    _step(
        "unicode2",
        "encode_utf8(point)",
        "`point & 0b111111` are the last six bits, and `point >> 6` is what is left. Which sizes "
        "need one byte, which two? `0b10_000000 | bits` puts a template in front.",
    ),
    _step(
        "train_bpe",
        "count_pretokens(text, special_tokens)",
        "Join the escaped special tokens with `|`, the longest first, and split at them. Then "
        "count what `regex.finditer(pretokens.PATTERN, part)` finds in each part.",
    ),
    _step(
        "train_bpe",
        "count_pairs(words)",
        "`itertools.pairwise(word)` gives the pairs of neighbours. How often does each count?",
    ),
    _step(
        "train_bpe",
        "merge_pair(symbols, pair)",
        "Go through the symbols with an index. After a merge, how far does it move?",
    ),
    _step(
        "train_bpe",
        "train_naive(counts, num_merges)",
        "Call the two functions before this one in a loop. `max` needs a `key`: the count, then "
        "the pair itself. What if no pair is left?",
    ),
    _step(
        "tokenizer",
        "decode_ids(ids, vocab)",
        "Join the bytes of all tokens first. `bytes.decode` takes `errors`.",
    ),
    _step(
        "tokenizer",
        "encode_word(word, merges)",
        "Start from single bytes. Of the pairs that the word has now, which was learned first? "
        "Merge it, and look again.",
    ),
    _step(
        "tokenizer",
        "split_special(text, special_tokens)",
        "`regex.split` keeps what a group, `(...)`, matches. Which token must come first in the "
        "pattern if one begins with another, and what if there are none?",
    ),
    _step(
        "tokenizer",
        "stream_pretokens(pieces, special_tokens)",
        "Keep the end of the text so far, and put the next piece behind it. Which pre-tokens can "
        "no later piece change? Think of `It'` + `s`, of two spaces, of half a special token.",
    ),
    _step(
        "adamw",
        "Momentum(params, lr, momentum)",
        "`self.param_groups` has the parameters and settings, `self.state[p]` is a dict of each "
        "parameter. Update `p` in place, under `torch.no_grad()`.",
    ),
    _step(
        "training_together",
        "training_loop(model, optimizer, loss_of, batches)",
        "Five lines: the loss of a batch, clear, backward, step, note. Which order?",
    ),
    _step(
        "training_together",
        "accumulate(model, loss_of, inputs, targets, parts)",
        "`backward` adds to `p.grad`. The mean over the batch is the mean of the parts' means.",
    ),
)
STEPS: dict[str, Problem] = {step.id: step for step in _STEPS}
