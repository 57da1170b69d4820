"""`/lab/`: what people asked the lab, and have not got yet."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from tracker.pages.lab import queries


@require_safe
def lab(request: HttpRequest) -> HttpResponse:
    """Show the requests that wait for the lab, the overdue ones first."""
    return render(request, "lab/lab.html", {"work": queries.work_list(timezone.now())})


@require_safe
def job(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one job: who asked for what, what was measured, and what became of it."""
    return render(request, "lab/job.html", {"page": queries.job_page(pk)})
