"""`python -m fedre_audit` is the command `audit`."""

from fedre_audit.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
