"""`python -m benchmarks tokenizer | train | generate | scaling`."""

import argparse
from pathlib import Path

from benchmarks import generation, measure, tokenizers, training
from workbook.corpora.corpora import parse_size
from workbook.training.presets import between


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    benches = parser.add_subparsers(dest="bench", required=True)
    rounds = {"tokenizer": 3, "train": 5, "generate": 5, "scaling": 3}
    added = {name: benches.add_parser(name) for name in rounds}
    for name, bench in added.items():
        bench.add_argument("--rounds", type=between(1, 1_000), default=rounds[name], metavar="N")
        bench.add_argument(
            "--record",
            action="store_true",
            help="write the figures to data/bench/, which is in git; default: to data/timings/",
        )
    added["tokenizer"].add_argument("file", nargs="?", type=Path, help="default: two texts")
    added["tokenizer"].add_argument("--size", default="100MB", help="of the default texts")
    added["tokenizer"].add_argument("--vocab-size", type=int, help="default: 10000 or 32000")
    added["train"].add_argument("shapes", nargs="*", help="presets; default: laptop full")
    added["train"].add_argument("--steps", type=between(1, 10_000), default=5, help="per turn")
    added["train"].add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    added["scaling"].add_argument("--size", default="1GB", help="and twice that")
    options = parser.parse_args()
    folder = measure.records_folder(options.record)
    if options.bench == "tokenizer":
        if options.file and options.record:
            parser.error("--record is for the default texts: yours is not part of the repository")
        size = parse_size(options.size)
        print(tokenizers.run(size, options.rounds, folder, options.file, options.vocab_size))
    elif options.bench == "train":
        print(training.run(options.rounds, options.steps, folder, options.shapes, options.device))
    elif options.bench == "generate":
        print(generation.run(options.rounds, folder))
    else:
        print(tokenizers.run_scaling(parse_size(options.size), options.rounds, folder))


if __name__ == "__main__":  # the benches start processes, which import this again
    main()
