"""The catalogue of public learning-to-rank data sets: what they are and where they come from.

Nothing here is guessed. Sizes and checksums are those that other projects publish for the same files
(TensorFlow Datasets, pytorchltr, ir_datasets); a value that nobody publishes is None. One set is made on the user's
machine, of a database that Linux distributions have.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from rankwood.errors import DataError


@dataclasses.dataclass(frozen=True)
class Entry:
    """One data set of the catalogue. None stands for what nobody publishes.

    Parameters
    ----------
    name : str
        Its name, and that of the folder that `fetch` makes.
    title, terms, home : str
        For people: what it is, on which terms, and its page.
    rows, queries : int or None
        Documents and queries of all parts together.
    features : int
        Number of features.
    labels : (int, int)
        Lowest and highest relevance label.
    archive_name : str
        Name of the published file, also when a person puts it in place; empty for a set that is made here.
    instructions : str
        How a person gets the file.
    urls : tuple of str, optional
        Addresses that a program can try, in this order; empty when only a person can download it.
    archive_bytes : int, optional
        Size of the published file.
    sha256, md5 : str, optional
        Published checksum of the file.
    manual_name : str, optional
        Name of the file that a person gets, when it is not `archive_name`.
    file_sha256 : mapping of str to str, optional
        Published checksums of files in the archive, when the archive itself has none.
    aliases : tuple of str, optional
        Other names that `find_entry` knows.
    made_from : str, optional
        What `rankwood datasets make` makes the set of; None when it is downloaded.
    """

    name: str
    title: str
    rows: int | None
    queries: int | None
    features: int
    labels: tuple[int, int]
    terms: str
    home: str
    archive_name: str
    instructions: str
    urls: tuple[str, ...] = ()
    archive_bytes: int | None = None
    sha256: str | None = None
    md5: str | None = None
    manual_name: str | None = None
    file_sha256: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    aliases: tuple[str, ...] = ()
    made_from: str | None = None

    @property
    def downloadable(self) -> bool:
        """Whether there is an address that a program can try."""
        return bool(self.urls)

    @property
    def archive(self) -> str:
        """Kind of archive, by its name; "none" for a set that is made here.

        Examples
        --------
        >>> find_entry("Istella-S").archive
        'tar.gz'
        """
        if not self.archive_name:
            return "none"
        kinds = ("zip", "tar.gz", "tar.bz2", "gz", "rar")
        return next((kind for kind in kinds if self.archive_name.endswith("." + kind)), "unknown")

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON.

        Examples
        --------
        >>> find_entry("mq2008").as_dict()["rows"]
        15211
        """
        record = dataclasses.asdict(self)
        record.update(labels=list(self.labels), urls=list(self.urls), aliases=list(self.aliases))
        return record | {"archive": self.archive, "downloadable": self.downloadable}


def catalogue() -> tuple[Entry, ...]:
    """Return every data set of the catalogue.

    Examples
    --------
    >>> [entry.name for entry in catalogue()][:2]
    ['MSLR-WEB10K', 'MSLR-WEB30K']
    """
    return _ENTRIES


def find_entry(name: str) -> Entry:
    """Return the data set of a name or alias; capitals, spaces and punctuation do not matter.

    Examples
    --------
    >>> find_entry("mslr web10k").name
    'MSLR-WEB10K'
    """
    known = {_plain(spelling): entry for entry in _ENTRIES for spelling in (entry.name, *entry.aliases)}
    entry = known.get(_plain(name))
    if entry is not None:
        return entry
    close = difflib.get_close_matches(_plain(name), known, n=3, cutoff=0.6)
    names = list(dict.fromkeys(known[match].name for match in close))
    if names:
        raise DataError(f"there is no data set named {name!r}; did you mean {' or '.join(names)}?")
    raise DataError(f"there is no data set named {name!r}; there are {', '.join(entry.name for entry in _ENTRIES)}")


def _plain(name: str) -> str:
    """Return a name without capitals, spaces and punctuation."""
    return "".join(filter(str.isalnum, name.casefold()))


def _letor_folds(folder: str, roles: tuple[str, str, str], parts: list[str], trainings: list[str]) -> dict[str, str]:
    """Return checksums of the files of five LETOR folds.

    Fold i, counted from 1, validates on part i + 3 and tests on part i + 4, where part 6 is part 1 again.

    Parameters
    ----------
    folder : str
        Folder of the folds in the archive.
    roles : (str, str, str)
        Names of the training, validation and test file.
    parts : list of str
        Checksums of the five parts.
    trainings : list of str
        Checksums of the five training files.
    """
    train, valid, test = roles
    files = {}
    for fold in range(5):
        home = f"{folder}Fold{fold + 1}/"
        files[home + train] = trainings[fold]
        files[home + valid] = parts[(fold + 3) % 5]
        files[home + test] = parts[(fold + 4) % 5]
    return files


_MICROSOFT = "Microsoft Research terms: for research use; reading and accepting the agreement on the page is asked for."
_ISTELLA = "Istella licence: for non-commercial use only; by using the data you accept the licence on the page."
_MSLR_HOME = "https://www.microsoft.com/en-us/research/project/mslr/"
_LETOR_HOME = "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/"
_LETOR_SHARE = "https://1drv.ms/f/s!Aqi9ONgj3OqPaynoZZSZVfHPJd0"
_ISTELLA_HOME = "https://istella.ai/datasets/letor-dataset/"
_ISTELLA22_HOME = "https://istella.ai/datasets/istella22-dataset/"
_SHORT_ROLES = ("train.txt", "vali.txt", "test.txt")
_LONG_ROLES = ("trainingset.txt", "validationset.txt", "testset.txt")

_MQ2008_FILES = _letor_folds(
    "",
    _SHORT_ROLES,
    parts=[
        "f754c61c4a5e2a14b330af767f12d1e88bab336219ae4f6f91a774f8f68b078e",
        "2104c4f23f0119e0b0726bd80d1170822f37f63639879b0cf8fb43a301517903",
        "ec7a1b9db068aa6d5e8c4d42d5f7b2a727543b9c1f79c30bed746568fb87ed03",
        "971ab752d71d7b019c1c512d7ba4a05b1198bdeeda57a10dd69c62f3ac47dbb9",
        "ce33aa98a1cc42847008f2d4280c30a52b6c8491206893cbc97e412ccb97426b",
    ],
    trainings=[
        "906deb7d4db46e908de7d9d8d82a9ce63a12090217a658b2524fcd860dd66bba",
        "98b2944d52cd0da6cd3d43b09cba92879197a4d4ae5b6949156e11eb3586a4f9",
        "4343556f569d7545d2b770b1737acda909cbe6ec6fc0f82f6f31b7d45bd0097b",
        "7480d84a584ca0c1d4d9424c81824765bce29c175de1ac6c07737ecd5781c205",
        "30236927b95d9f2b3c1a0100a325d333fa68e6cc1213db51f032750dec9d6435",
    ],
)
_OHSUMED_FILES = _letor_folds(
    "QueryLevelNorm/",
    _SHORT_ROLES,
    parts=[
        "77db6790a7023ed6d9bd2b9b2fa8528e1d82aa7e896863d3ed844f635870fbe2",
        "935539d33380570cdee765e38f8c2796cb4c04d01a50e50374e8bc7d45872571",
        "1d1ff784d9fdc4cd491a0d70fdd4dfb1adada943a0eb2e3954d74187158160da",
        "49975c7319672e4fba82d00c69911b8514752bb2610077a5f432d7efc2fa5fc0",
        "526f9158b85fb9b6446f9c87e1ccc428f7e54d639800e108c091cb70706a88e6",
    ],
    trainings=[
        "36f7d7d08b5adc6e7a66ec34a6240674b584086ba621eaa04915b4ce7a2b687f",
        "18123df2784629855f79bf6ca2c6e13a45a08e6e98a595d30ff6568dc4afb47a",
        "5d39eaa4453aab41d4e18e1943168b72858a400b31f945debf05a884cee373c2",
        "ab7ec44f3d2a41832531eafb3afef5c08c5881f6045584e4ee868e5a0b7c7d19",
        "113dd5c6a24224979456e6e1c3991333e6cdd9a0ed41eb50c99dfdbd22a8ad98",
    ],
) | _letor_folds(
    "Feature-min/",
    _LONG_ROLES,
    parts=[
        "c9357efc8f1dd050ce5e0d1e6d2ea8c15177925b6da219c37d399195383f392e",
        "0464b8a30863271de46dffbf716ec4c41b89620e77699f9511dd6d3933952cb6",
        "85c455f8386dd8b58a83138b2d14642fb65d79f6d4340033ae23f4c69aa2973a",
        "e76543eb37086d9ecf913afc21a9204cde09b3a1967d3a14d795068ac7abc98c",
        "11a83075e00c376f24c4c5b4954a220393dc259e3fb4bbde22ab85367cc6986b",
    ],
    trainings=[
        "2644c7374bd50b885aff75035b7b830956e7024ec4f6ede13fdf7a8d15d00731",
        "b7ea9ffb3aa37898d23c967d48cefe92edaaa6e2b0f8a43c120968c55a033469",
        "3b312f6419c3705adcb31385c9a1cec409aebf37c12c165e0ae43a26bf50a634",
        "d5b10ac252e42a9c3354b58d230c3d692f7e0b3ee4b34877070ad85ec8a99594",
        "9e7b3276907d251195877d7a97eb966db7faa95476dc7efb416d651a1f7057a3",
    ],
)

_ENTRIES = (
    Entry(
        name="MSLR-WEB10K",
        title="Microsoft Learning to Rank, 10,000 queries of a web search engine, five folds",
        rows=1_200_192,
        queries=10_000,
        features=136,
        labels=(0, 4),
        terms=_MICROSOFT,
        home=_MSLR_HOME,
        archive_name="MSLR-WEB10K.zip",
        # OneDrive answered programs here for years; since 2025 it tends to say HTTP 400 or 401.
        urls=("https://api.onedrive.com/v1.0/shares/s!AtsMfWUz5l8nbOIoJ6Ks0bEMp78/root/content",),
        archive_bytes=1_234_144_912,
        sha256="2902142ea33f18c59414f654212de5063033b707d5c3939556124b1120d3a0ba",
        instructions="open https://1drv.ms/u/s!AtsMfWUz5l8nbOIoJ6Ks0bEMp78 in a browser and press Download",
        aliases=("MSLR10K", "WEB10K", "MSN10K"),
    ),
    Entry(
        name="MSLR-WEB30K",
        title="Microsoft Learning to Rank, 31,531 queries of a web search engine, five folds",
        rows=3_771_125,
        queries=31_531,
        features=136,
        labels=(0, 4),
        terms=_MICROSOFT,
        home=_MSLR_HOME,
        archive_name="MSLR-WEB30K.zip",
        urls=("https://api.onedrive.com/v1.0/shares/s!AtsMfWUz5l8nbXGPBlwD1rnFdBY/root/content",),
        archive_bytes=3_849_406_307,
        sha256="08cb7977e1d5cbdeb57a9a2537a0923dbca6d46a76db9a6afc69e043c85341ae",
        instructions="open https://1drv.ms/u/s!AtsMfWUz5l8nbXGPBlwD1rnFdBY in a browser and press Download",
        aliases=("MSLR30K", "WEB30K", "MSN30K"),
    ),
    Entry(
        name="Istella",
        title="Istella LETOR, the full set, 33,018 queries of a web search engine; no validation part",
        rows=10_454_629,
        queries=33_018,
        features=220,
        labels=(0, 4),
        terms=_ISTELLA,
        home=_ISTELLA_HOME,
        archive_name="istella-letor.tar.gz",
        urls=(
            "http://library.istella.it/dataset/istella-letor.tar.gz",
            "http://rankeval.isti.cnr.it/rankeval-datasets/istella-letor/dataset/istella-letor.tar.gz",
        ),
        archive_bytes=1_288_401_248,
        sha256="d45899d9a6a0e48afb250aac7ee3dc50e73e263687f15761d754515cd8284e0b",
        instructions=f"accept the licence on {_ISTELLA_HOME} and download Istella LETOR",
        aliases=("Istella-full", "Istella-LETOR"),
    ),
    Entry(
        name="Istella-S",
        title="Istella LETOR, the sample with fewer irrelevant documents, 33,018 queries",
        rows=3_408_630,
        queries=33_018,
        features=220,
        labels=(0, 4),
        terms=_ISTELLA,
        home=_ISTELLA_HOME,
        archive_name="istella-s-letor.tar.gz",
        urls=(
            "http://library.istella.it/dataset/istella-s-letor.tar.gz",
            "http://rankeval.isti.cnr.it/rankeval-datasets/istella-s-letor/dataset/istella-s-letor.tar.gz",
        ),
        archive_bytes=472_129_615,
        sha256="41b21116a3650cc043dbe16f02ee39f4467f9405b37fdbcc9a6a05e230a38981",
        instructions=f"accept the licence on {_ISTELLA_HOME} and download Istella-S LETOR",
        aliases=("Istella-small", "Istella-sample"),
    ),
    Entry(
        name="Istella-X",
        title="Istella LETOR, the extended set with long result lists",
        rows=26_791_447,
        queries=None,
        features=220,
        labels=(0, 4),
        terms=_ISTELLA,
        home=_ISTELLA_HOME,
        archive_name="istella-X.tar.gz",
        urls=("http://quickrank.isti.cnr.it/istella-datasets-mirror/istella-X.tar.gz",),
        archive_bytes=4_743_657_398,
        sha256="e67be60d1c6a68983a669e4de9df2c395914717b2017cb3b68a97eb89f2ea763",
        instructions=f"accept the licence on {_ISTELLA_HOME} and download Istella-X LETOR",
    ),
    Entry(
        name="Istella22",
        title="Istella22, features together with the text of 8.4 million web documents (a 26 GB archive)",
        rows=None,
        queries=None,
        features=220,
        labels=(0, 4),
        terms="Istella22 licence: for non-commercial use only; by using the data you accept the licence on the page.",
        home=_ISTELLA22_HOME,
        archive_name="istella22.tar.gz",
        urls=("https://www.istella.ai/dataset/istella22.tar.gz",),
        archive_bytes=26_499_490_813,
        md5="c2e49dca9730fbb14164ed890756dc1d",
        instructions=f"accept the licence on {_ISTELLA22_HOME} and download istella22.tar.gz",
    ),
    Entry(
        name="MQ2007",
        title="LETOR 4.0, Million Query track of TREC 2007, five folds",
        rows=69_623,
        queries=1_692,
        features=46,
        labels=(0, 2),
        terms=_MICROSOFT,
        home=_LETOR_HOME + "letor-4-0/",
        archive_name="MQ2007.rar",
        instructions=f"open {_LETOR_SHARE} in a browser (linked from the LETOR 4.0 page) and download MQ2007.rar",
        aliases=("LETOR4-MQ2007",),
    ),
    Entry(
        name="MQ2008",
        title="LETOR 4.0, Million Query track of TREC 2008, five folds",
        rows=15_211,
        queries=784,
        features=46,
        labels=(0, 2),
        terms=_MICROSOFT,
        home=_LETOR_HOME + "letor-4-0/",
        archive_name="MQ2008.zip",
        # XGBoost's copy for its own tests; Microsoft itself offers a RAR archive in a shared folder only.
        urls=("https://s3-us-west-2.amazonaws.com/xgboost-examples/MQ2008.zip",),
        file_sha256=_MQ2008_FILES,
        instructions=f"open {_LETOR_SHARE} in a browser (linked from the LETOR 4.0 page) and download MQ2008.rar",
        manual_name="MQ2008.rar",
        aliases=("LETOR4-MQ2008",),
    ),
    Entry(
        name="OHSUMED",
        title="LETOR 3.0, 106 medical queries, five folds, raw and normalised features",
        rows=16_140,
        queries=106,
        features=45,
        labels=(0, 2),
        terms=_MICROSOFT,
        home=_LETOR_HOME,
        archive_name="OHSUMED.zip",
        file_sha256=_OHSUMED_FILES,
        instructions=f"follow LETOR 3.0 on {_LETOR_HOME} in a browser and download OHSUMED.zip",
        aliases=("LETOR3-OHSUMED",),
    ),
    Entry(
        name="Yahoo-C14",
        title="Yahoo! Learning to Rank Challenge, set 1 and set 2",
        rows=882_747,
        queries=36_251,
        features=700,
        labels=(0, 4),
        terms="Yahoo Webscope agreement: for non-commercial research, after asking Yahoo for access.",
        home="https://webscope.sandbox.yahoo.com/catalog.php?datatype=c",
        archive_name="ltrc_yahoo.tar.bz2",
        sha256="2d96b587828f5a4d43c508ba7ec3412a760b9be798f69313b38516544a33a6de",
        instructions=(
            "ask Yahoo for data set C14 (https://webscope.sandbox.yahoo.com/catalog.php?datatype=c or "
            "https://huggingface.co/datasets/YahooResearch/Yahoo-Learning-to-Rank-Challenge), unpack the dataset.tgz "
            "you get and take ltrc_yahoo.tar.bz2 out of it"
        ),
        aliases=("Yahoo", "Yahoo-LTRC", "LTRC", "C14"),
    ),
    Entry(
        name="WordNet-LTR",
        title="Words about 32,000 nouns, candidates among 117,659 WordNet entries, grades by WordNet's relations",
        rows=3_022_992,
        queries=32_000,
        features=136,
        labels=(0, 4),
        terms="WordNet licence: for any purpose, without fee, as long as its copyright notice is kept with every copy.",
        home="https://wordnet.princeton.edu/",
        archive_name="",
        instructions="make it with `rankwood datasets make WordNet-LTR --to DIR`",
        aliases=("WordNet",),
        made_from="the WordNet database (Debian's package wordnet-base)",
    ),
)
