"""Settings are recognised by the names that learners give them, and nothing else is touched."""

import argparse
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from workbook.checks.settings import LEAVE, Answers, Settings, Unmet
from workbook.checks.watched import write_data

MEANT = {
    "train_data": "train_path --train-data train_file train-bin train train_tokens train_dataset "
    "train_data_path data_path dataset data tokens input_path path_to_train x_train train_npy",
    "valid_data": "valid_path --val-data val_data_path validation_file val dev_data test_data "
    "valid_dataset x_val valid_tokens data_val eval_data",
    "data_folder": "data_dir dataset_dir data_root data_folder",
    "steps": "steps max_steps num_steps --num-iterations max_iters total_iters n_iter iterations "
    "num_train_steps total_training_steps train_steps max_train_iters iters training_steps",
    "tokens": "total_tokens max_tokens num_train_tokens tokens_to_process total_tokens_processed",
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
    "max_l2_norm": "max_l2_norm grad_clip max_norm max_grad_norm clip_grad_norm "
    "gradient_clip_norm clip_norm gradient_clipping grad_clip_norm max_grad_l2_norm",
    "log_every": "log_every log_interval --log-freq print_every logging_steps report_every "
    "log_every_n_steps print_interval",
    "eval_every": "eval_every eval_interval val_interval valid_every validate_every eval_iters "
    "eval_steps val_batches n_eval_batches eval_freq num_eval_batches valid_interval val_freq "
    "n_valid_batches valid_steps validation_steps",
    "save_every": "save_every checkpoint_every ckpt_interval save_interval checkpoint_interval "
    "--save-freq ckpt_every save_steps",
    "checkpoint": "checkpoint_path checkpoint_dir ckpt_dir --out-dir outdir out save_dir output_dir"
    " save_path ckpt_path checkpoints_path checkpoint_file save_to model_dir output_path run_dir",
    "resume": "resume resume_from resume_from_checkpoint load_from load_checkpoint --resume-path "
    "start_from init_from restore load_ckpt_path resume_ckpt checkpoint_to_load continue_from",
    "": "seed val_seed dtype wandb wandb_project run_name project config dropout log_file log_dir "
    "vocab_path merges_path tokenizer warmup_ratio d_ff_ratio temperature top_p max_token_len "
    "norm_mode ffn_type num_workers patience early_stop_val_loss prompt eps name train_fraction",
}
CASES = [(name, meant) for meant, names in MEANT.items() for name in names.split()]


@pytest.mark.parametrize("meant", MEANT)
def test_a_name_means_what_learners_call_so(meant):
    settings = Settings("", 20)
    names = [name.lstrip("-").replace("-", "_") for name in MEANT[meant].split()]
    others = ("", "weight_decay", "rope_theta", "device")
    said = {name: settings.meant_by(name) for name in names}
    assert {n: m for n, m in said.items() if m != meant and not (not meant and m in others)} == {}


def options(settings, *arguments):
    parser = argparse.ArgumentParser()
    for name, kwargs in arguments:
        parser.add_argument(name, **kwargs)
    return list(settings.options(parser))


def test_a_command_line_has_what_is_meant_and_leaves_the_rest(tmp_path):
    settings = Settings(str(tmp_path), 20)
    found = options(
        settings,
        ("train_data", {"type": Path}),
        ("--val-data", {"required": True}),
        ("--ckpt-dir", {"default": "checkpoints"}),
        ("--steps", {"type": int, "default": 5_000}),
        ("--total-tokens", {"type": float}),
        ("--dataset", {"default": "owt"}),
        ("--data-dtype", {"default": "int64"}),
        ("--betas", {"nargs": 2, "type": float, "required": True}),
        ("--eval", {"action": "store_true"}),
        ("--resume", {"action": "store_true"}),
        ("--run-name", {"required": True}),
        ("--norm", {"choices": ["pre", "post"], "required": True}),
        ("--seed", {"type": int, "default": 1}),
    )
    data = tmp_path / "data"
    assert found == [
        *(str(data / "train.npy"), "--val-data", str(data / "valid.npy")),
        *("--ckpt-dir", str(tmp_path / "checkpoints"), "--steps", "20", "--total-tokens", "2560"),
        *("--data-dtype", "uint16", "--betas", "0.9", "0.95", "--run-name", "check"),
        *("--norm", "pre"),
    ]
    assert settings.asked["resume"] == "resume" and settings.asked["steps"] == "steps"


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (("--resume", {"action": "store_true"}), ["--resume"]),
        (("--resume-from", {}), ["--resume-from", "here/last.pt"]),
        (("--resume-dir", {"default": None}), ["--resume-dir", "here"]),
        (("--init_from", {"default": "scratch"}), ["--init_from", "resume"]),
        (("--start", {"choices": ["new", "latest"]}), []),
        (("--start-from", {"choices": ["new", "latest"]}), ["--start-from", "latest"]),
    ],
)
def test_a_run_is_resumed_as_its_option_asks(option, expected):
    here = str(Path("here", "last.pt"))
    found = options(Settings("", 20, resume=here), option)
    assert [each.replace("\\", "/") for each in found] == expected
    assert not options(Settings("", 20), option)


def test_the_data_are_bare_numbers_where_a_name_or_a_help_says_so(tmp_path):
    for option in (
        ("--train_bin", {}),
        ("--train", {"default": "data/train.bin"}),
        ("--train", {"help": "a memmap of uint16"}),
    ):
        assert options(Settings(str(tmp_path), 20), option)[1].endswith("train.bin")
    settings = Settings(str(tmp_path), 20)
    assert options(settings, ("--train", {"help": "memmap of an .npy"}))[1].endswith("train.npy")


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

    def train(cfg: Config | None, tokens: np.ndarray, lr: float = 1.0, compile=True, **rest): ...

    found = Settings(str(tmp_path), 20).arguments(train)
    assert found["cfg"].num_steps == 20 and found["cfg"].optim == Part(lr=1e-2)
    assert found["cfg"].train_path.endswith("train.npy") and found["cfg"].use_rope
    assert len(found["tokens"]) == 2_000 and found["lr"] == 1e-2 and "compile" not in found
    assert found["checkpoint_path"].endswith("run.pt") and "train_path" not in found


def test_a_config_answers_by_any_usual_name_and_in_sections(tmp_path):
    answers = Answers(Settings(str(tmp_path), 20))
    assert answers["max_iters"] == answers.train.num_steps == answers["training"]["steps"] == 20
    assert answers["data"]["val_path"].endswith("valid.npy")
    assert answers.data["valid_data"]["path"].endswith("valid.npy")
    assert answers["ckpt"]["dir"].endswith("checkpoints")
    assert answers.get("resume", "none") == "none" and answers.get("colour", 3) == 3
    assert dict(answers)["vocab_size"] == 61 and {**answers}["d_model"] == 32
    with pytest.raises(KeyError, match="no colour"):
        answers["colour"]
    with pytest.raises(AttributeError, match="no colour"):
        _ = answers.colour
    assert Settings("", 20).value("colour") is LEAVE
