"""The picture of the front page says what its table says."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from blocks import ROOT

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def test_numbers_of_the_picture_are_those_of_the_table():
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    table = "\n".join(line for line in page.split("\n") if line.startswith("|"))
    drawn = ElementTree.parse(ROOT / "docs" / "front.svg").getroot()
    texts = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    numbers = {number for text in texts for number in NUMBER.findall(text)}
    assert len(numbers) > 8
    assert numbers - {"0"} <= set(NUMBER.findall(table))
