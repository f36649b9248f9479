"""All explainers on suites of tasks: ranks with ties, what each costs, and what a floor would have done."""

from gflowbench.leaderboard.page import page
from gflowbench.leaderboard.ranking import Standing, standings
from gflowbench.leaderboard.suite_problems import SUITES, problems_of, tasks_of

__all__ = ["SUITES", "Standing", "page", "problems_of", "standings", "tasks_of"]
