"""The auditor's side: truth, metrics, intervals, verdict. Attack code never imports it."""
