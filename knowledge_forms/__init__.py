"""The ground: what leaves a client. Imports nothing of ours; torch is loaded only by the modules that need it."""
