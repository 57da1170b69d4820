"""Git trees: where culprits and fixes land."""
