"""`python -m benchmarks tokenizer | short | sweep | train | generate | scaling | readme`."""

import argparse
from pathlib import Path

from workbook.corpora.corpora import parse_size

# The benches are imported where they run: every process that they start imports this module again,
# and a tokenizer that is timed should not wait for torch.


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    benches = parser.add_subparsers(dest="bench", required=True)
    rounds = {"tokenizer": 3, "short": 9, "sweep": 3, "train": 5, "generate": 5, "scaling": 3}
    added = {name: benches.add_parser(name) for name in rounds}
    for name, bench in added.items():
        bench.add_argument("--rounds", type=positive, default=rounds[name], metavar="N")
        bench.add_argument(
            "--record",
            action="store_true",
            help="write the figures to data/bench/, which is in git; default: to data/timings/",
        )
    added["tokenizer"].add_argument("file", nargs="?", type=Path, help="default: two texts")
    added["tokenizer"].add_argument("--size", default="100MB", help="of the default texts")
    added["tokenizer"].add_argument("--vocab-size", type=int, help="default: 10000 or 32000")
    added["sweep"].add_argument("--size", default="100MB", help="of the largest text")
    added["train"].add_argument("shapes", nargs="*", help="presets; default: laptop full")
    added["train"].add_argument("--steps", type=positive, default=5, help="per turn")
    added["train"].add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    added["scaling"].add_argument("--size", default="1GB", help="of the prose")
    benches.add_parser("readme", help="write the recorded figures into README.md")
    options = parser.parse_args()
    if options.bench == "readme":
        from benchmarks import readme

        return print(readme.write())
    from benchmarks import measure

    folder = measure.records_folder(options.record)
    if options.bench == "tokenizer":
        from benchmarks import tokenizers

        if options.record and (options.file or options.size != "100MB"):
            parser.error("--record is for the two default texts, in the size of 100 MB")
        size = parse_size(options.size)
        print(tokenizers.run(size, options.rounds, folder, options.file, options.vocab_size))
    elif options.bench == "short":
        from benchmarks import short

        print(short.run(options.rounds, folder))
    elif options.bench == "sweep":
        from benchmarks import tokenizers

        print(tokenizers.run_sweep(parse_size(options.size), options.rounds, folder))
    elif options.bench == "train":
        from benchmarks import training

        print(training.run(options.rounds, options.steps, folder, options.shapes, options.device))
    elif options.bench == "generate":
        from benchmarks import generation

        print(generation.run(options.rounds, folder))
    else:
        from benchmarks import tokenizers

        print(tokenizers.run_scaling(parse_size(options.size), options.rounds, folder))
    return None


def positive(text: str) -> int:
    """A whole number from 1 on, on the command line."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 on")
    return number


if __name__ == "__main__":  # the benches start processes, which import this again
    main()
