"""Results of experiments at sizes of a second or so, computed once in a process."""

import functools

from kernelcore import experiments

SETTINGS = {
    "profiles": {"depths": (1, 2), "points": 31},
    "spectrum": {"dims": (3, 4), "degrees": 200, "gram_dims": (3, 4), "n": 120, "draws": 4},
    "curves": {"sizes": (30, 60), "draws": 3, "test": 60, "features": 30, "shares": (0.5, 1, 2)},
    "staircase": {
        "dim": 8, "depths": (1, 2), "sizes": 4, "high": 2.6, "draws": 6, "test": 400,
        "feature_sizes": 4, "feature_draws": 6, "feature_ridge": 0.0001, "feature_high": 2.0,
    },
    "single_neuron": {
        "dim": 6, "ratios": (30.0,), "draws": 1, "test": 300, "width": 8, "features": 60,
        "steps": 150, "control": 120, "control_dim": 4, "bits": 6,
    },
    "spiked": {
        "dim": 16, "snrs": (1.0, 16.0), "largest": 200, "sizes": 3, "draws": 5, "test": 500,
        "compared": 150, "width": 8, "features": 60, "steps": 60, "batch": 50, "network_draws": 1,
    },
    "noise": {
        "n": 160, "held": 40, "test": 200, "levels": (0.0, 3.0), "shares": (0.25, 1.0),
        "draws": 2, "width": 16, "steps": 200, "batch": 40,
    },
    "locality": {
        "dim": 12, "patch": 4, "pool": 3, "even": 2, "smallest": 40, "largest": 160, "sizes": 3,
        "draws": 3, "test": 200,
    },
    "stability": {
        "depths": (1, 3), "canvas": 16, "images": 2, "draws": 1, "sizes": (0.03, 0.1, 1.0),
        "scales": (1.0, 2.0), "patch_sizes": (3,), "train": 5,
    },
    "heaviside": {"n": 200, "widths": (0.5,), "times": 41, "top": 10, "network": 64, "steps": 40},
    "approximation": {
        "dim": 8, "degrees": (1, 2), "sizes": 4, "draws": 5, "dims": (4,), "max_degree": 1500,
        "high": 2.0, "tangent_dim": 6, "samples": 4000,
    },
    "lazy": {
        "widths": (32, 128), "wide": (32, 128), "seeds": 2, "steps": 20, "alphas": (4.0, 16.0),
        "networks": 6, "band": 32, "elsewhere": 16, "points": 6,
    },
    "wide": {
        "widths": (8, 32), "seeds": 2, "networks": 6, "band": 16, "line": 9,
        "alphas": (0.2, 4.0, 16.0), "plane": 12, "planes": 2, "kinked": (64, 256), "kinks": 2,
    },
    "rich": {
        "dim": 5, "n": 60, "test": 200, "width": 10, "alphas": (0.2, 20.0), "steps": 300,
        "draws": 2, "images": 120, "filters": 9, "image_steps": 60, "image_draws": 2,
    },
    "frozen": {
        "sizes": (30, 60), "width": 20, "steps": 60, "held": 60, "draws": 2, "counts": (20, 80),
        "n": 60, "dim": 5, "sample": 40, "test": 200, "students": 8, "descent": 60,
        "student_draws": 2,
    },
    "one_step": {
        "dim": 10, "width": 60, "sizes": 2, "low": 2.0, "draws": 2, "test": 200,
        "kernel_most": 250, "widths": (20, 60),
    },
    "adaptive": {
        "dim": 6, "smallest": 60, "largest": 200, "sizes": 2, "draws": 2, "test": 200,
        "rounds": 2,
    },
    "complexity": {
        "n": 40, "test": 60, "shares": (0.0, 1.0), "draws": 2, "flows": 2, "width": 32,
        "steps": 150, "flow": 256, "descent": 24, "records": 6,
    },
    "adaptivity": {
        "dims": (3, 4), "smooth": (1.0, 2.0), "degrees": 8, "centres": 10, "ambient": 5,
        "smallest": 40, "largest": 160, "sizes": 3, "draws": 3, "test": 200,
        "network_sizes": (40, 120), "network_draws": 2, "width": 16, "steps": 60, "batch": 30,
    },
    "features": {
        "smallest": 50, "largest": 100, "sizes": 2, "counts": (4, 16, 64, 256), "draws": 6,
        "test": 200, "sinks": 100, "stumps": 5, "folds": 2,
    },
    "smoothing": {
        "largest": 200, "sizes": 3, "bandwidths": 6, "draws": 3, "test": 60, "ring": 120,
        "ring_draws": 2,
    },
    "digits": {"sizes": (30, 60), "draws": 2},
    "defaults": {"n": 40, "test": 20},
    "learning": {"n": 60, "sizes": (32, 128), "draws": 3},
    "images": {
        "count": 30, "test": 10, "sizes": (12, 20), "draws": 2, "table": 40, "held": 15,
        "unlabelled": 60,
    },
    "uci": {"sets": ("iris",)},
    "speed": {"dims": (8, 20), "sizes": (50, 100), "rounds": 1, "images": (2, 4, 2)},
}  # fmt: skip


def settings(name):
    return experiments.load(name).Settings(**SETTINGS[name])


@functools.cache
def result(name):
    return experiments.run(name, settings(name))
