"""The documentation as a site (properdocs.yml): its build, and the parts of it that are written from code."""
