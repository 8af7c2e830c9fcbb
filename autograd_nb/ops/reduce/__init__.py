"""Sums, extremes, statistics, running sums and histograms."""
