"""The table of solvers: the direct one against LAPACK, and Fashion-MNIST by Nystrom ridge, by
EigenPro and preconditioned conjugate gradients on all points, pass by pass, by random features and
by scikit-learn's Nystroem and Ridge, in one run. See README.md for each number.
"""

import argparse
import gzip
import multiprocessing
import resource
import time
import warnings
from functools import partial
from pathlib import Path

from rounds import banded, interleave, judge, machine, missed, ratio, save

# isort: split
import numpy as np
from scipy.linalg import get_lapack_funcs

import kernelcore as kc

DATA = Path("/usr/share/datasets/fashion-mnist")
LENGTHSCALE, BIAS = 10.0, 0.1
KERNELS = {"Laplacian": kc.Laplacian(LENGTHSCALE), "NTK": kc.presets.mlp(1, b_std=BIAS).ntk}
RIDGES = 10.0 ** np.arange(-3, 3)
# centres: test error and half of the seconds of plain NumPy, measured before
WANTED = {4000: (12.4, 6.5), 8000: (11.7, 22.0)}
PASSES, WITHIN = 8, 0.2
SETTLED = 0.01  # the relative residual from which conjugate gradients count as converged
MEMORY = 4e9
ROWS = 2000  # of a block, in plain NumPy
DIRECT = 8000
TOP = 17.0  # of the figure, in %; a fit that failed is drawn there
OFFSETS = {"o": (0, -11), "s": (0, 6), "^": (0, 6), "v": (0, 6)}


def images(name):
    with gzip.open(DATA / f"{name}-images-idx3-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)


def labels(name):
    with gzip.open(DATA / f"{name}-labels-idx1-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=8)


class Task:
    """Pixels / 255 and one-hot minus 0.1, in float32; the first of the points in a random order."""

    def __init__(self, n, n_test):
        order = np.random.default_rng(0).permutation(60000)[:n]
        self.X = images("train")[order].astype(np.float32) / 255
        self.classes = labels("train")[order]
        self.y = np.eye(10, dtype=np.float32)[self.classes] - np.float32(0.1)
        self.X_test = images("t10k")[:n_test].astype(np.float32) / 255
        self.labels = labels("t10k")[:n_test]

    def error(self, scores):
        """Percent of the test images that are wrong."""
        return 100 * float(np.mean(scores.argmax(-1) != self.labels))

    def errors(self, kernel, expansions):
        """Of several vectors of coefficients on all points, with one pass over the test kernel."""
        wide = np.concatenate(expansions, 1)
        scores = np.empty((len(self.X_test), wide.shape[1]), np.float32)
        for i in range(0, len(self.X_test), 1000):
            part = slice(i, i + 1000)
            scores[part] = kernel(self.X_test[part], self.X) @ wide
        return [self.error(s) for s in np.split(scores, len(expansions), 1)]


def chosen_ridge(task, kernel):
    """By the error on a quarter of the training points, of 1,000 centres fitted to the others."""
    n = 3 * len(task.X) // 4
    held, wrong = slice(n, None), []
    for ridge in RIDGES:
        fit = kc.solvers.nystrom_ridge(
            kernel, task.X[:n], task.y[:n], ridge, centres=task.X[: min(n, 1000)]
        )
        wrong.append(float(np.mean(fit.predict(task.X[held]).argmax(1) != task.classes[held])))
    best = int(np.argmin(wrong))
    print("ridge, % wrong of points held out:", end=" ")
    print(", ".join(f"{r:g} {100 * w:.2f}" for r, w in zip(RIDGES, wrong, strict=True)), end="")
    print(f"; chosen {RIDGES[best]:g}")
    return float(RIDGES[best])


def peak():
    """The most memory this process had so far, in GB (ru_maxrss would count its parent's)."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0]) / 1e9


def timed(fit, kept, name):
    """Seconds of a fit; what it found is kept for its test error."""
    start = time.perf_counter()
    kept[name] = fit()
    return time.perf_counter() - start


def apart(work, *arguments):
    """What ``work`` returns, from a process of its own: its memory is its own, too."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


# ---- direct


def system(n):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 50), dtype=np.float32)
    return kc.Laplacian(LENGTHSCALE)(X), rng.standard_normal((n, 10), dtype=np.float32)


def direct_memory(n):
    """Highest memory of a solve in place over the bytes of the matrix."""
    kc.solvers.ridge(*system(1000), 1e-2)  # the buffers of LAPACK's library
    K, y = system(n)
    resident = Path("/proc/self/statm").read_text().split()[1]
    before = int(resident) * resource.getpagesize()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts here
    kc.solvers.ridge(K, y, 1e-2, overwrite_K=True)
    return (1e9 * peak() - before + K.nbytes) / K.nbytes


def direct_row(n, rounds):
    """``ridge`` in place against potrf and potrs alone."""
    K, y = system(n)
    A, kept = np.empty_like(K), {}
    potrf, potrs = get_lapack_funcs(("potrf", "potrs"), (A,))

    def ours():
        return kc.solvers.ridge(A, y, 1e-2, overwrite_K=True)

    def lapack():
        A.ravel()[:: n + 1] += np.float32(1e-2)
        factor = potrf(A.T, lower=True, clean=False, overwrite_a=True)[0]
        return potrs(factor, y, lower=True)[0]

    def fresh(fit, name):
        np.copyto(A, K)
        return timed(fit, kept, name)

    contenders = {"ours": partial(fresh, ours, "ours"), "LAPACK": partial(fresh, lapack, "LAPACK")}
    seconds = interleave(contenders, rounds)
    share, memory = ratio(seconds["ours"], seconds["LAPACK"]), apart(direct_memory, n)
    off = np.abs(kept["ours"] - kept["LAPACK"]).max() / np.abs(kept["LAPACK"]).max()
    print(f"\ndirect ridge, n = {n}, 10 columns, float32, in place: {seconds['ours'].min():.2f} s,")
    print(f"  potrf + potrs {seconds['LAPACK'].min():.2f} s: {banded(share, '{:.3f}')} times;")
    print(f"  most memory {memory:.3f} matrices; largest relative difference {off:.1g}")
    return {"seconds": seconds, "ratio": share, "memory": memory}


# ---- Nystrom


def plain_kernel(A, B):
    square = (A * A).sum(1)[:, None] + (B * B).sum(1) - 2 * (A @ B.T)
    return np.exp(np.sqrt(np.maximum(square, 0)) / np.float32(-LENGTHSCALE))


def plain_fit(task, centres, ridge):
    """What one writes without a package: K_mn K_nm summed over blocks of rows, one solve."""
    C = task.X[:centres]
    total, right = np.zeros((centres, centres), np.float32), np.zeros((centres, 10), np.float32)
    for i in range(0, len(task.X), ROWS):
        block = plain_kernel(task.X[i : i + ROWS], C)
        total += block.T @ block  # NumPy calls syrk
        right += block.T @ task.y[i : i + ROWS]
    total += np.float32(ridge) * plain_kernel(C, C)
    return C, np.linalg.solve(total, right)


def our_fit(task, kernel, centres, ridge, tol):
    """With the same centres."""
    return kc.solvers.nystrom_ridge(
        kernel, task.X, task.y, ridge, centres=task.X[:centres], tol=tol
    )


def nystrom_row(task, kernel, centres, ridge, tol, rounds):
    """Ours, and beside it plain NumPy where the kernel is the one that is written out there."""
    kept = {}
    contenders = {
        "ours": partial(timed, partial(our_fit, task, kernel, centres, ridge, tol), kept, "ours")
    }
    if kernel == KERNELS["Laplacian"] and centres in WANTED:
        fit = partial(plain_fit, task, centres, ridge)
        contenders["NumPy"] = partial(timed, fit, kept, "NumPy")
    seconds = interleave(contenders, rounds, warm=False)
    model = kept["ours"]
    row = {"centres": centres, "seconds": seconds, "solver": model.solver}
    row["error"] = {"ours": task.error(model.predict(task.X_test))}
    iterations = 0 if model.residuals is None else len(model.residuals) - 1
    text = f"{centres:7}  {seconds['ours'].min():7.1f} s {row['error']['ours']:6.2f} %   "
    if "NumPy" in kept:
        C, a = kept["NumPy"]
        row["error"]["NumPy"] = task.error(plain_kernel(task.X_test, C) @ a)
        row["ratio"] = ratio(seconds["ours"], seconds["NumPy"])
        text += f"{seconds['NumPy'].min():7.1f} s {row['error']['NumPy']:6.2f} %   "
        text += banded(row["ratio"], "{:.2f}")
    print(f"{text:57} {model.solver}, {iterations} iterations")
    return row


# ---- random features, scikit-learn


def features_row(task, name, size, ridge):
    """Fourier features of the Laplacian kernel, tangent features of the NTK; about ``size``."""
    start = time.perf_counter()
    if name == "Laplacian":
        features = kc.features.FourierFeatures(KERNELS[name], size, seed=0)
    else:
        width = max(1, size // (task.X.shape[1] + 2))
        features = kc.features.TangentFeatures(width, b_std=BIAS, seed=0)
    fit = kc.features.ridge_features(features.fit(task.X), task.X, task.y, ridge, solver="primal")
    seconds = time.perf_counter() - start
    return {
        "size": features.n_features_out_,
        "seconds": seconds,
        "error": task.error(fit.predict(task.X_test)),
    }


def sklearn_row(task, name, size, ridge):
    """scikit-learn's Nystroem and Ridge, given our kernel values: it has neither kernel."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge

    kernel, C = KERNELS[name], task.X[:size]
    start = time.perf_counter()
    map = Nystroem(kernel="precomputed", n_components=size, random_state=0).fit(kernel(C))
    order = map.component_indices_
    model = Ridge(ridge, fit_intercept=False).fit(map.transform(kernel(task.X, C[order])), task.y)
    seconds = time.perf_counter() - start
    scores = model.predict(map.transform(kernel(task.X_test, C[order])))
    return {"size": size, "seconds": seconds, "error": task.error(scores)}


def rows_of(title, sizes, row):
    print(f"{title}: " + "size, seconds, test error")
    found = []
    for size in sizes:
        found.append(row(size))
        print("{size:7} {seconds:8.1f} {error:7.2f} %".format(**found[-1]))
    return found


# ---- all points


def gradients(task, kernel, ridge, rank, iterations):
    """Seconds and coefficients after each pass of preconditioned conjugate gradients."""
    start = time.perf_counter()
    # The factor of the preconditioner, and as much for kernel values.
    memory = max(3e8, 0.75 * MEMORY - 4.0 * len(task.X) * rank - 8.0 * rank**2)
    K = kc.solvers.RowBlocks(kernel, task.X, max_memory=memory)
    P = kc.solvers.nystrom_preconditioner(K, rank=rank, ridge=ridge, seed=0)
    seconds, found = [], []

    def note(iteration, x, residual):
        if iteration:
            seconds.append(time.perf_counter() - start)
            found.append(x.copy())

    with warnings.catch_warnings():  # the number of iterations is what is asked for
        warnings.simplefilter("ignore", RuntimeWarning)
        s = kc.solvers.conjugate_gradients(
            K, task.y, ridge, preconditioner=P, tol=1e-3, max_iter=iterations, callback=note
        )
    return seconds, found, s.residuals.max(1)[1:]


def stochastic(task, kernel, ridge, epochs):
    """The same of EigenPro."""
    start, seconds, found = time.perf_counter(), [], []

    def note(epoch, x, mse):
        seconds.append(time.perf_counter() - start)
        found.append(x.copy())

    fit = kc.solvers.eigenpro(
        kernel, task.X, task.y, ridge, epochs=epochs, callback=note, seed=0, max_memory=1e9
    )
    return seconds, found, np.sqrt(fit.history[1:] / fit.history[0])


def all_points(points, test, name, ridge, rank, converge):
    """Errors by pass of both, and of what conjugate gradients converge to."""
    task, kernel = Task(points, test), KERNELS[name]
    runs = {
        "CG": gradients(task, kernel, ridge, rank, converge),
        "EigenPro": stochastic(task, kernel, ridge, PASSES),
    }
    record = {"peak GB": peak()}
    for who, (seconds, found, left) in runs.items():
        errors = task.errors(kernel, found)
        record[who] = {"seconds": seconds, "errors": errors, "residuals": left}
    settled = record["CG"]["residuals"][-1] <= SETTLED
    record["converged"] = record["CG"]["errors"][-1] if settled else None
    return record


def show_passes(record):
    for who in ("CG", "EigenPro"):
        of = record[who]
        print(f"{who} on all points: pass, seconds, relative residual, test error")
        rows = zip(of["seconds"], of["residuals"], of["errors"], strict=True)
        for k, row in enumerate(rows):
            print("{:4} {:8.1f} {:9.2g} {:7.2f} %".format(k + 1, *row))
    if record["converged"] is None:
        print(f"CG has not come to a relative residual of {SETTLED}: no verdict")
    else:
        print(f"converged: {record['converged']:.2f} %")
    print(f"most memory {record['peak GB']:.2f} GB")


def figure(record, path):
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    names = list(record["kernels"])
    whole, axes = plt.subplots(1, len(names), figsize=(5.5 * len(names), 4.7), sharey=True)
    for ax, name in zip(np.atleast_1d(axes), names, strict=True):
        of = record["kernels"][name]
        lines = {}
        for who in ("ours", "NumPy"):
            rows = [r for r in of["nystrom"] if who in r["seconds"]]
            label = "Nystrom ridge" if who == "ours" else "Nystrom ridge, plain NumPy"
            lines[label] = [
                (np.min(r["seconds"][who]), r["error"][who], r["centres"]) for r in rows
            ]
        for key, label in (
            ("features", "random features"),
            ("sklearn", "scikit-learn Nystroem + Ridge"),
        ):
            lines[label] = [(r["seconds"], r["error"], r["size"]) for r in of.get(key, [])]
        for k, (marker, (label, points)) in enumerate(zip("os^v", lines.items(), strict=True)):
            if points:
                x, y, _ = zip(*points, strict=True)
                ax.plot(x, np.minimum(y, TOP), f"C{k}{marker}-", ms=5, label=label)
                for seconds, error, size in points:
                    ax.annotate(
                        f"{size}" if error <= TOP else f"{size}: {error:.0f} %",
                        (seconds, min(error, TOP)), textcoords="offset points",
                        xytext=OFFSETS[marker], ha="center", fontsize=7, color=f"C{k}",
                    )  # fmt: skip
        if "all points" in of:
            for k, who in enumerate(("CG", "EigenPro")):
                run = of["all points"][who]
                seconds, errors = run["seconds"][:PASSES], run["errors"][:PASSES]
                label = f"{who} on all points, passes 1 to {PASSES}"
                ax.plot(seconds, errors, f"C{4 + k}.-", label=label)
            if of["all points"]["converged"] is not None:
                at = of["all points"]["converged"]
                ax.axhline(at, color="black", lw=0.8, ls=":", label="converged, all points")
        ax.set_xscale("log")
        ax.set_xlabel("seconds")
        ax.set_title(f"{name}, ridge {of['ridge']:g}", fontsize=10)
    first = np.atleast_1d(axes)[0]
    first.set_ylabel(f"test error, %, Fashion-MNIST, n = {record['points']}")
    first.set_ylim(top=TOP + 1)
    whole.legend(*first.get_legend_handles_labels(), fontsize=8, loc="lower center", ncols=3)
    plt.tight_layout(rect=(0, 0.14, 1, 1))
    plt.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=60000)
    parser.add_argument("--test", type=int, default=10000, help="test images")
    parser.add_argument("--centres", type=int, nargs="*", default=[1000, 2000, *WANTED])
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 2000, 4000])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tol", type=float, default=1e-2, help="of Nystrom's iterations")
    parser.add_argument("--rank", type=int, default=3000, help="of the preconditioner")
    parser.add_argument("--converge", type=int, default=16, help="passes of conjugate gradients")
    parser.add_argument("--kernels", nargs="*", choices=tuple(KERNELS), default=list(KERNELS))
    parser.add_argument("--no-all-points", action="store_true")
    parser.add_argument("--no-direct", action="store_true")
    parser.add_argument("--figure", type=Path, help="draw test error against seconds there")
    parser.add_argument("--json", type=Path, help="write all numbers there")
    options = parser.parse_args()

    record = {"machine": machine(), "points": options.points, "kernels": {}}
    for key, value in record["machine"].items():
        print(f"{key}: {value}")
    targets = []
    if not options.no_direct:
        record["direct"] = direct = direct_row(DIRECT, 2 * options.rounds)
        targets.append(("times potrf + potrs, direct ridge", direct["ratio"][0], "<=", 1.1))
        targets.append(("matrices of memory, direct ridge", direct["memory"], "<=", 1.05))

    task = Task(options.points, options.test)
    for name in options.kernels:
        kernel = KERNELS[name]
        print(f"\nFashion-MNIST, {options.points} points, {name} kernel")
        ridge = chosen_ridge(task, kernel)
        record["kernels"][name] = of = {"ridge": ridge}
        print("centres     ours               plain NumPy         ours / NumPy")
        of["nystrom"] = [
            nystrom_row(task, kernel, m, ridge, options.tol, options.rounds)
            for m in options.centres
        ]
        title = "Fourier features" if name == "Laplacian" else "tangent features"
        row = partial(features_row, task, name, ridge=ridge)
        of["features"] = rows_of(title, [2 * size for size in options.sizes], row)
        row = partial(sklearn_row, task, name, ridge=ridge)
        of["sklearn"] = rows_of("scikit-learn", options.sizes, row)
        for r in of["nystrom"]:
            if "ratio" in r:
                m, wanted = r["centres"], WANTED[r["centres"]]
                targets.append((f"seconds over plain NumPy's, {m}", r["ratio"][0], "<=", 0.5))
                worse = r["error"]["ours"] - r["error"]["NumPy"]
                targets.append((f"points of error above plain NumPy's, {m}", worse, "<=", 0.1))
                targets.append((f"test error, {m} centres", r["error"]["ours"], "<=", wanted[0]))
                seconds = r["seconds"]["ours"].min()
                targets.append((f"seconds, {m} centres", seconds, "<=", wanted[1]))
        if not options.no_all_points:
            of["all points"] = found = apart(
                all_points, options.points, options.test, name, ridge, options.rank,
                options.converge,
            )  # fmt: skip
            show_passes(found)
            for who in ("CG", "EigenPro"):
                if found["converged"] is not None:
                    off = found[who]["errors"][:PASSES][-1] - found["converged"]
                    what = f"points of error above the converged, {name}, {who}, {PASSES} passes"
                    targets.append((what, off, "<=", WITHIN))
            targets.append((f"GB at most, {name}", found["peak GB"], "<=", MEMORY / 1e9))
    print()
    record["verdicts"] = judge(targets, options.points == 60000)
    if options.json:
        save(options.json, record)
    if options.figure:
        figure(record, options.figure)
    return missed(record["verdicts"])


if __name__ == "__main__":
    raise SystemExit(main())
