"""Times on a device, by CUDA events: a table to paste.

    python benchmarks/gpu_table.py [--rounds 5]

Run ``pytest -m gpu`` first. Rows are the NTK of three hidden ReLU layers, images 32 x 32 x 3.
"""

import argparse

import numpy as np
from rounds import machine

import kernelcore as kc
from kernelcore.engine.gpu import devices

RELU = [kc.Conv(3, w_std=2**0.5), kc.Relu()]


def network(depth, end):
    return kc.Sequential(*RELU * depth, end, kc.Dense()).ntk


CASES = {
    "rows, d = 784, ns per entry": (kc.presets.mlp(3).ntk, (8000, 784), 1e9),
    "rows, d = 16, ns per entry": (kc.presets.mlp(3).ntk, (8000, 16), 1e9),
    "5 conv + GAP, ms per pair": (network(5, kc.GlobalAvgPool()), (64, 32, 32, 3), 1e3),
    "21 conv + GAP, ms per pair": (network(21, kc.GlobalAvgPool()), (32, 32, 32, 3), 1e3),
    "5 conv + Flatten, ms per pair": (network(5, kc.Flatten()), (512, 32, 32, 3), 1e3),
}


def milliseconds(cupy, call, rounds):
    """The least time of a call between two events; the first one, which compiles, is not timed."""
    call()
    found = []
    for _ in range(rounds):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        call()
        stop.record()
        stop.synchronize()
        found.append(cupy.cuda.get_elapsed_time(start, stop))
    return min(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    cupy = devices.cupy()
    for key, value in {**machine(), **devices.facts()}.items():
        print(f"{key}: {value}")
    print("\nof a symmetric matrix, by the entries that are computed:\n")
    print("| case | float32 | float64 |")
    print("| --- | --- | --- |")
    for name, (kernel, shape, unit) in CASES.items():
        times = []
        for dtype in (np.float32, np.float64):
            X = cupy.asarray(np.random.default_rng(0).standard_normal(shape).astype(dtype))
            entries = shape[0] * (shape[0] + 1) / 2
            spent = milliseconds(cupy, lambda k=kernel, x=X: k(x), rounds)
            times.append(unit * spent / 1e3 / entries)
        print(f"| {name} | {times[0]:.4g} | {times[1]:.4g} |")


if __name__ == "__main__":
    main()
