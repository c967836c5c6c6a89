"""To Hugging Face and back: the same logits, the same text, the same bits."""

import json
import logging
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from workbook.config import ModelConfig
from workbook.generation import formats, generate
from workbook.tokenization.bpe import train_bpe
from workbook.tokenization.tokenizer import Tokenizer
from workbook.transformer.model import TransformerLM

BASE = ModelConfig(
    vocab_size=300, context_length=64, d_model=32, num_layers=2, num_heads=4, d_ff=48,
    rope_theta=500.0,
)  # fmt: skip

pytestmark = [  # of transformers' own making
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def model():
    torch.manual_seed(3)
    model = TransformerLM.from_config(BASE)
    for name, weight in model.named_parameters():
        if "ln" in name:
            weight.data.uniform_(0.5, 1.5)
    return model


@pytest.fixture
def tokenizer(tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("The fox said: “grüß dich!” and ran away. " * 30, encoding="utf-8")
    return Tokenizer(*train_bpe(corpus, 290, ["<|endoftext|>"]), ["<|endoftext|>"])


def opened(folder):
    """The model as `transformers` opens it, which must have nothing to complain about."""
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger = logging.getLogger("transformers")
    logger.addHandler(handler)
    try:
        model, notes = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    finally:
        logger.removeHandler(handler)
    assert not any(notes.values()), notes
    assert not said
    return model.eval()


@pytest.mark.parametrize("tied", [False, True])
def test_transformers_computes_the_same_logits(model, tied, tmp_path):
    model = TransformerLM.from_config(replace(BASE, tie_embeddings=tied)) if tied else model
    llama = opened(formats.save_model(model, tmp_path / "out"))
    ids = torch.randint(300, (3, 64))
    with torch.no_grad():
        torch.testing.assert_close(model(ids), llama(ids).logits, atol=1e-4, rtol=0)


def test_transformers_writes_the_same_greedy_text(model, tokenizer, tmp_path):
    folder = formats.save_model(model, tmp_path / "out", tokenizer)
    llama, theirs = opened(folder), AutoTokenizer.from_pretrained(folder)
    prompt = "The fox grüß"
    ids = tokenizer.encode(prompt)
    asked = theirs(prompt, return_tensors="pt")
    assert asked["input_ids"][0].tolist() == ids
    written = llama.generate(**asked, max_new_tokens=40, do_sample=False)[0, len(ids) :]
    ours = "".join(generate.write(model, tokenizer, prompt, 40, temperature=0))
    assert theirs.decode(written, skip_special_tokens=True) == ours


def test_transformers_stops_at_the_end_of_the_text(model, tokenizer, tmp_path):
    folder = formats.save_model(model, tmp_path / "out", tokenizer)
    end = tokenizer.encode("<|endoftext|>")[0]
    assert opened(folder).generation_config.eos_token_id == end
    assert AutoTokenizer.from_pretrained(folder).eos_token == "<|endoftext|>"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_there_and_back_is_the_same_model_to_the_bit(model, tokenizer, dtype, tmp_path):
    model = model.to(dtype)
    found, read = formats.load_model(formats.save_model(model, tmp_path / "out", tokenizer))
    assert found.config == model.config
    for name, weight in model.state_dict().items():
        assert torch.equal(found.state_dict()[name], weight)
    assert read.vocab == tokenizer.vocab and read.merges == tokenizer.merges


@pytest.mark.parametrize("tied", [False, True])
def test_a_llama_becomes_our_model(tied, tmp_path):
    torch.manual_seed(5)
    llama = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=50, hidden_size=24, intermediate_size=40, num_hidden_layers=2,
            num_attention_heads=3, max_position_embeddings=32, rms_norm_eps=1e-5,
            tie_word_embeddings=tied, initializer_range=0.3,
            rope_parameters={"rope_theta": 777.0, "rope_type": "default"},
        )
    ).eval()  # fmt: skip
    llama.save_pretrained(tmp_path)
    model, tokenizer = formats.load_model(tmp_path)
    assert tokenizer is None and model.config.rope_theta == 777.0
    ids = torch.randint(50, (2, 32))
    with torch.no_grad():
        torch.testing.assert_close(model(ids), llama(ids).logits, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"norm": "post"}, "Llama has no norm='post'"),
        ({"norm": "none"}, "Llama has no norm='none'"),
        ({"position": "none"}, "Llama has no position='none'"),
        ({"ffn": "silu"}, "Llama has no ffn='silu'; only a model with ffn='swiglu'"),
    ],
)
def test_an_ablation_that_llama_has_not_is_refused(change, said, tmp_path):
    model = TransformerLM.from_config(replace(BASE, **change))
    with pytest.raises(ValueError, match=said):
        formats.save_model(model, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"num_key_value_heads": 2}, "has num_key_value_heads=2; .* with num_key_value_heads=4"),
        ({"model_type": "gpt2"}, "has model_type='gpt2'"),
        ({"rms_norm_eps": 1e-6}, "has rms_norm_eps=1e-06; .* rms_norm_eps=1e-05"),
        ({"attention_bias": True}, "has attention_bias=True"),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}}, "has rope_type='llama3'"),
        ({"head_dim": 16}, "has head_dim=16; .* with head_dim=8"),
    ],
)
def test_a_llama_that_is_not_ours_is_refused_with_the_reason(model, change, said, tmp_path):
    folder = formats.save_model(model, tmp_path / "out")
    told = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(told | change))
    with pytest.raises(ValueError, match=said):
        formats.load_model(folder)


def test_a_folder_without_a_whole_model_is_refused(model, tokenizer, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*config.json"):
        formats.load_model(tmp_path)
    folder = formats.save_model(model, tmp_path / "out")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ValueError, match="is not whole"):
        formats.load_model(folder)
    weights.unlink()
    with pytest.raises(FileNotFoundError, match="weights in several files are not read"):
        formats.load_model(folder)
    small = TransformerLM.from_config(replace(BASE, vocab_size=280))
    with pytest.raises(ValueError, match="the tokenizer has 290 ids and the model 280"):
        formats.save_model(small, tmp_path / "small", tokenizer)
