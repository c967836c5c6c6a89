"""The device and the precision fit the machine; what does not is refused with a way out."""

import os
from functools import partial

import pytest
import torch
from torch import nn

from workbook.training import devices

CPU, CUDA, MPS = map(torch.device, ("cpu", "cuda", "mps"))


@pytest.fixture
def only(monkeypatch):
    """A machine with these devices."""

    def there(*names):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in names)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: "mps" in names)

    return there


FASTEST = [((), "cpu"), (("mps",), "mps"), (("cuda",), "cuda"), (("cuda", "mps"), "cuda")]


@pytest.mark.parametrize(("names", "fastest"), FASTEST)
def test_the_fastest_device_is_taken(only, names, fastest):
    only(*names)
    assert devices.pick_device().type == fastest
    assert devices.pick_device("cpu").type == "cpu"


def test_a_device_that_is_not_there_is_refused(only):
    only("mps")
    with pytest.raises(ValueError, match="no cuda on this machine; it has mps and cpu"):
        devices.pick_device("cuda")


FLAGS = [("avx512f", torch.float32), ("avx512_bf16", torch.bfloat16), ("bf16", torch.bfloat16)]


@pytest.mark.parametrize(("flags", "found"), FLAGS)
def test_a_cpu_computes_in_bfloat16_only_where_it_can(monkeypatch, flags, found):
    monkeypatch.delenv("WORKBOOK_PRECISION", raising=False)
    monkeypatch.setattr(devices.config, "processor_flags", lambda: set(flags.split()))
    assert devices.pick_precision(CPU) == found
    assert devices.pick_precision(CPU, "float32") == torch.float32
    assert devices.pick_precision(MPS) == torch.float32


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_a_forced_precision_is_taken_where_none_was_chosen(monkeypatch, name):
    monkeypatch.setenv("WORKBOOK_PRECISION", name)
    for device in (CPU, CUDA, MPS):
        assert devices.name_of(devices.pick_precision(device)) == name
        assert devices.pick_precision(device, "float32") == torch.float32


def test_products_are_computed_in_the_precision_and_weights_keep_theirs():
    weight = torch.ones(4, 4)
    with devices.autocast(CPU, torch.bfloat16):
        assert (weight @ weight).dtype == torch.bfloat16
    with devices.autocast(CPU, torch.float32):
        assert (weight @ weight).dtype == torch.float32
    assert weight.dtype == torch.float32


@pytest.mark.stress
@pytest.mark.skipif("STRESS" not in os.environ, reason="a part of `make stress`")
def test_the_ninth_model_of_a_process_is_compiled_as_the_first_is(monkeypatch):
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    torch._dynamo.utils.counters.clear()
    for width in range(8, 18):
        devices.compiled(nn.Linear(width, 2))(torch.ones(1, width))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 10


def test_gpus_are_those_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert devices.gpus() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-8f2")
    assert devices.gpus() == ["5", "GPU-8f2"]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert devices.gpus() == []


def test_the_shortest_of_some_works_counts_and_the_first_does_not(monkeypatch):
    now = [0.0]
    took = [1.0, 4.0, 3.0, 5.0]
    monkeypatch.setattr(devices.time, "perf_counter", lambda: now[0])

    def work():
        now[0] += took.pop(0)

    assert devices.best_seconds(work, at_least=10) == 3
    assert took == []


def test_the_peak_of_products_is_a_rate(monkeypatch):
    monkeypatch.setattr(devices, "best_seconds", lambda work, device: 2.0)
    assert devices.matmul_peak(size=128) == 128**3
