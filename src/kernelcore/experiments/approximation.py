"""What random features, tangent features and balls of an RKHS approximate (E10, E13, M3).

Ghorbani, Mei, Misiakiewicz and Montanari (2021): with n infinite, N random features (RF) fit
polynomials of degree l in d dimensions once N >> d^l, and the gradients of N units by their weights
(NT) those of degree l + 1. Bach (2017) and Bietti and Mairal (2019): the distance of
a Lipschitz function to the ball of radius B falls as B^(-1/(d/2 - 1)) for the NTK and as
B^(-1/(d/2)) for kappa1, up to logarithms; even functions with d/2, or d/2 + 1, bounded derivatives
are members.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

import kernelcore as kc

from .._types import Array
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table, share
from ._learn import grown, half_at, many_small, mean_and_error, seeds, slope
from ._words import listed, signed

TITLE = "Approximation"
FEATURES = "Ghorbani, Mei, Misiakiewicz and Montanari 2021"
BALLS = "Bietti and Mairal 2019"
KERNELS = ("NTK", "κ₁")


@dataclass(frozen=True)
class Settings(_base.Settings):
    """``dim`` is that of features, ``dims`` those of balls; exponents are those of d.

    Tangent features are in ``tangent_dim`` dimensions, up to ``tangent_high``, from ``samples``.
    """

    dim: int = 20
    degrees: tuple[int, ...] = (1, 2, 3)
    low: float = 0.5
    high: float = 2.4
    sizes: int = 9
    draws: int = 8
    shift: float = -0.5
    dims: tuple[int, ...] = (4, 6)
    max_degree: int = 4000
    smooth: tuple[float, ...] = (1.0, 3.0, 5.0)
    member_dim: int = 4
    tangent_dim: int = 10
    tangent_high: float = 2.1
    samples: int = 16_000


PRESETS = {
    "small": Settings(seed=1),  # what else is set was chosen on draws of seed 0
    "paper": Settings(dim=50, degrees=(1, 2, 3, 4), high=2.2, sizes=14, draws=10,
                      dims=(4, 6, 8), max_degree=20_000, tangent_dim=16, samples=60_000),
}  # fmt: skip
SECONDS = {"small": 9.0, "paper": 900.0}


def _network(s: Settings) -> kc.Sequential:
    return kc.Sequential(kc.Dense(), kc.Relu(shift=s.shift), kc.Dense())


def _sizes(s: Settings) -> list[int]:
    return grown(s.dim**s.low, s.dim**s.high, s.sizes)


def _power(s: Settings, degree: int, levels: int) -> Array:
    return np.eye(levels)[degree]


def _left_over(s: Settings, degree: int, draw: int, ns: list[int]) -> Array:
    """Return what N random features with n infinite leave of a random harmonic of one degree.

    A feature phi(<w, x>) has the part lambda_k(|w|) f(w/|w|) along f, so that the best fit in
    L2 leaves 1 - v' U^-1 v, with U the products of the features: those are expectations over x,
    which are the kernel of the weights.
    """
    rng = seeds(s.seed, degree, draw)
    f = kc.data.RandomFunction(s.dim, _power(s, degree, degree + 1), seed=rng, centres=400)
    w = kc.data.sphere(ns[-1], s.dim, seed=rng)
    # On the sphere weights and inputs change places: E phi(<w,x>) phi(<v,x>) is zonal in w and v.
    spectrum = _ridge_spectrum(s)
    mu = spectrum[degree]
    products = _zonal(s, w @ w.T / s.dim, spectrum)
    along = mu * f(w)
    return np.array([
        1 - along[:n] @ kc.solvers.ridge(products[:n, :n], along[:n], 1e-10 * products[0, 0])
        for n in ns
    ])  # fmt: skip


def _ridge_spectrum(s: Settings, degrees: int = 30) -> Array:
    """Return lambda_k of phi(<w, x>) on the spheres of radius sqrt d, w of norm 1 in our scaling.

    phi(sqrt(d) t) = sum_k lambda_k N(d, k) P_k(t), by Gauss's rule in t.
    """
    from scipy.special import roots_gegenbauer

    t, weights = roots_gegenbauer(400, (s.dim - 2) / 2)
    weights = weights / weights.sum()
    values = kc.Relu(shift=s.shift)(math.sqrt(s.dim) * t)
    return kc.spectrum.legendre(s.dim, degrees, np.clip(t, -1, 1)) @ (weights * values)


def _zonal(s: Settings, cosine: Array, lambdas: Array) -> Array:
    """Return sum_k lambda_k^2 N(d, k) P_k(cosine), and on the diagonal the whole of E phi^2."""
    from scipy.special import roots_gegenbauer

    counts = np.exp(kc.spectrum.log_multiplicities(s.dim, len(lambdas) - 1))
    weights = lambdas**2 * counts
    grid = np.linspace(-1, 1, 4001)
    table = weights @ kc.spectrum.legendre(s.dim, len(lambdas) - 1, grid)
    out = np.interp(np.clip(cosine, -1, 1), grid, table)
    t, rule = roots_gegenbauer(400, (s.dim - 2) / 2)
    square = float(kc.Relu(shift=s.shift)(math.sqrt(s.dim) * t) ** 2 @ (rule / rule.sum()))
    np.fill_diagonal(out, square)
    return out


def _features_theory(s: Settings, n: Array, degree: int) -> Array:
    lambdas = _ridge_spectrum(s)
    counts = np.round(np.exp(kc.spectrum.log_multiplicities(s.dim, len(lambdas) - 1)))
    with np.errstate(divide="ignore"):
        logs = np.log(lambdas**2)
    trace = float(_zonal(s, np.eye(1), lambdas)[0, 0])
    spectrum = kc.spectrum.Spectrum(logs, [int(c) for c in counts], trace)
    power = _power(s, degree, len(lambdas))
    return kc.theory.random_features_curve(spectrum, power, np.inf, n)


def _units(s: Settings) -> list[int]:
    return grown(1, s.tangent_dim**s.tangent_high, s.sizes)


def _tangent_left(s: Settings, draw: int, ns: list[int]) -> Array:
    """Return what the gradients of N units leave of one harmonic of each degree: (degrees, N).

    The gradients x phi'(<w, x>) are fitted to many points. Of p = N d of them and n points, what no
    fit can reach has on other points 1/(1 - p/n) of its size, which is taken off.
    """
    dim, rng = s.tangent_dim, seeds(s.seed, 50, draw)
    targets = [
        kc.data.RandomFunction(dim, _power(s, k, k + 1), seed=rng, centres=400) for k in s.degrees
    ]
    w = kc.data.sphere(ns[-1], dim, 1.0, seed=rng)
    x, z = (kc.data.sphere(n, dim, seed=rng) for n in (s.samples, 4000))

    def gradients(points: Array) -> Array:
        slopes = kc.Relu(shift=s.shift).derivative(points @ w.T)
        return (slopes[:, :, None] * points[:, None, :]).reshape(len(points), -1)

    def values(points: Array) -> Array:
        return np.stack([f(points) for f in targets], axis=1)

    products = np.zeros((ns[-1] * dim,) * 2)
    along = np.zeros((ns[-1] * dim, len(targets)))
    for part in np.array_split(x, -(-s.samples // 1000)):
        some = gradients(part)
        products += some.T @ some
        along += some.T @ values(part)
    there, wanted = gradients(z), values(z)
    left = []
    for p in (n * dim for n in ns):
        fit = kc.solvers.ridge(products[:p, :p], along[:p], 1e-9 * s.samples)
        left.append(np.square(there[:, :p] @ fit - wanted).mean(0) * (1 - p / s.samples))
    return np.array(left).T


def _tangent_theory(s: Settings, n: Array, degree: int) -> Array:
    """Predict the same, with the d gradients of a unit as if they were independent.

    Their kernel is d t sum_k lambda_k^2 N(d, k) P_k(t), with lambda_k those of phi'.
    """
    from scipy.special import roots_gegenbauer

    dim, most = s.tangent_dim, 40
    t, weights = roots_gegenbauer(800, (dim - 2) / 2)
    weights = weights / weights.sum()
    table = kc.spectrum.legendre(dim, most, np.clip(t, -1, 1))
    slopes = kc.Relu(shift=s.shift).derivative(math.sqrt(dim) * t)
    counts = np.round(np.exp(kc.spectrum.log_multiplicities(dim, most)))
    kernel = dim * t * (((table @ (weights * slopes)) ** 2 * counts) @ table)
    mu = table[:most] @ (weights * kernel)  # the last degree lacks what the next one gives
    trace = dim * float(weights @ slopes**2)
    spectrum = kc.spectrum.Spectrum(np.log(mu), [int(c) for c in counts[:most]], trace)
    return kc.theory.random_features_curve(spectrum, _power(s, degree, most), np.inf, n * dim)


@many_small
def run(
    settings: Settings = PRESETS["small"], *, cells: Cells | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    s, cells = settings, Cells() if cells is None else cells
    ns = _sizes(s)
    fine = np.geomspace(ns[0], ns[-1], 80)

    def features(_: str, degree: int, draw: int) -> dict[str, Array]:
        return {"left": _left_over(s, degree, draw, ns)}

    def balls(_: str, dim: int, which: int) -> dict[str, Array]:
        kernel = (kc.presets.mlp(1).ntk, kc.ArcCosine(1))[which]
        spectrum = kc.spectrum.sphere(kernel, dim=dim, max_degree=s.max_degree)
        rate = kc.theory.approximation_rate(spectrum)
        norm, sup = _kink(spectrum, dim)
        return {
            "exponent": np.array(rate.exponent), "deviation": np.array(rate.deviation),
            "norm": rate.norm, "error": rate.error, "kink_norm": norm, "kink_sup": sup,
        }  # fmt: skip

    def members(_: str, which: int) -> dict[str, Array]:
        kernel = (kc.presets.mlp(1).ntk, kc.ArcCosine(1))[which]
        spectrum = kc.spectrum.sphere(kernel, dim=s.member_dim, max_degree=800)
        degree = np.arange(801)
        cut = np.array([50, 100, 200, 400, 800])
        norms = []
        for smooth in s.smooth:
            counts = np.exp(kc.spectrum.log_multiplicities(s.member_dim, 800))
            power = counts * _edge(smooth, s.member_dim, 800) ** 2
            norms.append([spectrum.rkhs_norm(np.where(degree <= c, power, 0.0)) for c in cut])
        return {"cut": cut, "norms": np.array(norms)}

    def tangent(_: str, draw: int) -> dict[str, Array]:
        plain = replace(s, dim=s.tangent_dim)
        beside = [_left_over(plain, degree, draw, units) for degree in s.degrees]
        return {"left": _tangent_left(s, draw, units), "beside": np.array(beside)}

    keys = [("features", degree, draw) for degree in s.degrees for draw in range(s.draws)]
    found = cells.map(features, keys, share(progress, 0.0, 0.4))
    units = _units(s)
    gradients = cells.map(
        tangent, [("tangent", draw) for draw in range(s.draws)], share(progress, 0.4, 0.6)
    )
    keys = [("balls", dim, which) for dim in s.dims for which in range(2)]
    fits = cells.map(balls, keys, share(progress, 0.6, 0.9))
    inside = cells.map(members, [("members", k) for k in range(2)], share(progress, 0.9, 1.0))
    shape = (len(s.degrees), s.draws, len(ns))
    left = np.array([one["left"] for one in found]).reshape(shape)
    arrays = {name: np.array([one[name] for one in fits]) for name in fits[0]}
    return Result("approximation", s, {
        "N": ns, "left": np.moveaxis(left, 1, 2), "fine": fine,
        "predicted": np.array([_features_theory(s, np.array(ns, float), k) for k in s.degrees]),
        "line": np.array([_features_theory(s, fine, k) for k in s.degrees]),
        "units": units,
        "tangent": np.stack([one["left"] for one in gradients], axis=-1),
        "beside": np.stack([one["beside"] for one in gradients], axis=-1),
        "tangent_predicted": np.array([
            _tangent_theory(s, np.array(units, float), k) for k in s.degrees
        ]),
        "tangent_line": np.array([
            _tangent_theory(s, np.geomspace(1, units[-1], 80), k) for k in s.degrees
        ]),
        "cut": inside[0]["cut"], "norms": np.array([one["norms"] for one in inside]),
        **{name: a.reshape(len(s.dims), 2, *a.shape[1:]) for name, a in arrays.items()},
    })  # fmt: skip


def _edge(smooth: float, dim: int, most: int) -> Array:
    """Return c_k, |t|^smooth = sum_k c_k N(d, k) P_k(t): an even function with an edge at 0."""
    from scipy.special import roots_gegenbauer

    t, weights = roots_gegenbauer(2 * most + 200, (dim - 2) / 2)
    values = weights / weights.sum() * np.abs(t) ** smooth
    found = kc.spectrum.legendre(dim, most, np.clip(t, -1, 1)) @ values
    return np.where(np.arange(most + 1) % 2 == 0, found, 0.0)  # odd degrees are rounding


def _kink(spectrum: kc.spectrum.SphereSpectrum, dim: int) -> tuple[Array, Array]:
    """Approximate |t| by smoothing it with heat: norms in the RKHS, errors in the supremum norm.

    Heat at scale 1/K multiplies degree k by exp(-k (k + d - 2)/K^2) and moves a Lipschitz function
    by about 1/K everywhere, so that these errors bound those of balls from above.
    """
    most, k = 300, np.arange(301)
    coefficient = _edge(1.0, dim, most)
    counts = np.exp(kc.spectrum.log_multiplicities(dim, most))
    mu = spectrum.eigenvalues[: most + 1]
    table = kc.spectrum.legendre(dim, most, np.cos(np.linspace(0, math.pi / 2, 400)))
    norms, sups = [], []
    for scale in np.geomspace(8, 50, 8):
        kept = np.exp(-k * (k + dim - 2) / scale**2)
        norms.append(
            spectrum.rkhs_norm(
                np.append(
                    counts * (coefficient * kept) ** 2 * (mu > 0),
                    np.zeros(len(spectrum) - most - 1),
                )
            )
        )
        missed = (counts * coefficient * (1 - kept)) @ table
        # The series is cut where heat has left nothing; the rest of it belongs to |t| itself.
        rest = np.abs(np.cos(np.linspace(0, math.pi / 2, 400))) - (counts * coefficient) @ table
        sups.append(float(np.abs(missed + rest).max()))
    return np.array(norms), np.array(sups)


def _predicted(dim: int, which: int) -> float:
    return -1 / (dim / 2 - 1) if which == 0 else -1 / (dim / 2)


def claims(result: Result) -> list[Claim]:
    s = Settings(**result.settings)
    found = []
    for k, degree in enumerate(s.degrees):
        mean, error = mean_and_error(result["left"][k])
        here = result["predicted"][k] > 0.02
        text = f"what N random features leave of a polynomial of degree {degree}, n infinite"
        claim = (result["predicted"][k][here], mean[here], error[here])
        found.append(Claim.curve(text, FEATURES, *claim))
    for k, degree in enumerate(s.degrees):
        mean, error = mean_and_error(result["tangent"][k])
        here = result["tangent_predicted"][k] > 0.02
        text = f"what the gradients of N units leave of degree {degree}, n infinite"
        claim = (result["tangent_predicted"][k][here], mean[here], error[here])
        found.append(Claim.curve(text, FEATURES, *claim, tolerance=0.2))
    for degree, apart, error in _ahead(result):
        text = (
            f"NT fits degree {degree + 1} where RF fits degree {degree}: log of the ratio of the "
            "N that leave half, over log d"
        )
        found.append(Claim(text, FEATURES, 0.0, apart, error, -0.5, 0.5))
    for i, dim in enumerate(s.dims):
        for j, name in enumerate(KERNELS):
            text = f"exponent of the L2 distance of Lipschitz functions to balls, {name}, d = {dim}"
            wanted, measured = _predicted(dim, j), float(result["exponent"][i, j])
            found.append(Claim.near(text, BALLS, wanted, measured, 0.0, 0.1))
    for i, dim in enumerate(s.dims):
        for j, name in enumerate(KERNELS):
            power = slope(result["kink_norm"][i, j], result["kink_sup"][i, j])
            text = f"supremum norm: |t| is approached as fast as any, {name}, d = {dim}"
            wanted = _predicted(dim, j)
            found.append(Claim(text, "Bach 2017", wanted, power, 0.0, -math.inf, 0.95 * wanted))
    grows = _growth(result)
    for j, name in enumerate(KERNELS):
        need = s.member_dim / 2 + j
        inside = [smooth >= need for smooth in s.smooth]
        wrong = np.sum((grows[j] < 1.02) != inside)
        text = f"|t|^a is a member of the RKHS of {name}, d = {s.member_dim}, from a = {need:g} on"
        found.append(Claim.order(text, BALLS, int(wrong)))
    return found


def _ahead(result: Result) -> list[tuple[int, float, float]]:
    """Return degrees l with log_d of the N that halve l + 1 by NT over those that halve l by RF.

    Draws go in pairs, each with its own N; degrees that N does not reach are left out.
    """
    s = Settings(**result.settings)
    found = []
    for degree in s.degrees:
        if degree + 1 not in s.degrees:
            continue
        below, above = s.degrees.index(degree), s.degrees.index(degree + 1)
        each = np.array([
            math.log(half_at(result["units"], result["tangent"][above, :, r])
                     / half_at(result["units"], result["beside"][below, :, r]))
            for r in range(s.draws)
        ]) / math.log(s.tangent_dim)  # fmt: skip
        if np.isfinite(each).all():
            found.append((degree, *mean_and_error(each)))
    return found


def _growth(result: Result) -> Array:
    """Return by what norms of truncations grow over the last octave of degrees."""
    return result["norms"][:, :, -1] / result["norms"][:, :, -2]


def tables(result: Result) -> list[Table]:
    s = Settings(**result.settings)
    rows = [
        (name, str(dim), signed(_predicted(dim, j), 3), signed(result["exponent"][i, j], 3))
        for i, dim in enumerate(s.dims)
        for j, name in enumerate(KERNELS)
    ]
    head = ("kernel", "d", "exponent, theory", "from the spectrum")
    balls = Table(head, rows, "Distance of Lipschitz functions to balls of radius B, in L2.", 1)
    norms = [
        (name, *(f"{result['norms'][j, k, -1]:.3g} (x{g:.3f})" for k, g in enumerate(growth)))
        for j, (name, growth) in enumerate(zip(KERNELS, _growth(result), strict=True))
    ]
    names = ("kernel", *(f"|t|^{a:g}" for a in s.smooth))
    told = (
        f"Norms in the RKHS, d = {s.member_dim}, of the parts up to degree {result['cut'][-1]} "
        "(and by what they grow over the last doubling of the degree: by more than 1 outside)."
    )
    return [balls, Table(names, norms, told)]


def paragraph(result: Result) -> str:
    s = Settings(**result.settings)
    halves = []
    for k, degree in enumerate(s.degrees):
        mean = result["left"][k].mean(-1)
        below = np.flatnonzero(mean < 0.5)
        if len(below):
            at = math.log(result["N"][below[0]]) / math.log(s.dim)
            halves.append(f"degree {degree} from N = d^{at:.2f}")
    return (
        f"With infinitely many samples in d = {s.dim} dimensions, N random features fit more than "
        f"half of {listed(halves)} on. {_tangent_words(result)}Balls of the RKHS approximate "
        "Lipschitz functions with exponents "
        + listed([f"{signed(e, 2)}" for e in result["exponent"].ravel()])
        + " in their radius, where theory has "
        + listed([signed(_predicted(d, j), 2) for d in s.dims for j in range(2)])
        + " (NTK and κ₁ in turn)."
    )


def _tangent_words(result: Result) -> str:
    """Say how many units tangent features need for the next degree."""
    s, found = Settings(**result.settings), _ahead(result)
    if not found:
        return ""
    each = listed([
        f"degree {degree + 1} at d^{signed(apart, 2)} times the N with which random features fit "
        f"half of degree {degree}" for degree, apart, _ in found
    ])  # fmt: skip
    return f"In d = {s.tangent_dim}, the gradients of N units fit half of {each}. "


def plot(result: Result) -> list[Picture]:
    from . import _draw as draw

    s = Settings(**result.settings)
    with draw.style():
        fig = draw.figure(7.4)
        (left, tangent), (middle, right) = fig.subplots(2, 2)
        log = math.log(s.tangent_dim)
        for k, degree in enumerate(s.degrees):
            color, mark = draw.STEPS[k % 4], "os^D"[k % 4]
            fine = np.geomspace(1, result["units"][-1], 80)
            draw.theory(tangent, np.log(fine) / log, result["tangent_line"][k], color)
            spots = np.log(result["units"]) / log
            draw.measured(tangent, spots, *mean_and_error(result["tangent"][k]), color, mark,
                          f"NT, degree {degree}")  # fmt: skip
            mean, error = mean_and_error(result["beside"][k])
            draw.measured(tangent, spots, mean, error, color, mark, mfc="none", ls=":", lw=1)
        tangent.set(xlabel="log N / log d", ylabel="left of the target", ylim=(0, 1.05))
        tangent.set_title(f"Gradients of N units, n = ∞, d = {s.tangent_dim}", loc="left")
        tangent.legend()
        log = math.log(s.dim)
        for k, degree in enumerate(s.degrees):
            color = draw.STEPS[k % 4]
            mean, error = mean_and_error(result["left"][k])
            draw.theory(left, np.log(result["fine"]) / log, result["line"][k], color)
            draw.measured(left, np.log(result["N"]) / log, mean, error, color, "os^D"[k % 4],
                          f"degree {degree}")  # fmt: skip
        left.set(xlabel="log N / log d", ylabel="left of the target", ylim=(0, 1.05))
        left.set_title(f"Random features, n = ∞, d = {s.dim}", loc="left")
        left.legend()
        for i, dim in enumerate(s.dims):
            for j, (name, line) in enumerate(zip(KERNELS, ("-", "--"), strict=True)):
                color = draw.STEPS[(i + 1) % 4]
                b, e = result["norm"][i, j], result["error"][i, j]
                middle.loglog(b / b[0], e / e[0], color=color, ls=line, label=f"{name}, d = {dim}")
                ideal = (b / b[0]) ** _predicted(dim, j)
                middle.loglog(b / b[0], ideal, color=draw.BLACK, ls=":", lw=0.9)
                b, e = result["kink_norm"][i, j], result["kink_sup"][i, j]
                right.loglog(b, e, color=color, ls=line, marker=".", label=f"{name}, d = {dim}")
        middle.set(xlabel="B, relative", ylabel="distance to the ball, relative")
        middle.set_title("Lipschitz functions, L2", loc="left")
        middle.legend(fontsize=8.5)
        right.set(xlabel="B", ylabel="largest deviation")
        right.set_title("|t|, supremum norm", loc="left")
        right.legend(fontsize=8.5)
        draw.plain_powers(fig)
        draw.ticks(middle.yaxis, (0.2, 0.3, 0.5, 1))
        draw.ticks(right.yaxis, (0.02, 0.03, 0.05, 0.1, 0.2))
    return [
        Picture(
            "approximation", fig,
            "Above: what the best combination of N random features, or of the gradients of N units "
            "(right), leaves of random polynomials of one degree, points measured (standard errors "
            "over draws), lines predicted; on the right hollow points are random features in the "
            "same dimension, which are one degree behind. Below, left: distance of the roughest "
            "Lipschitz functions to balls of the RKHS, dotted the exponents of theory; right: |t| "
            "approximated in the supremum norm.",
            "Four panels of approximation errors falling with N and with the radius of the ball",
        )
    ]  # fmt: skip
