"""Audit someone else's federation: recorded uploads, and whatever else the auditor has."""
