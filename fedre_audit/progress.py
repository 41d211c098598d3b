"""Progress of long work: a bar with an estimate on a terminal, quiet elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Tick = Callable[[], None]


@contextmanager
def progress(title: str, total: int, *, quiet: bool = False) -> Iterator[Tick]:
    """A function to call once per finished step of `total`; draws to stderr, so that stdout stays for results."""
    if quiet or not sys.stderr.isatty():
        yield lambda: None
        return
    columns = (TextColumn("{task.description:<22}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda: bar.advance(task)
