"""What the catalogue says is well-formed, and names are found however they are written."""

from __future__ import annotations

import json
import re

import pytest

from rankwood.errors import DataError
from rankwood.lab.datasets.catalogue import Entry, catalogue, find_entry


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.name)
def test_entries_are_well_formed(entry: Entry) -> None:
    assert re.fullmatch(r"[A-Za-z0-9-]+", entry.name)  # becomes the name of a folder
    assert entry.archive in (("none",) if entry.made_from else ("zip", "tar.gz", "tar.bz2", "rar"))
    assert entry.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", entry.sha256)
    assert entry.md5 is None or re.fullmatch(r"[0-9a-f]{32}", entry.md5)
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in entry.file_sha256.values())
    assert all(url.startswith(("https://", "http://")) for url in (*entry.urls, entry.home))
    # What comes over an open line, or from a mirror, must be verifiable.
    if any(url.startswith("http://") for url in entry.urls) or len(entry.urls) > 1:
        assert entry.sha256
    assert entry.terms.endswith(".")
    assert not entry.instructions.endswith(".")  # it is the start of a longer sentence
    assert entry.labels[0] == 0
    assert entry.rows is None or entry.rows > (entry.queries or 0)


def test_every_set_can_be_verified_somehow() -> None:
    for entry in catalogue():
        assert entry.sha256 or entry.md5 or entry.file_sha256 or (entry.rows and entry.queries)


def test_five_letor_folds_share_five_parts() -> None:
    files = find_entry("MQ2008").file_sha256
    assert len(files) == 15
    assert files["Fold1/test.txt"] == files["Fold2/vali.txt"]
    assert len(set(files.values())) == 10
    assert len(find_entry("OHSUMED").file_sha256) == 30


@pytest.mark.parametrize("spelling", ["MSLR-WEB10K", "mslr-web10k", "mslr web10k", "MSLR_WEB10K", "web10k", "mslr10k"])
def test_names_are_found_however_they_are_written(spelling: str) -> None:
    assert find_entry(spelling).name == "MSLR-WEB10K"


def test_no_two_sets_share_a_name() -> None:
    spellings = [spelling for entry in catalogue() for spelling in (entry.name, *entry.aliases)]
    assert len({find_entry(spelling).name for spelling in spellings}) == len(catalogue())
    assert len({spelling.casefold() for spelling in spellings}) == len(spellings)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("MQ2009", r"no data set named 'MQ2009'; did you mean .*MQ2008"),
        ("istela-s", r"did you mean Istella-S"),
        ("yaho", r"did you mean Yahoo-C14"),
        ("xxxxxxxx", r"there are MSLR-WEB10K, .*Yahoo-C14, WordNet-LTR$"),
        ("", r"no data set named ''; there are"),
    ],
)
def test_unknown_names(wrong: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        find_entry(wrong)


def test_as_dict_is_json() -> None:
    for entry in catalogue():
        record = entry.as_dict()
        assert json.loads(json.dumps(record)) == record
        assert record["downloadable"] == bool(entry.urls)
    assert find_entry("yahoo").as_dict()["downloadable"] is False
