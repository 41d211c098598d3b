"""Undoing entanglement over rounds: from one client's uploads and label encodings to its prototypes.

Entanglement is linear and its coefficients are uploaded: r_t = P_t^T w_t with w_t known. Unmixing needs no encoder,
no query and no truth, so it is open to the server alone (threat level Q0). What it recovers goes to every decoder.
"""

from attacks.unmixing.base import UNMIXERS, Unmixed, recovered_view, unmix

__all__ = ["UNMIXERS", "Unmixed", "recovered_view", "unmix"]
