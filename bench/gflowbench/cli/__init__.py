"""Commands of research. Where this package is installed, they are commands of ``gflowexplainer``."""
