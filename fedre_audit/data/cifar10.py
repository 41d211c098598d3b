"""`cifar10`: 60,000 colour images of 32x32 in ten classes (Krizhevsky 2009), 50,000 of them for training."""

from fedre_audit.data.archive import content_key
from fedre_audit.data.base import DATASETS, ImageData, Request
from fedre_audit.data.cache import cached
from fedre_audit.data.cifar import read_binary, refuse_pickle
from fedre_audit.data.download import Source
from fedre_audit.data.imagefolder import load_tree
from knowledge_forms.errors import AuditError

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
TREES = ("cifar10-images.tar.gz", "cifar10-images")
BINARY = ("cifar-10-binary.tar.gz", "cifar-10-batches-bin")
PICKLED = ("cifar-10-python.tar.gz", "cifar-10-batches-py")
OFFICIAL = Source("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530")


@DATASETS.register("cifar10")
def cifar10(request: Request) -> ImageData:
    """32x32 colour, ten classes; an archive or folder of class folders, or the official binary version."""
    advice = f"fetch {OFFICIAL.url}"
    path = request.find("CIFAR-10", TREES + BINARY + PICKLED, advice, (OFFICIAL,))
    if path.name in PICKLED:
        refuse_pickle(path, advice)
    if path.name in BINARY:
        key = content_key(path, "cifar10")
        return cached(key, request.cache, lambda: read_binary(path, "cifar10", classes=CLASSES))
    data = load_tree(path, "cifar10", request)
    if data.classes != CLASSES:
        raise AuditError(f"{path} has the classes {', '.join(data.classes)}, not CIFAR-10's; fetch it again")
    return data
