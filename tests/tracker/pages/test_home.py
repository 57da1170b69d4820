"""The front page of a new lab: what to do first, and reports that are of no release yet."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.support.world import World


@pytest.mark.django_db
def test_without_reports_it_says_how_to_get_some(client: Client) -> None:
    page = client.get("/").content.decode()
    assert "No reports yet." in page
    assert "./manage.py ingest fixtures/results" in page


def test_reports_of_no_release_are_named_before_a_tree_is_followed(world: World, client: Client) -> None:
    world.ingest(world.result("b" * 40, "mm: a change"))
    page = client.get("/").content.decode()
    assert "No reports yet." not in page
    assert "none belongs to a release shown here yet" in page
    found = client.get("/search/?q=state:open").content.decode()
    assert "b" * 10 in found
