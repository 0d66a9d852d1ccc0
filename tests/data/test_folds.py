"""Folds are found in every layout that the public sets come in."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankwood.data.folds import Fold, find_folds
from rankwood.errors import DataError


def make(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def names(fold: Fold, root: Path) -> tuple[list[str], list[str], list[str]]:
    train, valid, test = (
        [file.relative_to(root).as_posix() for file in part] for part in (fold.train, fold.valid, fold.test)
    )
    return train, valid, test


def test_fold_folders_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    files = [f"Fold{i}/{role}.txt" for i in (10, 2, 1) for role in ("train", "vali", "test")]
    folds = find_folds(make(tmp_path, *files))
    assert [fold.name for fold in folds] == ["Fold1", "Fold2", "Fold10"]
    assert names(folds[1], tmp_path) == (["Fold2/train.txt"], ["Fold2/vali.txt"], ["Fold2/test.txt"])


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_long_names_of_letor_3(tmp_path: Path, suffix: str) -> None:
    roles = ("trainingset.txt", "validationset.txt", "testset.txt")
    [fold] = find_folds(make(tmp_path, *(f"Fold1/{role}{suffix}" for role in roles)))
    assert names(fold, tmp_path) == tuple([f"Fold1/{role}{suffix}"] for role in roles)


def test_parquet_files(tmp_path: Path) -> None:
    roles = ("train.parquet", "vali.parquet", "test.parquet")
    [fold] = find_folds(make(tmp_path, *roles, "queries.tsv", "facts.json"))
    assert names(fold, tmp_path) == tuple([role] for role in roles)
    [fold] = find_folds(make(tmp_path, "train.txt", "vali.txt", "test.txt"))  # text beside it comes first
    assert names(fold, tmp_path) == (["train.txt"], ["vali.txt"], ["test.txt"])


def test_parts_go_round_in_a_circle(tmp_path: Path) -> None:
    folds = find_folds(make(tmp_path, *(f"S{i}.txt.gz" for i in range(1, 6))))
    got = [tuple("".join(name[1] for name in part) for part in names(fold, tmp_path)) for fold in folds]
    assert got == [("123", "4", "5"), ("234", "5", "1"), ("345", "1", "2"), ("451", "2", "3"), ("512", "3", "4")]
    assert [fold.name for fold in folds] == ["Fold1", "Fold2", "Fold3", "Fold4", "Fold5"]


def test_fold_folders_win_over_parts_beside_them(tmp_path: Path) -> None:
    make(tmp_path, *(f"S{i}.txt" for i in range(1, 6)), "Fold1/train.txt", "Fold1/vali.txt", "Fold1/test.txt")
    assert len(find_folds(tmp_path)) == 1


def test_single_set_below_other_folders_and_without_validation(tmp_path: Path) -> None:
    folder = make(tmp_path / "Istella", "full/train.txt", "full/test.txt", "README", "istella-letor-LA.txt")
    [fold] = find_folds(folder)
    assert fold.name == "full"
    assert names(fold, folder) == (["full/train.txt"], [], ["full/test.txt"])


def test_sets_told_apart_by_a_prefix(tmp_path: Path) -> None:
    make(tmp_path, *(f"{name}.{role}.txt" for name in ("set2", "set1") for role in ("train", "valid", "test")))
    folds = find_folds(tmp_path)
    assert [fold.name for fold in folds] == ["set1", "set2"]
    assert names(folds[0], tmp_path) == (["set1.train.txt"], ["set1.valid.txt"], ["set1.test.txt"])


def test_istella22_names(tmp_path: Path) -> None:
    make(
        tmp_path, "istella22/train.svm.gz", "istella22/valid.svm.gz", "istella22/test.svm.gz", "istella22/qrels.test.gz"
    )
    [fold] = find_folds(tmp_path)
    assert names(fold, tmp_path)[1] == ["istella22/valid.svm.gz"]


def test_unpacked_file_wins_over_its_gz(tmp_path: Path) -> None:
    make(tmp_path, "train.txt", "train.txt.gz", "test.txt.gz")
    [fold] = find_folds(tmp_path)
    assert names(fold, tmp_path) == (["train.txt"], [], ["test.txt.gz"])


def test_shadow_files_of_macos_and_hidden_folders_are_not_data(tmp_path: Path) -> None:
    make(tmp_path, "MQ/Fold1/train.txt", "MQ/Fold1/vali.txt", "MQ/Fold1/test.txt")
    make(tmp_path, "__MACOSX/MQ/Fold1/train.txt", "MQ/Fold1/._train.txt", ".rankwood-download/train.txt")
    [fold] = find_folds(tmp_path)
    assert names(fold, tmp_path)[0] == ["MQ/Fold1/train.txt"]


def test_several_versions_are_the_callers_choice(tmp_path: Path) -> None:
    for version in ("Feature-min", "QueryLevelNorm"):
        make(tmp_path, f"{version}/Fold1/train.txt", f"{version}/Fold1/test.txt")
    make(tmp_path, "Feature-null/S1.txt")  # incomplete, but there are others
    with pytest.raises(DataError, match=r"several versions.*one of its folders Feature-min, QueryLevelNorm"):
        find_folds(tmp_path)
    assert len(find_folds(tmp_path / "QueryLevelNorm")) == 1


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ((), r"no folds found in .*expected Fold1"),
        (("train.txt",), r"no folds found"),
        (("Fold1.test.txt.gz", "Fold2.test.txt.gz"), r"no folds found"),
        (("S1.txt", "S2.txt", "S3.txt", "S4.txt"), r"but not S5\.txt"),
        (("Fold1/test.txt", "Fold1/vali.txt"), r"Fold1 has no train\.txt: is the data set complete"),
        (("Fold1/train.txt",), r"Fold1 has no vali\.txt or test\.txt"),
    ],
)
def test_incomplete_folders_are_named(tmp_path: Path, files: tuple[str, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        find_folds(make(tmp_path, *files))


def test_a_folder_is_needed(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere does not exist"):
        find_folds(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"file is not a folder"):
        find_folds(make(tmp_path, "file") / "file")


@pytest.mark.real_data
def test_real_folders(real_data: Path) -> None:
    assert len(find_folds(real_data / "mq2008")) == 5
    assert [len(fold.train) for fold in find_folds(real_data / "ohsumed" / "Feature-min")] == [3] * 5
    with pytest.raises(DataError, match=r"Feature-min, QueryLevelNorm"):
        find_folds(real_data / "ohsumed")
