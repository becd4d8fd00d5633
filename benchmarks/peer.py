"""neural-tangents in an environment of its own, timed in the same run as kernelcore.

Imported, this file offers `Peer`, the client. Run by the Python of the other environment, it is
the worker: it answers one JSON line per request and sleeps in between, so that rounds can be
interleaved and the peer takes no CPU while the others run.

    setup  compile and warm up a kernel of the points saved in a .npy file
    run    time calls, each until its result is ready
    values entries and the sum of the last result, to see that both compute the same kernel
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

VARIABLE = "KERNELCORE_PEERS"


class PeerError(RuntimeError):
    """The worker could not start or answer."""


class Peer:
    """A running worker; `close` it.

    Parameters
    ----------
    directory : path of the virtual environment that has neural-tangents
    """

    def __init__(self, directory):
        python = Path(directory) / "bin" / "python"
        if not python.exists():
            raise PeerError(f"{VARIABLE} must name a virtual environment: no {python}")
        # Neither our modules nor the caller's JAX settings may leak into the peer.
        leaks = ("PYTHONPATH", "PYTHONHOME", "JAX_ENABLE_X64", "XLA_FLAGS")
        env = {k: v for k, v in os.environ.items() if k not in leaks}
        env |= {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
        self._log = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [python, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=env,
        )

    @classmethod
    def from_environment(cls):
        """The peer that ``KERNELCORE_PEERS`` names, or None where it is not set."""
        directory = os.environ.get(VARIABLE)
        return cls(directory) if directory else None

    def setup(self, x, letters, kernel="ntk", batches=None):
        """Compile ``kernel`` of the network ``letters`` (see probe.py) for the points ``x``.

        The call is symmetric; with ``batches``, pairs (n, m), it is that of the first n points and
        the next m, for the batch that takes the least time per pair. Returns versions, the seconds
        per pair of each batch, and the batch chosen.
        """
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "x.npy"
            np.save(path, x)
            return self._ask(
                op="setup", path=str(path), letters=letters, kernel=kernel, batches=batches
            )

    def run(self, calls=1):
        """Seconds of each of ``calls`` calls."""
        return self._ask(op="run", calls=calls)

    def values(self, i, j):
        """Entries ``K[i, j]`` and the sum of ``K``, from the last call."""
        answer = self._ask(op="values", i=[int(a) for a in i], j=[int(b) for b in j])
        return answer["entries"], answer["sum"]

    def disagreement(self, ours, diagonal=True):
        """Largest relative difference of 1000 entries, and of the sum, from the last call."""
        i, j = np.random.default_rng(1).integers([[len(ours)], [ours.shape[1]]], size=(2, 1000))
        if not diagonal:
            i, j = i[i != j], j[i != j]
        entries, total = self.values(i, j)
        ratios = np.append(ours[i, j] / entries, ours.sum(dtype=np.float64) / total)
        return float(abs(ratios - 1).max())

    def _ask(self, **request):
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._process.wait()
            self._log.seek(0)
            raise PeerError(f"the peer stopped at {request['op']!r}:\n{self._log.read()[-2000:]}")
        return json.loads(line)

    def close(self):
        """End the worker."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._log.close()


class Worker:
    """The other end of `Peer`: methods answer the requests of the same name."""

    def setup(self, path, letters, kernel, batches):
        import jax
        import neural_tangents
        from neural_tangents import stax

        std, two = 2**0.5, (2, 2)
        layers = {
            "d": stax.Dense(1, W_std=std),
            "c": stax.Conv(1, (3, 3), padding="SAME", W_std=std),
            "r": stax.Relu(),
            "p": stax.AvgPool(two, two),
            "g": stax.GlobalAvgPool(),
            "f": stax.Flatten(),
            "o": stax.Dense(1),
        }
        _, _, kernel_fn = stax.serial(*map(layers.get, letters))
        x = np.load(path)
        answer = {"neural_tangents": neural_tangents.__version__, "jax": jax.__version__}
        self.call = jax.jit(lambda x, y=None: kernel_fn(x, y, kernel))
        self.points = (jax.device_put(x),)
        if batches is None:
            self.run(calls=2)
            return answer
        trials = []
        for n, m in batches:
            self.points = jax.device_put(x[:n]), jax.device_put(x[n : n + m])
            self.run(calls=1)
            trials.append((min(self.run(calls=1 + (n * m == 1))) / (n * m), [n, m], self.points))
        best = min(trials, key=lambda t: t[0])
        self.points = best[2]
        seconds = [t[0] for t in trials]
        return answer | {"batches": batches, "seconds per pair": seconds, "batch": best[1]}

    def run(self, calls):
        seconds = []
        for _ in range(calls):
            start = time.perf_counter()
            self.last = self.call(*self.points).block_until_ready()
            seconds.append(time.perf_counter() - start)
        return seconds

    def values(self, i, j):
        last = np.asarray(self.last)
        return {"entries": last[i, j].tolist(), "sum": float(last.sum(dtype=np.float64))}


def serve():
    # The answers keep the real stdout; whatever a library prints goes to stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker()
    for line in sys.stdin:
        request = json.loads(line)
        answer = getattr(worker, request.pop("op"))(**request)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve()
