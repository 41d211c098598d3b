"""One registry helper for every table of names: forms, attacks, systems, models, data sets, metrics."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from knowledge_forms.errors import AuditError

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to things; an unknown name lists the choices, a duplicate raises.

    >>> shapes = Registry("shape")
    >>> @shapes.register("square")
    ... class Square: ...
    >>> shapes["square"].__name__
    'Square'
    >>> shapes["circle"]
    Traceback (most recent call last):
    knowledge_forms.errors.AuditError: unknown shape 'circle'; choose one of: square
    """

    def __init__(self, kind: str, *, package: str | None = None) -> None:
        """kind: the word in error messages. package: imported whole on first look-up, so one new file is enough."""
        self.kind = kind
        self._package = package
        self._items: dict[str, T] = {}

    def _all(self) -> dict[str, T]:
        if self._package is not None:
            package, self._package = importlib.import_module(self._package), None
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                if not module.name.endswith("__main__"):
                    importlib.import_module(module.name)
        return self._items

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that files the decorated thing under `name`; raises ValueError where the name is taken."""

        def add(item: T) -> T:
            if name in self._items:
                raise ValueError(f"{self.kind} '{name}' is registered twice")
            self._items[name] = item
            return item

        return add

    def refusal(self, name: str) -> str:
        """What is said of an unknown name."""
        return f"unknown {self.kind} '{name}'; choose one of: {', '.join(self)}"

    def __getitem__(self, name: str) -> T:
        if name not in self._all():
            raise AuditError(self.refusal(name))
        return self._items[name]

    def __contains__(self, name: object) -> bool:
        return name in self._all()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._all()))

    def __len__(self) -> int:
        return len(self._all())

    def items(self) -> list[tuple[str, T]]:
        """(name, thing) pairs in alphabetical order."""
        return [(name, self._items[name]) for name in self]
