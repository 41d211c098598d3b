"""Knowledge forms as the configuration asks for them."""

from typing import Any

from fedre_audit.config import AuditConfig
from knowledge_forms.base import FORMS, KnowledgeForm
from knowledge_forms.entangled import EntangledRepresentation


def make_form(name: str, config: AuditConfig) -> KnowledgeForm:
    """The form of that name; the entangled one with the configured mechanism, law and weights."""
    options: dict[str, Any] = {}
    if FORMS[name] is EntangledRepresentation:
        options = {"mechanism": config.mechanism, "law": config.weight_law, "weights": config.weights}
    return FORMS[name](**options)
