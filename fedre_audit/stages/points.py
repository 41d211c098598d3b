"""Points of the curves of leakage over attacker budget: which shares of the rounds and of the public images."""

from dataclasses import dataclass

from fedre_audit.config import AuditConfig

FOLLOWED = "ridge"
"""The attack that is followed: cheap, and the same decoder at every point."""
SHARES = {"rounds": (0.25, 0.5), "auxiliary": (0.125, 0.5)}


@dataclass(frozen=True)
class Point:
    """A share of what the attacker has of one budget, 'rounds' or 'auxiliary'; the whole is the audit itself."""

    axis: str
    share: float

    @property
    def folder(self) -> str:
        """Where its answers lie, below those of the attack.

        >>> Point("rounds", 0.25).folder
        'rounds-0.25'
        """
        return f"{self.axis}-{self.share:g}"

    def of(self, whole: int) -> int:
        """The share of a whole, in full rounds or images.

        >>> Point("rounds", 0.25).of(60)
        15
        """
        return int(self.share * whole)


def points(config: AuditConfig, axis: str) -> list[Point]:
    """Points of one curve, the smallest budget first; none where the curve or its attack was not asked for."""
    if axis not in (config.curves or ()) or FOLLOWED not in (config.attacks or ()):
        return []
    return [Point(axis, share) for share in SHARES[axis]]
