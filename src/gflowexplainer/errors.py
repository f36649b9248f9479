"""Every mistake a user can make, as one small tree of exceptions.

Each message says what was wrong, with the value, and what to do about it.
"""

from collections.abc import Iterable


class GFlowExplainerError(Exception):
    """Base of every error this package raises on purpose."""


class ConfigError(GFlowExplainerError, ValueError):
    """A setting has a value that makes no sense, or an unknown name."""


class InstanceError(GFlowExplainerError, ValueError):
    """The graph, the features or the asked node or graph ids cannot be explained as given."""


class ModelError(GFlowExplainerError, RuntimeError):
    """The explained model failed, or returned something that is not a prediction."""


class CheckpointError(GFlowExplainerError, RuntimeError):
    """A checkpoint is missing, damaged, foreign, or could not be written."""


class DatasetError(GFlowExplainerError, RuntimeError):
    """A data file is missing, damaged, or could not be downloaded or understood."""


class EnumerationError(GFlowExplainerError, RuntimeError):
    """There are more connected subgraphs than the limit allows to enumerate."""


class ClusterError(GFlowExplainerError, RuntimeError):
    """Another process of the same work was lost, or cannot be reached."""


def did_you_mean(value: object, choices: Iterable[str]) -> str:
    """Returns a question about the nearest of ``choices``, to end a message with; empty if none is near."""
    from difflib import get_close_matches

    near = get_close_matches(str(value), [*choices], n=1)
    return f" Did you mean '{near[0]}'?" if near else ""


def one_of(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Returns ``value`` if it is one of ``choices``; otherwise says which ones there are and which is nearest."""
    if isinstance(value, str) and value in choices:
        return value
    listed = ", ".join(map(repr, choices))
    raise ConfigError(f"'{name}' must be one of {listed} (got {value!r}).{did_you_mean(value, choices)}")


def check_counts(**counts: object) -> None:
    """Refuses anything but whole numbers of at least 1, given by the names of the arguments."""
    for name, value in counts.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigError(f"'{name}' must be a whole number of at least 1 (got {value!r}).")
