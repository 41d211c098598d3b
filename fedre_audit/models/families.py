"""The heterogeneous families of the literature, members in client order (HtFLlib, arXiv 2506.03954).

HtFE: different extractors. HtM: different models; with the one head Linear(d, C) for all, that too differs in
extractors only. The published vision-transformer heads cannot take the server's classifier, so they are not kept.
"""

from fedre_audit.models.base import FAMILIES

EIGHT = (
    "fedavg_cnn", "googlenet", "mobilenet_v2", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
)  # fmt: skip

for _name, _members in {
    "HtFE-img-2": ("fedavg_cnn", "resnet18"),
    "HtFE-img-3": ("resnet10", "resnet18", "resnet34"),
    "HtFE-img-4": EIGHT[:4],
    "HtFE-img-5": EIGHT[1:6],
    "HtFE-img-8": EIGHT,
    "HtFE-img-9": ("resnet4", "resnet6", "resnet8", "resnet10", *EIGHT[3:]),
    "HtM-img-10": (*EIGHT, "vit_b_16", "vit_b_32"),
}.items():
    FAMILIES.register(_name)(_members)
