"""``python -m gflowexplainer.datasets``: prints the statistics of every dataset beside the paper's table."""

from gflowexplainer.datasets.dataset_table import side_by_side

if __name__ == "__main__":
    print(side_by_side())
