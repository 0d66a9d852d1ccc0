"""A model as a shared library: compiled by the system's C compiler, kept in a cache, tested before it is used."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rankwood import _native
from rankwood._version import __version__
from rankwood.atomic import atomic_write
from rankwood.dtypes import AnyArray, FloatArray
from rankwood.errors import ModelError, RankwoodError

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble


# The system's C compiler: finding it, and making a shared library with it.


CANDIDATES = ("cc", "gcc", "clang")
FLAGS = ("-std=c99", "-fPIC", "-ffp-contract=off")
# For 1,000 trees of 64 leaves -O2 takes twice as long as -O1 and gains nothing that can be measured; so does
# -march=native. A mispredicted branch costs the same on any instruction set.
OPTIMISE = "-O1"
NATIVE = "-march=native"
PATIENCE = 5.0  # seconds that a compiler has to end when told to


@dataclass(frozen=True)
class Compiler:
    """A C compiler that is there; its command may have arguments, as in CC="ccache gcc"."""

    command: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((Path(self.command[0]).name, *self.command[1:]))

    def identity(self) -> str:
        """Where the compiler is, and what it says about its version."""
        try:
            shown = subprocess.run([*self.command, "--version"], capture_output=True, env=_environment(), check=False)
        except OSError as error:
            raise ModelError(f"the C compiler {self} does not run: {error.strerror}") from None
        return f"{self.command}\n{shown.stdout.decode(errors='replace')}"

    def build(self, units: Mapping[str, str], flags: Sequence[str], folder: Path, n_jobs: int = 1) -> Path:
        """Write source files into a folder, compile and link them, and return the library's path.

        Ended early, by Ctrl-C for instance, it leaves no compiler running.

        Parameters
        ----------
        units : mapping of str to str
            Text of each source file by its name.
        flags : sequence of str
            Arguments of the compiler besides `FLAGS`.
        folder : Path
            An empty folder.
        n_jobs : int, default 1
            How many files are compiled at the same time.
        """
        for name, text in units.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
        sources = [name for name in units if name.endswith(".c")]
        objects = [f"{name}.o" for name in sources]
        compile_ = [*self.command, *FLAGS, *flags, "-c"]
        commands = [[*compile_, name, "-o", target] for name, target in zip(sources, objects, strict=True)]
        self._run(commands, folder, n_jobs)
        self._run([[*self.command, *flags, "-shared", *objects, "-o", "model.so"]], folder, n_jobs=1)
        return folder / "model.so"

    def _run(self, commands: Sequence[Sequence[str]], folder: Path, n_jobs: int) -> None:
        """Run commands, `n_jobs` at a time; the first that fails ends the others."""
        running: list[tuple[subprocess.Popen[bytes], Path]] = []
        try:
            for number, command in enumerate(commands):
                if len(running) == n_jobs:
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
    r"""The first line of a compiler's output that tells of an error, else its first line.

    Examples
    --------
    >>> first_error("m.c: In function 'f':\nm.c:3:1: error: expected ';'\n")
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


# Compiled libraries, kept under the user's cache folder.
#
# The name of a file is the key of what was compiled, and the SHA-256 of its content. A file whose content is not what
# its name says is damaged and not loaded: that could end the process. So nothing is ever overwritten, and a library
# that another process has loaded stays as it is.
#
# What is loaded is run. So only the user (or root) may be able to write the folder and the file: a folder that others
# may write is refused, a file that others may have written is not loaded.


UNUSED_DAYS = 30  # a library that was not used for so long is removed when another is added
BUILD_DAYS = 1  # a folder of a build that was killed
DAY = 86400.0


def cache_folder() -> Path:
    """The folder for files that rankwood can make again.

    It is RANKWOOD_CACHE, or `rankwood` in XDG_CACHE_HOME or in the system's place for caches.
    """
    named = os.environ.get("RANKWOOD_CACHE")
    if named:
        return Path(named).absolute()
    common = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(common):  # the specification says to ignore a relative one
        return Path(common) / "rankwood"
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "rankwood" / "cache"
    try:
        home = Path.home()
    except RuntimeError:
        raise RankwoodError("there is no home folder for the cache: set RANKWOOD_CACHE to a folder") from None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "rankwood"


class LibraryCache:
    """Compiled libraries in one folder of the cache."""

    def __init__(self, name: str) -> None:
        self.folder = cache_folder() / name

    def find(self, key: str) -> list[Path]:
        """Libraries whose names have the key: one or none, mostly; `load` checks what they really are."""
        try:
            with self._opened():
                return sorted(self.folder.glob(f"{key}-*.so"))
        except OSError:  # there is no such folder, or it cannot be read
            return []

    def load(self, path: Path) -> ctypes.CDLL | str:
        """A library of this folder, or why it is not loaded: it is damaged, or others may have written it."""
        try:
            with self._opened() as folder:
                # The system's loader takes libraries of one name for one; this name says what the content is.
                found = folder / path.name
                library = _why_not(found) or load_library(found)
                named = str(folder), str(self.folder)
                return library.replace(*named) if isinstance(library, str) else library
        except OSError as error:  # somebody else removed it
            return str(error.strerror)

    def add(self, key: str, library: Path) -> Path:
        """Keep a library; processes that do so at the same time do not disturb each other."""
        content = library.read_bytes()
        path = self.folder / _name_of(key, content)
        with atomic_write(path, permissions=0o600) as file:
            file.write(content)
        self._remove_old()
        return path

    def remove(self, path: Path) -> None:
        """Remove a library, where that is possible."""
        with contextlib.suppress(OSError):
            path.unlink()

    @contextlib.contextmanager
    def build_folder(self) -> Iterator[Path]:
        """An empty folder beside the libraries, which is gone afterwards."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._opened():
                pass
            build = tempfile.mkdtemp(prefix=".build-", dir=self.folder)
        except OSError as error:
            raise RankwoodError(
                f"compiled models are kept in {self.folder}, which cannot be written ({error.strerror}): "
                f"set RANKWOOD_CACHE to another folder"
            ) from None
        try:
            yield Path(build)
        finally:
            shutil.rmtree(build, ignore_errors=True)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Path]:
        """The folder, which only the user (or root) may write, by a name that is lost when it is closed.

        The name is that of the open folder, where there is such a thing. So what is found by it is in the very folder
        that was checked, also when another is put in its place meanwhile.
        """
        if not hasattr(os, "getuid"):
            yield self.folder
            return
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            facts = os.fstat(handle)
            if _others_may_write(facts):
                raise RankwoodError(
                    f"compiled models are kept in {self.folder}, where others may write: set RANKWOOD_CACHE to a "
                    f"folder that only you can write"
                )
            by_handle = Path(f"/proc/self/fd/{handle}")
            same = by_handle.exists() and os.path.samestat(by_handle.stat(), facts)
            yield by_handle if same else self.folder
        finally:
            os.close(handle)

    def _remove_old(self) -> None:
        now = time.time()
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):
                age = (now - path.stat().st_mtime) / DAY
                if path.suffix == ".so" and age > UNUSED_DAYS:
                    self.remove(path)
                elif path.name.startswith(".") and age > BUILD_DAYS:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def load_library(path: Path) -> ctypes.CDLL | str:
    """The library, or why it cannot be loaded."""
    try:
        return ctypes.CDLL(os.fspath(path))
    except OSError as error:
        return str(error)


def _why_not(path: Path) -> str | None:
    """The reason why a library of the cache must not be loaded, or None, and then it is noted that it is in use."""
    with open(path, "rb", opener=_open_itself) as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            return "it is not a file"
        if hasattr(os, "getuid") and _others_may_write(facts):
            return "others may write it: set RANKWOOD_CACHE to a folder that only you can write"
        if path.name != _name_of(path.name.rpartition("-")[0], file.read()):
            return "it is damaged"
    with contextlib.suppress(OSError):  # root's
        os.utime(path)
    return None


def _open_itself(path: str, flags: int) -> int:
    """Open a file, but not what a link points to, and without waiting for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _others_may_write(facts: os.stat_result) -> bool:
    """Whether somebody besides the user and root can write; rights of an access list show in those of the group."""
    return facts.st_uid not in (os.getuid(), 0) or bool(facts.st_mode & 0o022)


def _name_of(key: str, content: bytes) -> str:
    return f"{key}-{hashlib.sha256(content).hexdigest()[:32]}.so"


# A model as such a library.


NAME = "rankwood_model"
SourceWriter = Callable[[str, str], Mapping[str, str]]


class IfElseKernel:
    """A library that was compiled for one model, or that an earlier run had compiled.

    Parameters
    ----------
    model : Ensemble
        The model to compile.
    write_source : callable
        Given the prefix of all exported names and a text that the library shall carry, returns the model as C files:
        their texts by name. Called only when no library is in the cache.
    optimise : str, default "-O1"
        Level of optimisation.
    n_jobs : int, default 1
        How many files are compiled at the same time.
    alone : bool, default False
        Whether rows are scored one after the other, each by itself, instead of many at a time.

    Attributes
    ----------
    path : Path
        The library in the cache.
    from_cache : bool
        Whether it was compiled before.
    n_bytes : int
        Size of the file.
    """

    def __init__(
        self,
        model: Ensemble,
        write_source: SourceWriter,
        optimise: str = OPTIMISE,
        n_jobs: int = 1,
        *,
        alone: bool = False,
    ) -> None:
        # The library stays loaded until the process ends.
        self.path, self._library, self.from_cache = _compiled(model, write_source, optimise, n_jobs)
        self._trees = _native.CompiledTrees(
            **{
                f"{function}_{kind}": _address(self._library, f"{function}{how}_{kind}")
                for function, how in (("score", "_alone" if alone else ""), ("leaves", ""))
                for kind in ("f32", "f64")
            },
            n_features=model.n_features,
            n_trees=model.n_trees,
        )
        self.n_bytes = self.path.stat().st_size

    def score(self, X: AnyArray, scores: FloatArray, single: bool, n_threads: int) -> None:
        self._trees.score(X, scores, single, n_threads)

    def leaves(self, X: AnyArray, leaves: AnyArray, n_threads: int) -> None:
        self._trees.leaves(X, leaves, n_threads)


def _compiled(
    model: Ensemble, write_source: SourceWriter, optimise: str, n_jobs: int
) -> tuple[Path, ctypes.CDLL, bool]:
    """Path and library of a model, and whether it came from the cache: when it is there and passes its self-test."""
    compiler = find_compiler()
    if isinstance(compiler, str):
        raise ModelError(compiler)
    key = cache_key(model, compiler, optimise)
    cache = LibraryCache("ifelse")
    for path in cache.find(key):
        library = cache.load(path)
        if not isinstance(library, str) and _is_stamped(library, key) and self_test_of(library, NAME) == 0:
            return path, library, True
        cache.remove(path)
    with cache.build_folder() as folder:
        units = write_source(NAME, f"key {key}")
        path = cache.add(key, compiler.build(units, (optimise,), folder, n_jobs))
    try:
        return path, tested_library(cache.load(path), NAME, compiler), False
    except BaseException:
        cache.remove(path)
        raise


def cache_key(model: Ensemble, compiler: Compiler, optimise: str = OPTIMISE) -> str:
    """A digest of everything that the library depends on."""
    digest = hashlib.sha256()
    for part in (__version__, model.fingerprint(), compiler.identity(), *FLAGS, optimise, cpu_identity()):
        digest.update(f"{len(part)} {part}\n".encode())
    for name in ("c_source.py", "c_library.py", "ifelse_template.c", "ifelse_template.h"):
        digest.update((Path(__file__).parent / name).read_bytes())
    return digest.hexdigest()


def cpu_identity() -> str:
    """System, architecture, and model and features of the CPU where the system tells them."""
    facts = [platform.system(), platform.machine(), platform.processor()]
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    first = text.partition("\n\n")[0].splitlines()
    wanted = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    return "\n".join(facts + [line for line in first if line.startswith(wanted)])


def checked_library(path: Path, name: str, compiler: Compiler) -> ctypes.CDLL:
    """A library that was just compiled, loaded and tested."""
    return tested_library(load_library(path), name, compiler)


def tested_library(library: ctypes.CDLL | str, name: str, compiler: Compiler) -> ctypes.CDLL:
    """The library when it passes its self-test.

    Raises
    ------
    ModelError
        It fails the test, or `library` is the reason why it could not be loaded.
    """
    if isinstance(library, str):
        raise ModelError(f"what the C compiler {compiler} made cannot be loaded: {library}")
    failed = self_test_of(library, name)
    if failed < 0:
        raise MemoryError
    if failed:
        raise ModelError(f"what the C compiler {compiler} made does not score as it must: its self-test fails")
    return library


def self_test_of(library: ctypes.CDLL, name: str) -> int:
    """Result of the library's self-test: 0 when all is well, below 0 when there was too little memory."""
    return int(library[f"{name}_self_test"]())


def _is_stamped(library: ctypes.CDLL, key: str) -> bool:
    """Whether the library says that it was made for that key."""
    try:
        info = (ctypes.c_char * 1).in_dll(library, f"{NAME}_info")
    except ValueError:  # there is no such symbol
        return False
    return ctypes.string_at(ctypes.addressof(info)).endswith(f"; key {key}".encode())


def _address(library: ctypes.CDLL, function: str) -> int:
    return ctypes.cast(library[f"{NAME}_{function}"], ctypes.c_void_p).value or 0
