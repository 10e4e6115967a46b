"""The paper's tables, figures and experiments, rerun and judged: one verdict per claim."""
