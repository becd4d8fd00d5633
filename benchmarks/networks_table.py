"""The table of finite networks and of kernels that adapt: training, empirical kernels, derivatives.

    python benchmarks/networks_table.py [--quick] [--only NAME ..] [--figure FILE] [--json FILE]

PyTorch and xRFM run in the virtual environment that KERNELCORE_TORCH names, neural-tangents in that
of KERNELCORE_PEERS; without them their lines say ``not run``. README.md has each number.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path

from workers import Worker, serve

STEPS = 8  # of training, in a call
BLOCK = 100  # inputs of a block of neural-tangents, which would need 134 GB for 1,000 at once
ROUNDS = 6  # of recursive feature machines on the low-rank task
KERNELS = ("Laplacian", "Gaussian", "Matern", "NTK")
# rows, columns, units; of training, of the empirical kernel, of a round, of the gradient
FULL = {"train": (4096, 784, 4096), "ntk": (1000, 784, 4096), "round": (10_000, 100), "rank": 4000}
QUICK = {"train": (256, 64, 256), "ntk": (100, 64, 256), "round": (1000, 20), "rank": 500}
SIZES = QUICK if os.environ.get("KERNELCORE_QUICK") else FULL


def drawn(*shape, dtype="float32", seed=0):
    import numpy as np

    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


# ---- cases: functions that set up and return the call to be timed


def ours_train():
    import kernelcore as kc

    n, d, m = SIZES["train"]
    net = kc.Sequential(kc.Dense(2**0.5), kc.Relu(), kc.Dense())
    f, x, y = net.sample(m, seed=0, shape=d, dtype="float32"), drawn(n, d), drawn(n, seed=1)
    return lambda: kc.networks.train(f, x, y, step=0.1, steps=STEPS, every=STEPS)


def torch_train():
    import torch

    n, d, m = SIZES["train"]
    torch.set_num_threads(2)
    x, y = torch.from_numpy(drawn(n, d)), torch.from_numpy(drawn(n, 1, seed=1))
    layers = torch.nn.Linear(d, m, bias=False), torch.nn.ReLU(), torch.nn.Linear(m, 1, bias=False)
    net = torch.nn.Sequential(*layers)
    descent = torch.optim.SGD(net.parameters(), lr=1e-4)

    def call():
        for _ in range(STEPS):
            descent.zero_grad()
            (0.5 * ((net(x) - y) ** 2).mean()).backward()
            descent.step()

    return call


def ours_ntk(n=None, width=None, depth=3):
    import kernelcore as kc

    rows, d, units = SIZES["ntk"]
    f = kc.presets.mlp(depth).sample(width or units, seed=0, shape=d, dtype="float32")
    x = drawn(n or rows, d)
    return lambda: f.ntk(x)


def products():
    """The products of matrices that an empirical kernel of three hidden layers is made of."""
    import numpy as np

    n, d, m = SIZES["ntk"]
    x, h, w = drawn(n, d), drawn(n, m, seed=1), drawn(m, m, seed=2)
    first, big, square = drawn(d, m, seed=3), np.empty((n, m), "f4"), np.empty((n, n), "f4")

    def call():
        np.matmul(x, first, out=big)
        for _ in range(2):  # forward, and back
            np.matmul(h, w, out=big)
            np.matmul(h, w.T, out=big)
        np.matmul(x, x.T, out=square)
        for _ in range(3):  # of the units of hidden layers, and of the derivatives by them
            np.matmul(h, h.T, out=square)
            np.matmul(big, big.T, out=square)

    return call


def peer_ntk():
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import neural_tangents as nt
    from jax._src.interpreters import ad
    from neural_tangents import stax

    # Its fastest implementation uses names that JAX has made private.
    for name in set(dir(ad)) - set(dir(jax.interpreters.ad)):
        setattr(jax.interpreters.ad, name, getattr(ad, name))
    jax.interpreters.ad.config = jax.config
    n, d, m = SIZES["ntk"]
    hidden = [layer for _ in range(3) for layer in (stax.Dense(m), stax.Relu())]
    init, apply, _ = stax.serial(*hidden, stax.Dense(1))
    theta = init(jax.random.PRNGKey(0), (n, d))[1]
    kernel = nt.empirical_ntk_fn(apply, vmap_axes=0, implementation=3)
    call, x = jax.jit(lambda x, y: kernel(x, y, theta)), jax.numpy.asarray(drawn(n, d))
    a, b = x[:BLOCK], x[-BLOCK:]
    return lambda: call(a, b).block_until_ready()


def machine_of(rounds):
    """A recursive feature machine with a given ridge; without rounds it is a ridge regression."""
    import kernelcore as kc

    x = drawn(*SIZES["round"])
    model = kc.RecursiveFeatureMachine(kc.Laplacian(10.0), rounds, ridge=1e-3)
    return lambda: model.fit(x, x[:, 0] * x[:, 1])


def low_rank(n, seed):
    """The task of the paper: y depends on three of twenty coordinates."""
    x = drawn(n, 20, seed=seed) / 2
    return x, x[:, 0] * x[:, 1] * (x[:, 5] > 0)


def told(name, error):
    print(f"  {name}: test error {error:.5f}", file=sys.stderr, flush=True)


def ours_rank():
    import kernelcore as kc

    (x, y), (test, wanted) = low_rank(SIZES["rank"], 0), low_rank(2000, 1)
    model = kc.RecursiveFeatureMachine(kc.Laplacian(10.0), ROUNDS, ridge=1e-3)
    told("ours", ((model.fit(x, y).predict(test) - wanted) ** 2).mean())
    return lambda: model.fit(x, y)


def xrfm_rank():
    import torch
    from xrfm.rfm_src import RFM

    torch.set_num_threads(2)
    (x, y), (test, wanted) = low_rank(SIZES["rank"], 0), low_rank(2000, 1)
    some = tuple(map(torch.from_numpy, low_rank(1000, 2)))  # it does not fit without

    def call():
        model = RFM("l2", ROUNDS, bandwidth=10.0, device="cpu", verbose=False)
        pair = torch.from_numpy(x), torch.from_numpy(y)[:, None]
        model.fit(pair, (some[0], some[1][:, None]), reg=1e-3, verbose=False, early_stop_rfm=False)
        return model

    found = call().predict(torch.from_numpy(test)).numpy()[:, 0]
    told("xRFM", ((found - wanted) ** 2).mean())
    return call


def fitted(name, dtype, what):
    import kernelcore as kc

    kernel = {
        "Laplacian": kc.Laplacian(10.0), "Gaussian": kc.Gaussian(10.0),
        "Matern": kc.Matern(1.5, 10.0), "NTK": kc.presets.mlp(2, b_std=0.1).ntk,
    }[name]  # fmt: skip
    n, d = SIZES["round"]
    x = drawn(n // 2, d, dtype=dtype)
    model = kc.KernelRegressor(kernel, ridge=1.0).fit(x, x[:, 0])
    test = drawn(n // 10, d, dtype=dtype, seed=1)
    return lambda: getattr(model, what)(test)


CASES = {
    "train, ours": ours_train, "train, PyTorch": torch_train,
    "ntk, ours": ours_ntk, "ntk, products": products, "ntk, neural-tangents": peer_ntk,
    "round, none": partial(machine_of, 0), "round, one": partial(machine_of, 1),
    "low rank, ours": ours_rank, "low rank, xRFM": xrfm_rank,
} | {
    f"{what}, {name}, {dtype}": partial(fitted, name, dtype, what)
    for name in KERNELS for dtype in ("float32", "float64") for what in ("predict", "gradient")
}  # fmt: skip

GROWTH = {
    "width": [(w, partial(ours_ntk, 500, w)) for w in (256, 512, 1024, 2048, 4096)],
    "depth": [(k, partial(ours_ntk, 500, 1024, k)) for k in (1, 2, 4, 8, 16)],
    "n": [(n, partial(ours_ntk, n, 1024)) for n in (250, 500, 1000, 2000, 4000)],
}
CASES |= {f"{of}, {x}": case for of, points in GROWTH.items() for x, case in points}


# ---- the table


class Table:
    """Workers by environment, and what they have measured."""

    def __init__(self, only, rounds):
        own = os.environ.get
        here = {"ours": None, "PyTorch": own("KERNELCORE_TORCH"), "xRFM": own("KERNELCORE_TORCH"),
                "neural-tangents": own("KERNELCORE_PEERS")}  # fmt: skip
        self.places = {who: place for who, place in here.items() if who == "ours" or place}
        self.workers, self.only, self.rounds, self.record = {}, only, rounds, {}

    def worker(self, name):
        who = name.rpartition(", ")[2]
        place = self.places[who] if who in ("PyTorch", "xRFM", "neural-tangents") else None
        if place not in self.workers:
            self.workers[place] = Worker(__file__, place)
        return self.workers[place]

    def ratio(self, over, under):
        """Seconds of one case over those of another, in turn; None where one cannot run."""
        from rounds import banded, interleave, ratio

        names = over, under
        if not over.startswith(self.only):
            return None
        if any(n.rpartition(", ")[2] in ("PyTorch", "xRFM", "neural-tangents")
               and n.rpartition(", ")[2] not in self.places for n in names):  # fmt: skip
            print(f"{over} : {under}: not run", flush=True)
            return None
        found = interleave({n: partial(self.worker(n).measure, n) for n in names}, self.rounds)
        self.record[f"{over} : {under}"] = found
        least = " : ".join(f"{1e3 * found[n].min():.1f}" for n in names)
        times = ratio(*(found[n] for n in names))
        print(f"{over} : {under}   {least} ms   {banded(times, '{:.3f}')}", flush=True)
        return times[0]


def growth(table, path):
    """Seconds of the empirical kernel against width, depth and n, with slopes of the logarithms."""
    import matplotlib
    from growth import power_slope

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained", sharey=True)
    for (of, points), ax in zip(GROWTH.items(), axes, strict=True):
        sizes = [x for x, _ in points]
        seconds = [table.worker("ours").measure(f"{of}, {x}") for x in sizes]
        slope = power_slope(sizes[-3:], seconds[-3:])
        print(f"seconds against {of}: " + " ".join(f"{s:.3g}" for s in seconds) + f"; {slope:.2f}")
        table.record[f"growth, {of}"] = {"x": sizes, "seconds": seconds, "slope": slope}
        ax.loglog(sizes, seconds, "o-", ms=4)
        ax.set(xlabel=of, title=f"grows as {of}^{slope:.2f}")
        ax.minorticks_off()
        ax.set_xticks(sizes, [str(x) for x in sizes])
    axes[0].set_ylabel("seconds, empirical NTK")
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, which are not judged")
    parser.add_argument("--only", nargs="+", default=[""], help="how the names of cases begin")
    parser.add_argument("--rounds", type=int, default=4, help="an even number")
    parser.add_argument("--figure", type=Path, help="draw how the time of a kernel grows")
    parser.add_argument("--json", type=Path, help="write all numbers there")
    o = parser.parse_args()
    if o.quick:
        os.environ["KERNELCORE_QUICK"] = "1"

    from rounds import judge, machine, missed, save

    for key, value in machine().items():
        print(f"{key}: {value}")
    table = Table(tuple(o.only), o.rounds)
    over = table.ratio
    steps, block = over("train, PyTorch", "train, ours"), over("ntk, neural-tangents", "ntk, ours")
    count = SIZES["ntk"][0] // BLOCK
    peers = None if block is None else block * count * (count + 1) / 2
    targets = [
        ("steps per second of training, over PyTorch's", steps, ">=", 0.9),
        ("empirical NTK over its products", over("ntk, ours", "ntk, products"), "<=", 3),
        ("neural-tangents over ours, empirical NTK", peers, ">=", 5),
    ]
    one = over("round, one", "round, none")
    targets += [
        ("a round over the ridge regression in it", None if one is None else one - 1, "<=", 2),
        ("xRFM over ours, the same fits", over("low rank, xRFM", "low rank, ours"), ">=", 1),
    ]
    for name in KERNELS:
        for dtype in ("float32", "float64"):
            what = f"{name}, {dtype}"
            found = over(f"gradient, {what}", f"predict, {what}")
            targets.append((f"gradient over predict, {what}", found, "<=", 3))
    if o.figure:
        growth(table, o.figure)
    print()
    table.record["verdicts"] = judge(targets, not o.quick)
    if o.json:
        save(o.json, table.record)
    return missed(table.record["verdicts"])


if __name__ == "__main__":
    raise SystemExit(serve(CASES, least=1) if sys.argv[1:] == ["--serve"] else main())
