"""WordNet-LTR: what is read, drawn, graded and split, by known answers and beside slow twins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from oracles import wordnet as slow
from rankwood.errors import DataError
from rankwood.lab.datasets.wordnet.database import Database, read_database
from rankwood.lab.datasets.wordnet.features import FEATURES
from rankwood.lab.datasets.wordnet.queries import QueryMaker
from rankwood.lab.datasets.wordnet.relations import Relations
from rankwood.lab.datasets.wordnet.rules import Rules
from rankwood.lab.datasets.wordnet.splits import find_groups, plan_splits
from rankwood.lab.datasets.wordnet.text import BaseForms, read_texts
from strategies.wordnet_files import Entry, random_entries, write_database

# Sizes of classes by the 10 nouns: animal 0.7 and dog 0.3 with the adjective of dogs, plant 0.2, entity above 1.
TOY = (
    Entry("entity", "that which exists", file=3),
    Entry("animal beast", 'a living thing that moves; "animals need food"', "@ entity", file=5),
    Entry("dog Canis_familiaris", 'a tame animal that barks; "the dog barked all night"', "@ animal", file=5),
    Entry("puppy", "a young dog", "@ dog", file=5),
    Entry("cat", "a tame animal that purrs", "@ animal ! dog", file=5),
    Entry("kitten", "a young cat", "@ cat", file=5),
    Entry("fish", "an animal of the sea; swims", "@ animal ;c zoology", file=5),
    Entry("plant", "a living thing that grows", "@ entity ;c zoology", file=20),
    Entry("oak oak_tree", "a plant with acorns", "@ plant", file=20),
    Entry("zoology", "the study of animals", "@ entity", file=9),
    Entry("bark", 'make the sound of dogs; "dogs bark"', "+ dog", part="v", file=39),
    Entry("canine(a)", "of dogs", "\\ dog", part="a", file=1),
    Entry("big", "great in size", part="a", file=0),
    Entry("huge", "very big", "& big.a", part="a", file=0, satellite=True),
    Entry("hugely", "in a huge way", "\\ huge.a", part="r", file=2),
)
NAMES = [entry.name for entry in TOY if entry.part == "n"] + [entry.name for entry in TOY if entry.part != "n"]
RULES = Rules(fewest=4, most=8, classes=(0.3, 0.7, 0.9), hub=6, group=2, feedback=3)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Database:
    return read_database(write_database(tmp_path_factory.mktemp("toy"), TOY, irregular={"slept": "sleep"}))


# --- the database -------------------------------------------------------------------------------------------------


def test_synsets_are_read(toy: Database) -> None:
    assert [f"{synset.lemmas[0]}.{synset.part}" for synset in toy.synsets] == NAMES
    dog = toy.synsets[NAMES.index("dog.n")]
    assert dog.lemmas == ["dog", "Canis familiaris"]
    assert (dog.gloss, dog.examples) == ("a tame animal that barks", ["the dog barked all night"])
    assert [(symbol, NAMES[other]) for symbol, other in dog.pointers] == [("@", "animal.n")]
    assert toy.synsets[NAMES.index("fish.n")].gloss == "an animal of the sea; swims"
    assert toy.synsets[NAMES.index("canine.a")].lemmas == ["canine"]  # without the mark of its place
    assert [synset.lemmas[0] for synset in toy.synsets if synset.is_satellite] == ["huge"]
    assert "dog" in toy.words["noun"]
    assert toy.irregular == {"slept": "sleep"}
    assert toy.licence == "This is a toy.\nKeep this notice.\n"


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            "data.verb",
            None,
            r"no WordNet database in .* \(no data.verb\): install Debian's package wordnet-base, or give",
        ),
        ("noun.exc", None, r"\(no noun.exc\)"),
        ("data.noun", "00000100 03 n 01 entity\n", r"data.noun, line 1: not understood"),
        (
            "data.noun",
            "00000100 03 n 01 entity 0 001 @ 00000900 n 0000 | it  \n",
            "'entity' points to n 00000900, where",
        ),
        ("data.noun", "00000100 03 n zz entity 0 000 | it  \n", r"data.noun, line 1"),
        ("data.noun", "00000100 03 n 00 000 | nothing  \n", r"data.noun, line 1"),
        ("noun.exc", "alone\n", r"noun.exc, line 1"),
    ],
)
def test_what_is_no_database_is_told(tmp_path: Path, file: str, text: str | None, message: str) -> None:
    write_database(tmp_path, TOY)
    (tmp_path / file).unlink() if text is None else (tmp_path / file).write_text(text)
    with pytest.raises(DataError, match=message):
        read_database(tmp_path)


# --- text ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "base"),
    [
        ("dogs", "dog"), ("boxes", "box"), ("women", "woman"), ("cities", "city"), ("glass", "glass"),
        ("baked", "bake"), ("running", "running"), ("painting", "painting"), ("paints", "paint"), ("geese", "goose"),
        ("left", "left"), ("gas", "gas"), ("flies", "fly"),
    ],
)  # fmt: skip
def test_base_forms(word: str, base: str) -> None:
    words = {
        "noun": {"dog", "box", "woman", "city", "painting", "fly", "ga"},
        "verb": {"bake", "run", "paint", "fly"},
        "adj": {"left"},
    }
    assert BaseForms(words, {"geese": "goose", "left": "leave"})[word] == base


def test_texts_of_documents(toy: Database) -> None:
    texts = read_texts(toy)
    dog, bark = NAMES.index("dog.n"), NAMES.index("bark.v")
    assert texts.lemmas[dog] == [("dog",), ("canis", "familiaris")]
    assert texts.glosses[dog] == ["tame", "animal", "bark"]  # no stop words; "barks" is the verb
    assert texts.examples[dog] == ["dog", "bark", "night"]
    assert texts.phrases["dog",] == [dog]
    mentioning = [NAMES.index(name) for name in ("puppy.n", "bark.v", "canine.a")]
    assert texts.n_mentions[dog] == 3
    assert texts.mentions[dog] == [word for document in mentioning for word in texts.titles[document]]
    assert texts.mentions[bark] == ["dog", "canis", "familiaris"]


def test_forty_mentions_of_many_are_kept(tmp_path: Path) -> None:
    entries = [Entry("ice_cream_parlour", "a shop"), *(Entry(f"n{i}", "an ice cream parlour") for i in range(50))]
    texts = read_texts(read_database(write_database(tmp_path, entries)))
    assert texts.n_mentions[0] == 50
    assert len(set(texts.mentions[0])) == 1 + 40  # each name is the letter and a number
    assert len(texts.mentions[0]) == 2 * 40


# --- grades -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "grades"),
    [
        (
            "puppy",
            {
                "dog": 4,  # what it is a kind of
                "bark.v": 2,  # two pointers away, by the dog; and the dog is of its word family
                "canine.a": 3,  # two pointers away, and in the class of dogs, which is small
                "animal": 2,  # two pointers away
                "cat": 2,  # two pointers away by their being antonyms; also both animals
                "kitten": 2,  # both in the class of animals, 0.7
                "oak": 0,
                "zoology": 0,
                "huge.a": 0,
            },
        ),
        (
            "fish",
            {
                "zoology": 3,  # its topic
                "plant": 1,  # of the same topic
                "oak": 1,  # by what is above it
                "animal": 4,
                "puppy": 2,
                "entity": 2,  # two pointers away
                "bark.v": 1,  # the dog, of its word family, is an animal
            },
        ),
        ("bark.v", {"dog": 4, "puppy": 2, "animal": 2, "cat": 2, "kitten": 1, "fish": 1, "canine.a": 2, "oak": 0}),
        ("huge.a", {"big.a": 4, "hugely.r": 4, "canine.a": 0}),  # files of adjectives are no topics
        ("oak", {"plant": 4, "entity": 2, "fish": 1, "dog": 0}),
    ],
)
def test_known_grades(toy: Database, query: str, grades: dict[str, int]) -> None:
    numbers = {name: NAMES.index(name if "." in name else f"{name}.n") for name in (query, *grades)}
    documents = np.array([numbers[name] for name in grades])
    got = Relations(toy.synsets, RULES).grades(numbers[query], documents)
    assert dict(zip(grades, got.tolist(), strict=True)) == grades


def test_no_way_leads_through_a_hub_but_upwards(toy: Database) -> None:
    relations = Relations(toy.synsets, Rules(classes=(0.01, 0.01, 0.01), hub=2))
    cat, puppy, dog = (NAMES.index(f"{name}.n") for name in ("cat", "puppy", "dog"))
    assert len(relations.close[dog]) > 2
    assert relations.grades(puppy, np.array([cat, NAMES.index("animal.n")])).tolist() == [1, 2]


@pytest.mark.parametrize("seed", range(3))
def test_grades_beside_the_twin(tmp_path: Path, seed: int) -> None:
    synsets = read_database(write_database(tmp_path, random_entries(seed, 18, 6))).synsets
    rules = Rules(classes=(0.1, 0.3, 0.6), hub=3)
    relations = Relations(synsets, rules)
    seen = set()
    for query in range(0, len(synsets), 3):
        documents = np.array([document for document in range(len(synsets)) if document != query])
        grades = relations.grades(query, documents).tolist()
        assert grades == [slow.grade(synsets, rules, query, int(document)) for document in documents]
        seen.update(grades)
    assert seen == {0, 1, 2, 3, 4}


# --- splits -------------------------------------------------------------------------------------------------------


def test_groups_are_cut_from_the_leaves_upwards() -> None:
    #        0
    #      1   5
    #    2 3 4   6
    above = [[], [0], [1], [1], [1], [0], [5]]
    assert find_groups(above, 3) == [0, 1, 1, 1, 1, 0, 0]
    assert find_groups(above, 2) == [0, 1, 1, 1, 1, 5, 5]
    assert find_groups(above, 100) == [0] * 7
    assert find_groups([[1], [0], []], 2) == [1, 1, 2]  # a circle is cut somewhere


def test_no_query_is_next_to_one_of_another_split(tmp_path: Path) -> None:
    synsets = read_database(write_database(tmp_path, random_entries(5, n_nouns=400, n_others=0))).synsets
    rules = Rules(group=6)
    relations = Relations(synsets, rules)
    plan = plan_splits(synsets, relations, "noun", rules)
    split_of = {synset: split for split, synsets in enumerate(plan.queries) for synset in synsets}
    assert all(plan.queries)
    assert len(split_of) == sum(map(len, plan.queries)) == plan.n_synsets - plan.n_dropped
    assert plan.n_synsets == 400
    group_of = find_groups(relations.above, rules.group)
    split_of_group = {group_of[synset]: split for synset, split in split_of.items()}
    for one, split in split_of.items():
        sisters = {other for other in range(400) if set(relations.above[other]) & set(relations.above[one])}
        for other in relations.close[one] | relations.related[one] | sisters:  # also those that are no queries
            assert split_of_group.get(group_of[other], split) == split


# --- queries, candidates and features -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_queries_beside_the_twin(tmp_path: Path, seed: int) -> None:
    database = read_database(write_database(tmp_path, random_entries(seed, n_nouns=60)))
    rules = Rules(fewest=6, most=14, near_best=0.5, feedback=3, classes=(0.1, 0.3, 0.6))
    maker = QueryMaker.of(database, rules, lambda share: None)
    twin = slow.Collection(database.synsets, read_texts(database), rules)
    n_made = 0
    for synset in range(0, len(database.synsets), 5):
        words = maker.search.query(synset)
        terms = [word for word in dict.fromkeys(words) if word in twin.order]
        query, expected = maker.make(synset), twin.candidates(terms, without=synset) if terms else None
        if query is None:
            continue
        n_made += 1
        assert expected is not None
        candidates, best = expected
        assert set(query.documents.tolist()) == candidates
        assert query.text == " ".join(words)
        for row, document in zip(query.features, query.documents.tolist(), strict=True):
            features = twin.features(words, document, best)
            assert set(features) == set(FEATURES)
            wanted = np.array([features[name] for name in FEATURES], dtype=float)
            off = ~np.isclose(row, wanted, rtol=6e-5, atol=2e-6, equal_nan=True)
            assert not off.any(), [(FEATURES[i], row[i], wanted[i]) for i in np.flatnonzero(off)]
    assert n_made > 5


def test_a_query_has_words_of_its_synset_alone(toy: Database) -> None:
    texts = read_texts(toy)
    search = QueryMaker.of(toy, RULES, lambda share: None).search
    for synset in range(len(toy.synsets)):
        words = search.query(synset)
        known = {word for lemma in texts.lemmas[synset] for word in lemma} | set(texts.glosses[synset])
        assert set(words) <= known
        assert words == search.query(synset)


def test_scratch_arrays_are_cleared(tmp_path: Path) -> None:
    """A query gives the same whatever was made before it."""
    database = read_database(write_database(tmp_path, random_entries(1)))
    rules = Rules(fewest=6, most=14, feedback=3, classes=(0.1, 0.3, 0.6))
    one, two = (QueryMaker.of(database, rules, lambda share: None) for _ in range(2))
    queries = [one.make(synset) for synset in range(30)]
    for synset in reversed(range(30)):
        query, again = queries[synset], two.make(synset)
        if query is None or again is None:
            assert query is again
        else:
            assert_allclose(again.features, query.features, rtol=0, atol=0)
