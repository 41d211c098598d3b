"""fedre-audit: what a client leaks when it uploads representations, prototypes or entangled representations."""

__version__ = "0.1.0"
