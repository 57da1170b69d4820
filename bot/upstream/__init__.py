"""Git trees: where culprits and fixes land. walk.py reads a tree into values, tracking/ stores the results."""
