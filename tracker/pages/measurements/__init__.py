"""The pages of curves: one curve over builds, and the changes that no report says."""
