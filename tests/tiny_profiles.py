"""Every profile at tiny sizes, for kernels of notebooks: they start with this file on their path.

`sitecustomize` is what Python imports before anything else, also in processes that a cell starts.
"""

import argparse
from itertools import islice
from pathlib import Path

from workbook.corpora import corpora, stories

HOOK = '''
from dataclasses import replace
from workbook import config
from workbook.training import presets

def smaller(config, **changes):
    """A run of seconds in the place of this one."""
    sizes = {"context_length": 128, "d_model": 96, "num_layers": 2, "num_heads": 4, "d_ff": 192}
    often = {"log_every": 10, "eval_every": 100, "eval_tokens": 4_096, "checkpoint_every": 100}
    rates = {"max_learning_rate": 1e-2, "min_learning_rate": 1e-3, "warmup_iters": 10}
    return presets.varied(
        config, **sizes, **often, **rates, steps=300, batch_size=8, compile=False, **changes
    )

for name, profile in config.PROFILES.items():
    size = profile.simple_bytes and 600_000
    run = smaller(presets.preset(name), vocab_size=1_500, corpus_bytes=size)
    changes = {"simple_vocab_size": 1_500, "web_vocab_size": 3_000, "simple_bytes": size}
    config.PROFILES[name] = replace(profile, **changes, model=run.model)
    presets.PRESETS[name] = lambda run=run: run
    setattr(presets, name.replace("-", "_"), presets.PRESETS[name])
'''


def plant(folder: Path) -> None:
    """Put small texts in the place of both downloads, and the hook, into a folder for the data."""
    (folder / "sitecustomize.py").write_text(HOOK)
    files = sorted(Path(argparse.__file__).parent.glob("[a-h]*.py"))
    sources = "".join(file.read_text() for file in files)
    starts = iter(range(0, len(sources), 3_000))
    for split, size in (("train", 600_000), ("validation", 90_000)):
        plain = (text for text, _ in stories.write_stories(1, split, size))
        pages = (sources[start : start + 3_000] for start in islice(starts, size // 3_000))
        for name, texts in (("tinystories", plain), ("owt", pages)):
            corpus = corpora.CORPORA[name]
            target = folder / "corpora" / name / f"{split}.txt"
            origin = {"repository": corpus.repository, "file": corpus.files[split]}
            facts = corpora.write_documents(target, texts)
            corpora.write_record(target, {"corpus": name, "split": split} | origin | facts)
