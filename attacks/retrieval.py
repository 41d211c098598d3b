"""Answer with the public image whose representation is nearest: an attacker who never makes a picture of his own."""

from torch import Tensor

from attacks.base import ATTACKS, Attack
from attacks.knowledge import Q0, Q2
from attacks.matching import embedding_scores
from knowledge_forms.base import Upload


@ATTACKS.register("nearest_auxiliary_embedding")
class NearestAuxiliaryEmbedding(Attack):
    """The auxiliary image whose embedding is nearest to each row."""

    name = "nearest_auxiliary_embedding"
    level = "Q2"

    def _fit(self, knowledge: Q0) -> None:
        assert isinstance(knowledge, Q2)  # the final caller has checked the level
        self.embeddings_ = knowledge.auxiliary_representations
        self.images_ = knowledge.images

    def _reconstruct(self, upload: Upload) -> Tensor:
        scores = embedding_scores(upload.representation.to(self.embeddings_.device), self.embeddings_)
        return self.images_[scores.argmax(1).to(self.images_.device)]
