"""The pages: one package per page family, each with its queries, views and addresses."""
