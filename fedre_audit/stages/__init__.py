"""The four stages of a run, a file each: train, attack, score, report. Files in the run folder are all they share."""
