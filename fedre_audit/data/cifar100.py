"""`cifar100`: 60,000 colour images of 32x32 in a hundred classes (Krizhevsky 2009), 50,000 of them for training."""

from fedre_audit.data.archive import content_key
from fedre_audit.data.base import DATASETS, ImageData, Request
from fedre_audit.data.cache import cached
from fedre_audit.data.cifar import read_binary, refuse_pickle
from fedre_audit.data.download import Source
from fedre_audit.data.imagefolder import load_tree
from knowledge_forms.errors import AuditError

TREES = ("cifar100-images.tar.gz", "cifar100-images")
BINARY = ("cifar-100-binary.tar.gz", "cifar-100-binary")
PICKLED = ("cifar-100-python.tar.gz", "cifar-100-python")
OFFICIAL = Source("https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8")


@DATASETS.register("cifar100")
def cifar100(request: Request) -> ImageData:
    """32x32 colour, a hundred fine classes; an archive or folder of class folders, or the official binary version."""
    advice = f"fetch {OFFICIAL.url}"
    path = request.find("CIFAR-100", TREES + BINARY + PICKLED, advice, (OFFICIAL,))
    if path.name in PICKLED:
        refuse_pickle(path, advice)
    if path.name in BINARY:
        key = content_key(path, "cifar100")
        return cached(key, request.cache, lambda: read_binary(path, "cifar100", label_bytes=2))
    data = load_tree(path, "cifar100", request)
    if len(data.classes) != 100:
        raise AuditError(f"{path} has {len(data.classes)} class folders, CIFAR-100 has 100; fetch it again")
    return data
