"""What ops are made of: the table, calls and plans, recording, pointwise formulas, reductions, structured ops, views."""
