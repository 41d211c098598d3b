"""The federation: clients train, upload a knowledge form each round, and everything that leaves them is recorded."""
