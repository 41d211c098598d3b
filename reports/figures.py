"""Figures as inline SVG text: deterministic, themed by CSS classes, legible at any width, whole without script.

Horizontal places are per cent of the width, so text keeps its size on a phone. Right (or up) always leaks more
where a figure says so. Every figure has role="img", a title and a description.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from reports.numbers import format_number

Format = Callable[[float | None], str]
MARKERS = ("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", "M-4-4h8v8h-8z", "M0-5L5 4h-10z", "M0-5.5L5.5 0 0 5.5-5.5 0z")
DASHES = ("", "6 4", "2 3", "9 3 2 3")


def _svg(title: str, desc: str, body: str, height: int, kind: str) -> str:
    return (
        f'<svg class="figure {kind}" role="img" width="100%" height="{height}">'
        f"<title>{escape(title)}</title><desc>{escape(desc)}</desc>{body}</svg>"
    )


def _text(x: float, y: float, text: str, anchor: str = "middle", kind: str = "label") -> str:
    return f'<text x="{x:.2f}%" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.2f}%" y1="{y1:.1f}" x2="{x2:.2f}%" y2="{y2:.1f}" class="{kind}"/>'


def _marker(x: float, y: float, index: int, kind: str) -> str:
    shape = MARKERS[index % len(MARKERS)]
    return f'<svg x="{x:.2f}%" y="{y:.1f}" overflow="visible"><path d="{shape}" class="{kind}"/></svg>'


def _known(*values: float | None) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]


def gauge(
    floor: float | None,
    value: float | None,
    lo: float | None,
    hi: float | None,
    ceiling: float | None,
    unit: str = "",
    *,
    higher_leaks: bool = True,
    fmt: Format = format_number,
    mini: bool = False,
) -> str:
    """Floor, this form with its interval, and ceiling on one scale; right leaks more. `mini`: no words, no title.

    The bar runs from floor to form: what the upload adds to guessing. None leaves its mark out.
    """
    known = _known(floor, value, lo, hi, ceiling)
    if value is None or not known:
        body = "" if mini else _text(50, 50, "not available", kind="label strong")
        return _svg("Scale", "The value of this form is not available.", body, 22 if mini else 96, "gauge")
    low, high = min(known), max(known)
    span = (high - low) or max(abs(high), 1.0) * 0.1
    left, right = (6.0, 94.0) if mini else (20.0, 80.0)

    def at(number: float) -> float:
        share = (number - low) / span if higher_leaks else (high - number) / span
        return left + share * (right - left)

    y = 11 if mini else 50
    x = at(value)
    parts = [_line(2, y, 98, y, "track")]
    if floor is not None:
        start, end = sorted((at(floor), x))
        leaks = (value > floor) == higher_leaks
        parts.append(
            f'<rect x="{start:.2f}%" y="{y - 5}" width="{end - start:.2f}%" height="10" '
            f'class="bar {"leak" if leaks else "below"}"/>'
        )
        parts.append(_line(at(floor), y - 10, at(floor), y + 10, "floor"))
    if ceiling is not None:
        parts.append(_line(at(ceiling), y - 10, at(ceiling), y + 10, "ceiling"))
    if lo is not None and hi is not None:
        parts.append(_line(at(lo), y, at(hi), y, "whisker"))
        parts += [_line(at(end), y - 5, at(end), y + 5, "whisker") for end in (lo, hi)]
    parts.append(_marker(x, y, 3, "form"))
    if mini:
        return f'<svg class="figure gauge mini" aria-hidden="true" width="100%" height="22">{"".join(parts)}</svg>'
    parts += [_text(x, 14, "this form"), _text(x, 32, fmt(value), kind="label strong")]
    marks = sorted((at(n), name, n) for name, n in (("floor", floor), ("ceiling", ceiling)) if n is not None)
    for place, (mark, name, number) in enumerate(marks):
        only = len(marks) == 1
        anchor = "middle" if only else ("end", "start")[place]
        parts += [_text(mark, 78, name, anchor), _text(mark, 95, fmt(number), anchor, "label strong")]
    # Where the form stands far right its own name needs the room.
    place_of_arrow = (2, 14, "start") if x > 50 else (98, 14, "end")
    parts.append(_text(place_of_arrow[0], place_of_arrow[1], "leaks more →", place_of_arrow[2], "label faint"))
    band = f", 95 % interval {fmt(lo)} to {fmt(hi)}" if lo is not None and hi is not None else ""
    desc = f"Floor {fmt(floor)}, this form {fmt(value)}{band}, ceiling {fmt(ceiling)} {unit}. Right leaks more."
    return _svg("Floor, this form and ceiling on one scale", desc, "".join(parts), 104, "gauge")


@dataclass(frozen=True)
class Line:
    """One line of a chart: (x, y, lo, hi) points, x ascending; lo and hi may be None.

    floors: of each point, what it is to be read against; empty: of none.
    """

    label: str
    points: Sequence[tuple[float, float, float | None, float | None]]
    floors: Sequence[float | None] = ()


def common_floor(lines: Sequence[Line], fmt: Format = format_number) -> float | None:
    """The floor of all points, where every point has one and all read the same; else None.

    >>> common_floor([Line("a", [(1, 2.0, None, None)], [1.0]), Line("b", [(1, 3.0, None, None)], [1.00001])])
    1.0
    >>> common_floor([Line("a", [(1, 2.0, None, None), (2, 3.0, None, None)], [1.0, 1.5])])
    """
    floors = [floor for line in lines for floor in line.floors]
    known = _known(*floors)
    whole = len(known) == len(floors) == sum(len(line.points) for line in lines)
    return known[0] if known and whole and len({fmt(floor) for floor in known}) == 1 else None


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """About `count` round numbers inside [low, high]; `low` alone where there is no room between them.

    >>> ticks(12.7, 18.6), ticks(1e17, 1e17)
    ([14, 16, 18], [1e+17])
    """
    if not 1e-300 < (high - low) / count < math.inf:
        return [low]
    step = 10 ** math.floor(math.log10((high - low) / count))
    step *= next((k for k in (1, 2, 5) if (high - low) / (k * step) <= count), 10)
    first = math.ceil(low / step)
    return [round(k * step, 10) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _scale(known: Sequence[float], share: float) -> tuple[float, float]:
    """Ends of a scale that holds all `known` with a margin, a share of their span; low < high.

    The span is taken as 1 where all are equal, and wider where the ends would be one floating-point number.
    """
    low, high = min(known), max(known)
    margin = share * max(high - low or 1.0, 1e-12 * max(abs(low), abs(high)))
    return low - margin, high + margin


def line_chart(
    lines: Sequence[Line],
    *,
    title: str,
    x_label: str,
    y_label: str,
    fmt: Format = format_number,
) -> str:
    """Lines with interval bands; x is logarithmic where it spans a factor of 20 or more.

    A floor that all points share is one dashed line; else each point has a dash at its own, in the style of its line.
    """
    points = [point for line in lines for point in line.points]
    floor = common_floor(lines, fmt)
    xs = sorted({point[0] for point in points})
    known = _known(*(v for point in points for v in point[1:]), *(v for line in lines for v in line.floors))
    low, high = _scale(known, 0.06)
    log = xs[0] > 0 and xs[-1] / xs[0] >= 20
    width, top, height = (14.0, 97.0), 12.0, 170.0

    def share(x: float) -> float:
        a, b, c = (math.log(v) for v in (x, xs[0], xs[-1])) if log else (x, xs[0], xs[-1])
        return 0.04 + 0.92 * ((a - b) / (c - b) if c > b else 0.5)

    def px(x: float) -> float:
        return width[0] + share(x) * (width[1] - width[0])

    def down(y: float) -> float:
        return (high - y) / (high - low)

    parts = [_text(0, 10, y_label, "start", "label faint")]
    for tick in ticks(low, high):
        y = top + 14 + down(tick) * height
        parts += [_line(width[0], y, width[1], y, "grid"), _text(width[0] - 1.5, y + 4, fmt(tick), "end")]
    inner = []
    for i, line in enumerate(lines):
        path = " ".join(f"{100 * share(x):.2f},{100 * down(y):.2f}" for x, y, *_ in line.points)
        bands = [(x, lo, hi) for x, _, lo, hi in line.points if lo is not None and hi is not None]
        if len(bands) > 1:
            ring = [(x, hi) for x, _, hi in bands] + [(x, lo) for x, lo, _ in reversed(bands)]
            corners = " ".join(f"{100 * share(x):.2f},{100 * down(y):.2f}" for x, y in ring)
            inner.append(f'<polygon points="{corners}" class="band s{i % 4}"/>')
        dash = f' stroke-dasharray="{DASHES[i % 4]}"' if DASHES[i % 4] else ""
        inner.append(f'<polyline points="{path}" class="series s{i % 4}"{dash}/>')
    parts.append(
        f'<svg x="{width[0]}%" y="{top + 14}" width="{width[1] - width[0]}%" height="{height}" '
        f'viewBox="0 0 100 100" preserveAspectRatio="none">{"".join(inner)}</svg>'
    )
    if floor is not None:
        y = top + 14 + down(floor) * height
        parts += [_line(width[0], y, width[1], y, "floor dashed"), _text(width[1], y - 5, "floor", "end")]
    # Points of several lines share an x: their dashes stand side by side, in the order of the lines.
    half = 1.6 if len(lines) == 1 else 2.4
    for i, line in enumerate(lines if floor is None else ()):
        left, right = (2 * half * k / len(lines) - half for k in (i, i + 1))
        for (x, *_), own in zip(line.points, line.floors, strict=False):
            if own is not None:
                y = top + 14 + down(own) * height
                parts.append(_line(px(x) + left, y, px(x) + right, y, f"floor s{i % 4}"))
    for i, line in enumerate(lines):
        parts += [_marker(px(x), top + 14 + down(y) * height, i, f"mark s{i % 4}") for x, y, *_ in line.points]
    bottom = top + 14 + height
    shown = xs if len(xs) <= 6 else [xs[round(k * (len(xs) - 1) / 5)] for k in range(6)]
    parts += [_text(px(x), bottom + 17, format_number(x)) for x in shown]
    parts.append(_text(width[1], bottom + 35, x_label + (" (log scale)" if log else ""), "end", "label faint"))

    def said(line: Line, at: int) -> str:
        own = f" (floor {fmt(line.floors[at])})" if line.floors and floor is None else ""
        return f"{fmt(line.points[at][1])} at {format_number(line.points[at][0])}{own}"

    ends = "; ".join(f"{line.label}: {said(line, 0)}, {said(line, -1)}" for line in lines)
    shared = "" if floor is None else f" Floor of all points: {fmt(floor)}."
    return _svg(title, f"{y_label} over {x_label}. {ends}.{shared}", "".join(parts), int(bottom + 42), "lines")


def legend_key(index: int) -> str:
    """The mark of line `index`, for a legend."""
    dash = f' stroke-dasharray="{DASHES[index % 4]}"' if DASHES[index % 4] else ""
    return (
        f'<svg class="key" aria-hidden="true" width="34" height="12" viewBox="-17 -6 34 12"><path d="M-17 0h34" '
        f'class="series s{index % 4}"{dash}/><path d="{MARKERS[index % 4]}" class="mark s{index % 4}"/></svg>'
    )


def histogram(edges: Sequence[float], counts: Sequence[int], *, title: str, x_label: str) -> str:
    """Bars over bins; bars right of zero are what an upload added, and a line marks zero."""
    low, high, most = edges[0], edges[-1], max(counts) or 1
    top, height = 26.0, 150.0

    def px(x: float) -> float:
        return 4 + 92 * (x - low) / (high - low)

    parts = [_text(0, 10, "images", "start", "label faint")]
    for left, right, count in zip(edges, edges[1:], counts, strict=False):
        tall = height * count / most
        kind = "above" if left >= 0 else "under"
        parts.append(
            f'<rect x="{px(left):.2f}%" y="{top + height - tall:.1f}" width="{px(right) - px(left):.2f}%" '
            f'height="{tall:.1f}" class="bin {kind}"/>'
        )
        if len(counts) <= 12 or count == most:
            parts.append(_text((px(left) + px(right)) / 2, top + height - tall - 4, str(count)))
    parts.append(_line(4, top + height, 96, top + height, "grid"))
    if low < 0 < high:
        parts.append(_line(px(0), top - 8, px(0), top + height, "floor dashed"))
    parts += [_text(px(tick), top + height + 17, format_number(tick)) for tick in ticks(low, high, 6)]
    parts.append(_text(96, top + height + 35, x_label, "end", "label faint"))
    bins = list(zip(edges, edges[1:], counts, strict=False))
    sure = sum(count for left, _, count in bins if left >= 0)
    most_of_all = sure + sum(count for left, right, count in bins if left < 0 < right)
    # Of a bin that holds zero nobody knows which of its images lie above.
    gained = str(sure) if sure == most_of_all else f"between {sure} and {most_of_all}"
    desc = f"{gained} of {sum(counts)} images lie at or above zero, that is, gained over the floor."
    return _svg(title, desc, "".join(parts), int(top + height + 42), "histogram")


@dataclass(frozen=True)
class Point:
    """One named point; lo and hi: interval of y, floor: what it is to be read against; None leaves them out."""

    label: str
    x: float
    y: float
    lo: float | None = None
    hi: float | None = None
    floor: float | None = None


def scatter(
    points: Sequence[Point],
    *,
    title: str,
    x_label: str,
    y_label: str,
    fmt: Format = format_number,
    x_fmt: Format = format_number,
) -> str:
    """Numbered points with intervals and a dash at each one's floor; x is logarithmic from a factor of 20 on.

    Points are numbered from 1 in the order given; the legend beside the figure names them.
    """
    xs = [point.x for point in points]
    known = _known(*(value for point in points for value in (point.y, point.lo, point.hi, point.floor)))
    low, high = _scale(known, 0.08)
    log = min(xs) > 0 and max(xs) / min(xs) >= 20
    left, right, top, height = 12.0, 97.0, 26.0, 220.0

    def share(x: float) -> float:
        a, b, c = (math.log(v) for v in (x, min(xs), max(xs))) if log else (x, min(xs), max(xs))
        return 0.06 + 0.88 * ((a - b) / (c - b) if c > b else 0.5)

    def px(x: float) -> float:
        return left + share(x) * (right - left)

    def py(y: float) -> float:
        return top + (high - y) / (high - low) * height

    parts = [_text(0, 10, y_label, "start", "label faint")]
    for tick in ticks(low, high):
        parts += [_line(left, py(tick), right, py(tick), "grid"), _text(left - 1.5, py(tick) + 4, fmt(tick), "end")]
    # Points that would cover each other stand side by side: their x is shared, their numbers must be read.
    places: list[tuple[float, float]] = []
    for point in points:
        x, y = px(point.x), py(point.y)
        while any(abs(x - a) < 3.2 and abs(y - b) < 22 for a, b in places):
            x += 3.4 if x < right - 4 else -3.4 * (len(points) + 1)
        places.append((x, y))
    for point, (x, _) in zip(points, places, strict=True):
        if point.floor is not None:
            parts.append(_line(x - 1.6, py(point.floor), x + 1.6, py(point.floor), "floor"))
    for i, (point, (x, y)) in enumerate(zip(points, places, strict=True), 1):
        if point.lo is not None and point.hi is not None:
            parts.append(_line(x, py(point.lo), x, py(point.hi), "whisker"))
        parts.append(
            f'<svg x="{x:.2f}%" y="{y:.1f}" overflow="visible"><circle r="10" class="dot"/>'
            f'<text y="4" text-anchor="middle" class="number">{i}</text></svg>'
        )
    bottom = top + height
    for x in sorted({min(xs), max(xs)}):
        # Centred below a point at the right, a long number would run out of a narrow page.
        place = (right, "end") if px(x) > 90 else (px(x), "middle")
        parts.append(_text(place[0], bottom + 17, x_fmt(x), place[1]))
    parts.append(_text(right, bottom + 35, x_label + (" (log scale)" if log else ""), "end", "label faint"))
    said = "; ".join(f"{i}, {p.label}: {x_fmt(p.x)}, {fmt(p.y)}" for i, p in enumerate(points, 1))
    return _svg(title, f"{y_label} over {x_label}. {said}.", "".join(parts), int(bottom + 42), "scatter")


def recovery_chart(rows: Sequence[tuple[str, float | None, float | None]], *, title: str) -> str:
    """Error of recovered against true prototypes, a line per client: (name, predicted, true); None: not known.

    0 is exact; 1, the dashed line, is no better than not unmixing. Left leaks more.
    """
    known = _known(*(value for row in rows for value in row[1:]))
    high = max([1.1, *known])
    left, right, top, step = 16.0, 96.0, 24.0, 22.0

    def px(value: float) -> float:
        return left + value / high * (right - left)

    bottom = top + step * len(rows)
    parts = [_text(left, 10, "← leaks more", "start", "label faint")]
    parts += [_line(px(tick), top - 8, px(tick), bottom - 8, "grid") for tick in ticks(0.0, high)]
    parts.append(_line(px(1.0), top - 8, px(1.0), bottom - 8, "floor dashed"))
    said = []
    for i, (name, predicted, true) in enumerate(rows):
        y = top + step * i
        parts.append(_text(left - 1.5, y + 4, name, "end"))
        if predicted is not None and true is not None:
            parts.append(_line(px(predicted), y, px(true), y, "whisker"))
        for value, shape, kind in ((predicted, 0, "mark s1"), (true, 3, "mark s0")):
            if value is not None:
                parts.append(_marker(px(value), y, shape, kind))
        if predicted is None and true is None:
            parts.append(_text(left + 1, y + 4, "not available", "start", "label faint"))
        said.append(f"{name}: predicted {format_number(predicted)}, true {format_number(true)}")
    parts += [_text(px(tick), bottom + 9, format_number(tick)) for tick in ticks(0.0, high)]
    parts.append(_text(right, bottom + 27, "relative error of the prototypes", "end", "label faint"))
    return _svg(title, "; ".join(said) + ".", "".join(parts), int(bottom + 34), "recovery")
