"""Differences paired by client: the same clients and images under two conditions."""

import csv
from pathlib import Path

import numpy as np

from fedre_audit.audit.intervals import MIN_CLIENTS, Floats, Ints, group_means, t_interval
from fedre_audit.audit.metrics import sign_of
from fedre_audit.audit.scoring import ATTACK, PairScores


def client_values(path: Path, attack: str, target: str, metric: str, form: str, stream: int = 1) -> dict[int, float]:
    """Mean of one metric per client from `stream` uploads each, of scores.csv: images in a row, then rows in a client.

    Rows that are not finite are left out, and a client without any.
    """
    wanted = {"form": form, "attack": attack, "stream": str(stream), "target": target, "metric": metric}
    with path.open(newline="") as lines:
        found = [
            (int(line["client"]), int(line["row"]), float(line["value"]))
            for line in csv.DictReader(lines)
            if all(line[key] == wish for key, wish in wanted.items())
        ]
    table = np.array([entry for entry in found if np.isfinite(entry[2])], dtype=np.float64).reshape(-1, 3)
    if len(table) == 0:
        return {}
    return by_client(table[:, 2], table[:, 1].astype(np.int64), table[:, 0].astype(np.int64))


def gains_by_client(table: PairScores, metric: str, floor: str) -> dict[int, float]:
    """Mean gain over a floor per client: images within a row, then rows in a client. Positive leaks more."""
    gain = sign_of(metric) * (table.values[ATTACK][metric] - table.values[floor][metric])
    kept = np.isfinite(gain)
    return by_client(gain[kept], table.row[kept], table.client[kept]) if kept.any() else {}


def by_client(values: Floats, rows: Ints, clients: Ints) -> dict[int, float]:
    """Mean per client of the means of its upload rows. values, rows, clients: [P], a row is of one client."""
    means, _ = group_means(values, rows)
    of_row = clients[np.unique(rows, return_index=True)[1]]
    found, ids = group_means(means, of_row)
    return dict(zip(ids.tolist(), found.tolist(), strict=True))


def difference(mine: dict[int, float], other: dict[int, float]) -> tuple[float | None, list[float] | None, int]:
    """Mean paired difference over the clients that both have, its t-interval (None below 4 clients), and how many.

    >>> difference({0: 2.0, 1: 3.0, 2: 4.0, 3: 5.0}, {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0})
    (1.0, [1.0, 1.0], 4)
    """
    paired = np.array([mine[client] - other[client] for client in sorted(mine.keys() & other.keys())])
    if len(paired) == 0:
        return None, None, 0
    interval = t_interval(paired) if len(paired) >= MIN_CLIENTS else None
    return float(paired.mean()), list(interval) if interval else None, len(paired)
