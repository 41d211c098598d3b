"""Every page in a real browser: quiet, whole, in shape, at every width, light and dark, with and without scripts."""

import pytest

from tests.browser.pages import make_pages

PAGES = ("CLASS_LEVEL", "SAMPLE_LEVEL", "NOT_ASSESSED", "compare", "index")
WIDTHS = (320, 768, 1440)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return {name: path.as_uri() for name, path in make_pages(tmp_path_factory.mktemp("pages")).items()}


@pytest.fixture
def visit(browser, pages):
    """Opens a page and returns it with what it logged and asked for."""
    contexts = []

    def go(name, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page, told = context.new_page(), []
        page.on("console", lambda message: told.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: told.append(f"error: {error}"))
        page.on("request", lambda request: told.append(request.url) if request.url[:5] not in ("file:", "data:") else 0)
        page.goto(pages[name])
        return page, told

    yield go
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_no_error_no_request_no_sideways_scroll_and_every_image_loads(visit, name, scheme):
    page, told = visit(name, color_scheme=scheme)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
    images = page.evaluate("[...document.images].map((image) => [image.complete, image.naturalWidth])")
    assert all(complete and wide > 0 for complete, wide in images)
    assert bool(images) == (name in PAGES[:3])
    assert told == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_serious_violation(visit, axe, name, scheme):
    # Only the checker is let past the policy of the page.
    page, _ = visit(name, color_scheme=scheme, bypass_csp=True, viewport={"width": 1280, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.add_script_tag(content=axe)
    result = page.evaluate("axe.run()")
    assert len(result["passes"]) > 20
    serious = [one for one in result["violations"] if one["impact"] in ("serious", "critical")]
    bad = [(one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"][:300]) for one in serious]
    assert bad == []


@pytest.mark.parametrize("name", PAGES)
def test_with_scripts_off_the_page_tells_the_same(visit, name):
    texts = []
    for enabled in (True, False):
        page, _ = visit(name, java_script_enabled=enabled)
        page.locator("body").wait_for()
        texts.append(page.locator("main").inner_text().replace("Larger images\n", "").replace("\n\n", "\n"))
    words = [set(text.split()) for text in texts]
    assert words[1] - words[0] == set()
    assert words[0] - words[1] <= {"Search"}


def test_not_assessed_is_said_before_any_number(visit):
    page, _ = visit("NOT_ASSESSED", viewport={"width": 1280, "height": 900})
    heading = page.locator("#verdict-h")
    assert "NOT_ASSESSED" in heading.inner_text()
    assert heading.bounding_box()["y"] < 600
    assert "this run" not in page.locator("ol.ladder").inner_text().lower()


def test_images_keep_their_shape(visit):
    for name, ratio in (("CLASS_LEVEL", 1), ("SAMPLE_LEVEL", 1), ("NOT_ASSESSED", 40 / 24)):
        page, _ = visit(name, viewport={"width": 1280, "height": 900})
        boxes = page.evaluate("[...document.images].map((i) => [i.clientWidth, i.clientHeight])")
        assert all(abs(wide / high - ratio) < 0.03 for wide, high in boxes), name


def test_columns_sort_and_runs_are_found(visit):
    page, told = visit("index", viewport={"width": 1280, "height": 900})
    rows = page.locator("tbody tr")
    assert rows.count() == 4
    page.get_by_role("searchbox").fill("not assessed")
    assert page.locator("tbody tr:visible").count() == 1
    assert "1 of 4 runs" in page.get_by_role("status").inner_text()
    page.get_by_role("searchbox").fill("")
    head = page.get_by_role("button", name="Verdict")
    head.focus()
    page.keyboard.press("Enter")
    verdicts = page.locator("tbody tr td:nth-child(6)").all_inner_texts()
    assert verdicts == sorted(verdicts, key=str.lower)
    assert told == []


def test_larger_images_on_request(visit):
    page, _ = visit("CLASS_LEVEL", viewport={"width": 1280, "height": 900})
    before = page.evaluate("document.images[0].clientWidth")
    page.get_by_role("button", name="Larger images").click()
    assert page.evaluate("document.images[0].clientWidth") > 1.5 * before


def test_paper_shows_every_section(visit, tmp_path):
    page, _ = visit("CLASS_LEVEL", viewport={"width": 1280, "height": 900})
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert page.locator("section#glossary").is_visible()
    assert len(page.pdf(format="A4")) > 20_000
