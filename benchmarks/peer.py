"""neural-tangents in an environment of its own, timed in the same run as kernelcore.

Imported, this file offers `Peer`, the client. Run by the Python of the other environment, it is
the worker: it answers one JSON line per request and sleeps in between, so that rounds can be
interleaved and the peer takes no CPU while the others run.

    setup  compile and warm up the kernel of the points saved in a .npy file
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

    def setup(self, path, depth, kernel="ntk"):
        """Compile ``kernel`` of ``depth`` hidden ReLU layers for points in ``path``; versions."""
        return self._ask(op="setup", path=str(path), depth=depth, kernel=kernel)

    def run(self, calls=1):
        """Seconds of each of ``calls`` calls."""
        return self._ask(op="run", calls=calls)

    def values(self, i, j):
        """Entries ``K[i, j]`` and the sum of ``K``, from the last call."""
        answer = self._ask(op="values", i=[int(a) for a in i], j=[int(b) for b in j])
        return answer["entries"], answer["sum"]

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

    def setup(self, path, depth, kernel):
        import jax
        import neural_tangents
        import numpy as np
        from neural_tangents import stax

        hidden = [stax.Dense(1, W_std=2**0.5), stax.Relu()] * depth
        _, _, kernel_fn = stax.serial(*hidden, stax.Dense(1))
        self.call = jax.jit(lambda x: kernel_fn(x, None, kernel))
        self.x = jax.device_put(np.load(path))
        self.run(calls=2)
        return {"neural_tangents": neural_tangents.__version__, "jax": jax.__version__}

    def run(self, calls):
        seconds = []
        for _ in range(calls):
            start = time.perf_counter()
            self.last = self.call(self.x).block_until_ready()
            seconds.append(time.perf_counter() - start)
        return seconds

    def values(self, i, j):
        import numpy as np

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
