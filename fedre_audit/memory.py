"""When memory that is freed goes back to the system (glibc's malloc; elsewhere nothing happens)."""

import ctypes

TRIM, MMAP = -1, -3
"""mallopt's M_TRIM_THRESHOLD and M_MMAP_THRESHOLD."""
KEPT = 2**28
"""Bytes of freed memory a process keeps at the top of its heap."""
LARGEST = 2**25
"""Bytes from which an array is never kept: the most that glibc takes."""
RETURNED = 2**20
"""Bytes from which memory that is freed goes back to the system, in a process that works block by block."""


def keep_memory() -> None:
    """Keep what is freed, up to `KEPT`: training frees the same arrays every step, and asks for them again.

    By default glibc gives them back, and every step pays for thousands of fresh pages.
    """
    _mallopt(TRIM, KEPT)
    _mallopt(MMAP, LARGEST)


def return_memory() -> None:
    """Leave no holes where a block was, between the results of one block and the next.

    By default glibc keeps freed arrays of up to 32 MiB, and memory grows with the number of blocks.
    """
    _mallopt(MMAP, RETURNED)


def give_back() -> None:
    """Give back what was kept, so that a measure of growth starts without free memory to grow into."""
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def _mallopt(parameter: int, value: int) -> None:
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(parameter, value)
