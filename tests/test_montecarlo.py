"""Random finite networks: as they widen, their kernels approach ours like width^(-1/2)."""

import numpy as np
import pytest
from oracle import networks
from test_values import build

import kernelcore as kc

WIDTHS = (48, 160, 512)
DRAWS = 24

RELU = (
    networks.Dense(1.4, 0.1), networks.Act("Relu"), networks.Dense(1.4, 0.1), networks.Act("Relu"),
    networks.Dense(1.0, 0.2),
)  # fmt: skip
FROZEN = (
    networks.Dense(1.2, 0.3, False), networks.Act("Erf"), networks.Dense(1.1, 0.2),
    networks.Act("Sin"), networks.Dense(0.9, 0.0, False),
)  # fmt: skip
RESIDUAL = (
    networks.Dense(1.1),
    networks.Residual((networks.Act("Relu"), networks.Dense(1.2, 0.2)), ()),
    networks.Residual((networks.Act("Tanh"), networks.Dense(0.9)), (networks.Dense(0.8),)),
    networks.Act("Gelu"),
    networks.Dense(1.2),
)
SHIFTED = (networks.Dense(1.3), networks.Act("Relu", (), 0.5), networks.Dense(1.1, 0.1))


@pytest.mark.parametrize(
    "network", [RELU, FROZEN, RESIDUAL, SHIFTED], ids=["relu", "frozen", "residual", "shifted"]
)
def test_wide_networks_converge(network):
    rng = np.random.default_rng(7)
    x = rng.standard_normal((4, 3))
    want = np.stack(kc.Sequential(*build(network)).kernels(x))
    size = np.sqrt(np.einsum("kii,kjj->kij", want, want))
    spread = []
    for width in WIDTHS:
        draws = np.stack([networks.sample(network, x, width, rng) for _ in range(DRAWS)])
        error = draws.mean(0) - want
        standard = draws.std(0, ddof=1) / np.sqrt(DRAWS)
        # The mean over draws has a bias of order 1/width, far below its standard error.
        assert (np.abs(error) <= 5 * standard + 2 / width * size).all(), (width, error / standard)
        spread.append(np.sqrt((((draws - want) / size) ** 2).mean((0, 2, 3))))
    # 24 draws know a spread to 15 %; over a factor 10 of width that is 0.1 of slope.
    slopes = np.polyfit(np.log(WIDTHS), np.log(spread), 1)[0]
    np.testing.assert_allclose(slopes, -0.5, atol=0.15)


def test_a_wrong_kernel_would_be_noticed():
    """The widest networks tell ours from one whose last bias is off by 0.1."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((4, 3))
    wrong = kc.Sequential(*build(RELU[:-1]), kc.Dense(1.0, 0.3)).nngp(x)
    draws = np.stack([networks.sample(RELU, x, WIDTHS[-1], rng)[0] for _ in range(DRAWS)])
    standard = draws.std(0, ddof=1) / np.sqrt(DRAWS)
    assert (np.abs(draws.mean(0) - wrong) > 5 * standard).any()
