"""`audit reproduce WHAT`: published tables beside ours, a file each. Every row says what differs from the original."""
