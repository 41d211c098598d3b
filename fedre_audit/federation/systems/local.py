"""Local training without any federation: the reference every federated system has to beat."""

from fedre_audit.federation.systems.base import SYSTEMS, System


@SYSTEMS.register("local")
class Local(System):
    """Evaluate -> train; nothing is sent, so a recorded form is what such clients *would* leak."""

    name = "local"
