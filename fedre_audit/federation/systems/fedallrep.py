"""FedAllRep: clients upload every representation with its label; the upper reference of FedRE (arXiv 2511.22265).

The paper names no server settings and there is no code, so they are FedGH's.
"""

from fedre_audit.federation.systems.base import SYSTEMS
from fedre_audit.federation.systems.fedgh import FedGH


@SYSTEMS.register("fedallrep")
class FedAllRep(FedGH):
    """The shared classifier learns from every representation of every client: the strongest form of all."""

    name = "fedallrep"
    form = "raw"
