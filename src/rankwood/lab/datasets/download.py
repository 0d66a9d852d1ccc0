"""Downloads over HTTP that resume where an earlier attempt stopped, and checks of disk space."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import re
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from rankwood._version import __version__
from rankwood.errors import DataError
from rankwood.lab.extra import need
from rankwood.printable import human_bytes

if TYPE_CHECKING:
    import requests


# Disk space.


# Bytes left free besides those needed, as file systems need a little for themselves.
_RESERVE = 16 * 1024 * 1024


class NoRoom(DataError):
    """The disk is full or cannot be written; nothing is wrong with the data."""


def require_space(folder: Path, needed: int, purpose: str) -> None:
    """Raise NoRoom when the disk of a folder has less than `needed` bytes free; `purpose` ends "space to ..."."""
    free = shutil.disk_usage(folder).free
    if free < needed + _RESERVE:
        raise NoRoom(
            f"not enough disk space to {purpose}: {folder} has {human_bytes(free)} free, "
            f"{human_bytes(needed)} are needed; free some space or choose another folder"
        )


def write(file: FileIO, data: bytes) -> None:
    """Write all of `data` to an unbuffered file, so that a full disk is an error here and not when it is closed."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def writing_failed(error: OSError, place: Path) -> str:
    """Return what went wrong while writing, as the first half of a sentence."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk that holds {place} is full"
    return f"{place} cannot be written ({error.strerror or error})"


# Downloads. Bytes go to a `.part` file; a note beside it says from which address and of which version of the file they
# are. A later attempt asks for the rest on condition that the version is still the same (If-Range), so that two
# versions are never joined. When it is another, or when the server cannot send parts, the download starts anew.


Progress = Callable[[int, "int | None"], None]

DOWNLOADING = "downloading a data set"  # what needs packages of the extra
CHUNK = 256 * 1024
TIMEOUT = (15.0, 60.0)  # seconds to connect, and without a byte arriving
BACKOFF = (1.0, 2.0, 4.0, 8.0)  # seconds to wait after each attempt in a row that brought nothing new


class DownloadError(Exception):
    """A download that failed.

    Parameters
    ----------
    reason : str
        Why, as half a sentence.
    kept : int, default 0
        Bytes that are kept to resume from.
    local : bool, default False
        Whether this computer is the cause, such as a full disk.
    """

    def __init__(self, reason: str, *, kept: int = 0, local: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.kept, self.local = reason, kept, local


class _PassingFault(Exception):
    """A failure after which another attempt may succeed."""


@dataclasses.dataclass
class _Note:
    """The note on the bytes in the part file: where they come from, and whether they can be continued."""

    url: str
    validator: str | None  # strong ETag, else Last-Modified
    total: int | None
    resumable: bool


class ResumingDownloader:
    """A downloader for pooch, which calls it with (url, output file, pooch).

    Parameters
    ----------
    part : Path
        Where bytes are kept until the file is whole.
    expected_bytes : int, optional
        Published size; a file of another size is refused before a byte is stored.
    checked_later : bool, default False
        Whether a checksum will be compared, so that a rest may be joined although its version is not known.
    progress : callable, optional
        Called with the bytes done and the bytes in total, None when unknown.
    """

    def __init__(
        self,
        part: Path,
        *,
        expected_bytes: int | None = None,
        checked_later: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.part = part
        self.note_file = part.with_name(part.name + ".json")
        self.expected_bytes = expected_bytes
        self.checked_later = checked_later
        self.progress = progress

    def __call__(self, url: str, output_file: str, _pooch: Any) -> None:
        requests = need("requests", DOWNLOADING)
        failures, furthest = 0, self._size()
        with requests.Session() as session:
            session.headers["User-Agent"] = f"rankwood/{__version__}"
            session.headers["Accept-Encoding"] = "identity"  # the archive as it is: offsets must mean its bytes
            while True:
                try:
                    self._attempt(session, url)
                    break
                except _PassingFault as fault:
                    # Only bytes beyond the furthest so far count as success, else a file that changes with every
                    # attempt would be tried forever.
                    failures = 0 if self._size() > furthest else failures + 1
                    furthest = max(furthest, self._size())
                    if failures > len(BACKOFF):
                        raise self._give_up(str(fault)) from fault
                    time.sleep(BACKOFF[max(failures - 1, 0)])
        os.replace(self.part, output_file)
        self.note_file.unlink(missing_ok=True)

    def discard(self) -> None:
        """Delete what was downloaded."""
        self.part.unlink(missing_ok=True)
        self.note_file.unlink(missing_ok=True)

    def _attempt(self, session: requests.Session, url: str) -> None:
        """Download the file, or the rest of it, once."""
        note, offset = self._resume_point(url)
        headers = {}
        if offset:
            headers["Range"] = f"bytes={offset}-"
            if note is not None and note.validator:
                headers["If-Range"] = note.validator
        with _plain_network_errors(url):
            response = session.get(url, headers=headers, stream=True, timeout=TIMEOUT)
        with response:
            if response.status_code == 416 and offset:
                if _content_range(response)[1] == offset:
                    return  # every byte was here already
                self.discard()
                raise _PassingFault("the server has another version of the file now")
            _check_status(response)
            if response.status_code == 206:
                offset = self._check_rest(response, note, offset)
            else:
                offset = 0
            total = _total(response, offset)
            self._check_offer(response, total)
            require_space(self.part.parent, max((total or 0) - offset, 0), "download the archive")
            self._write_note(url, response, total)
            self._receive(response, url, offset, total)

    def _resume_point(self, url: str) -> tuple[_Note | None, int]:
        """Return the note on the part file and its size; (None, 0) when it cannot be continued."""
        try:
            note = _Note(**json.loads(self.note_file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None, 0
        trusted = note.validator is not None or self.checked_later
        if note.url != url or not note.resumable or not trusted:
            return None, 0
        return note, self._size()

    def _check_rest(self, response: requests.Response, note: _Note | None, offset: int) -> int:
        """Raise an error unless the answer continues our bytes of the same version, whatever If-Range did."""
        start, total = _content_range(response)
        same_version = note is None or (
            (note.total is None or total is None or note.total == total)
            and (note.validator is None or _validator(response) in (None, note.validator))
        )
        if start != offset or not same_version:
            self.discard()
            raise _PassingFault("the file on the server changed between two attempts")
        return offset

    def _check_offer(self, response: requests.Response, total: int | None) -> None:
        """Raise an error for a web page, or a file of another size than published, before a byte is stored."""
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind in ("text/html", "application/xhtml+xml"):
            raise DownloadError("the server sent a web page instead of the archive (a login or licence page, perhaps)")
        if None not in (total, self.expected_bytes) and total != self.expected_bytes:
            raise DownloadError(
                f"the server offers a file of {total} bytes where {self.expected_bytes} were expected: "
                "it is not the published archive"
            )

    def _write_note(self, url: str, response: requests.Response, total: int | None) -> None:
        """Write the note on the bytes that follow."""
        ranges = response.status_code == 206 or response.headers.get("Accept-Ranges", "").lower() == "bytes"
        note = _Note(url, _validator(response), total, ranges)
        if response.status_code == 200:
            self.part.unlink(missing_ok=True)  # first, as the note is about another version
        try:
            self.note_file.write_text(json.dumps(dataclasses.asdict(note)), encoding="utf-8")
        except OSError as error:
            raise self._give_up(writing_failed(error, self.part.parent), local=True) from None

    def _receive(self, response: requests.Response, url: str, offset: int, total: int | None) -> None:
        """Write the bytes of the answer to the part file."""
        done = offset
        self._report(done, total)
        # The raw stream: requests would otherwise unpack a .gz that the server labels "Content-Encoding: gzip".
        stream = response.raw.stream(CHUNK, decode_content=False)
        with self._open_part("ab" if offset else "wb") as file:
            while True:
                with _plain_network_errors(url):
                    chunk = next(stream, None)
                if chunk is None:
                    break
                try:
                    write(file, chunk)
                except OSError as error:
                    raise self._give_up(writing_failed(error, self.part.parent), local=True) from None
                done += len(chunk)
                self._report(done, total)
        if total is not None and done != total:
            raise _PassingFault(f"the connection closed after {human_bytes(done)} of {human_bytes(total)}")

    def _open_part(self, mode: Literal["ab", "wb"]) -> FileIO:
        try:
            return self.part.open(mode, buffering=0)
        except OSError as error:
            raise self._give_up(writing_failed(error, self.part.parent), local=True) from None

    def _give_up(self, reason: str, *, local: bool = False) -> DownloadError:
        """Return the error to raise; bytes that cannot be continued are deleted."""
        note, kept = self._resume_point_of_any_url()
        if note is None or kept == 0:
            with contextlib.suppress(OSError):
                self.discard()
            return DownloadError(reason, local=local)
        return DownloadError(reason, kept=kept, local=local)

    def _resume_point_of_any_url(self) -> tuple[_Note | None, int]:
        """Return the note on the part file and its size, whatever its address."""
        try:
            url = json.loads(self.note_file.read_text(encoding="utf-8"))["url"]
        except (OSError, ValueError, KeyError, TypeError):
            return None, 0
        return self._resume_point(url)

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _report(self, done: int, total: int | None) -> None:
        if self.progress is not None:
            self.progress(done, total)


def _check_status(response: requests.Response) -> None:
    """Raise an error that says what an HTTP status means, unless it is success."""
    code = response.status_code
    if code in (200, 206):
        return
    if code in (408, 429) or code >= 500:
        raise _PassingFault(f"the server has trouble of its own (HTTP {code}): try again later")
    if code in (401, 403):
        raise DownloadError(f"the server refuses it to programs (HTTP {code})")
    if code in (404, 410):
        raise DownloadError(f"the file is no longer at {response.url} (HTTP {code})")
    raise DownloadError(f"the server answered HTTP {code}")


def _validator(response: requests.Response) -> str | None:
    """Return the header that identifies this version of the file, if there is one."""
    # A weak ETag (W/) promises equal meaning, not equal bytes.
    etag = response.headers.get("ETag")
    if etag and not etag.startswith("W/"):
        return str(etag)
    modified = response.headers.get("Last-Modified")
    return str(modified) if modified else None


def _content_range(response: requests.Response) -> tuple[int | None, int | None]:
    """Return the first byte and the total size that the answer states, None where it does not."""
    text = response.headers.get("Content-Range", "")
    match = re.fullmatch(r"bytes\s+(?:(\d+)-\d+|\*)/(?:(\d+)|\*)", text.strip())
    if match is None:
        return None, None
    return (int(match[1]) if match[1] else None), (int(match[2]) if match[2] else None)


def _total(response: requests.Response, offset: int) -> int | None:
    """Return the size of the whole file, None when it is unknown."""
    stated = _content_range(response)[1]
    if stated is not None:
        return stated
    length = response.headers.get("Content-Length", "")
    return offset + int(length) if length.isdigit() else None


@contextlib.contextmanager
def _plain_network_errors(url: str) -> Iterator[None]:
    """Turn errors of the network libraries into ours, with a plain reason."""
    import requests.exceptions
    import urllib3.exceptions

    host = urlsplit(url).hostname or url
    never = (
        requests.exceptions.InvalidURL,
        requests.exceptions.InvalidSchema,
        requests.exceptions.MissingSchema,
        requests.exceptions.TooManyRedirects,
        urllib3.exceptions.LocationParseError,
    )
    try:
        yield
    except never as error:
        raise DownloadError(f"{url} is not an address that can be downloaded ({error})") from None
    except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        causes = list(_causes(error))
        if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
            raise DownloadError(f"the certificate of {host} cannot be trusted") from None
        raise _PassingFault(_network_reason(causes, host)) from None


def _network_reason(causes: list[BaseException], host: str) -> str:
    """Return what went wrong on the network, as half a sentence."""
    import requests.exceptions
    import urllib3.exceptions

    def has(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if has(socket.gaierror):
        return f"the server {host} was not found (is this computer online?)"
    if has(ConnectionRefusedError):
        return f"the server {host} refused the connection"
    if has(requests.exceptions.ProxyError):
        return f"the proxy on the way to {host} failed"
    if has(requests.exceptions.Timeout, urllib3.exceptions.TimeoutError, TimeoutError):
        return f"the server {host} did not answer in time"
    if has(requests.exceptions.SSLError, ssl.SSLError):
        return f"no secure connection to {host} could be made"
    return f"the connection to {host} was lost"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes, which urllib3 keeps in `reason` or in the arguments."""
    waiting, seen = [error], set()
    while waiting:
        current = waiting.pop()
        if not isinstance(current, BaseException) or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        waiting += [current.__cause__, current.__context__, getattr(current, "reason", None)]
        waiting += [argument for argument in current.args if isinstance(argument, BaseException)]
