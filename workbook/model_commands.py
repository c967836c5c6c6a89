"""The commands for trained models: `workbook generate` and `workbook export-model`."""

import argparse
from pathlib import Path

from workbook.training import presets


def add_to(commands) -> None:
    """Nothing; the command line knows both."""
    generate = commands.add_parser("generate", help="let a trained model write")
    generate.add_argument("folder", metavar="FOLDER", help="of a run, or of an exported model")
    generate.add_argument("prompt", metavar="PROMPT", nargs="?", default="", help="default: none")
    generate.add_argument("--tokens", type=int, default=256, metavar="N", help="default: 256")
    generate.add_argument(
        "--temperature", type=float, default=0.8, metavar="X", help="0: greedy; default: 0.8"
    )
    generate.add_argument("--top-p", type=float, default=0.95, metavar="X", help="default: 0.95")
    generate.add_argument("--top-k", type=int, metavar="N", help="default: all ids")
    seed = presets.between(0, 2**63 - 1)
    generate.add_argument("--seed", type=seed, metavar="N", help="default: another text each time")
    generate.set_defaults(run=run_generate)

    export = commands.add_parser(
        "export-model", help="write a trained model in the format of Hugging Face's Llama"
    )
    export.add_argument("folder", metavar="FOLDER", help="of a run of `workbook train`")
    export.add_argument("--to", metavar="FOLDER", help="default: a folder `llama` inside it")
    export.set_defaults(run=run_export_model)


def run_generate(options: argparse.Namespace) -> None:
    import torch

    from workbook.generation import formats
    from workbook.generation.generate import write

    model, tokenizer = formats.open_model(options.folder)
    if tokenizer is None:
        raise ValueError(f"{options.folder} has no tokenizer.json, so no text can go in or out")
    generator = torch.Generator()
    generator.seed() if options.seed is None else generator.manual_seed(options.seed)
    print(options.prompt, end="", flush=True)
    for piece in write(
        model,
        tokenizer,
        options.prompt,
        options.tokens,
        options.temperature,
        options.top_p,
        options.top_k,
        generator,
    ):
        print(piece, end="", flush=True)
    print()


def run_export_model(options: argparse.Namespace) -> None:
    from workbook.generation import formats

    model, tokenizer = formats.open_model(options.folder)
    target = Path(options.to) if options.to else Path(options.folder) / "llama"
    print(formats.save_model(model, target, tokenizer))
