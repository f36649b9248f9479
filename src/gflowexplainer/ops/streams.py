"""Names of independent random streams: what a draw is for, hashed together with the seed."""

from enum import IntEnum


class Stream(IntEnum):
    """What random numbers are drawn for. The values are part of every answer: a new use gets a new number."""

    training = 0
    shuffling = 1
    locating = 2
    measuring = 5
    contexts = 6
    explaining = 100
    reference_nodes = 101
    random_parts = 102
    searching = 103
