"""`workbook generate` and `workbook export-model`, small and whole."""

import os
import re
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from workbook.classroom import cli
from workbook.config import ModelConfig
from workbook.files import write_json
from workbook.generation.sampling import decode
from workbook.tokenization import token_files
from workbook.tokenization.bpe import train_bpe
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import checkpoints, trainer
from workbook.transformer.model import TransformerLM

SIZES = {"vocab_size": 270, "context_length": 64, "d_model": 16, "num_layers": 1}
SIZES |= {"num_heads": 2, "d_ff": 24}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The folder of a run, as training leaves it, and a data folder with its tokenizer."""
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("The fox ran to the café. " * 40, "utf-8")
    tokenizer = Tokenizer(*train_bpe(corpus, 270, ["<|endoftext|>"]), ["<|endoftext|>"])
    files = tmp_path / "data" / "tokenizers" / "stories-2048"
    token_files.save_tokenizer(tokenizer, files)
    torch.manual_seed(0)
    model = TransformerLM.from_config(ModelConfig(**SIZES))
    folder = tmp_path / "run"
    write_json(folder / "config.json", {"corpus": "stories", "model": SIZES})
    optimizer = torch.optim.SGD(model.parameters())
    checkpoints.save_checkpoint(model, optimizer, 7, folder / "checkpoints/step-000000007.pt")
    return folder, model, tokenizer


def command(capsys, *arguments):
    assert cli.main([*map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_generate_writes_behind_the_prompt_and_the_same_for_the_same_seed(run, capsys):
    folder, model, tokenizer = run
    prompt = "The fox"
    ids = decode(model, tokenizer.encode(prompt), 20, temperature=0, end_id=0)
    said = command(capsys, "generate", folder, prompt, "--tokens", 20, "--temperature", 0)
    assert said == f"{prompt}{tokenizer.decode(ids)}\n"
    seeded = ["generate", folder, "--tokens", 20, "--seed"]
    one, other, third = (command(capsys, *seeded, seed) for seed in (1, 1, 2))
    assert one == other != third
    assert cli.main(["generate", str(folder), "no\udcfftext"]) == 2  # bytes that are not UTF-8
    assert capsys.readouterr().out == ""


def test_a_model_is_not_read_with_another_tokenizer_than_its_own(run, capsys):
    folder, model, tokenizer = run
    state = {"model": model.state_dict(), "iteration": 7}
    for made_by, status in ((token_files.fingerprint(tokenizer), 0), ("another", 2)):
        checkpoints.keep_last(state | {"data": {"tokenizer": made_by}}, folder / "checkpoints", 1)
        assert cli.main(["generate", str(folder), "--tokens", "1"]) == status
    assert "was trained with another tokenizer than stories-2048" in capsys.readouterr().err


def test_an_exported_model_is_for_transformers(run, capsys):
    folder, *_ = run
    target = command(capsys, "export-model", folder).strip()
    assert target == str(folder / "llama")
    assert cli.main(["generate", target]) == 2
    assert "holds an exported model, for `transformers`" in capsys.readouterr().err


def test_a_folder_without_a_model_is_named(run, tmp_path, capsys):
    folder, *_ = run
    assert cli.main(["generate", str(tmp_path)]) == 2
    assert "holds no model; give the folder" in capsys.readouterr().err
    (folder / "checkpoints/step-000000007.pt").unlink()
    assert cli.main(["generate", str(folder)]) == 2
    assert "has no checkpoint yet" in capsys.readouterr().err
    (folder / "outcome.json").write_text('{"status": "diverged", "reason": "NaN"}')
    assert cli.main(["generate", str(folder)]) == 2
    assert "has no checkpoint (it diverged: NaN)" in capsys.readouterr().err


SMALL = [
    *("laptop", "--vocab-size=270", "--context-length=16", "--d-model=16", "--num-layers=1"),
    *("--num-heads=2", "--d-ff=24", "--warmup-iters=1", "--eval-tokens=32", "--batch-size=2"),
]


@pytest.fixture
def text(tmp_path, monkeypatch):
    """A text of one's own; how fast the machine is stays unmeasured."""
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(trainer, "matmul_peak", lambda *_: 1e15)
    path = tmp_path / "mine.txt"
    path.write_text("The fox ran to the café; the owl sat in the oak. " * 20, "utf-8")
    return path


@pytest.mark.slow
def test_a_run_on_ones_own_text_goes_on_and_is_read_anywhere(text, tmp_path, monkeypatch, capsys):
    asked = ["train", *SMALL, "--text", text, "--steps"]
    folder = tmp_path / "run"
    said = command(capsys, *asked, 2, "--folder", folder)
    assert "step 2 of 2" in said and f"workbook generate {folder} 'How it begins'" in said
    assert f"--folder {folder} --steps 4" in said
    assert "step 4 of 4" in command(capsys, *asked, 4, "--folder", folder)
    folder = shutil.move(folder, tmp_path / "moved")
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "none"))
    assert command(capsys, "generate", folder, "The fox", "--tokens", 3).startswith("The fox")
    assert not (tmp_path / "none").exists()
    assert cli.main(["train", *SMALL, "--text", str(text), "--corpus", "owt"]) == 2
    assert "give either --text or --corpus" in capsys.readouterr().err


def test_a_vocabulary_without_all_bytes_is_refused_before_anything_is_printed(text, capsys):
    assert cli.main(["train", "laptop", "--vocab-size", "100", "--text", str(text)]) == 2
    told = capsys.readouterr()
    assert told.out == "" and "--vocab-size is at least 257" in told.err


def test_a_text_that_is_too_short_is_told_the_sizes_that_it_is_enough_for(text, capsys):
    text.write_text("a b a b c d c d " * 4)
    small = ["train", *SMALL, "--steps", "1", "--text", str(text)]
    assert cli.main(small) == 2
    said = capsys.readouterr().err
    sizes = re.search(r"give more text, or (.*), which", said)[1].split()
    assert sizes[0::2] == ["--vocab-size", "--context-length"] and int(sizes[3]) < 16
    assert "step 1 of 1" in command(capsys, *small, *sizes)
    for place in (1, 3):  # one more is too many
        larger = [*sizes]
        larger[place] = str(int(sizes[place]) + 1)
        assert cli.main([*small, *larger]) == 2


@pytest.mark.slow
def test_a_dry_run_with_a_text_keeps_nothing_and_refuses_what_training_refuses(text, capsys):
    asked = ["train", *SMALL, "--text", str(text), "--dry-run"]
    data = Path(os.environ["WORKBOOK_DATA"])
    assert cli.main(asked) == 0 and not data.exists()
    assert "Ready." in capsys.readouterr().out
    text.write_text("a b a b c d c d " * 4)
    assert cli.main(asked) == 2 and not data.exists()
    assert "the text is too short" in capsys.readouterr().err
    assert cli.main(["train", "laptop", "--vocab-size", "300", "--dry-run"]) == 2
    assert "the tokenizer of stories has 2,048 tokens" in capsys.readouterr().err


@pytest.mark.slow
def test_a_preset_behind_the_texts_is_understood(text, capsys):
    texts_first = ["train", "--text", str(text), *SMALL, "--dry-run"]
    assert cli.main(texts_first) == 0
    assert cli.main(["train", "--text", str(text), "--dry-run"]) == 2
    assert "give a preset first: workbook train laptop | " in capsys.readouterr().err


@pytest.mark.slow
def test_a_separator_is_typed_with_escapes(text, capsys):
    text.write_text("The fox ran to the café; the owl sat.\t" * 20)
    assert cli.main(["train", *SMALL, "--text", str(text), "--separator", r"\t", "--dry-run"]) == 0
    assert "does not occur" not in capsys.readouterr().err


def test_a_tokenizer_without_memory_is_not_blamed_on_the_batch(text, monkeypatch, capsys):
    monkeypatch.setattr(token_files.bpe, "train_bpe", Mock(side_effect=MemoryError))
    assert cli.main(["train", *SMALL, "--text", str(text)]) == 2
    said = capsys.readouterr().err
    assert "its longest word" in said and "batch" not in said
