"""Figures: valid SVG, right places, words for those who do not see them."""

import re
from xml.etree import ElementTree

import pytest

from reports.figures import Line, gauge, histogram, line_chart, ticks


def marks(svg: str) -> dict[str, float]:
    """Horizontal place, in per cent, of floor, ceiling and form."""
    found = {kind: float(x) for x, kind in re.findall(r'<line x1="([\d.]+)%"[^>]*class="(floor|ceiling)"', svg)}
    form = re.search(r'<svg x="([\d.]+)%"[^>]*><path [^>]*class="form"', svg)
    return found | ({"form": float(form.group(1))} if form else {})


def test_gauge_places_are_linear_in_the_values() -> None:
    at = marks(gauge(12.0, 14.0, 13.5, 14.5, 20.0, "dB"))
    assert (at["form"] - at["floor"]) / (at["ceiling"] - at["floor"]) == pytest.approx(0.25, abs=1e-3)


def test_right_leaks_more_also_where_lower_values_leak_more() -> None:
    at = marks(gauge(3500.0, 3000.0, None, None, 900.0, "", higher_leaks=False))
    assert at["floor"] < at["form"] < at["ceiling"]


def test_a_form_below_its_floor_is_not_drawn_as_a_leak() -> None:
    assert 'class="bar below"' in gauge(12.0, 11.0, None, None, 20.0)
    assert 'class="bar leak"' in gauge(12.0, 13.0, None, None, 20.0)


@pytest.mark.parametrize("numbers", [(None,) * 5, (12.0, None, None, None, 18.0), (1.0, 1.0, 1.0, 1.0, 1.0),
                                     (None, 3.0, None, None, None)])  # fmt: skip
def test_gauge_of_missing_or_equal_numbers_is_still_a_figure(numbers) -> None:
    svg = gauge(*numbers)
    ElementTree.fromstring(svg)
    assert ("value of this form is not available" in svg) == (numbers[1] is None)


@pytest.mark.parametrize(
    "svg",
    [
        gauge(1.0, 2.0, 1.5, 2.5, 3.0, "<dB>"),
        line_chart([Line("a<b", [(1, 2.0, 1.0, 3.0), (60, 4.0, None, None)]), Line("c", [(1, 1.0, None, None)])],
                   title="<t>", x_label="rounds & more", y_label="PSNR", floor=1.5),
        line_chart([Line("flat", [(5, 2.0, None, None), (5, 2.0, None, None)])], title="t", x_label="x", y_label="y"),
        histogram([-1.0, 0.0, 1.0], [0, 0], title="t", x_label="x<y"),
    ],
)  # fmt: skip
def test_every_figure_is_xml_with_role_title_and_description(svg: str) -> None:
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    assert [root[0].tag, root[1].tag] == ["title", "desc"]
    assert root[1].text


def test_ticks_are_round_and_inside() -> None:
    for low, high in ((0.0, 1.0), (12.73, 18.9), (-3.0, 4.0), (893.0, 3576.0)):
        found = ticks(low, high)
        assert 2 <= len(found) <= 5
        assert all(low <= tick <= high for tick in found)
