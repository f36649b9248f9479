"""``python -m gflowbench.datasets``: prints the statistics of every dataset beside the paper's table."""

from gflowbench.datasets.statistics import side_by_side

if __name__ == "__main__":
    print(side_by_side())
