"""Figures: valid SVG, right places, words for those who do not see them."""

import re
from xml.etree import ElementTree

import pytest

from reports.figures import Line, common_floor, gauge, histogram, line_chart, ticks


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
        line_chart([Line("a<b", [(1, 2.0, 1.0, 3.0), (60, 4.0, None, None)], [1.5, None]),
                    Line("c", [(1, 1.0, None, None)])],
                   title="<t>", x_label="rounds & more", y_label="PSNR"),
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


def floors_drawn(svg: str) -> list[tuple[float, float, float, str]]:
    """Floors of a chart: left and right end, per cent, height, and class."""
    found = re.findall(r'<line x1="([\d.]+)%" y1="([\d.]+)" x2="([\d.]+)%" [^>]*class="(floor[^"]*)"', svg)
    return [(float(x1), float(x2), float(y), kind) for x1, y, x2, kind in found]


def marks_drawn(svg: str) -> list[tuple[float, float]]:
    """Points of a chart: place, per cent, and height."""
    found = re.findall(r'<svg x="([\d.]+)%" y="([\d.]+)"[^>]*><path [^>]*class="mark', svg)
    return [(float(x), float(y)) for x, y in found]


def test_points_of_different_floors_each_stand_beside_their_own() -> None:
    own = Line("own", [(10, 12.0, None, None), (60, 12.4, None, None)], [11.55, 11.95])  # gains .45 twice
    other = Line("other", [(10, 14.0, None, None), (60, 15.0, None, None)], [13.0, None])
    svg = line_chart([own, other], title="t", x_label="x", y_label="PSNR")
    floors, points = floors_drawn(svg), marks_drawn(svg)
    assert [kind for *_, kind in floors] == ["floor s0", "floor s0", "floor s1"]
    for (x, y), (left, right, height, _) in zip(points[:3], floors, strict=True):
        assert left <= x <= right
        assert height > y  # a gain: the point stands above its own floor
    assert points[0][1] > floors[2][2]  # below the floor of another line's point, which is not its own
    assert floors[0][1] == floors[2][0]  # at one x: side by side
    assert floors[0][2] - points[0][1] == pytest.approx(floors[1][2] - points[1][1], abs=0.11)
    said = str(ElementTree.fromstring(svg)[1].text)
    assert "own: 12 at 10 (floor 11.55), 12.4 at 60 (floor 11.95)" in said


def test_a_floor_that_all_points_share_within_rounding_is_one_line() -> None:
    lines = [Line("a", [(1, 2.0, None, None), (9, 3.0, None, None)], [1.5, 1.50001]),
             Line("b", [(9, 4.0, None, None)], [1.5])]  # fmt: skip
    svg = line_chart(lines, title="t", x_label="x", y_label="y")
    assert [kind for *_, kind in floors_drawn(svg)] == ["floor dashed"]
    assert "Floor of all points: 1.5." in svg
    for floors in ([], [None], [1.6]):
        assert common_floor([*lines[:1], Line("b", [(9, 4.0, None, None)], floors)]) is None
