"""Figures: colours that go with the page's, and names at the ends of lines that do not overlap."""

from __future__ import annotations

import itertools
import re
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwood.lab.drawing import COLOURS, MARKERS, dodged, label_ends, line_style, spread


def test_the_page_of_a_report_has_the_same_colours_and_as_many_markers():
    assets = files("rankwood.lab.report") / "assets"
    css = (assets / "report.css").read_text(encoding="utf-8")
    light = css.split("@media screen")[0]
    assert tuple(re.findall(r"--c\d+: (#[0-9a-f]{6})", light)) == COLOURS
    assert len(re.findall(r"--c\d+:", css)) == 3 * len(COLOURS)
    assert f"const COLOURS = {len(COLOURS)};" in (assets / "charts.js").read_text(encoding="utf-8")
    assert len(set(COLOURS)) == len(COLOURS) == len(set(MARKERS))


def contrast(colour: str) -> float:
    """Of a colour against white, as WCAG has it."""
    channels = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return 1.05 / (float(linear @ [0.2126, 0.7152, 0.0722]) + 0.05)


def test_colours_stand_out_from_the_paper():
    assert min(map(contrast, COLOURS)) >= 2.99  # what WCAG asks of graphics


@given(st.lists(st.floats(-0.2, 1.2), min_size=1, max_size=12), st.floats(0.0, 0.3))
def test_names_are_spread_in_order_and_no_further_than_needed(values, gap):
    ordered = sorted(values)
    found = spread(ordered, gap)
    apart = min(gap, 1.0 / max(1, len(values) - 1))
    assert all(b - a >= apart - 1e-9 for a, b in itertools.pairwise(found))
    assert min(found) >= -1e-9
    assert max(found) <= 1.0 + 1e-9
    if all(b - a > gap + 1e-9 for a, b in itertools.pairwise(ordered)) and 0.0 <= ordered[0] <= ordered[-1] <= 1.0:
        assert found == pytest.approx(ordered)


def test_nine_lines_that_end_alike_have_nine_names_that_can_be_read():
    pytest.importorskip("matplotlib", reason="FIGURES NOT TESTED: pip install matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    figure = Figure(figsize=(9.0, 4.0), dpi=100, layout="constrained")
    axes, x = figure.subplots(), [1, 2, 3]
    lines = [axes.plot(dodged(x, n, 9), [0.1 * n, 0.5, 0.5 + 0.001 * (n % 3)], **line_style(n, 9))[0] for n in range(9)]
    ends = [(x[-1], line.get_ydata()[-1], f"strategy {n}", line.get_color()) for n, line in enumerate(lines)]
    label_ends(axes, ends, 3.0)
    FigureCanvasAgg(figure).draw()
    boxes = [Text.get_window_extent(text) for text in axes.texts]  # without leaders
    assert sorted(text.get_text() for text in axes.texts) == [f"strategy {n}" for n in range(9)]
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
    for box in boxes:
        assert axes.bbox.x1 <= box.x0 < box.x1 <= figure.bbox.x1
    looks = {(line.get_color(), line.get_marker()) for line in lines}
    assert len(looks) == 9
    widths = [line.get_linewidth() for line in lines]  # a line that another one covers shows beside it
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 9
