"""Progress of long work, on stderr so that stdout stays for results: a bar on a terminal, plain lines elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

SECONDS_BETWEEN_LINES = 10.0


class Tick(Protocol):
    """Called once per finished step; images: how many it worked through. note: what it was, for instance a client."""

    def __call__(self, images: int = 0, note: str = "") -> None: ...


def clock(seconds: float) -> str:
    """Seconds as people say them.

    >>> clock(7.2), clock(95), clock(4000)
    ('7 s', '1 min 35 s', '1 h 6 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def describe(title: str, done: int, total: int, seconds: float, images: int, note: str) -> str:
    """One plain line.

    >>> describe("train clients", 20, 60, 10.0, 5000, "round 20")
    'train clients: 20/60, round 20, 500 images/s, 10 s, about 20 s left'
    """
    rate = f"{images / seconds:,.0f} images/s" if images and seconds > 0 else ""
    left = f"about {clock(seconds / done * (total - done))} left" if done < total else ""
    parts = [f"{title}: {done}/{total}", note, rate, clock(seconds), left]
    return ", ".join(part for part in parts if part)


@contextmanager
def plain(title: str, total: int) -> Iterator[Tick]:
    """A line at the end, and one every few seconds before it."""
    started = said = time.monotonic()
    done = seen = 0

    def tick(images: int = 0, note: str = "") -> None:
        nonlocal said, done, seen
        done, seen, now = done + 1, seen + images, time.monotonic()
        if done == total or now - said >= SECONDS_BETWEEN_LINES:
            said = now
            print(describe(title, done, total, now - started, seen, note), file=sys.stderr, flush=True)

    yield tick


@contextmanager
def bar(title: str, total: int) -> Iterator[Tick]:
    """Stage, step, images a second and time left, drawn in place."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:<16}"), BarColumn(24), MofNCompleteColumn(),
               TextColumn("{task.fields[note]}"), TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=total, note="")
        started, seen = time.monotonic(), 0

        def tick(images: int = 0, note: str = "") -> None:
            nonlocal seen
            seen += images
            rate = f"{seen / max(time.monotonic() - started, 1e-6):,.0f} images/s" if seen else ""
            shown.update(task, advance=1, note=" · ".join(part for part in (note, rate) if part))

        yield tick


@contextmanager
def progress(title: str, total: int, *, quiet: bool = False) -> Iterator[Tick]:
    """A function to call once per finished step of `total`."""
    if quiet or total == 0:
        yield lambda images=0, note="": None
        return
    with (bar if sys.stderr.isatty() else plain)(title, total) as tick:
        yield tick


@contextmanager
def beat(title: str, *, seconds: float = 15.0) -> Iterator[None]:
    """A line every `seconds` of work that counts no steps: that it goes on, and since when."""
    started, ended = time.monotonic(), threading.Event()

    def say() -> None:
        while not ended.wait(seconds):
            print(f"{title}: {clock(time.monotonic() - started)} so far", file=sys.stderr, flush=True)

    voice = threading.Thread(target=say, daemon=True)
    voice.start()
    try:
        yield
    finally:
        ended.set()
        voice.join()


@contextmanager
def late(title: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A function to call with (done, total) of work whose size shows only when it begins; counts in percent."""
    with ExitStack() as stack:
        size = percent = 0
        tick: Tick

        def tell(done: int, total: int) -> None:
            nonlocal size, percent, tick
            if total != size:
                stack.close()
                tick = stack.enter_context(progress(title, 100, quiet=quiet))
                size, percent = total, 0
            while percent < 100 * done // total:
                percent += 1
                tick(note=f"{done:,} of {total:,}")

        yield tell
