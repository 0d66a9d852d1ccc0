"""Configurations from grids and lists."""

from __future__ import annotations

import pytest

import rankwood as rw
from rankwood.lab.runs import expand


def test_a_grid_is_a_product():
    assert expand({"a": [1, 2], "b": ["x", "y"]}) == [
        {"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"},
    ]  # fmt: skip


def test_every_listed_setting_meets_every_point_of_the_grid():
    assert expand({"a": [1, 2]}, [{"b": 0}, {"c": 1}]) == [
        {"b": 0, "a": 1}, {"b": 0, "a": 2}, {"c": 1, "a": 1}, {"c": 1, "a": 2},
    ]  # fmt: skip


def test_what_is_there_twice_is_refused():
    with pytest.raises(rw.RankwoodError, match="a is part of the grid and of a configuration"):
        expand({"a": [1]}, [{"a": 2}])
    with pytest.raises(rw.RankwoodError, match=r"\{'a': 1\} is there twice"):
        expand({"a": [1, 1]})
