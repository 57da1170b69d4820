"""The pages: one package a page family, each with its queries, views and addresses."""
