"""What is made in README.md: `python -m benchmarks readme`.

Its figures come from the records in `data/bench/`, and its badges from the public address in
pyproject.toml: without one there are none. Both stand between two markers, and nobody types them: a
test holds them equal to their sources.
"""

import json
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TASKS = {  # the work, and which of its calls
    ("train", ""): "train BPE, MB/s",
    ("file", ""): "a file to ids, MB/s",
    ("array", ""): "text to an array of ids, MB/s",
    ("list", ""): "text to a list of ids, MB/s",
}
TEXTS = {"stories": "stories", "prose": "technical prose"}


def write() -> str:
    """Put the figures into the README; say so."""
    text = README.read_text(encoding="utf-8")
    README.write_text(with_badges(with_figures(text), address()), encoding="utf-8")
    return f"wrote the figures of data/bench/ and the badges into {README}"


def with_figures(text: str) -> str:
    """The text with the figures between the markers."""
    return put_between("bench", f"{block()}\n", text)


def put_between(name: str, content: str, text: str) -> str:
    """The text with other content between the two markers of this name."""
    begin = f"<!-- {name} -->\n"
    end = f"<!-- /{name} -->"
    before, rest = text.split(begin)
    return f"{before}{begin}{content}{end}{rest.split(end)[1]}"


def address() -> str:
    """The project's public address, such as https://github.com/ada/workbook; "" if it has none."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["workbook"][
        "address"
    ]


def with_badges(text: str, address: str) -> str:
    """The text with its badges: whether the tests pass, and the first notebook in Colab."""
    tests = f"{address}/actions/workflows/test.yml"
    colab = address.replace("https://github.com", "https://colab.research.google.com/github")
    badges = (
        f"[![tests]({tests}/badge.svg)]({tests})\n"
        "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
        f"({colab}/blob/HEAD/notebooks/01_unicode.ipynb)\n"
    )
    return put_between("badges", badges if address else "", text)


def block() -> str:
    """The table, and below it what it was measured on."""
    stories = recorded("tokenizer-stories-100MB")
    rows = ["| work | workbook | others |", "|---|---|---|"]
    for (task, call), title in TASKS.items():
        for text, name in TEXTS.items():
            record = recorded(f"tokenizer-{text}-100MB")
            rows.append(tokenizer_row(record, task, call, f"{title}, {name}"))
    for title, by_name in recorded("short")["megabytes_a_second"].items():
        best = {name: max(runs) for name, runs in by_name.items()}
        rows.append(row(f"{title}, MB/s", best.pop("workbook"), best, best))
    training = recorded("train")
    generation = recorded("generate")
    for shape, timed in training["shapes"].items():
        runs = timed["tokens_a_second"]
        speeds = {
            "nanoGPT's loop": max(runs["nanogpt, our settings"]),
            "transformers' Llama": max(runs["llama, our settings"]),
        }
        rows.append(
            row(f"train the {shape} model, tokens/s", max(runs["workbook"]), speeds, speeds)
        )
    for shape, by_name in generation["shapes"].items():
        best = {name: generation["new_tokens"] / min(runs) for name, runs in by_name.items()}
        ours = best["workbook"]
        theirs = {"transformers": best["transformers"]}
        equal = theirs.keys() - generation["differences"][shape].keys()
        rows.append(row(f"generate with the {shape} shape, tokens/s", ours, theirs, equal))
    note = (
        f"These are the best of the recorded runs on {stories['machine']['processor']}, with one"
        " core for tokenizers and generation where a row says nothing else; a ratio says how many"
        " times faster ours is, and stands only where both gave equal results (but for ties between"
        " equally frequent pairs; nanoGPT and Llama train models of their own, of about the same"
        " size). All runs are in [data/bench/](data/bench), with the versions of every library and"
        " a sweep over sizes of text."
    )
    return "\n".join(["", *rows, "", note, ""])


def tokenizer_row(record: dict, task: str, call: str, title: str) -> str:
    """A row for one task on one text: whole texts, and libraries that have loaded everything."""
    best = {}
    for key, runs in record["megabytes_a_second"].items():
        work, comma, which = key.partition(",")
        kind, name = work.split()
        if (kind, comma + which) == (task, call) and name != "python":
            best[name] = max(runs)
    equal = [key.removeprefix(f"{task} ") for key in record.get("equal", ())]
    return row(title, best.pop("workbook"), best, equal)


def row(title: str, ours: float, others: dict[str, float], equal: object) -> str:
    """A line of the table: the others from the fastest to the slowest, with our ratio."""
    cells = []
    for name, speed in sorted(others.items(), key=lambda pair: -pair[1]):
        ratio = f" ({ours / speed:.1f}×)" if name in equal else ""
        cells.append(f"{name} {speed:,.0f}{ratio}")
    return f"| {title} | {ours:,.0f} | {', '.join(cells)} |"


def recorded(name: str) -> dict:
    """A record that is kept in git."""
    file = ROOT / "data" / "bench" / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8"))
