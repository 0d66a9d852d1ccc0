r"""A group of processes that talk over Dask's own connections: TCP or TLS, as the cluster has it.

::

    rank 0 <──── rank 1        every rank listens, and connects to all ranks before it: one connection per pair
       ^   \        ^
       └── rank 2 ──┘          a thread per rank reads, writes, and sends a sign of life every second

The program of a rank hands its messages to that thread and waits for those of the others. When a connection closes, or
nothing comes for `patience` seconds, every rank of the group raises the same `ClusterError`.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import threading
import time
from asyncio import FIRST_COMPLETED
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rankwood.errors import ClusterError
from rankwood.group import Group

if TYPE_CHECKING:
    from distributed import Worker
    from distributed.comm import Comm

T = TypeVar("T")

PIECE = 1 << 22  # bytes sent in one go: whatever is sent also is a sign of life, so no piece may take seconds
PATIENCE = 10.0  # seconds without a sign of life after which a worker is given up
ANSWER = 2.0  # seconds in which a worker that lives answers to the news that another one is lost
BEAT, DATA, LAST, BYE, STOP = range(5)  # what is sent: (kind, content)


class CommGroup(Group):
    """A rank of a group, with a connection to every other rank.

    Made in three steps, as nobody knows an address before all are there: the rank listens (`CommGroup(...)`), its
    `address` goes to the others by another way, and `connect` opens the connections. Use it as a context manager, or
    `close` it.

    Parameters
    ----------
    rank : int
        Number of this process.
    run : str
        Name of the work. Connections that belong to another one are refused.
    worker : distributed.Worker
        The worker this process is: whose interface and security are used.
    patience : float
        Seconds without a sign of life after which another rank counts as lost.
    """

    def __init__(self, rank: int, run: str, worker: Worker, *, patience: float = PATIENCE) -> None:
        self.rank, self.size = rank, 1
        self._run, self._worker, self._patience = run, worker, patience
        self._names: Sequence[str] = ()
        self._comms: dict[int, Comm] = {}
        self._heard: dict[int, float] = {}
        self._received: dict[int, SimpleQueue[Any]] = {}
        self._readers: dict[int, asyncio.Task[None]] = {}
        self._tasks: list[asyncio.Task[None]] = []  # the loop itself does not keep them
        self._meeting: asyncio.Task[Any] | None = None  # while connections are made
        self._failure: ClusterError | None = None
        self._closed = False
        self._loop = asyncio.SelectorEventLoop()
        self._everyone_is_here, self._failed = asyncio.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name=f"rankwood-rank{rank}", daemon=True)
        self._thread.start()
        self._listener: Any = None
        try:
            self.address: str = self._wait_for(self._listen())
        except BaseException:
            self.close()
            raise

    # What the rank's program calls

    def connect(self, addresses: Sequence[str], names: Sequence[str]) -> None:
        """Open the connections to all other ranks.

        Parameters
        ----------
        addresses : sequence of str
            `address` of every rank.
        names : sequence of str
            Name of every rank's worker, for error messages and for `ClusterError.workers`.
        """
        try:
            self._wait_for(self._meet(addresses, names))
        except CancelledError:
            raise self._failure or ClusterError("the group was closed") from None
        except ClusterError as error:
            self.give_up(error)
            raise

    def exchange(self, messages: Sequence[Any]) -> list[Any]:
        if self._failure is not None:
            raise self._failure
        encoded: dict[int, list[tuple[int, Any]]] = {}  # by identity: a message to many is copied once
        outgoing = {peer: encoded.setdefault(id(messages[peer]), []) for peer in self._received}
        for peer, pieces in outgoing.items():
            if not pieces:
                pieces.extend(_encoded(messages[peer]))
        if outgoing:
            self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self._send(outgoing)))
        return [messages[peer] if peer == self.rank else self._receive(peer) for peer in range(self.size)]

    def _receive(self, peer: int) -> Any:
        received = self._received[peer].get()
        if isinstance(received, ClusterError):
            self._received[peer].put(received)  # for whoever asks again
            raise received
        return _decoded(received)

    def give_up(self, error: BaseException) -> None:
        """End the work of the whole group: every rank that waits, or comes to wait, raises a `ClusterError`.

        Parameters
        ----------
        error : exception
            Why. A `ClusterError` is what all others raise, too.
        """
        if not isinstance(error, ClusterError):
            error = ClusterError(f"{self._name(self.rank)} stopped: {type(error).__name__}: {error}")
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._fail, error)

    def close(self) -> None:
        """Say goodbye to the others and end the thread; a group that is closed stays closed."""
        if self._closed:
            return
        self._closed = True
        self._wait_for(self._leave())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def __enter__(self) -> CommGroup:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            self.give_up(error)
        self.close()

    # What the thread does

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _name(self, rank: int) -> str:
        return f"worker {self._names[rank]}" if rank < len(self._names) else f"rank {rank}"

    async def _listen(self) -> str:
        from distributed.comm import get_address_host, listen, parse_address, unparse_address

        scheme, _ = parse_address(self._worker.address)
        here, there = self._worker.listen_address, self._worker.address
        if scheme == "inproc":
            scheme, here, there = "tcp", "tcp://127.0.0.1:0", "tcp://127.0.0.1:0"
        self._listener = await listen(
            unparse_address(scheme, f"{_bracketed(get_address_host(here))}:0"),
            self._accept,
            deserialize=False,
            allow_offload=False,
            **self._worker.security.get_listen_args("worker"),
        )
        port = self._listener.listen_address.rpartition(":")[2]
        return str(unparse_address(scheme, f"{_bracketed(get_address_host(there))}:{port}"))

    async def _accept(self, comm: Comm) -> None:
        """A connection that another rank opened; of another run, or of nobody: closed."""
        with contextlib.suppress(OSError, asyncio.TimeoutError, TypeError, ValueError):
            run, peer = await asyncio.wait_for(comm.read(), self._patience)
            if run == self._run and peer > self.rank and peer not in self._comms:
                await comm.write("welcome")
                self._take_in(peer, comm)
                return
        comm.abort()

    async def _meet(self, addresses: Sequence[str], names: Sequence[str]) -> None:
        self._meeting = asyncio.current_task()
        self.size, self._names = len(addresses), names
        self._received = {peer: SimpleQueue() for peer in range(self.size) if peer != self.rank}
        self._check_presence()
        await asyncio.gather(*(self._call(peer, addresses[peer]) for peer in range(self.rank)))
        try:
            await asyncio.wait_for(self._everyone_is_here.wait(), self._patience)
        except asyncio.TimeoutError:
            missing = [self._names[peer] for peer in self._received if peer not in self._comms]
            raise ClusterError(f"worker {' and '.join(missing)} did not connect", missing) from None
        self._meeting = None
        self._tasks.append(asyncio.create_task(self._beat()))

    async def _call(self, peer: int, address: str) -> None:
        from distributed.comm import connect

        async def call() -> Comm:
            arguments = self._worker.security.get_connection_args("worker")
            comm = await connect(address, timeout=self._patience, deserialize=False, **arguments)
            comm.allow_offload = False
            await comm.write((self._run, self.rank))
            await comm.read()  # one that belongs to another run hangs up
            return comm

        try:
            self._take_in(peer, await asyncio.wait_for(call(), self._patience))
        except (OSError, asyncio.TimeoutError) as error:
            name, reason = self._names[peer], str(error) or "no answer"
            raise ClusterError(f"worker {name} cannot be reached: {reason}", [name]) from None

    def _take_in(self, peer: int, comm: Comm) -> None:
        self._comms[peer] = comm
        self._heard[peer] = time.monotonic()
        self._check_presence()

    def _check_presence(self) -> None:
        """Begin to read, as soon as everyone is here; another rank may be connected before this one knows of it."""
        if self._comms.keys() >= self._received.keys() and self._names and not self._everyone_is_here.is_set():
            self._everyone_is_here.set()
            self._readers = {peer: asyncio.create_task(self._read(peer)) for peer in self._comms}

    async def _send(self, outgoing: dict[int, list[tuple[int, Any]]]) -> None:
        for peer, pieces in outgoing.items():
            with contextlib.suppress(OSError):  # closed: its reader says so
                for piece in pieces:
                    await self._comms[peer].write(piece)

    async def _read(self, peer: int) -> None:
        comm, frames = self._comms[peer], []
        end = ClusterError(f"the connection to {self._name(peer)} was lost", [self._names[peer]])
        try:
            while True:
                kind, content = await comm.read()
                self._heard[peer] = time.monotonic()
                if kind in (DATA, LAST):
                    frames += content.frames
                    if kind == LAST:
                        self._received[peer].put((content.header["lengths"], frames))
                        frames = []
                elif kind == BYE:
                    del self._heard[peer]
                    self._received[peer].put(ClusterError(f"{self._name(peer)} has ended its work before this one"))
                    return
                elif kind == STOP:
                    end = ClusterError(*content)
                    break
        except OSError:
            pass
        self._fail(end)

    async def _beat(self) -> None:
        """Send signs of life, and look for those of the others."""
        pause = min(1.0, self._patience / 5)
        before = time.monotonic()
        while True:
            await self._send({peer: [(BEAT, None)] for peer in self._comms})
            await asyncio.sleep(pause)
            now = time.monotonic()
            for peer, heard in self._heard.items():
                if now - before > self._patience / 2:  # this process itself stood still: it cannot know of the others
                    self._heard[peer] = now
                elif now - heard > self._patience:
                    name, silence = self._names[peer], f"for {self._patience:g} s"
                    self._fail(ClusterError(f"worker {name} gave no sign of life {silence}", [name]))
                    return
            before = now

    def _fail(self, error: ClusterError) -> None:
        """Wake up the program with an error, and tell the others."""
        if self._failure is None:
            self._failure = error
            for queue in self._received.values():
                queue.put(error)
            stop = (STOP, (str(error), error.workers))
            self._tasks.append(self._loop.create_task(self._send({peer: [stop] for peer in self._comms})))
            self._failed.set()
            if self._meeting is not None:
                self._meeting.cancel()

    async def _leave(self) -> None:
        """Close all connections, when all others have said goodbye, too: a socket closed earlier drops what it sent."""
        await self._send({peer: [(BYE, None)] for peer in self._comms})
        waiting: list[asyncio.Future[Any]] = [asyncio.gather(*self._readers.values())]
        waiting.append(asyncio.ensure_future(self._failed.wait()))
        await asyncio.wait(waiting, return_when=FIRST_COMPLETED)
        if self._failure is not None:  # those that are not lost answer at once
            lost = self._failure.workers
            answers = [reader for peer, reader in self._readers.items() if self._names[peer] not in lost]
            if answers:
                await asyncio.wait(answers, timeout=ANSWER)
        if self._listener is not None:
            self._listener.stop()
        for comm in self._comms.values():
            comm.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _encoded(message: Any) -> list[tuple[int, Any]]:
    """A message as pieces to send. Arrays are copied, as the program may change them while they are on their way."""
    from distributed.protocol import Serialized

    buffers: list[pickle.PickleBuffer] = []
    head = bytearray(pickle.dumps(message, protocol=5, buffer_callback=buffers.append))
    frames = [head, *(bytearray(buffer.raw()) for buffer in buffers)]  # as `Serialized` they are never compressed
    lengths = [len(frame) for frame in frames]
    if sum(lengths) <= PIECE:
        return [(LAST, Serialized({"lengths": lengths}, frames))]
    pieces = [memoryview(frame)[at : at + PIECE] for frame in frames for at in range(0, len(frame), PIECE)]
    kinds = [DATA] * (len(pieces) - 1) + [LAST]
    return [(kind, Serialized({"lengths": lengths}, [piece])) for kind, piece in zip(kinds, pieces, strict=True)]


def _decoded(received: tuple[Sequence[int], list[Any]]) -> Any:
    lengths, pieces = received
    pieces = [memoryview(piece).cast("B") for piece in pieces]
    frames, at = [], 0
    for length in lengths:
        if at < len(pieces) and len(pieces[at]) == length and _is_aligned(pieces[at]):
            frames.append(pieces[at])
            at += 1
            continue
        frame = np.empty(length, dtype=np.uint8)
        filled = 0
        while filled < length:
            frame[filled : filled + len(pieces[at])] = pieces[at]
            filled += len(pieces[at])
            at += 1
        frames.append(frame.data)
    return pickle.loads(frames[0], buffers=frames[1:])


def _is_aligned(piece: memoryview) -> bool:
    return piece.nbytes == 0 or np.frombuffer(piece, dtype=np.uint8).ctypes.data % 16 == 0
