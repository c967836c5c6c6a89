"""A trained model from its folder: of one of our training runs, or in Hugging Face's format."""

import os
from pathlib import Path

from workbook.config import ModelConfig
from workbook.generation import hugging
from workbook.tokenization import token_files
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import checkpoints, log
from workbook.transformer.model import TransformerLM


def open_model(folder: str | os.PathLike) -> tuple[TransformerLM, Tokenizer | None]:
    """The model in a folder, and its tokenizer where one is known.

    Raises: FileNotFoundError; ValueError where there is no whole model in it.
    """
    folder = Path(folder)
    if (folder / "model.safetensors").is_file():
        return hugging.load_model(folder)
    if not (folder / log.CONFIG).is_file():
        raise FileNotFoundError(
            f"{folder} holds no model; give the folder that `workbook train` or"
            " `workbook export-model` named"
        )
    asked = log.config(folder)
    state = checkpoints.newest(folder / "checkpoints", ["model"])
    if state is None:
        raise FileNotFoundError(f"the run in {folder} has no checkpoint yet; let it train on")
    model = TransformerLM.from_config(ModelConfig(**asked["model"]))
    checkpoints.restore(state, model)
    name, tokenizer = token_files.tokenizer_for(asked["corpus"])
    now = token_files.fingerprint(tokenizer)
    if state.get("data", {}).get("tokenizer", now) != now:  # earlier versions stored none
        raise ValueError(
            f"the model in {folder} was trained with another tokenizer than {name} is now; put back"
            " the one that it had, or train it anew"
        )
    return model.eval(), tokenizer
