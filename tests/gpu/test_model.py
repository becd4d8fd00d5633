"""The model of run times in GPU.md, and the machine code that runs on the host for it."""

import pathlib
import re

import numpy as np
import pytest

from kernelcore.engine import sources
from kernelcore.engine.gpu import compile as _compile

ROOT = pathlib.Path(__file__).parents[2]
KERNEL = """
extern "C" __global__ void sums(const float* x, const int* turns, float* out) {
    __shared__ float s[128];
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < turns[threadIdx.x / 32]; k++) sum = fmaf(x[threadIdx.x], k + 1, sum);
    s[2 * threadIdx.x] = sum;
    __syncthreads();
    out[threadIdx.x] = s[2 * (63 - threadIdx.x)];
}
"""


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.fixture
def part():
    return re.search(
        r"<!-- model -->\n(.*?)<!-- end of model -->", (ROOT / "GPU.md").read_text(), re.S
    )[1]


def test_times_follow_from_counts(benchmarks, part):
    import gpu_model

    machines = {machine.name: machine for machine in gpu_model.MACHINES}
    lines = part.splitlines()
    first, second = (lines.index(head) + 2 for head in (gpu_model.COUNTS, gpu_model.TIMES))
    counts = lines[first : lines.index("", first)]
    assert len(counts) == 2 * len(machines)
    for line, told in zip(counts, lines[second:], strict=False):
        what, name, *_ = cells = gpu_model.cells_of(line)
        assert gpu_model.times_row(what, machines[name], gpu_model.counts_of(cells)) == told


def test_the_model_holds_where_it_can_be_checked(part):
    issue, model = (
        int(re.search(rf"{name} \| [\d.]+ \| (\d+)%", part)[1]) for name in ("alone", "in flight")
    )
    assert issue < 60
    assert 75 <= model <= 125


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_machine_code_runs_on_the_host(benchmarks, tmp_path, monkeypatch, arch):
    """Three turns of one warp and five of the other; every other bank, so two cycles a warp."""
    import sass

    (tmp_path / "sums.cu").write_text(KERNEL)
    monkeypatch.setattr(sources, "drivers", lambda: str(tmp_path))
    kernel = sass.Kernel(_compile.build("sums", arch).cubin, "sums")
    memory = np.zeros(1024, np.uint8)
    x, turns, out = memory[:256].view("f4"), memory[256:264].view("i4"), memory[512:768].view("f4")
    x[:], turns[:] = np.arange(64), (3, 5)
    base = 1 << 44
    arguments = np.array([base, base + 256, base + 512], np.uint64).tobytes()
    block = sass.Block(kernel, arch, arguments, (base, memory), (0, 0), (1, 1, 1), 64, 512)
    block.run()
    np.testing.assert_array_equal(out, (x * np.repeat([6, 15], 32))[::-1])
    names = {pc: kernel.code[pc].name for pc in block.issued}
    assert sum(n for pc, n in block.issued.items() if names[pc] == "FFMA") == 3 + 5
    assert sum(block.conflicts.values()) == 2 * 2 + 2 * 2


def test_without_a_disassembler(benchmarks, monkeypatch):
    import sass

    monkeypatch.setattr(sass, "PACKAGE", "no-such-package")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ImportError) as caught:
        sass.disassembler()
    assert str(caught.value) == (
        "counting instructions needs nvdisasm; install it with: pip install no-such-package"
    )
