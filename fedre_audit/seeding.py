"""One seed reproduces everything: a generator per (seed, round, client, purpose), never the global one."""

import hashlib

import torch


def derive_seed(seed: int, purpose: str, *, round: int = -1, client: int = -1) -> int:
    """A 63-bit seed that depends on every argument and on nothing else (BLAKE2b of their text).

    >>> derive_seed(0, "weights", client=1) == derive_seed(0, "weights", client=1)
    True
    >>> derive_seed(0, "weights", client=1) == derive_seed(0, "weights", client=2)
    False
    """
    text = f"{seed}|{round}|{client}|{purpose}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1


def generator(seed: int, purpose: str, *, round: int = -1, client: int = -1) -> torch.Generator:
    """A CPU generator of its own for one purpose; draws move to the device afterwards, so devices agree."""
    return torch.Generator().manual_seed(derive_seed(seed, purpose, round=round, client=client))
