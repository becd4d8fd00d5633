"""Write duals.npz, the slow duals: ``python -m oracle.make_duals`` in tests/ (half an hour).

One array per activation, keyed ``repr((name, params, shift))``, of shape (pairs, rhos, 4) over
PAIRS x RHO: dual, derivative, and what one ulp of the covariance does to each.
"""

from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np

from . import duals

TABLE = Path(__file__).with_name("duals.npz")
PAIRS = tuple(combinations_with_replacement(duals.VARIANCES, 2))
SMOOTH = tuple((name, ()) for name in (*duals.LOGISTIC, *duals.ELUS))
KINKED = (
    ("Relu", ()), ("LeakyRelu", (0.2,)), ("Abs", ()), ("Step", ()), ("Sign", ()),
    ("RectifiedPower", (2,)), ("Erf", ()), ("Gelu", ()),
)  # fmt: skip
ACTIVATIONS = (
    *((name, params, shift) for name, params in SMOOTH for shift in (0.0, 0.5)),
    *((name, params, shift) for name, params in KINKED for shift in (0.5, -0.3)),
)


def entry(activation, v1, v2, rho):
    at = duals.dual(*activation, v1, v2, cov := duals.covariance(rho, v1, v2))
    return [float(x) for x in (*at, *duals.ulp_effect(*activation, v1, v2, cov, at))]


def main():
    table = {}
    for activation in ACTIVATIONS:
        print(*activation, flush=True)
        table[repr(activation)] = np.array(
            [[entry(activation, v1, v2, rho) for rho in duals.RHO] for v1, v2 in PAIRS]
        )
    np.savez_compressed(TABLE, **table)


if __name__ == "__main__":
    main()
