"""The table of large matrices: stores, clusters, products, a million points, and the planner.

    python benchmarks/scale_table.py [SECTION ...] [--quick] [--most N]

Each section says what it measures beside what, and README.md says what is asked of it.
"""

import argparse
import contextlib
import functools
import multiprocessing
import os
import random
import shutil
import tempfile
import time
import uuid
import warnings
from pathlib import Path

from rounds import banded, clock, interleave, judge, machine, missed, ratio, save

# isort: split
import numpy as np
from falkon import falkon
from growth import power_slope
from pairs import images
from probe import network, points, resident
from solvers_table import LENGTHSCALE, apart, plain_kernel

import kernelcore as kc
from kernelcore.scale import plan
from kernelcore.scale.job import Job
from kernelcore.scale.source import Source
from kernelcore.scale.store import Tiles

ROWS = kc.presets.mlp(2).ntk
GB = 1e9
OUTPUTS = 10
BLOCK = 4096  # the side of a block that the dense engine's own rate is measured with
WHO = ("CG", "EigenPro", "Nystrom", "Falkon in NumPy")


def say(text):
    print(f"  {text}", flush=True)


def seconds_of(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def beyond(work):
    """What ``work`` returns, and the most bytes that this process had beyond those of before."""
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again from here
    before = resident("VmRSS")
    return work(), resident("VmHWM") - before


def convolutions(depth):
    return network("cr" * depth + "go").ntk


# ---- store


def stored(kernel, X, folder):
    """Seconds of a Gram matrix into a new store, which is removed afterwards."""
    store = folder / uuid.uuid4().hex
    seconds = seconds_of(lambda: kc.gram(kernel, X, store=store))
    shutil.rmtree(store)
    return seconds


def written(folder, block, count):
    """Seconds of as many files with these bytes, each synced to the disk before the next."""
    place = folder / uuid.uuid4().hex
    place.mkdir()

    def work():
        for k in range(count):
            with open(place / str(k), "wb") as file:
                file.write(block)
                file.flush()
                os.fsync(file.fileno())

    seconds = seconds_of(work)
    shutil.rmtree(place)
    return seconds


def store(o):
    n, depth = (40, 2) if o.quick else (300, 3)
    with tempfile.TemporaryDirectory(dir=o.folder) as name:
        folder = Path(name)
        kernel, X = convolutions(depth), images(n)
        kernel(X[:2])
        say(f"{n} images, {depth} conv + GAP, NTK")
        found = interleave(
            {
                "memory": lambda: seconds_of(lambda: kc.gram(kernel, X)),
                "store": lambda: stored(kernel, X, folder),
            },
            o.rounds, warm=False,
        )  # fmt: skip
        images_ratio = ratio(found["store"], found["memory"])
        shown(found)
        say(f"store / memory: {banded(images_ratio, '{:.3f}')}")

        n = 2000 if o.quick else 20_000
        X = points(n, 784)
        size = kc.gram(ROWS, X, store=folder / "first").tiling.size
        shutil.rmtree(folder / "first")
        # Zarr writes chunks whole where the matrix ends, too.
        count, block = (-(-n // size)) ** 2, np.ones((size, size), np.float32)
        say(f"{n} rows of 784, NTK of depth 2, {count} files of {block.nbytes / 1e6:.0f} MB")
        # Memory that is fresh may take longer than the kernel, and a store needs none.
        room = np.empty((n, n), np.float32)
        ROWS(X, out=room)
        rows = interleave(
            {
                "computing": lambda: seconds_of(lambda: ROWS(X, out=room)),
                "memory": lambda: seconds_of(lambda: kc.gram(ROWS, X)),
                "store": lambda: stored(ROWS, X, folder),
                "disk": lambda: written(folder, block.data, count),
            },
            2 * o.rounds, warm=False,
        )  # fmt: skip
        shown(rows)
        slower = max(rows["computing"].min(), rows["disk"].min())
        rows_ratio = rows["store"].min() / slower
        say(f"store / the slower of computing and the disk: {rows_ratio:.3f}")
    return {"images": found, "rows": rows}, [
        ("store over memory, images", images_ratio[0], "<=", 1.05),
        ("store over the slower of computing and disk, rows", rows_ratio, "<=", 1.2),
    ]


def shown(seconds):
    for name, values in seconds.items():
        say(f"{name:>14}: {values.min():8.2f} s   (all rounds: {np.round(values, 2).tolist()})")


# ---- dask


# Dask's processes look at themselves: with its defaults they take 13 % of a core while they do
# nothing, with these 3 %. SCALE.md advises them where workers have no cores to spare.
SELDOM = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
}


@contextlib.contextmanager
def workers(count):
    """A client of workers of one thread.

    Dask leaves OMP_NUM_THREADS=1 and the like in the environment, with which processes that other
    sections start would measure one thread of BLAS.
    """
    import dask
    from distributed import Client, LocalCluster

    quiet = {"dashboard_address": ":0", "silence_logs": 50}
    before = dict(os.environ)
    os.environ.update(SELDOM)  # workers read it when they start, and this process now
    dask.config.refresh()
    try:
        with (
            LocalCluster(n_workers=count, threads_per_worker=1, processes=True, **quiet) as cluster,
            Client(cluster) as client,
        ):
            yield client
    finally:
        os.environ.clear()
        os.environ.update(before)


def dask(o):
    n, depth = (60 if o.quick else 600), 1
    kernel, X = convolutions(depth), images(n)
    tiny, tile = points(320 if o.quick else 1280, 16), 32
    job = Job(ROWS, Source(tiny, "X"), None, tile)
    with workers(1) as one, workers(2) as two, tempfile.TemporaryDirectory(dir=o.folder) as folder:
        clients = {"one worker": one, "two workers": two}
        for client in clients.values():  # modules loaded on all of them
            kc.gram(kernel, X[:16], client=client, tile=2)
            kc.gram(ROWS, tiny, client=client, tile=128)
        say(f"{n} images, {depth} conv + GAP, NTK, workers of one thread")
        found = interleave(
            {
                name: lambda client=client: seconds_of(lambda: kc.gram(kernel, X, client=client))
                for name, client in clients.items()
            },
            o.rounds, warm=False,
        )  # fmt: skip
        shown(found)
        faster = ratio(found["one worker"], found["two workers"])
        say(f"one / two: {banded(faster, '{:.3f}')}")

        def here():
            return seconds_of(lambda: [job.compute(place, 1) for place in job.tiles])

        def there(store=None):
            return seconds_of(lambda: kc.gram(ROWS, tiny, client=one, tile=tile, store=store))

        say(f"{len(job.tiles)} tiles of {tile} x {tile} on one worker")
        tiles = interleave(
            {
                "computing": here, "cluster": there,
                "and a store": lambda: there(Path(folder) / uuid.uuid4().hex),
            },
            2 * o.rounds,
        )  # fmt: skip
        shown(tiles)
    each = {
        name: 1e3 * (tiles[name].min() - tiles["computing"].min()) / len(job.tiles)
        for name in ("cluster", "and a store")
    }
    say(f"milliseconds per tile: {each['cluster']:.2f}, with a store {each['and a store']:.2f}")
    return {"images": found, "tiles": tiles, "overhead": each}, [
        ("two workers over one, images", faster[0], ">=", 1.85),
        ("ms of overhead per tile", each["cluster"], "<", 20),
        ("ms of overhead per tile, with a store", each["and a store"], "<", 20),
    ]


# ---- simulate


def simulate(o):
    """The schedule of the planner beside a real run on two workers."""
    n, depth, tile = (48, 1, 8) if o.quick else (256, 2, 16)
    kernel, X = convolutions(depth), images(n)
    tiles = Tiles((n, n), tile, True)
    foreseen = kc.plan(kernel, n=n, shape=X.shape[1:], workers=2, tile=tile)
    with workers(2) as client:
        kc.gram(kernel, X[:16], client=client, tile=2)
        client.get_task_stream()  # the scheduler keeps times from here
        began = time.time()
        wall = seconds_of(lambda: kc.gram(kernel, X, client=client, tile=tile))
        tasks = [
            (task["worker"], part["start"] - began, part["stop"] - began)
            for task in client.get_task_stream(start=began)
            if task["key"].startswith("kernelcore-tile")
            for part in task["startstops"]
            if part["action"] == "compute"
        ]
    tasks.sort(key=lambda task: task[1])
    spent = [stop - start for _, start, stop in tasks]
    ends = {name: max(stop for who, _, stop in tasks if who == name) for name, *_ in tasks}
    after = plan.schedule(spent, 2, measured=True)
    say(f"{n} images, {depth} conv + GAP, {len(tasks)} of {len(tiles)} tiles timed by workers")
    say(f"real run: {wall:.2f} s; its workers finished at {listed(ends.values())} s")
    say(f"schedule of these tiles: {after.max():.2f} s; workers at {listed(after)} s")
    say(
        f"plan before the run: {foreseen.wall_seconds:.2f} s; workers {listed(foreseen.finished)} s"
    )
    record = {
        "wall": wall, "ends": list(ends.values()), "tiles": spent, "scheduled": after,
        "planned": foreseen.wall_seconds,
    }  # fmt: skip
    return record, [
        ("schedule of measured tiles, off the real run by", abs(after.max() / wall - 1), "<=", 0.1),
        ("plan before the run, off by", abs(foreseen.wall_seconds / wall - 1), "<=", 0.15),
    ]


def listed(values):
    return ", ".join(f"{value:.2f}" for value in sorted(values))


# ---- product


def products(n, rounds):
    """In a process of its own: seconds of products and of blocks in turn, and memory of the first.

    Every product is the first one of an operator, which computes all entries.
    """
    X = points(n, 784)
    x = np.random.default_rng(1).standard_normal((n, OUTPUTS), dtype=np.float32)
    side = min(BLOCK, n // 2)
    out = np.empty((side, side), np.float32)
    ROWS(X[:side], X[side : 2 * side], out=out)

    def product():
        return seconds_of(lambda: kc.GramOperator(ROWS, X, max_memory=GB) @ x)

    memory = beyond(product)[1]
    block = functools.partial(ROWS, X[:side], X[side : 2 * side], out=out)
    found = interleave({"product": product, "dense": lambda: clock(block)}, rounds, warm=False)
    return found, memory, side


def product(o):
    n = min(o.most, 4000 if o.quick else 100_000)
    say(f"GramOperator, n = {n}, d = 784, NTK of depth 2, {OUTPUTS} right-hand sides")
    found, memory, side = apart(products, n, o.rounds)
    shown(found)
    rates = {
        "product": n * (n + 1) / 2 / found["product"].min(),
        "dense": side**2 / found["dense"].min(),
    }
    say(", ".join(f"{name} {rate / 1e6:.0f} entries/us" for name, rate in rates.items()))
    say(f"most memory beyond the inputs: {memory / GB:.3f} GB")
    return {"seconds": found, "rates": rates, "memory": memory}, [
        ("entry rate of a product, of the dense engine's", rates["product"] / rates["dense"],
         ">=", 0.8),
        ("GB beyond the inputs, product", memory / GB, "<=", 1.0),
    ]  # fmt: skip


# ---- million


class Sampled(kc.GramOperator):
    """An operator whose products take some of its tiles, drawn at random, and keep none."""

    def _lay(self):
        super()._lay()
        self._whole, self._keeps = self._grid, set()
        self._most = max((r.stop - r.start) * (c.stop - c.start) for r, c in self._whole)

    def draw(self):
        """Draw tiles, and return how many entries a product now computes."""
        self._grid = random.sample(self._whole, min(SAMPLE, len(self._whole)))
        sizes = [(r.stop - r.start, c.stop - c.start, r == c) for r, c in self._grid]
        return sum(n * (n + 1) // 2 if same else n * m for n, m, same in sizes)


SAMPLE = 20


class Ridge:
    """Full-data ridge by EigenPro, which may be killed: an epoch is lost at most.

    Each epoch draws by its own seed, so that a run which was killed ends in the same bits, if it
    goes on with as many threads: products of BLAS depend on their number.
    """

    def __init__(self, n, dim, checkpoint=None, seed=0):
        rng = np.random.default_rng(seed)
        self.X, self.y = self.drawn(rng, n, dim)
        self.X_test, self.y_test = self.drawn(rng, min(n, 2000), dim)
        self.ridge, self.epoch, self.told = 1e-6 * n, 0, []
        self.alpha = np.zeros_like(self.y)
        self.checkpoint = checkpoint
        if checkpoint is not None and checkpoint.exists():
            with np.load(checkpoint, allow_pickle=False) as found:
                self.alpha, self.epoch = found["alpha"], int(found["epoch"])
                self.told = found["told"].tolist()

    @staticmethod
    def drawn(rng, n, dim):
        """Points, and smooth targets of the same functions with noise of a tenth."""
        X = rng.standard_normal((n, dim), dtype=np.float32)
        inner = np.random.default_rng(7).standard_normal((dim, OUTPUTS), dtype=np.float32)
        y = np.tanh(X @ inner * np.float32(dim**-0.5))
        return X, y + np.float32(0.1) * rng.standard_normal(y.shape, dtype=np.float32)

    def error(self, alpha):
        off = kc.GramOperator(ROWS, self.X_test, self.X, max_memory=GB) @ alpha - self.y_test
        return float(np.linalg.norm(off) / np.linalg.norm(self.y_test))

    def run(self, epochs, pause=0.0):
        while self.epoch < epochs:
            start = time.perf_counter()
            fit = kc.solvers.eigenpro(
                ROWS, self.X, self.y, self.ridge, epochs=1, initial=self.alpha, seed=self.epoch,
                max_memory=GB,
            )  # fmt: skip
            seconds = time.perf_counter() - start
            self.alpha, self.epoch = fit.alpha, self.epoch + 1
            self.told.append([seconds, float(fit.residuals[-1]), self.error(fit.alpha)])
            self.save()
            say(
                "epoch {}: {:.1f} s, residual {:.3g}, test error {:.3g}".format(
                    self.epoch, *self.told[-1]
                )
            )
            time.sleep(pause)
        return self.alpha

    def save(self):
        """Write a checkpoint beside the last one, and then in its place."""
        if self.checkpoint is None:
            return
        partial = self.checkpoint.with_suffix(".partial")
        with open(partial, "wb") as file:
            np.savez(file, alpha=self.alpha, epoch=self.epoch, told=self.told)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, self.checkpoint)


def killed(n, dim, checkpoint, epochs, pause=5.0):
    Ridge(n, dim, checkpoint).run(epochs, pause)


def resumed(n, dim, folder, epochs=2):
    """Whether a run that is killed after its first checkpoint ends as one that is not."""
    checkpoint = Path(folder) / "ridge.npz"
    process = multiprocessing.get_context("spawn").Process(
        target=killed, args=(n, dim, checkpoint, epochs)
    )
    process.start()
    while not checkpoint.exists() and process.is_alive():
        time.sleep(0.01)
    process.kill()
    process.join()
    going_on = Ridge(n, dim, checkpoint)
    say(f"killed after epoch {going_on.epoch}; the same run goes on, and then one without a break")
    again = going_on.run(epochs)
    return going_on.epoch == epochs and np.array_equal(again, Ridge(n, dim).run(epochs))


def passes(n, dim, seconds):
    """In a process of its own: rates of a symmetric and a rectangular pass, from samples."""
    task = Ridge(n, dim)
    x = task.alpha + np.float32(0.1)
    ROWS(task.X[:BLOCK], task.X[:BLOCK])
    rows = max(1, min(n, int(GB // (n * x.itemsize))))  # as EigenPro takes with 1 GB

    def square():
        """Tiles of GramOperator, drawn anew."""
        return K.draw(), seconds_of(lambda: K @ x)

    def wide():
        """Rows of K as EigenPro takes them, times the coefficients."""
        which = rng.choice(n, rows, replace=False)
        return rows * n, seconds_of(lambda: K.rows(which, buffer) @ x)

    def sampled(work, name):
        work()  # scratch is there afterwards, as it is for most of a pass
        entries, spent, last = 0, 0.0, 0.0
        while spent < seconds:
            found = work()
            entries, spent = entries + found[0], spent + found[1]
            if spent - last > 10:
                say(f"{name}: {entries:.3g} entries in {spent:.0f} s")
                last = spent
        return entries, spent

    rng = np.random.default_rng(3)
    K, buffer = Sampled(ROWS, task.X, max_memory=GB), np.empty((rows, n), np.float32)
    found = {"symmetric": sampled(square, "symmetric"), "rectangular": sampled(wide, "rectangular")}
    return found, resident("VmHWM")


def whole_passes(n, dim, checkpoint, epochs):
    task = Ridge(n, dim, checkpoint)
    say("one symmetric product")
    spent = seconds_of(lambda: kc.GramOperator(ROWS, task.X, max_memory=GB) @ (task.alpha + 1))
    found = {"symmetric": (n * (n + 1) // 2, spent)}
    say(f"EigenPro, with checkpoints in {checkpoint}")
    task.run(epochs)
    found["rectangular"] = n * n, min(seconds for seconds, *_ in task.told)
    return found, resident("VmHWM")


def million(o):
    n, dim = min(o.most, 20_000 if o.quick else 1_000_000), 16
    total = {"symmetric": n * (n + 1) // 2, "rectangular": n * n}
    say(f"full-data ridge, n = {n}, d = {dim}, NTK of depth 2, {OUTPUTS} outputs")
    with tempfile.TemporaryDirectory(dir=o.folder) as folder:
        if o.whole:
            checkpoint = o.checkpoint or Path(folder) / "ridge.npz"
            found, memory = apart(whole_passes, n, dim, checkpoint, o.epochs)
        else:
            found, memory = apart(passes, n, dim, 1 if o.quick else o.seconds)
        same = resumed(min(n, 2000 if o.quick else 10_000), dim, folder)
    minutes = {}
    for name, (entries, spent) in found.items():
        minutes[name] = spent * total[name] / entries / 60
        share = entries / total[name]
        how = "measured whole" if o.whole else f"extrapolated from {100 * share:.2g} % of a pass"
        each = 1e9 * spent / entries
        say(f"{name}: {each:.2f} ns an entry, {minutes[name]:.2f} min a pass, {how}")
    say(f"most memory of the process: {memory / GB:.2f} GB")
    say(f"killed and resumed: {'the same bits' if same else 'DIFFERENT'}")
    return {"found": found, "minutes": minutes, "memory": memory}, [
        ("minutes of a symmetric product", minutes["symmetric"], "<=", 30),
        ("minutes of a rectangular pass", minutes["rectangular"], "<=", 60),
        ("GB, a million points", memory / GB, "<=", 4),
        ("killed runs that end in other bits", int(not same), "<=", 0),
    ]


# ---- krr and growth


def regress(who, n, o):
    """In a process of its own: one solver on n points, what it took, and how well it predicts."""
    rng = np.random.default_rng(5)
    X, y = Ridge.drawn(rng, n, 50)
    X_test, y_test = Ridge.drawn(rng, 2000, 50)
    kernel, ridge = kc.Laplacian(LENGTHSCALE), 1e-5 * n
    centres = X[: min(n, o.centres)]
    history, known = [], None
    start = time.perf_counter()

    def note(left):
        """Keep the seconds; who gives no residuals on the way has them in the end."""
        history.append((time.perf_counter() - start, float(np.max(left))))
        say(f"{who}, n = {n}, pass {len(history)}: {history[-1][0]:.1f} s, {history[-1][1]:.2g}")

    with warnings.catch_warnings():  # where the passes end first, the table says so
        warnings.simplefilter("ignore", RuntimeWarning)
        if who == "CG":
            rank = min(o.rank, n // 4)
            room = max(3e8, 3e9 - 8.0 * n * rank)  # the preconditioner, and as much to make it
            K = kc.GramOperator(kernel, X, max_memory=room)
            P = kc.solvers.nystrom_preconditioner(K, rank=rank, ridge=ridge, seed=0)
            say(f"CG, n = {n}, preconditioner: {time.perf_counter() - start:.1f} s")
            a = kc.solvers.conjugate_gradients(
                K, y, ridge, preconditioner=P, tol=o.tol, max_iter=o.passes,
                callback=lambda k, a, left: note(left) if k else None,
            ).alpha  # fmt: skip
        elif who == "EigenPro":
            fit = kc.solvers.eigenpro(
                kernel, X, y, ridge, tol=o.tol, epochs=o.passes, seed=0, max_memory=1.5e9,
                callback=lambda k, a, mse: note(np.nan), progress=True,
            )  # fmt: skip
            a, known = fit.alpha, fit.residuals[1:]
        elif who == "Nystrom":
            fit = kc.solvers.nystrom_ridge(
                kernel, X, y, ridge, centres=centres, tol=o.tol, max_iter=o.passes, max_memory=3e9
            )
            a, known = fit.alpha, () if fit.residuals is None else fit.residuals[1:].max(1)
            history = [(np.nan, np.nan) for _ in known]
        else:
            a = falkon(
                plain_kernel, X, y, ridge, centres, o.tol, o.passes, 3e9,
                lambda seconds, left: note(left),
            )  # fmt: skip
    seconds, memory = time.perf_counter() - start, resident("VmHWM")
    if known is not None:
        history = [(at, float(left)) for (at, _), left in zip(history, known, strict=True)]
    at = X if len(a) == n else centres
    off = kc.GramOperator(kernel, X_test, at, max_memory=GB) @ a - y_test
    return {
        "seconds": seconds, "history": history, "memory": memory,
        "error": float(np.linalg.norm(off) / np.linalg.norm(y_test)),
    }  # fmt: skip


@functools.cache
def regressed(who, n):
    return apart(regress, who, n, OPTIONS)


def krr(o):
    n = min(o.most, 1000 if o.quick else 200_000)
    say(f"ridge regression, n = {n}, d = 50, Laplacian kernel, to a residual of {o.tol:g};")
    say(f"Nystrom and Falkon with the same {min(n, o.centres)} centres")
    found = {who: regressed(who, n) for who in WHO}
    say(f"{'':>16}  seconds  passes  residual  test error     GB")
    for who, row in found.items():
        last = f"{row['history'][-1][1]:9.2g}" if row["history"] else "   direct"
        say(
            f"{who:>16} {row['seconds']:8.1f} {len(row['history']):7} {last} "
            f"{row['error']:11.4f} {row['memory'] / GB:6.2f}"
        )
    for who, row in found.items():
        say(f"residuals, {who}: " + " ".join(f"{left:.2g}" for _, left in row["history"]))
    times = found["Falkon in NumPy"]["seconds"] / found["Nystrom"]["seconds"]
    say(f"Falkon in NumPy takes {times:.2f} times the seconds of ours with its centres")
    return found, [(f"GB, {who}", found[who]["memory"] / GB, "<=", 4) for who in ("CG", "EigenPro")]


def growth(o):
    sizes = (500, 1000, 2000) if o.quick else (10_000, 20_000, 50_000, 100_000, 200_000)
    sizes = [n for n in sizes if n <= o.most]
    seconds = {who: [regressed(who, n)["seconds"] for n in sizes] for who in WHO}
    seconds["a pass of CG"] = [each_pass(regressed("CG", n)["history"]) for n in sizes]
    slopes = {who: power_slope(sizes, row) for who, row in seconds.items()}
    say(f"{'seconds, n =':>16} " + "".join(f"{n:9}" for n in sizes) + "  exponent")
    for who, row in seconds.items():
        say(f"{who:>16} " + "".join(f"{value:9.2f}" for value in row) + f"{slopes[who]:10.2f}")
    if o.figure:
        figure(sizes, seconds, slopes, o.figure)
    return {"n": sizes, "seconds": seconds, "exponents": slopes}, []


def each_pass(history):
    """Seconds between the first and the last pass, or of the first where there is no other."""
    (first, _), (last, _) = history[0], history[-1]
    return (last - first) / (len(history) - 1) if len(history) > 1 else first


def figure(sizes, seconds, slopes, path):
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
    for who, row in seconds.items():
        ax.loglog(sizes, row, "o-", ms=4, label=f"{who}: n^{slopes[who]:.2f}")
    ax.set(xlabel="n", ylabel="seconds", title="ridge regression, d = 50, Laplacian kernel")
    ax.legend(fontsize=8)
    plt.savefig(path)


# ---- plan


def tile_seconds(kernel, shape, sizes):
    """Seconds of one tile, in one thread, of inputs that are drawn first."""
    rng = np.random.default_rng()
    n, m = sizes
    a = rng.standard_normal((n, *shape), dtype=np.float32)
    b = None if m is None else rng.standard_normal((m, *shape), dtype=np.float32)
    return seconds_of(lambda: kernel(a, b, n_threads=1))


def planned(o):
    """The estimate for a job, beside a random sample of its tiles on all cores."""
    n, shape = 60_000, (32, 32, 3)
    kernel = kc.presets.cntk(o.depth or (3 if o.quick else 21), gap=True).ntk
    minutes = o.minutes or (0.2 if o.quick else 20)
    p = kc.plan(kernel, n=n, shape=shape, workers=64)
    for line in str(p).splitlines():
        say(line)
    tiles = Tiles((n, n), p.tile, True)
    draw = random.Random(0)

    def drawn():
        """The sides of a tile on or above the diagonal, each with the same odds; and its pairs."""
        while True:
            place = draw.randrange(tiles.counts[0]), draw.randrange(tiles.counts[1])
            if place[0] <= place[1]:
                break
        n, m = (s.stop - s.start for s in tiles.at(place))
        return ((n, None), n * (n + 1) // 2) if tiles.diagonal(place) else ((n, m), n * m)

    cores, deadline = len(os.sched_getaffinity(0)), time.monotonic() + 60 * minutes
    pairs, spent, count, last = 0, 0.0, 0, time.monotonic()
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        pool.starmap(tile_seconds, [(kernel, shape, (2, 2))] * cores)  # modules loaded
        flying = []
        while flying or time.monotonic() < deadline:
            while len(flying) < cores and time.monotonic() < deadline:
                sizes, entries = drawn()
                task = pool.apply_async(tile_seconds, (kernel, shape, sizes))
                flying.append((task, entries))
            for task, entries in [each for each in flying if each[0].ready()]:
                pairs, spent, count = pairs + entries, spent + task.get(), count + 1
                flying.remove((task, entries))
            if time.monotonic() - last > 60:
                last = time.monotonic()
                say(f"{count} tiles, {1e3 * spent / pairs:.3f} ms a pair")
            time.sleep(0.01)
    found = spent / pairs
    say(f"{count} tiles of {len(tiles)} in {minutes:g} min on {cores} cores: {pairs} pairs")
    say(f"a pair on one core: {1e3 * found:.4f} ms measured, {1e3 * p.entry_seconds:.4f} planned")
    off = abs(p.entry_seconds / found - 1)
    record = {"planned": p.entry_seconds, "measured": found, "tiles": count, "pairs": pairs}
    return record, [("plan off a sample of its tiles by", off, "<=", 0.15)]


SECTIONS = {
    "store": store, "dask": dask, "simulate": simulate, "product": product, "million": million,
    "krr": krr, "growth": growth, "plan": planned,
}  # fmt: skip


def main():
    global OPTIONS
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="small sizes, which are not judged")
    parser.add_argument("--most", type=int, default=10**9, help="the largest n of any section")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where stores go, a temporary one by default")
    parser.add_argument("--seconds", type=float, default=60, help="of a sample of a million")
    parser.add_argument("--whole", action="store_true", help="whole passes of a million: hours")
    parser.add_argument("--checkpoint", type=Path, help="of --whole, which goes on from there")
    parser.add_argument("--epochs", type=int, default=1, help="of --whole, with those before")
    parser.add_argument("--centres", type=int, default=3000, help="of Nystrom and Falkon")
    parser.add_argument("--rank", type=int, default=1000, help="of the preconditioner of CG")
    parser.add_argument("--tol", type=float, default=1e-2, help="residual of krr and growth")
    parser.add_argument("--passes", type=int, default=30, help="of krr and growth, at most")
    parser.add_argument("--minutes", type=float, help="of the sample of plan (20)")
    parser.add_argument("--depth", type=int, help="of the network of plan (21)")
    parser.add_argument("--figure", type=Path, help="draw growth there")
    parser.add_argument("--json", type=Path, help="write all numbers there")
    OPTIONS = o = parser.parse_args()
    unknown = set(o.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"sections are {', '.join(SECTIONS)}: got {', '.join(unknown)}")

    record = {"machine": machine()}
    for key, value in record["machine"].items():
        print(f"{key}: {value}")
    targets = []
    for name in o.sections or SECTIONS:
        print(f"\n{name}", flush=True)
        start = time.perf_counter()
        record[name], asked = SECTIONS[name](o)
        targets += asked
        say(f"({time.perf_counter() - start:.0f} s)")
    print()
    record["verdicts"] = judge(targets, not o.quick and o.most >= 10**6 and o.depth in (None, 21))
    if o.json:
        save(o.json, record)
    return missed(record["verdicts"])


if __name__ == "__main__":
    raise SystemExit(main())
