"""How far recovered prototypes are from the true ones: the auditor's check of what unmixing predicts of itself."""

from torch import Tensor


def relative_error(recovered: Tensor, true: Tensor) -> float | None:
    """|L(recovered - true)| / |L true| with L centring over classes; both [h,d]. 0 exact, 1 one vector for all classes.

    None for one class, and where the true ones do not differ: there is nothing to tell apart.

    >>> import torch
    >>> relative_error(torch.zeros(2, 3), torch.eye(2, 3)), relative_error(torch.eye(2, 3), torch.eye(2, 3))
    (1.0, 0.0)
    """
    size = (true - true.mean(0)).double().norm()
    if len(true) < 2 or size == 0:
        return None
    apart = recovered - true
    return float((apart - apart.mean(0)).double().norm() / size)
