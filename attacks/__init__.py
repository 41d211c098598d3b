"""The attacker's side. Knows nothing of truth, scores or verdicts: it imports knowledge_forms and nothing else of ours."""
