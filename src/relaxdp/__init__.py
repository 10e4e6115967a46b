"""Local differential privacy with a gradually released budget. Start here: `Vault`, `Categorical`, `estimate`."""

from relaxdp import errors  # noqa: F401 (a public name)

__version__ = "0.1.0"

# A module is imported when one of its names is first asked for: a key does not wait for Arrow, nor a release for a
# database. Each line of `__init__.pyi` that starts with "from" is "from <module> import <name> as <name>".
_STUB = __spec__.loader.get_data(f"{__path__[0]}/__init__.pyi").decode()
_HOMES = {line.split()[-1]: line.split()[1] for line in _STUB.splitlines() if line.startswith("from ")}
__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'relaxdp' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 (here it is no name of the package's own)

    home = _HOMES[name]
    is_module = home in ("relaxdp", "relaxdp.estimation")
    found = import_module(f"{home}.{name}") if is_module else getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(_HOMES)
