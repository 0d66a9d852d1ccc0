"""Finding the files for training, validation and test in the folder of a data set."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path

from rankwood.errors import DataError


@dataclasses.dataclass(frozen=True)
class Fold:
    """Files for training, validation and test that belong together.

    Parameters
    ----------
    name : str
        Such as "Fold1".
    train, valid, test : tuple of Path
        Files of each part; `valid` or `test` may be empty.
    """

    name: str
    train: tuple[Path, ...]
    valid: tuple[Path, ...]
    test: tuple[Path, ...]


_ROLES = {
    "train": ("train", "training", "trainingset"),
    "valid": ("vali", "valid", "val", "validation", "validationset"),
    "test": ("test", "testset"),
}
_ROLE_OF = {word: role for role, words in _ROLES.items() for word in words}
# "train.txt", "testset.txt.gz", "train.parquet", "set1.valid.txt": perhaps a prefix, a role, perhaps endings.
_FILE = re.compile(
    rf"(?:(?P<prefix>.+)\.)?(?P<role>{'|'.join(_ROLE_OF)})(?:\.parquet|(?:\.(?:txt|svm|svmlight|dat))?(?:\.gz)?)", re.I
)
_FOLD_FOLDER = re.compile(r"fold[ _-]?(\d+)", re.I)
_PART_FILE = re.compile(r"S([1-5])\.txt(?:\.gz)?", re.I)
_SEARCH_DEPTH = 3

_Parts = dict[str, dict[str, Path]]  # prefix -> role -> file


def find_folds(directory: str | Path) -> list[Fold]:
    """The folds in a folder of ranking data, whichever of the usual layouts it has.

    - folders Fold1, Fold2, ... with train, vali and test files (also trainingset, validationset, testset);
    - LETOR's parts S1 to S5: fold i trains on three parts, validates on the next and tests on the one after;
    - train, perhaps vali, and test files of one set, or of several with a prefix (set1.train.txt, set2.train.txt).

    Files may end in .gz; train, vali and test may be Parquet files. When the folder itself has none of these, its
    subfolders are searched.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for part in range(1, 6):
    ...     (folder / f"S{part}.txt").touch()
    >>> fold = find_folds(folder)[1]
    >>> fold.name, [file.name for file in fold.train + fold.valid + fold.test]
    ('Fold2', ['S2.txt', 'S3.txt', 'S4.txt', 'S5.txt', 'S1.txt'])
    """
    directory = Path(directory)
    if not directory.is_dir():
        what = "is not a folder" if directory.exists() else "does not exist"
        raise DataError(f"{directory} {what}: give the folder that holds the data set")
    level = [directory]
    incomplete: DataError | None = None
    for _ in range(_SEARCH_DEPTH + 1):
        found: dict[Path, list[Fold]] = {}
        for folder in level:
            try:
                if folds := _folds_here(folder):
                    found[folder] = folds
            except DataError as error:  # matters only when no other folder is complete
                incomplete = incomplete or error
        if len(found) > 1:
            names = ", ".join(str(folder.relative_to(directory)) for folder in found)
            raise DataError(f"{directory} holds several versions of folds: give one of its folders {names}")
        if found:
            return next(iter(found.values()))
        if incomplete is not None:
            raise incomplete
        level = [child for folder in level for child in _subfolders(folder)]
    raise DataError(
        f"no folds found in {directory}: expected Fold1, Fold2, ... with train.txt, vali.txt and test.txt, "
        "or S1.txt to S5.txt, or train.txt and test.txt (each perhaps with .gz)"
    )


def _folds_here(folder: Path) -> list[Fold]:
    """The folds in this very folder, without its subfolders."""
    numbered = sorted(
        (int(match[1]), child) for child in _subfolders(folder) if (match := _FOLD_FOLDER.fullmatch(child.name))
    )
    fold_folders = [(number, child, files) for number, child in numbered if (files := _files_by_role(child).get(""))]
    if fold_folders:
        return [_make_fold(f"Fold{number}", child, files) for number, child, files in fold_folders]
    return _folds_of_parts(folder) or _folds_of_prefixes(folder)


def _folds_of_parts(folder: Path) -> list[Fold]:
    parts: dict[int, Path] = {}
    for file in _plain_files(folder):
        if match := _PART_FILE.fullmatch(file.name):
            parts.setdefault(int(match[1]), file)
    if not parts:
        return []
    if len(parts) < 5:
        missing = ", ".join(f"S{part}.txt" for part in range(1, 6) if part not in parts)
        raise DataError(f"{folder} holds some of LETOR's five parts but not {missing}: all five make the folds")

    def part(number: int) -> Path:  # counted in a circle
        return parts[(number - 1) % 5 + 1]

    return [Fold(f"Fold{i}", (part(i), part(i + 1), part(i + 2)), (part(i + 3),), (part(i + 4),)) for i in range(1, 6)]


def _folds_of_prefixes(folder: Path) -> list[Fold]:
    by_prefix = _files_by_role(folder)
    # A train file that stands alone, or a test file, is somebody's data but no fold.
    complete = {prefix: files for prefix, files in by_prefix.items() if "train" in files and len(files) > 1}
    return [_make_fold(prefix or folder.name, folder, files) for prefix, files in sorted(complete.items())]


def _make_fold(name: str, folder: Path, files: dict[str, Path]) -> Fold:
    if "train" not in files or len(files) == 1:
        missing = "train.txt" if "train" not in files else "vali.txt or test.txt"
        raise DataError(f"{folder} has no {missing}: is the data set complete?")
    train, valid, test = ((files[role],) if role in files else () for role in ("train", "valid", "test"))
    return Fold(name, train, valid, test)


def _files_by_role(folder: Path) -> _Parts:
    parts: _Parts = {}
    for file in _plain_files(folder):
        if match := _FILE.fullmatch(file.name):
            role = _ROLE_OF[match["role"].lower()]
            parts.setdefault(match["prefix"] or "", {}).setdefault(role, file)
    return parts


def _plain_files(folder: Path) -> list[Path]:
    """Visible files; a text file comes before its .gz and a Parquet file, and so is the one that is taken."""
    files = (file for file in _visible(folder) if file.is_file())
    return sorted(files, key=lambda file: (file.suffix in (".gz", ".parquet"), file.name))


def _subfolders(folder: Path) -> list[Path]:
    return sorted(child for child in _visible(folder) if child.is_dir())


def _visible(folder: Path) -> Iterable[Path]:
    try:
        # __MACOSX is what macOS's packer adds: shadows of the real files.
        return [child for child in folder.iterdir() if not child.name.startswith((".", "__MACOSX"))]
    except PermissionError:
        raise DataError(f"{folder} cannot be read: permission denied") from None
