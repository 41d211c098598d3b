"""The attacker's side: knows nothing of truth, scores or verdicts. Of ours it imports knowledge_forms alone."""
