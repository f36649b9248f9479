"""Reports: one offline HTML file, and static figures of the same for papers."""

from gflowexplainer.drawing.case import Case
from gflowexplainer.drawing.molecules import smiles_of
from gflowexplainer.report.figures import write_figures
from gflowexplainer.report.page import Report, write_report

__all__ = ["Case", "Report", "smiles_of", "write_figures", "write_report"]
