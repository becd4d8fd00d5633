"""Print the errors of float32 kernels of images against float64, by depth and kind of images.

    python benchmarks/accuracy.py [--json FILE]

ReLU networks of 3 x 3 convolutions on images of 16 x 16 pixels and 3 channels. Errors are relative
to sqrt(K_ii K_jj): their root mean square over the pairs of 12 images, and the largest. `white`
images have independent pixels, `smooth` ones are blurred over 5 pixels, `near` ones are within 1 %
of each other, and `opposite` ones come in pairs x, -x. The last lines ask that an image and its
copy keep correlation 1 through 100 layers: K(x, x') = sqrt(K(x, x) K(x', x')) to rounding.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from scipy.ndimage import uniform_filter

import kernelcore as kc


def images(kind: str, n: int = 12, size: int = 16) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, size, size, 3))
    if kind == "smooth":
        return uniform_filter(x, (0, 5, 5, 0), mode="wrap") * 5
    if kind == "near":
        return x[:1] + 0.01 * x
    if kind == "opposite":
        return np.concatenate([x[: n // 2], -x[: n // 2]])
    return x


def network(depth: int, end: kc.Sequential) -> kc.Sequential:
    return kc.Sequential(*[kc.Conv(3, w_std=2**0.5), kc.Relu()] * depth, end, kc.Dense())


def errors(kernel, x: np.ndarray) -> tuple[float, float]:
    want = kernel(x)
    size = np.sqrt(np.multiply.outer(np.diagonal(want), np.diagonal(want)))
    wrong = np.abs(kernel(x.astype(np.float32)) - want) / size
    return float(np.sqrt((wrong**2).mean())), float(wrong.max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    path = parser.parse_args().json
    rows: dict[str, tuple[float, float]] = {}
    print(f"{'':34} {'rms':>9} {'largest':>9}")
    for name, end in (("GAP", kc.GlobalAvgPool()), ("Flatten", kc.Flatten())):
        for depth in (5, 10, 21):
            for kind in ("white", "smooth", "near", "opposite"):
                x = images(kind).astype(np.float32).astype(np.float64)
                for which in ("nngp", "ntk"):
                    case = f"{depth} conv + {name}, {kind}, {which}"
                    rows[case] = errors(getattr(network(depth, end), which), x)
                    print(f"{case:34} {rows[case][0]:9.1e} {rows[case][1]:9.1e}", flush=True)
    for dtype in (np.float32, np.float64):
        x = images("smooth", 2, 8).astype(dtype)
        K = network(100, kc.Flatten()).nngp(np.concatenate([x, x]))
        off = np.abs(K[[0, 1], [2, 3]] / np.diagonal(K)[:2] - 1).max() / np.finfo(dtype).eps
        print(f"copies through 100 layers, {np.dtype(dtype).name}: {off:.1f} eps")
    if path:
        with open(path, "w") as file:
            json.dump(rows, file)


if __name__ == "__main__":
    main()
