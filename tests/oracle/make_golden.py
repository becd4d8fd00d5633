"""Write docs/about/golden.json, values for others to test against: ``python -m oracle.make_golden``
in tests/ (seconds).

All inputs are dyadic fractions, so that they are the same numbers in any precision; values are text
with DIGITS digits of mpmath, those of images with the digits that long doubles have, and those of
spectra with the digits of a double.
"""

import json
from pathlib import Path

import mpmath as mp
import numpy as np

from . import duals, kernels, networks, spatial, spectra

FILE = Path(__file__).parents[2] / "docs" / "about" / "golden.json"
DIGITS = 30
ACTIVATIONS = (
    ("Relu", ()), ("LeakyRelu", (0.25,)), ("Abs", ()), ("Step", ()), ("Sign", ()),
    ("RectifiedPower", (2,)), ("Erf", ()), ("Gelu", ()), ("Sin", ()), ("Cos", ()), ("Exp", ()),
    ("GaussianBump", ()), ("Monomial", (3,)), ("Hermite", (2,)), ("Identity", ()),
)  # fmt: skip
VARIANCES = ((1.0, 1.0), (0.25, 4.0), (4.0, 4.0))
RHO = (-0.75, -0.5, 0.0, 0.25, 0.5, 0.875)
X = [[1.0, -0.5, 0.25], [0.5, 0.5, -2.0], [-1.0, 0.5, -0.25], [0.0, 1.5, 0.125]]
# The networks as layers: Dense(w_std, b_std), and names of activations with their parameters.
NETWORKS = {
    "relu, 1 hidden layer": [("Dense", 1.0, 0.0), ("Relu",), ("Dense", 1.5, 0.0)],
    "relu, 3 hidden layers, biases": [
        ("Dense", 1.0, 0.25), ("Relu",), ("Dense", 1.5, 0.25), ("Relu",), ("Dense", 1.5, 0.25),
        ("Relu",), ("Dense", 1.0, 0.5),
    ],
    "erf, 2 hidden layers": [
        ("Dense", 1.5, 0.5), ("Erf",), ("Dense", 1.25, 0.25), ("Erf",), ("Dense", 1.0, 0.0),
    ],
    "gelu, 1 hidden layer": [("Dense", 1.0, 0.5), ("Gelu",), ("Dense", 1.0, 0.0)],
}  # fmt: skip
CLASSICAL = {
    "Gaussian(1.5)": kernels.gaussian(1.5),
    "Laplacian(2.0)": kernels.laplacian(2.0),
    "Laplacian(2.0, norm=1)": kernels.laplacian(2.0, 1),
    "Cauchy(2.0)": kernels.cauchy(2.0),
    "Matern(1.5, 2.0)": kernels.matern(1.5, 2.0),
    "Polynomial(3, 0.5, 1.0)": kernels.polynomial(3, 0.5, 1.0),
    "ArcCosine(1)": kernels.arc_cosine(1),
}
SPHERES = {"ntk1": (1, "ntk"), "ntk2": (2, "ntk"), "ntk3": (3, "ntk"), "nngp2": (2, "nngp")}
DIMS, DEGREES = (3, 10, 100), (*range(11), 50)
ABOUT = (
    "Values of kernels of infinitely wide networks, from mpmath. Conventions: the input kernel is "
    "<x, x'>/d; Dense(w, b) maps K to w^2 K + b^2 and T to K + w^2 T; an activation maps K to its "
    "dual and T to T times the dual of its derivative; networks of images are those of Arora et "
    "al. (2019), channels last; spheres have radius sqrt(d) and the uniform probability measure, "
    "and their networks are w = 1, then sqrt(2), without biases. Numbers are text: parse them in "
    "the precision that you test."
)


def text(value, digits=DIGITS):
    return mp.nstr(mp.mpf(value), digits, min_fixed=0, max_fixed=0)


def written(matrix, digits=DIGITS):
    return [[text(entry, digits) for entry in row] for row in matrix]


def of_duals():
    for name, params in ACTIVATIONS:
        for v1, v2 in VARIANCES:
            for rho in RHO:
                cov = rho * (v1 * v2) ** 0.5  # exact
                value, slope = duals.dual(name, params, 0.0, v1, v2, cov)
                yield {
                    "activation": name, "parameters": list(params), "variances": [v1, v2],
                    "covariance": cov, "dual": text(value), "derivative_dual": text(slope),
                }  # fmt: skip


def layer(name, *numbers):
    return networks.Dense(*numbers) if name == "Dense" else networks.Act(name, numbers)


def of_networks():
    for name, layers in NETWORKS.items():
        whole = tuple(layer(*one) for one in layers)
        nngp, ntk = networks.kernels(whole, np.array(X), arithmetic=networks.Exact)
        yield {"name": name, "layers": layers, "nngp": written(nngp), "ntk": written(ntk)}


def of_images():
    images = (np.arange(2 * 4 * 4 * 2).reshape(2, 4, 4, 2) * 7 % 16 - 8) / 8
    for gap in (False, True):
        found = spatial.cntk(images, 3, gap, False)
        exact = [[mp.mpf(np.format_float_scientific(v, 25)) for v in row] for row in found]
        yield {
            "name": f"cntk(depth=3, gap={gap}, fix=False)", "images": images.tolist(),
            "ntk": written(exact, 17),
        }  # fmt: skip


def of_spheres():
    table = spectra.table()
    for name, (depth, kind) in SPHERES.items():
        for dim in DIMS:
            chosen = (table.kernel == name) & (table.dim == dim) & np.isin(table.degree, DEGREES)
            rows = zip(table.mantissa[chosen], table.exponent[chosen].tolist(), strict=True)
            yield {
                "kernel": kind, "hidden_layers": depth, "dim": dim,
                "degrees": table.degree[chosen].tolist(),
                "eigenvalues": [text(mp.mpf(m) * mp.mpf(2) ** e, 17) for m, e in rows],
            }  # fmt: skip


def golden():
    mp.mp.dps = 50
    exact = {name: written(kernels.entries(f, X, X)) for name, f in CLASSICAL.items()}
    return {
        "format": 1, "about": ABOUT, "rows": X, "duals": list(of_duals()),
        "networks": list(of_networks()), "classical": exact, "images": list(of_images()),
        "spheres": list(of_spheres()),
    }  # fmt: skip


def main():
    lines = json.dumps(golden(), indent=None, separators=(", ", ": "))
    FILE.write_text(lines.replace('}, {"', '},\n{"').replace(': [{"', ':\n[{"') + "\n")


if __name__ == "__main__":
    main()
