"""Frozen layers, at a size that takes a moment."""

import numpy as np
import tiny

import kernelcore as kc
from kernelcore.experiments import frozen
from kernelcore.experiments._learn import seeds, taught


def ridge(K, K_test, y, amount):
    return K_test @ np.linalg.solve(K + amount * np.eye(len(K)), y)


def test_random_deep_features_are_compared_with_the_arc_cosine_kernel():
    """Of order one, twice; and the features are ReLUs of ReLUs."""
    s = tiny.settings("frozen")
    x, y = frozen._images(s, 0.0, 1)
    target = np.eye(10)[y[: s.n]] - 0.1

    def arc(K, p, q):
        size = np.sqrt(np.outer(p, q))
        u = np.clip(K / size, -1, 1)
        return size * (u * (np.pi - np.arccos(u)) + np.sqrt(1 - u * u)) / np.pi

    norms = np.square(x).mean(1)
    # The weights of the two hidden layers have variance 2, so that both keep 2 |x|^2 / d.
    K = arc(2 * x @ x.T / x.shape[1], 2 * norms, 2 * norms)
    K = arc(K, K.diagonal(), K.diagonal()) / 2
    limit = ridge(K[: s.n, : s.n], K[s.n :, : s.n], target, s.ridge)
    found = frozen._random(s, 1)["apart"]
    for count, apart in zip(s.counts, found, strict=True):
        drawn = kc.features.SampledFeatures(frozen.NET, count, seed=seeds(s.seed, 4, 1, count))
        one, two, _ = (w for w, _ in drawn.fit(x[: s.n]).network_.weights)
        h = np.maximum(x @ one * np.sqrt(2 / x.shape[1]), 0)
        z = np.maximum(h @ two * np.sqrt(2 / len(two)), 0) / np.sqrt(count)
        guess = ridge(z[: s.n] @ z[: s.n].T, z[s.n :] @ z[: s.n].T, target, s.ridge)
        want = np.sqrt(np.square(guess - limit).mean() / np.square(limit).mean())
        np.testing.assert_allclose(apart, want, rtol=1e-6)


def test_layers_that_are_frozen_stay_and_lazy_ones_are_their_kernel():
    s = tiny.settings("frozen")
    _, x, y, z, wanted = taught(seeds(s.seed, 5, 0), s.dim, s.teacher, s.sample, s.test)
    net = frozen.NET.sample(s.students, seed=seeds(s.seed, 6, 0), shape=s.dim, doubled=True)
    everything = net.jacobian(x), net.jacobian(z)
    sizes = [w.w.size for w in net.weights[:3]]
    ends = np.cumsum([0, *sizes, *sizes])
    result = tiny.result("frozen")
    for name, kept in zip(frozen.LAYERS, result["errors"], strict=True):
        some = np.concatenate([
            np.arange(ends[k + 3 * part], ends[k + 3 * part + 1])
            for part in (0, 1) for k in frozen.LAYERS[name]
        ])  # fmt: skip
        J, J_test = (a[:, some] for a in everything)
        values, vectors = np.linalg.eigh(J @ J.T)
        # Half of the largest stable step, 2 n / lambda; that is found to 1e-3.
        time = s.descent / values[-1]
        factor = -np.expm1(-np.clip(values, 0, None) * time) / np.where(values > 1e-9, values, 1)
        guess = J_test @ J.T @ vectors @ (factor * (vectors.T @ y) * (values > 1e-9))
        want = np.square(guess - wanted).mean() / wanted.var()
        np.testing.assert_allclose(kept[-1, 0], want, rtol=0.01)
        # Descent with that step, and the flow, are not the same while directions are being learned.
        np.testing.assert_allclose(kept[1], kept[-1], rtol=0.15)


def test_features_learned_elsewhere_have_not_seen_the_classes_of_the_test(monkeypatch):
    s = tiny.settings("frozen")
    seen = []
    train = kc.networks.train

    def spied(network, x, y, **options):
        seen.append((x, options["validation"][0]))
        return train(network, x, y, **options)

    monkeypatch.setattr(kc.networks, "train", spied)
    found = frozen._transferred(s, 2.0, 0)["right"]
    x, y = frozen._images(s, 2.0, 0)
    ((learned, held),) = seen
    rows = {row.tobytes() for row in np.concatenate([learned, held])}
    assert rows == {row.tobytes() for row in x[y < frozen.CLASSES]}
    assert found.shape == (3, len(s.sizes))
    np.testing.assert_array_equal(found, tiny.result("frozen")["right"][1, ..., 0])


def test_small_results_say_what_is_claimed():
    result = tiny.result("frozen")
    first, _, top, *_ = result["errors"].mean(-1)
    assert first[0] < first[1]
    assert abs(top[0] / top[-1] - 1) < 0.5
    assert (np.diff(result["apart"].mean(0)) < 0).all()
    assert "digits 0 to 4" in frozen.paragraph(result)
