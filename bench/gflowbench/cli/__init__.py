"""Commands of research. Where this package is installed, they are commands of ``gflowexplainer``."""

import gflowexplainer.cli.application  # noqa: F401 - it loads these commands itself, so it comes first
