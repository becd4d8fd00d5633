"""Results of experiments at sizes of a second or so, computed once in a process."""

import functools

from kernelcore import experiments

SETTINGS = {
    "profiles": {"depths": (1, 2), "points": 31},
    "spectrum": {"dims": (3, 4), "degrees": 200, "gram_dims": (3, 4), "n": 120, "draws": 4},
    "curves": {"sizes": (30, 60), "draws": 3, "test": 60, "features": 30, "shares": (0.5, 1, 2)},
    "digits": {"sizes": (30, 60), "draws": 2},
    "defaults": {"n": 40, "test": 20},
    "learning": {"n": 60, "sizes": (32, 128), "draws": 3},
    "images": {"count": 30, "test": 10, "sizes": (12, 20), "draws": 2},
    "uci": {"sets": ("iris",)},
    "speed": {"dims": (8, 20), "sizes": (50, 100), "rounds": 1, "images": (2, 4, 2)},
}


def settings(name):
    return experiments.load(name).Settings(**SETTINGS[name])


@functools.cache
def result(name):
    return experiments.run(name, settings(name))
