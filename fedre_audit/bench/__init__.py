"""How fast this machine audits, and how near to what it could do: `python -m fedre_audit.bench --json FILE`."""
