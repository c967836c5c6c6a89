"""Models and tokenizers go to Hugging Face and tiktoken and back: same logits, text, and ids."""

import base64
import json
import logging
from dataclasses import replace

import pytest
import tiktoken
import tokenizers
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiktoken.load import load_tiktoken_bpe
from tokenizers import decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from workbook.config import ModelConfig
from workbook.generation import formats, generate
from workbook.generation.formats import (
    load_tiktoken,
    load_tokenizer_json,
    save_tiktoken,
    save_tokenizer_json,
)
from workbook.tokenization.bpe import train_bpe
from workbook.tokenization.pretokens import PATTERN
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


@pytest.fixture(scope="module", autouse=True)
def tiktoken_reads_files_anew():
    """Without this it keeps copies by path, and might open the file of an earlier run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", "")
        yield


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


@pytest.fixture(scope="module")
def from_tiktoken(folder, ours):
    specials = save_tiktoken(ours, folder / "ours.tiktoken")
    ranks = load_tiktoken_bpe(str(folder / "ours.tiktoken"))
    return tiktoken.Encoding(
        "ours", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=specials
    )


@given(TEXTS)
def test_others_give_our_ids_on_what_we_save(ours, hugging_face, from_tiktoken, text):
    ids = ours.encode(text)
    assert hugging_face.encode(text).ids == ids
    assert from_tiktoken.encode(text, allowed_special="all") == ids
    assert hugging_face.decode(ids, skip_special_tokens=False) == text


def test_what_we_save_we_load(folder, ours, hugging_face, from_tiktoken):
    again = load_tokenizer_json(folder / "ours.json")
    assert (again.vocab, again.merges) == (ours.vocab, ours.merges)
    specials = {END: ours.encode(END)[0], PAD: ours.encode(PAD)[0]}
    again = load_tiktoken(folder / "ours.tiktoken", specials)
    assert (again.vocab, again.merges) == (ours.vocab, ours.merges)


@pytest.fixture(scope="module")
def theirs(folder):
    """A tokenizer that Hugging Face's library trained."""
    theirs = tokenizers.Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=[END, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    theirs.train_from_iterator([CORPUS], trainer)
    theirs.save(str(folder / "theirs.json"))
    return theirs


@pytest.fixture(scope="module")
def loaded(folder, theirs):
    return load_tokenizer_json(folder / "theirs.json")


@given(TEXTS)
def test_we_give_hugging_faces_ids_on_what_it_saves(theirs, loaded, text):
    assert loaded.encode(text) == theirs.encode(text).ids


def test_we_give_tiktokens_ids_on_its_ranks(folder, ours):
    """Ranks with the bytes in another order, as in the published files."""
    tokens = [bytes([value ^ 33]) for value in range(256)]
    tokens += [left + right for left, right in ours.merges]
    lines = (base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))
    (folder / "ranks.tiktoken").write_bytes(b"".join(lines))
    peer = tiktoken.Encoding(
        "peer",
        pat_str=PATTERN,
        mergeable_ranks=load_tiktoken_bpe(str(folder / "ranks.tiktoken")),
        special_tokens={END: 9_999},
    )
    loaded = load_tiktoken(folder / "ranks.tiktoken", {END: 9_999})
    assert loaded.merges == ours.merges
    text = CORPUS + END + "\x00~"
    assert loaded.encode(text) == peer.encode(text, allowed_special="all")


def test_special_tokens_that_are_words_survive(folder, ours):
    token = next(left + right for left, right in ours.merges[::-1] if b" " in left).decode()
    one = Tokenizer(ours.vocab, ours.merges, [token, END])
    save_tokenizer_json(one, folder / "words.json")
    peer = tokenizers.Tokenizer.from_file(str(folder / "words.json"))
    assert peer.encode(CORPUS + END).ids == one.encode(CORPUS + END)
    assert load_tokenizer_json(folder / "words.json").encode(CORPUS) == one.encode(CORPUS)


def test_a_special_token_that_reads_like_a_byte_is_refused(tmp_path, ours):
    with pytest.raises(ValueError, match=r"'é' is also how .* writes the token b'\\xe9'"):
        save_tokenizer_json(Tokenizer(ours.vocab, ours.merges, ["é"]), tmp_path / "x.json")
    assert list(tmp_path.iterdir()) == []


def test_ids_that_are_no_ranks_are_refused(tmp_path, ours):
    turned = {1000 - id_: token for id_, token in ours.vocab.items()}
    with pytest.raises(ValueError, match="do not rise in the order of its merges"):
        save_tiktoken(Tokenizer(turned, ours.merges), tmp_path / "x.tiktoken")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pre_tokenizer": None}, "pre_tokenizer None"),
        ({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True}}, "add_prefix_space"),
        ({"pre_tokenizer": {"type": "ByteLevel", "use_regex": False}}, "use_regex=false"),
        ({"normalizer": {"type": "NFC"}}, "normalizer NFC"),
        ({"padding": {"pad_id": 0}}, "padding set"),
        ({"model": {"type": "Unigram", "vocab": []}}, "model Unigram"),
        ({"added_tokens": [{"id": 0, "content": "<m>", "lstrip": True}]}, "lstrip of '<m>'"),
        ({"model": 3}, "is not a tokenizer.json"),
        (
            {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b c"]}},
            "other.json is not a tokenizer.json",
        ),
    ],
)
def test_tokenizers_of_another_kind_are_refused_by_name(folder, hugging_face, change, words):
    told = json.loads((folder / "ours.json").read_text(encoding="utf-8"))
    (folder / "other.json").write_text(json.dumps(told | change))
    with pytest.raises(ValueError, match=words):
        load_tokenizer_json(folder / "other.json")


def test_files_that_are_none_are_refused(tmp_path):
    (tmp_path / "x").write_text("not json")
    with pytest.raises(ValueError, match=r"is not a tokenizer\.json"):
        load_tokenizer_json(tmp_path / "x")
    with pytest.raises(ValueError, match="line 1: expected a token in base64"):
        load_tiktoken(tmp_path / "x")
    (tmp_path / "x").write_bytes(b"YQ== 0\nYWJj 1\n")
    with pytest.raises(ValueError, match="no merge of two tokens makes b'abc'"):
        load_tiktoken(tmp_path / "x")
    (tmp_path / "x").write_bytes(b"YQ== 0\n")
    with pytest.raises(ValueError, match=r"id of the special token '<\|e\|>' is already a rank"):
        load_tiktoken(tmp_path / "x", {"<|e|>": 0})
    for load in (load_tiktoken, load_tokenizer_json):
        with pytest.raises(FileNotFoundError):
            load(tmp_path / "nowhere")


# --- Models -------------------------------------------------------------------------------------

BASE = ModelConfig(
    vocab_size=376, context_length=64, d_model=32, num_layers=2, num_heads=4, d_ff=48,
    rope_theta=500.0,
)  # fmt: skip


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
    ids = torch.randint(376, (3, 64))
    with torch.no_grad():
        torch.testing.assert_close(model(ids), llama(ids).logits, atol=1e-4, rtol=0)


def test_transformers_writes_the_same_greedy_text(model, ours, tmp_path):
    folder = formats.save_model(model, tmp_path / "out", ours)
    llama, theirs = opened(folder), AutoTokenizer.from_pretrained(folder)
    prompt = "The fox grüß"
    ids = ours.encode(prompt)
    asked = theirs(prompt, return_tensors="pt")
    assert asked["input_ids"][0].tolist() == ids
    written = llama.generate(**asked, max_new_tokens=40, do_sample=False)[0, len(ids) :]
    here = "".join(generate.write(model, ours, prompt, 40, temperature=0))
    assert theirs.decode(written, skip_special_tokens=True) == here


def test_transformers_stops_at_the_end_of_the_text(model, ours, tmp_path):
    folder = formats.save_model(model, tmp_path / "out", ours)
    end = ours.encode("<|endoftext|>")[0]
    assert opened(folder).generation_config.eos_token_id == end
    assert AutoTokenizer.from_pretrained(folder).eos_token == "<|endoftext|>"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_there_and_back_is_the_same_model_to_the_bit(model, ours, dtype, tmp_path):
    model = model.to(dtype)
    found, read = formats.load_model(formats.save_model(model, tmp_path / "out", ours))
    assert found.config == model.config
    for name, weight in model.state_dict().items():
        assert torch.equal(found.state_dict()[name], weight)
    assert read.vocab == ours.vocab and read.merges == ours.merges


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


@pytest.mark.parametrize(("text", "said"), [("{", "is not JSON"), ("[1]", "holds a list")])
def test_a_config_that_is_none_is_refused(model, text, said, tmp_path):
    folder = formats.save_model(model, tmp_path / "out")
    (folder / "config.json").write_text(text)
    with pytest.raises(ValueError, match=rf"config\.json {said}"):
        formats.load_model(folder)


def test_a_folder_without_a_whole_model_is_refused(model, ours, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*config.json"):
        formats.load_model(tmp_path)
    folder = formats.save_model(model, tmp_path / "out")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ValueError, match="is damaged or incomplete"):
        formats.load_model(folder)
    weights.unlink()
    with pytest.raises(FileNotFoundError, match="weights in several files are not read"):
        formats.load_model(folder)
    small = TransformerLM.from_config(replace(BASE, vocab_size=280))
    with pytest.raises(ValueError, match="the tokenizer has 376 tokens and the model 280"):
        formats.save_model(small, tmp_path / "small", ours)
