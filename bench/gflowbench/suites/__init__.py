"""Tasks beyond the paper's: logic with known truth, molecules, a citation graph, and cases without an explanation."""
