"""Files read in a process of little memory and time, so that one that takes too much of either is found out.

As a script it reads paths, one on a line, and tells on a line of JSON each what became of the file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import rankwood

SECONDS = 20  # of the processor, for one file; a hang ends there
MEGABYTES = 768  # beside what is there before any file is read


def read_limited(paths, megabytes=MEGABYTES):
    """What becomes of every file: {"read": description of the model} or {"error", "cause", "message"}."""
    package = str(Path(rankwood.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": package, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, __file__, str(megabytes)],
        input="\n".join(map(str, paths)),
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(paths), f"the process ended after {len(found)} of {len(paths)} files: {done.stderr[-800:]}"
    return found


class TookTooLongError(BaseException):
    """Nothing catches it."""


def main(megabytes):
    import resource
    import signal

    from rankwood.formats.registry import load_model

    try:
        import onnx
        import onnx.numpy_helper  # noqa: F401
    except ImportError:
        pass
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20),) * 2)

    def stop(*_):
        raise TookTooLongError

    signal.signal(signal.SIGPROF, stop)
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            found = {"read": repr(load_model(line.rstrip("\n")))}
        except (Exception, TookTooLongError) as error:
            cause = None if error.__cause__ is None else type(error.__cause__).__name__
            found = {"error": type(error).__name__, "cause": cause, "message": str(error)}
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
