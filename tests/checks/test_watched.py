"""Settings are recognised by the names that learners give them, and nothing else is touched."""

import argparse
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from workbook.checks.calling import meaning
from workbook.checks.watched import MEANT, Answers, Settings, Unmet, watching, write_data

NAMES = {
    "train_path": "train_path --train-data train_file train-bin train train_tokens train_dataset "
    "train_data_path data_path dataset data tokens input_path path_to_train x_train train_npy",
    "valid_path": "valid_path --val-data val_data_path validation_file val dev_data test_data "
    "valid_dataset x_val valid_tokens data_val eval_data",
    "data_dir": "data_dir dataset_dir data_root data_folder",
    "steps": "steps max_steps num_steps --num-iterations max_iters total_iters n_iter iterations "
    "num_train_steps total_training_steps train_steps max_train_iters iters training_steps",
    "total_tokens": "total_tokens max_tokens num_train_tokens tokens_to_process "
    "total_tokens_processed",
    "epochs": "epochs num_epochs total_epochs",
    "batch_size": "batch_size --batch-size bs train_batch_size eval_batch_size micro_batch_size",
    "vocab_size": "vocab_size --vocab-size n_vocab",
    "context_length": "context_length seq_len max_seq_len block_size --context-len ctx_len",
    "d_model": "d_model --d-model n_embd hidden_size embed_dim",
    "num_layers": "num_layers n_layers --n-layer num_blocks",
    "num_heads": "num_heads n_heads n_head",
    "d_ff": "d_ff --d-ff ffn_dim",
    "max_learning_rate": "lr learning_rate max_lr lr_max --lr-max max_learning_rate alpha_max "
    "peak_lr base_lr",
    "min_learning_rate": "min_lr lr_min min_learning_rate final_lr alpha_min end_lr eta_min",
    "warmup_iters": "warmup warmup_iters warmup_steps --lr-warmup-iters warmup_iterations t_w "
    "num_warmup_steps warmup_t",
    "cosine_cycle_iters": "cosine_cycle_iters cosine_iters lr_decay_iters t_max cos_steps "
    "--lr-cosine-cycle-iters cosine_steps",
    "log_every": "log_every log_interval --log-freq print_every logging_steps report_every "
    "log_every_n_steps print_interval",
    "eval_every": "eval_every eval_interval val_interval valid_every validate_every eval_iters "
    "eval_steps val_batches n_eval_batches eval_freq num_eval_batches valid_interval val_freq "
    "n_valid_batches valid_steps validation_steps",
    "save_every": "save_every checkpoint_every ckpt_interval save_interval checkpoint_interval "
    "--save-freq ckpt_every save_steps",
    "checkpoint_path": "checkpoint_path checkpoint_dir ckpt_dir --out-dir outdir out save_dir "
    "output_dir save_path ckpt_path checkpoints_path checkpoint_file save_to model_dir "
    "output_path run_dir",
    "resume": "resume resume_from resume_from_checkpoint load_from load_checkpoint --resume-path "
    "start_from init_from restore load_ckpt_path resume_ckpt checkpoint_to_load continue_from",
    None: "seed val_seed dtype wandb wandb_project run_name project config dropout log_file "
    "log_dir "
    "vocab_path merges_path tokenizer warmup_ratio d_ff_ratio temperature top_p max_token_len "
    "norm_mode ffn_type num_workers patience early_stop_val_loss prompt eps name train_fraction",
}


@pytest.mark.parametrize("meant", NAMES)
def test_a_name_means_what_learners_call_so(meant):
    names = [name.lstrip("-").replace("-", "_") for name in NAMES[meant].split()]
    assert {name: meaning(name, MEANT) for name in names} == dict.fromkeys(names, meant)


def options(settings, *arguments):
    """The command line that a parser of argparse is given."""
    parser = argparse.ArgumentParser(prog="train.py")
    for name, kwargs in arguments:
        parser.add_argument(*name.split(), **kwargs)
    return list(settings.options(parser.format_help()))


def test_a_command_line_has_what_is_meant_and_leaves_the_rest(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    settings = Settings(str(tmp_path), 20)
    found = options(
        settings,
        ("train_data", {"type": Path}),
        ("--val-data", {"required": True}),
        ("-o --ckpt-dir", {"default": "checkpoints"}),
        ("--steps", {"type": int, "default": 5_000, "help": "How many STEPS to take"}),
        ("--total-tokens", {"type": float, "metavar": "n"}),
        ("--dataset", {"choices": ["owt", "stories"]}),
        ("--betas", {"nargs": 2, "type": float, "required": True}),
        ("--eval", {"action": "store_true", "help": "A flag"}),
        ("--resume", {"action": "store_true"}),
        ("--compile", {"action": argparse.BooleanOptionalAction}),
        ("--run-name", {"required": True}),
        ("--norm", {"choices": ["pre", "post"], "required": True}),
        ("--seed", {"type": int, "default": 1}),
    )
    data = tmp_path / "data"
    assert found == [
        *(str(data / "train.bin"), "--val-data", str(data / "valid.bin")),
        *("--ckpt-dir", str(tmp_path / "checkpoints"), "--steps", "20", "--total-tokens", "2560"),
        *("--betas", "0.9", "0.95", "--run-name", "check", "--norm", "pre"),
    ]
    assert settings.asked["resume"] == "resume" and settings.asked["steps"] == "steps"


HELP_OF_CLICK = """Usage: train.py [OPTIONS] TRAIN_PATH

Options:
  --steps INTEGER            How many
  --norm [pre|post]          [required]
  --compile / --no-compile
  --resume-from TEXT
"""
HELP_OF_TYPER = """
 Usage: train.py [OPTIONS] TRAIN_PATH

╭─ Options ───────────────────────────────────────────╮
│ *  --steps        -s      INTEGER  [required]       │
│    --norm                 TEXT     [required]       │
│    --compile      --no-compile     [default: False] │
│    --resume-from          TEXT                      │
╰─────────────────────────────────────────────────────╯
"""


def test_other_libraries_print_their_options_alike():
    here = str(Path("here", "last.pt"))
    data = str(Path("data", "train.bin"))
    found = list(Settings("", 20, resume=here).options(HELP_OF_CLICK))
    assert found == [data, "--steps", "20", "--norm", "pre", "--resume-from", here]
    with pytest.raises(Unmet, match="norm"):
        list(Settings("", 20, resume=here).options(HELP_OF_TYPER))
    found = list(Settings("", 20, resume=here).options(HELP_OF_TYPER.replace("norm", "seed")))
    assert found == [data, "--steps", "20", "--seed", "0", "--resume-from", here]


def test_a_run_is_resumed_as_its_option_asks():
    for option, expected in (
        (("--resume", {"action": "store_true"}), ["--resume"]),
        (("--resume-from", {}), ["--resume-from", str(Path("here", "last.pt"))]),
        (("--resume-dir", {"default": None}), ["--resume-dir", "here"]),
    ):
        assert options(Settings("", 20, resume=str(Path("here", "last.pt"))), option) == expected
        assert not options(Settings("", 20), option)


def test_an_option_without_default_that_means_nothing_is_named():
    with pytest.raises(Unmet, match="tokenizer_path"):
        options(Settings("", 20), ("--tokenizer-path", {"required": True}))


@dataclass
class Part:
    lr: float = 1e-3
    betas: tuple = (0.9, 0.999)


@dataclass
class Config:
    train_path: str | None = None
    num_steps: int = 5
    optim: Part = field(default_factory=Part)
    use_rope: bool = True


def test_a_function_is_given_what_its_parameters_mean(tmp_path):
    write_data(tmp_path)

    def train(cfg: Config | None, tokens: np.ndarray, val, lr=1.0, compile=True, **rest): ...

    settings = Settings(str(tmp_path), 20)
    with watching(settings):
        found = settings.arguments(train)
    assert found["cfg"].num_steps == 20 and found["cfg"].optim == Part(lr=1e-2)
    assert found["cfg"].train_path.endswith("train.bin") and found["cfg"].use_rope
    assert len(found["val"]) == 400 and found["lr"] == 1e-2 and "compile" not in found
    assert found["checkpoint_path"].endswith("run.pt") and "train_path" not in found


def test_a_config_answers_by_any_usual_name_and_in_sections(tmp_path):
    answers = Answers(Settings(str(tmp_path), 20))
    assert answers["max_iters"] == answers.training.num_steps == answers["training"]["steps"] == 20
    assert answers["data"]["val_path"].endswith("valid.bin")
    assert answers["ckpt_dir"].endswith("checkpoints")
    assert answers.get("resume", "none") == "none" and answers.get("colour", 3) == 3
    assert dict(answers)["vocab_size"] == 61 and {**answers}["d_model"] == 32
    with pytest.raises(KeyError, match="no colour"):
        answers["colour"]
    with pytest.raises(AttributeError, match="no colour"):
        _ = answers.colour
