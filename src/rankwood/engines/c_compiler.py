"""The system's C compiler: finding it, and making a shared library with it."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rankwood.errors import ModelError
from rankwood.threads import resolve_threads

CANDIDATES = ("cc", "gcc", "clang")
FLAGS = ("-std=c99", "-fPIC", "-ffp-contract=off")
# For 1,000 trees of 64 leaves -O2 takes twice as long as -O1 and gains nothing that can be measured; so does
# -march=native. A mispredicted branch costs the same on any instruction set.
OPTIMISE = "-O1"
NATIVE = "-march=native"
PATIENCE = 5.0  # seconds that a compiler has to end when told to


@dataclass(frozen=True)
class Compiler:
    """A C compiler that is there. It may have arguments: CC="ccache gcc"."""

    command: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((Path(self.command[0]).name, *self.command[1:]))

    def identity(self) -> str:
        """Where it is and what it says about its version."""
        try:
            shown = subprocess.run([*self.command, "--version"], capture_output=True, env=_environment(), check=False)
        except OSError as error:
            raise ModelError(f"the C compiler {self} does not run: {error.strerror}") from None
        return f"{self.command}\n{shown.stdout.decode(errors='replace')}"

    def build(self, units: Mapping[str, str], flags: Sequence[str], folder: Path) -> Path:
        """Write source files to an empty `folder`, compile them side by side and link them; the library's path.

        Ended early, by Ctrl-C for instance, it leaves no compiler running.
        """
        for name, text in units.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
        sources = [name for name in units if name.endswith(".c")]
        objects = [f"{name}.o" for name in sources]
        compile_ = [*self.command, *FLAGS, *flags, "-c"]
        commands = [[*compile_, name, "-o", target] for name, target in zip(sources, objects, strict=True)]
        self._run(commands, folder)
        self._run([[*self.command, *flags, "-shared", *objects, "-o", "model.so"]], folder)
        return folder / "model.so"

    def _run(self, commands: Sequence[Sequence[str]], folder: Path) -> None:
        """Run commands, as many at a time as there are CPUs; the first that fails ends the others."""
        at_most = resolve_threads(None)
        running: list[tuple[subprocess.Popen[bytes], Path]] = []
        try:
            for number, command in enumerate(commands):
                if len(running) == at_most:
                    self._finish(*running[0])
                    del running[0]
                log = folder / f"{number}.log"
                running.append((_start(command, folder, log), log))
            for process, log in running:
                self._finish(process, log)
        finally:
            _end([process for process, _ in running])

    def _finish(self, process: subprocess.Popen[bytes], log: Path) -> None:
        status = process.wait()
        if status < 0:
            raise ModelError(f"the C compiler {self} was ended by signal {-status}: is there too little memory?")
        if status:
            raise ModelError(f"the C compiler {self} failed: {first_error(log.read_text(errors='replace'))}")


def find_compiler() -> Compiler | str:
    """The compiler that the variable CC names, else cc, gcc or clang; or a sentence about what is missing."""
    named = os.environ.get("CC", "").strip()
    if named:
        with contextlib.suppress(ValueError):  # a quotation that does not end
            program, *arguments = shlex.split(named)
            path = shutil.which(program)
            if path is not None:
                return Compiler((path, *arguments))
        return f"the C compiler that the variable CC names, {named!r}, is not there"
    for program in CANDIDATES:
        path = shutil.which(program)
        if path is not None:
            return Compiler((path,))
    return f"there is no C compiler ({', '.join(CANDIDATES)}; the variable CC may name another)"


def first_error(log: str) -> str:
    """The first line of a compiler's output that tells of an error, else its first line.

    >>> first_error("m.c: In function 'f':\\nm.c:3:1: error: expected ';'\\n")
    "m.c:3:1: error: expected ';'"
    """
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else "it does not say why")


def _environment(**more: str) -> dict[str, str]:
    return os.environ | {"LC_ALL": "C"} | more


def _start(command: Sequence[str], folder: Path, log: Path) -> subprocess.Popen[bytes]:
    # A session of its own: a compiler is several processes, which are ended together. Its temporary files go to the
    # folder, too, and with it.
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(TMPDIR=str(folder)),
            start_new_session=True,
        )


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End processes that still run, and wait until they have ended."""
    alive = [process for process in processes if process.poll() is None]
    for process, number in _kills(alive):
        with contextlib.suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, number)
            else:
                process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)


def _kills(alive: Sequence[subprocess.Popen[bytes]]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    for process in alive:
        yield process, signal.SIGTERM
    for process in alive:
        if process.poll() is None:
            yield process, getattr(signal, "SIGKILL", signal.SIGTERM)
