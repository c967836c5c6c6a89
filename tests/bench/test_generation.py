"""The bench of generation holds three ways side by side."""

import json

import pytest
import torch

from workbook.bench import generation
from workbook.config import ModelConfig

pytestmark = [  # of transformers' own making
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
TINY = ModelConfig(
    vocab_size=270, context_length=64, d_model=16, num_layers=1, num_heads=2, d_ff=24
)


def test_three_ways_are_timed_and_recorded(monkeypatch, tmp_path):
    monkeypatch.setattr(generation, "SHAPES", {"tiny": lambda: TINY})
    threads = torch.get_num_threads()
    shown = generation.run(rounds=2, folder=tmp_path, new_tokens=8)
    assert torch.get_num_threads() == threads
    record = json.loads((tmp_path / "generate.json").read_text())
    seconds = record["shapes"]["tiny"]
    assert list(seconds) == ["workbook", "recomputation", "transformers"]
    assert all(len(taken) == 2 for taken in seconds.values())
    assert {"torch", "transformers"} <= set(record["machine"]["versions"])
    assert shown.startswith("8 new tokens, one prompt, one thread") and "x as fast" in shown


def test_a_library_that_is_not_installed_is_left_out(monkeypatch):
    monkeypatch.setattr(generation.importlib.util, "find_spec", lambda name: None)
    assert list(generation.compare(TINY, rounds=1, new_tokens=8)) == ["workbook", "recomputation"]


def test_ways_that_write_different_tokens_are_not_compared(monkeypatch):
    monkeypatch.setattr(generation, "decode", lambda *_, **__: [1])
    with pytest.raises(ValueError, match="these ways wrote different tokens"):
        generation.compare(TINY, rounds=1, new_tokens=8)
