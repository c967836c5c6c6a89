"""Models and tokenizers open in Hugging Face's libraries: same logits, text, and ids."""

from dataclasses import replace

import pytest
import tokenizers
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_runs import trained
from transformers import AutoModelForCausalLM, AutoTokenizer

from workbook.config import ModelConfig
from workbook.generation import formats, sampling
from workbook.generation.formats import save_tokenizer_json
from workbook.tokenization.bpe import train_bpe
from workbook.tokenization.tokenizer import Tokenizer
from workbook.transformer.model import TransformerLM

pytestmark = [  # of transformers' own making
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

# --- Tokenizers ---------------------------------------------------------------------------------

END, PAD = "<|endoftext|>", "<|pad é|>"
CORPUS = (
    "Once upon a time the owl's tiny mouse said: 'it's 1,000 o'clock, isn't it?'  \n\n"
    "The weather was nice. Le café naïve coûte 3 €. 天气很好。我们去公园。 🙂🙂 aaaaaaaaaa\r\n"
) * 3
# Characters that every Unicode version of the last ten years knows alike.
TEXTS = st.text(st.sampled_from("abet htowls'mI1,. \n\r\t好天éü🙂|<>½²\u3000\u00a0\u0301"))
TEXTS = TEXTS | TEXTS.map(lambda text: text + END + text + PAD)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exchange")
    (folder / "corpus.txt").write_bytes(CORPUS.encode())
    return folder


@pytest.fixture(scope="module")
def ours(folder):
    return Tokenizer(*train_bpe(folder / "corpus.txt", 420, [END]), [END, PAD])


@pytest.fixture(scope="module")
def hugging_face(folder, ours):
    save_tokenizer_json(ours, folder / "ours.json")
    return tokenizers.Tokenizer.from_file(str(folder / "ours.json"))


@given(TEXTS)
def test_tokenizers_gives_our_ids_on_what_we_save(ours, hugging_face, text):
    ids = ours.encode(text)
    assert hugging_face.encode(text).ids == ids
    assert hugging_face.decode(ids, skip_special_tokens=False) == text


def test_special_tokens_that_are_words_survive(folder, ours):
    token = next(left + right for left, right in ours.merges[::-1] if b" " in left).decode()
    one = Tokenizer(ours.vocab, ours.merges, [token, END])
    save_tokenizer_json(one, folder / "words.json")
    peer = tokenizers.Tokenizer.from_file(str(folder / "words.json"))
    assert peer.encode(CORPUS + END).ids == one.encode(CORPUS + END)


def test_a_special_token_that_reads_like_a_byte_is_refused(tmp_path, ours):
    with pytest.raises(ValueError, match=r"'é' is also how .* writes the token b'\\xe9'"):
        save_tokenizer_json(Tokenizer(ours.vocab, ours.merges, ["é"]), tmp_path / "x.json")
    assert list(tmp_path.iterdir()) == []


# --- Models -------------------------------------------------------------------------------------

SIZES = {"vocab_size": 376, "context_length": 64, "d_model": 32, "num_layers": 2, "num_heads": 4}
BASE = ModelConfig(**SIZES, d_ff=48, rope_theta=500.0)


@pytest.fixture
def model():
    torch.manual_seed(3)
    model = TransformerLM.from_config(BASE)
    for name, weight in model.named_parameters():
        if "ln" in name:
            weight.data.uniform_(0.5, 1.5)
    return model


def opened(folder):
    """The model as `transformers` opens it, which must have nothing to complain about."""
    model, notes = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not any(notes.values()), notes
    return model.eval()


def test_transformers_computes_the_same_logits_with_tied_embeddings(tmp_path):
    model = TransformerLM.from_config(replace(BASE, tie_embeddings=True))
    llama = opened(formats.save_model(model, tmp_path / "out"))
    ids = torch.randint(376, (3, 64))
    with torch.no_grad():
        torch.testing.assert_close(model(ids), llama(ids).logits, atol=1e-4, rtol=0)


def test_transformers_writes_the_same_greedy_text(model, ours, tmp_path):
    folder = formats.save_model(model, tmp_path / "out", ours)
    llama = opened(folder)
    llama_tokenizer = AutoTokenizer.from_pretrained(folder)
    assert llama.generation_config.eos_token_id == ours.encode(END)[0]
    assert llama_tokenizer.eos_token == END
    prompt = "The fox grüß"
    ids = ours.encode(prompt)
    asked = llama_tokenizer(prompt, return_tensors="pt")
    assert asked["input_ids"][0].tolist() == ids
    written = llama.generate(**asked, max_new_tokens=40, do_sample=False)[0, len(ids) :]
    here = "".join(sampling.write_text(model, ours, prompt, 40, temperature=0))
    assert llama_tokenizer.decode(written, skip_special_tokens=True) == here


def test_an_ablation_that_llama_has_not_is_refused(tmp_path):
    for field, value in (("norm", "post"), ("position", "none"), ("ffn", "silu")):
        model = TransformerLM.from_config(replace(BASE, **{field: value}))
        with pytest.raises(ValueError, match=f"Llama has no {field}='{value}'; only a model with"):
            formats.save_model(model, tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_a_tokenizer_of_more_tokens_than_the_model_is_refused(ours, tmp_path):
    small = TransformerLM.from_config(replace(BASE, vocab_size=280))
    with pytest.raises(ValueError, match="the tokenizer has 376 tokens and the model 280"):
        formats.save_model(small, tmp_path / "small", ours)


def test_a_run_that_kept_no_tokenizer_is_opened_with_one_of_its_size(tmp_path, monkeypatch):
    def asked(name, vocab_size):
        raise ValueError(f"{name}-{vocab_size}")

    monkeypatch.setattr(formats.token_files, "tokenizer_for", asked)
    with pytest.raises(ValueError, match="stories-64"):
        formats.open_model(trained(tmp_path).folder)
