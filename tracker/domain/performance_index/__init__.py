"""The performance index: one number for a release, from a basket of benchmarks."""
