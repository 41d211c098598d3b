"""The one error a user can mend."""


class AuditError(ValueError):
    """Bad input: one sentence that names what, where and how to mend it. The command line exits 2 on it."""
