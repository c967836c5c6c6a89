"""A Dask cluster of two worker processes gives the merges and ids that one process gives."""

import numpy as np
import pytest
from distributed import Client, LocalCluster

from workbook.tokenization import compiled, spans
from workbook.tokenization.bpe import train_bpe
from workbook.tokenization.engine import pays_off
from workbook.tokenization.spans import cut_points
from workbook.tokenization.token_files import read_tokens, tokenize_file
from workbook.tokenization.tokenizer import Tokenizer

END = "<|endoftext|>"


@pytest.fixture(scope="module")
def executor():
    """The executor of a cluster on this machine alone, which finds the engine compiled."""
    compiled.load_kernels()
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client.get_executor()


def write(path, size):
    """Lines of text, each unlike the others, of about `size` bytes."""
    line = "It's {} o'clock, said the 天 fox number {}.\n" + END + "\n"
    path.write_bytes("".join(line.format(n % 97, n) for n in range(size // 56)).encode())
    return path


@pytest.mark.parametrize("size", [45_000, 150_000], ids=["readable", "compiled"])
def test_the_cluster_gives_the_merges_and_ids_of_one_process(executor, tmp_path, monkeypatch, size):
    monkeypatch.setattr(spans, "SPANS_PER_TASK", 1)
    monkeypatch.setattr(spans, "SPAN", 1 << 12)
    text = write(tmp_path / "text.txt", size)
    assert pays_off(text.stat().st_size) == (size == 150_000)
    assert len(cut_points(text, [END])) > 5
    vocab, merges = train_bpe(text, 400, [END])
    assert train_bpe(text, 400, [END], executor=executor) == (vocab, merges)
    one = Tokenizer(vocab, merges, [END])
    ids = one.encode_file(text)
    assert np.array_equal(one.encode_file(text, executor), ids)
    tokenize_file(one, text, tmp_path / "ids.npy", executor)
    assert np.array_equal(read_tokens(tmp_path / "ids.npy"), ids)
