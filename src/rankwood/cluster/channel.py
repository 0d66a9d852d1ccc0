"""How a rank and the client's process talk: through queues of Dask's scheduler, which both can reach wherever they are.

::

    rank ── tell, ask ──> queue of the run ──> client      (short: a rank waits when the client cannot keep up)
    rank <── answers, Ctrl-C ── queue of the rank ── client
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from rankwood.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client, Queue

POLL = 1.0  # seconds after which whoever waits for a message looks whether it still makes sense
LENGTH = 16  # messages to the client that may wait at the scheduler


class Channel(ABC):
    """What a rank can say to the client's process."""

    @abstractmethod
    def tell(self, message: Any) -> None:
        """Send a message to the client, and go on.

        Parameters
        ----------
        message : object
            Anything that can be pickled, of some megabytes at most.
        """

    @abstractmethod
    def ask(self, message: Any) -> Any:
        """Send a message to the client, and wait for its answer.

        Parameters
        ----------
        message : object
            Anything that can be pickled, of some megabytes at most.
        """

    @abstractmethod
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed at the client; ranks hear of it at different moments.

        Raises
        ------
        ClusterError
            When the client is gone or has given up the work.
        """


class RankEnd(Channel):
    """The channel as a rank has it.

    Parameters
    ----------
    client : distributed.Client
        Client of the worker.
    run : str
        Name of the work.
    rank : int
        Number of this process.
    is_wanted : callable
        Tells whether the client still wants the work.
    """

    def __init__(self, client: Client, run: str, rank: int, is_wanted: Callable[[], bool]) -> None:
        self._rank, self._is_wanted = rank, is_wanted
        self._out, self._in = _queue(client, run), _queue(client, run, rank)
        self._start: SimpleQueue[Any] = SimpleQueue()
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._interrupted, self._is_orphan, self._is_closed = False, False, False
        self._over: ClusterError | None = None
        self._on_over: Callable[[ClusterError], None] = lambda error: None
        self._thread = threading.Thread(target=self._listen, name=f"rankwood-channel{rank}", daemon=True)
        self._thread.start()

    def tell(self, message: Any) -> None:
        self.send("tell", message)

    def ask(self, message: Any) -> Any:
        self.send("ask", message)
        return self._take(self._answers)

    def interrupted(self) -> bool:
        if self._over is not None:
            raise self._over
        return self._interrupted

    def wait_for_start(self, on_over: Callable[[ClusterError], None]) -> Any:
        """What the client sends when all ranks are there.

        Parameters
        ----------
        on_over : callable
            Called, in another thread, with a `ClusterError` when the client is gone or has given up the work.
        """
        self._on_over = on_over
        return self._take(self._start)

    def send(self, kind: str, content: Any) -> None:
        """Send something of the kind to the client.

        Parameters
        ----------
        kind : str
            What it is.
        content : object
            Anything that can be pickled.
        """
        sent = _begin(self._out.put, _dumps((self._rank, kind, content)))
        while not wait([sent], POLL).done:  # the queue is full
            if self._over is not None:
                sent.cancel()
                raise self._over
        try:
            sent.result()
        except (OSError, KeyError):  # no scheduler, or no queue: ranks that saw it first closed it
            self._is_orphan = True
            raise self._over or ClusterError("the client is gone") from None

    def close(self) -> None:
        """End the thread, and let go of the queues."""
        self._is_closed = True
        with contextlib.suppress(OSError, KeyError):
            self._in.put(_dumps(("end", None)))
        self._thread.join()
        for queue in [self._in, self._out] * (2 if self._is_orphan else 1):  # for a client that died, too
            queue.close()

    def _take(self, queue: SimpleQueue[Any]) -> Any:
        content = queue.get()
        if isinstance(content, ClusterError):
            raise content
        return content

    def _listen(self) -> None:
        while True:
            received = _begin(self._in.get)
            while not wait([received], POLL).done:
                if self._is_closed:  # the client was faster: its queue is gone, and nothing comes out of it any more
                    received.cancel()
                    return
                if not self._is_wanted():
                    self._is_orphan = True
                    self._stop("the client has given up the work")
            try:
                kind, content = pickle.loads(received.result())
            except Exception:  # the scheduler is gone, the queue is, or this worker is closing
                self._is_orphan = True
                self._stop("the client is gone")
                return
            if kind == "start":
                self._start.put(content)
            elif kind == "answer":
                self._answers.put(content)
            elif kind == "interrupt":
                self._interrupted = True
            elif kind == "stop":
                self._stop(content)
            elif kind == "end":
                return

    def _stop(self, sentence: str) -> None:
        if self._over is None:
            self._over = ClusterError(sentence)
            self._start.put(self._over)
            self._answers.put(self._over)
            self._on_over(self._over)


class ClientEnd:
    """The channels to all ranks, as the client has them; a context manager.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    run : str
        Name of the work.
    size : int
        Number of ranks.

    Attributes
    ----------
    inbox : SimpleQueue
        What ranks sent: (rank, kind, content); or a `ClusterError` when nothing can be received.
    """

    def __init__(self, client: Client, run: str, size: int) -> None:
        self.inbox: SimpleQueue[Any] = SimpleQueue()
        self._in = _queue(client, run)
        self._out = [_queue(client, run, rank) for rank in range(size)]
        self._thread = threading.Thread(target=self._listen, name="rankwood-channel", daemon=True)
        self._thread.start()

    def send(self, rank: int, kind: str, content: Any = None) -> None:
        """Send something of the kind to a rank.

        Parameters
        ----------
        rank : int
            Number of the rank.
        kind : str
            What it is: "start", "answer", "interrupt" or "stop".
        content : object
            Anything that can be pickled.
        """
        self._out[rank].put(_dumps((kind, content)))

    def __enter__(self) -> ClientEnd:
        return self

    def __exit__(self, *error: object) -> None:
        if self._thread.is_alive():  # else the scheduler is gone, and so are its queues
            with contextlib.suppress(OSError):
                self._in.put(_dumps(None))
        self._thread.join()
        for queue in [self._in, *self._out]:
            for _ in range(len(self._out) + 1):  # a queue lives until all who know it have closed it, and ranks may die
                queue.close()

    def _listen(self) -> None:
        while True:
            try:
                data = self._in.get()
            except Exception as error:
                self.inbox.put(ClusterError(f"the connection to Dask's scheduler was lost: {error}"))
                return
            try:
                message = pickle.loads(data)
            except Exception as error:
                self.inbox.put(ClusterError(f"a message of a worker cannot be read: {type(error).__name__}: {error}"))
                continue
            if message is None:
                return
            self.inbox.put(message)


def _begin(operation: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Begin something with a queue, in the client's thread: to wait for it there with a time-out fills logs."""
    queue: Queue = operation.__self__  # type: ignore[attr-defined]
    loop = queue.client.loop.asyncio_loop
    return asyncio.run_coroutine_threadsafe(operation(*arguments, asynchronous=True), loop)


def _queue(client: Client, run: str, rank: int | None = None) -> Queue:
    from distributed import Queue

    if rank is None:
        return Queue(f"rankwood-{run}", client=client, maxsize=LENGTH)
    return Queue(f"rankwood-{run}-{rank}", client=client)


def _dumps(message: Any) -> bytes:
    from distributed.protocol.pickle import dumps

    return bytes(dumps(message))
