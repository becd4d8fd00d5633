"""What the drivers for GPUs should take on an A100 and an H100, by counting what they execute.

    python benchmarks/gpu_model.py           writes the tables of GPU.md, in about two minutes
    python benchmarks/gpu_model.py --show    prints them

Needs no device, but nvdisasm, objdump and a C compiler: the machine code of a real launch runs in
``sass.py``, on the stand-in for CuPy that the tests have. The same model, for the loop over images
on this CPU, is compared with the time that it takes. GPU.md says what the numbers mean.
"""

import argparse
import ctypes
import gc
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

import numpy as np
import sass
from gpu_resources import DOCUMENT, SHARED, blocks_on

import kernelcore as kc
from kernelcore.engine.cpu import images as host
from kernelcore.engine.geometry import Maps
from kernelcore.engine.gpu import compile as _compile
from kernelcore.engine.gpu.records import MAPS, structs

ROOT = pathlib.Path(__file__).parents[1]
PART = re.compile(r"(?<=<!-- model -->\n).*?(?=<!-- end of model -->)", re.S)
DEPTH = 21
SIZE = 32
COORDINATES = 784
EVERY = 16
"""Of the planes of images, one in so many on each axis is run."""


class Machine(NamedTuple):
    """A device: its multiprocessors, their clock in GHz, and what one does in a cycle.

    Numbers of lanes are from the table of throughputs in the CUDA programming guide; of the bytes
    that NVIDIA states for the second-level cache, 5120 per cycle for all, half are counted on.
    """

    name: str
    arch: str
    processors: int
    clock: float
    fp32: int
    l1_sectors: int = 4
    l2_bytes: int = 2560


MACHINES = (Machine("A100", "sm_80", 108, 1.41, 64), Machine("H100", "sm_90", 132, 1.755, 128))
PEER = 2.70
"""Milliseconds per pair of neural-tangents on a V100, as published."""
CUBLAS = 0.93
"""Of its peak that cuBLAS reaches in float32: between 90 and 95 %."""

UNITS = ("fp32", "imad", "alu", "mufu", "double", "shared", "global", "uniform", "control")


class Counts(NamedTuple):
    """What a warp of the block has done on average, per unit of work: 32 entries (and layers)."""

    instructions: dict[str, float]  # by unit
    shared: float  # cycles of shared memory
    sectors: float  # asked of L1
    missed: float  # and not found there
    alone: float  # cycles of a block that is never disturbed, over units of work of all its warps
    blocks: int  # on a multiprocessor


class Times(NamedTuple):
    """Cycles of a multiprocessor per unit of work, by what would limit it."""

    issue: float
    fp32: float
    alu: float
    mufu: float
    shared: float
    l1: float
    l2: float
    latency: float

    @property
    def limit(self) -> str:
        return max(self._fields, key=lambda name: getattr(self, name))


def times(counts: Counts, machine: Machine) -> Times:
    """Return what each part of a multiprocessor needs."""
    n = counts.instructions
    return Times(
        issue=sum(n.values()) / 4,
        # Multiplications of integers have 64 lanes, on the H100 half of those of fp32.
        fp32=max((n["fp32"] + n["imad"]) * 32 / machine.fp32, n["imad"] * 32 / 64),
        alu=n["alu"] * 32 / 64,
        mufu=n["mufu"] * 32 / 16,
        shared=counts.shared,
        l1=counts.sectors / machine.l1_sectors,
        l2=counts.missed * 32 / (machine.l2_bytes / machine.processors),
        latency=counts.alone / counts.blocks,
    )


def cycles(counts: Counts, machine: Machine) -> float:
    """Return the cycles of a multiprocessor per unit of work.

    Warps wait for the busiest part, or for their own results: a closed queue with one server and
    as many customers as there are warps, by mean values. It is above the largest of all bounds, and
    below their sum.
    """
    of = times(counts, machine)
    busy = max(of[:-1])
    warps = 8 * counts.blocks
    think = max(0.0, counts.alone * 8 - busy)
    waiting = rate = 0.0
    for k in range(1, warps + 1):
        there = busy * (1 + waiting)
        rate = k / (there + think)
        waiting = rate * there
    return 1 / rate


# ---- a launch


class Launched(Exception):
    """Raised instead of a launch."""


class Function:
    """A kernel that keeps the arguments of its launch, and does nothing."""

    max_dynamic_shared_size_bytes = 0

    def __call__(self, grid: Any, block: Any, args: Any, shared_mem: int = 0, **_: Any) -> None:
        self.threads, self.shared = block[0], shared_mem
        self.args = [np.asarray(a) for a in args]
        raise Launched


class Launch:
    """A launch, as the backend makes it on the stand-in for CuPy: arguments, memory, macros."""

    def __init__(self, kernel: Any, name: str, X: Any, Y: Any) -> None:
        sys.path.append(str(ROOT / "tests"))
        from gpu import standin

        sys.path.pop()
        self.name, self.keep, self.function = name, [*map(standin.asarray, (X, Y))], Function()
        function, defines, module = self.function, {}, standin.RawModule

        class Module(module):
            def get_function(self, found: str) -> Any:
                return function if found == name else super().get_function(found)

        def cubin(driver: str, arch: str, macros: tuple[str, ...] = ()) -> pathlib.Path:
            defines[driver] = macros
            return pathlib.Path(f"{driver}-.cubin")

        before, _compile.cubin, standin.RawModule = _compile.cubin, cubin, Module
        sys.modules["cupy"] = standin
        try:
            kernel(*self.keep)
        except Launched as error:
            self.keep.append(error)  # its frames hold the arrays
        finally:
            _compile.cubin, standin.RawModule = before, module
            del sys.modules["cupy"]
        self.driver = name.partition("_")[0]
        self.defines = defines[self.driver]
        found = [b for b in gc.get_objects() if isinstance(b, standin.twin.Buffer)]
        self.base = min(b.ptr for b in found)
        size = max(b.ptr + b.nbytes for b in found) - self.base
        self.memory = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(self.base))

    def numbers(self, address: int, dtype: Any, count: int) -> Any:
        """Return memory of the device as an array."""
        at = address - self.base
        return self.memory[at : at + count * np.dtype(dtype).itemsize].view(dtype)

    def run(self, arch: str) -> tuple[sass.Block, int]:
        """Run its first block; return it, and how many a multiprocessor holds."""
        build = _compile.build(self.driver, arch, self.defines, verbose=True)
        used, call = build.kernels()[self.name], self.function
        shared = used.shared + call.shared
        blocks = blocks_on(arch, used.registers, shared, call.threads)
        # What is left of the memory that L1 and shared memory have in common, by sectors.
        cached = ((SHARED[arch] + 28) * 1024 // blocks - (shared + 1024)) // 32
        block = sass.Block(
            sass.Kernel(build.cubin, self.name), arch, b"".join(a.tobytes() for a in call.args),
            (self.base, self.memory), (0, 0), (1, 1, 1), call.threads, shared, cached,
        )  # fmt: skip
        block.run()
        return block, blocks


def counted(launch: Launch, arch: str, work: float) -> Counts:
    """Return what the first block of a launch executes, per unit of work."""
    block, blocks = launch.run(arch)
    units = block.counts()
    return Counts(
        {unit: units[unit] / work for unit in UNITS},
        shared=sum(block.conflicts.values()) / work,
        sectors=sum(block.sectors.values()) / work,
        missed=block.missed / work,
        alone=int(block.clock.max()) / work,
        blocks=blocks,
    )


def rows(d: int = COORDINATES) -> tuple[Launch, float]:
    """Return a launch for the NTK of three hidden ReLU layers, and the units of work of a tile.

    A unit is 32 entries.
    """
    X = np.random.default_rng(0).standard_normal((192, d)).astype(np.float32)
    launch = Launch(kc.presets.mlp(3).ntk, "dense_gram_f32", X[:128], X[128:])
    return launch, 128 * 64 / 32


def network(depth: int) -> Any:
    """Return the network of the published benchmark."""
    layers = [kc.Conv(3, w_std=2**0.5), kc.Relu()] * depth
    return kc.Sequential(*layers, kc.GlobalAvgPool(), kc.Dense()).ntk


def images(depth: int = DEPTH, every: int = EVERY) -> tuple[Launch, float]:
    """Return a launch for a pair of images, and its units of work: 32 entries in a layer."""
    X = np.random.default_rng(0).standard_normal((2, SIZE, SIZE, 3)).astype(np.float32)
    launch = Launch(network(depth), "spatial_tangent_f32", X[:1], X[1:])
    return launch, choose(launch, depth, every) * depth / 32


def choose(launch: Launch, depth: int, every: int) -> int:
    """Leave the launch every so many of its planes on each axis; return their entries."""
    job = launch.function.args[0].view(structs(np.dtype("f4")).spatial_job)[0]
    stage = launch.numbers(int(job["stages"]), host.STAGE, 1)
    steps = launch.numbers(int(job["steps"]), host.STEP, depth)
    entries = 1
    for axis in ("row", "column"):
        maps, count = f"{axis}s", int(stage[f"{axis}_bundles"][0])
        chosen = np.arange(every // 2 - 1, count, every)
        firsts = {(maps, int(first)) for first in (*stage[maps], *steps[maps])}
        for kind, first in {*firsts, ("pools", int(stage[f"{axis}_pools"][0]))}:
            width = len(Maps.KINDS[kind].split())
            address = int(job["maps"][MAPS.index(kind)]) + 4 * width * first
            found = launch.numbers(address, "i4", width * count).reshape(-1, width)
            found[: len(chosen)] = found[chosen]
            if kind == maps and first == stage[maps][0]:
                entries *= int(found[: len(chosen), 0].sum())
        stage[f"{axis}_bundles"] = len(chosen)
    return entries


# ---- this CPU


class Loop(NamedTuple):
    """A turn of a loop of the CPU: instructions by kind, results, and the longest chain."""

    instructions: int
    multiplications: int
    additions: int
    loads: int
    results: int
    chain: int

    def issue(self) -> float:
        """Cycles by what Zen 3 can start: 6 operations, 2 multiplications, 2 additions, 2 loads."""
        return max(
            self.instructions / 6, self.multiplications / 2, self.additions / 2, self.loads / 2
        )

    def with_chain(self) -> float:
        """Cycles with as many results in flight as there are registers for: the larger of both."""
        return max(self.issue(), self.chain * self.results / IN_FLIGHT)


IN_FLIGHT = 129
"""Results that Zen 3 keeps: measured between 116 and 142, of 160 registers for vectors."""
LATENCIES = {"vf": 4, "vadd": 3, "vsub": 3, "vmul": 3, "vsqrt": 14, "vmova": 0}
LOAD = 7
"""Cycles until a result is there, by the beginning of a name (1 for others), and from memory."""
HOT = (
    "relu_three<kc::lanes<float, 8>, 2, 2, (kc::three)0, true, "
    "kc::one_image<kc::lanes<float, 8> >, kc::lane_images"
)


def hot_loop() -> Loop:
    """Return the loop over the columns of a plane, as it was compiled."""
    (module,) = pathlib.Path(kc.__file__).parent.glob("_cpu/spatial_v3*.so")

    def told(*command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    names = dict(
        (line.split(maxsplit=2)[0], line) for line in told("nm", "-C", str(module)).splitlines()
    )
    (address,) = (at for at, line in names.items() if HOT in line)
    (symbol,) = (
        line.split()[2] for line in told("nm", str(module)).splitlines() if line.startswith(address)
    )
    text = told("objdump", "-d", "--no-show-raw-insn", f"--disassemble={symbol}", str(module))
    found = [
        (int(at, 16), name, rest)
        for at, name, rest in re.findall(r"^ *(\w+):\t(\w+) *([^#<\n]*)", text, re.M)
    ]
    root = next(k for k, (_, name, _) in enumerate(found) if name == "vsqrtps")
    # The innermost loop around the first root: the first jump back over it.
    for at, name, rest in found[root:]:
        if name[0] == "j" and name != "jmp" and int(rest, 16) <= found[root][0]:
            return measure([(n, r) for a, n, r in found if int(rest, 16) <= a <= at])
    raise ValueError("the loop has no end")


def measure(loop: list[tuple[str, str]]) -> Loop:
    """Return what is in a loop of vector code, and the longest chain through one turn of it."""
    ready: dict[str, int] = {}
    chain = 0
    kinds = {"multiplications": 0, "additions": 0, "loads": 0, "results": 0}
    for name, rest in loop:
        if name[0] != "v":
            continue
        operands = re.findall(r"%ymm\d+|[-\w]*\([^)]*\)", rest)
        *sources, target = operands
        if "(" in target:  # a store
            continue
        read = [*sources, *([target] if name.startswith(("vfm", "vfnm")) else [])]
        memory = any("(" in s for s in read)
        kinds["loads"] += memory
        kinds["multiplications"] += name.startswith(("vf", "vmul", "vsqrt"))
        kinds["additions"] += name.startswith(("vadd", "vsub"))
        kinds["results"] += not name.startswith("vmova") or memory
        own = next((t for start, t in LATENCIES.items() if name.startswith(start)), 1)
        own = 0 if name.startswith(("vmov", "vbroadcast")) else own
        start = max([LOAD if memory else 0, *(ready.get(s, 0) for s in read)])
        ready[target] = start + own
        chain = max(chain, ready[target])
    return Loop(len(loop), chain=chain, **kinds)


def gigahertz() -> float:
    """Return the clock: vector multiply-adds per second, of which there are two in a cycle."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "fma_rate"
        source = str(ROOT / "benchmarks" / "fma_rate.c")
        flags = ["-O2", "-ffp-contract=fast", "-pthread", "-mavx2", "-mfma"]
        subprocess.run([os.environ.get("CC", "cc"), *flags, source, "-o", program], check=True)
        run = subprocess.run([program, "1", "0.5"], capture_output=True, text=True, check=True)
    return float(run.stdout.split()[1]) / 2e9


def seconds_per_vector(rounds: int = 7) -> float:
    """Return the time of this thread for one image against eight, the least of some rounds."""
    X = np.random.default_rng(0).standard_normal((9, SIZE, SIZE, 3)).astype(np.float32)
    kernel, spent = network(DEPTH), []
    for _ in range(rounds):
        start = time.thread_time()
        kernel(X[:1], X[1:], n_threads=1)
        spent.append(time.thread_time() - start)
    return min(spent)


# ---- tables

COUNTS = "| what | device | fp32 | imad | alu | mufu | other | shared | L1 | L2 | alone | blocks |"
TIMES = "| what | device | issue | fp32 | alu | mufu | shared | L1 | L2 | latency | cycles | time |"


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def rule(head: str) -> str:
    return row(*["---"] * (head.count("|") - 1))


def counts_row(what: str, machine: Machine, c: Counts) -> str:
    """Return what was counted, as the table has it."""
    n = dict(c.instructions)
    named = [n.pop(unit) for unit in ("fp32", "imad", "alu", "mufu")]
    numbers = [*named, sum(n.values()), c.shared, c.sectors, c.missed, c.alone]
    return row(what, machine.name, *(f"{x:.2f}" for x in numbers), c.blocks)


def counts_of(cells: list[str]) -> Counts:
    """Return the numbers of such a row."""
    fp32, imad, alu, mufu, other, shared, sectors, missed, alone = map(float, cells[2:11])
    instructions = {"fp32": fp32, "imad": imad, "alu": alu, "mufu": mufu, "other": other}
    return Counts(instructions, shared, sectors, missed, alone, int(cells[11]))


def predicted(what: str, c: float, machine: Machine) -> str:
    """Return the time of all multiprocessors, from the cycles of one for 32 entries."""
    nanoseconds = c / 32 / machine.processors / machine.clock
    if what.startswith("rows"):
        rate = COORDINATES / nanoseconds / (machine.processors * machine.fp32 * machine.clock)
        return f"{nanoseconds:.3f} ns, {rate / CUBLAS:.0%} of cuBLAS's rate"
    return f"{nanoseconds * SIZE**4 * DEPTH / 1e6:.2f} ms per pair"


def times_row(what: str, machine: Machine, c: Counts) -> str:
    """Return what follows from a row of counts."""
    total = cycles(c, machine)
    each = (f"{x:.1f}" for x in (*times(c, machine), total))
    return row(what, machine.name, *each, predicted(what, total, machine))


def cpu_table() -> list[str]:
    """Return the model of the CPU beside what is measured."""
    loop, clock = hot_loop(), gigahertz()
    spent = seconds_per_vector()
    measured = spent * clock * 1e9 / (SIZE**4 * DEPTH)
    rows_per_entry = (2 * SIZE - 1) / SIZE**2
    model = loop.with_chain() + loop.chain * rows_per_entry
    head = "| CPU | cycles for 8 entries in a layer | of what is measured |"
    return [
        head, rule(head),
        row("issue slots alone", f"{loop.issue():.1f}", f"{loop.issue() / measured:.0%}"),
        row("with chains and results in flight", f"{model:.1f}", f"{model / measured:.0%}"),
        row(f"measured, at {clock:.2f} GHz", f"{measured:.1f}", f"{spent * 125:.1f} ms per pair"),
        "",
        f"A turn of the loop has {loop.instructions} instructions with {loop.multiplications} "
        f"multiplications, {loop.additions} additions and {loop.loads} loads; it leaves "
        f"{loop.results} results, and its longest chain takes {loop.chain} cycles.",
    ]  # fmt: skip


def tables() -> str:
    """Return all tables of the model."""
    counts, found = [], []
    for what, make in ((f"rows, d = {COORDINATES}", rows), (f"{DEPTH} conv + GAP", images)):
        launch, work = make()
        for machine in MACHINES:
            # The text is rounded, and what follows is to follow from the text.
            line = counts_row(what, machine, counted(launch, machine.arch, work))
            counts.append(line)
            found.append(times_row(what, machine, counts_of(cells_of(line))))
            print(line, found[-1], sep="\n", file=sys.stderr)
    lines = [COUNTS, rule(COUNTS), *counts, "", TIMES, rule(TIMES), *found, "", *cpu_table()]
    return "\n".join(lines) + "\n"


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--show", action="store_true")
    show, found = parser.parse_args().show, tables()
    if show:
        print(found)
    else:
        DOCUMENT.write_text(PART.sub(lambda _: found, DOCUMENT.read_text()))


if __name__ == "__main__":
    main()
