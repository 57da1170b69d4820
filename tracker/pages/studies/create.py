"""Creating a study: a comparison gets a name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from tracker.domain.errors import InvalidInput
from tracker.models import Kernel, Study, StudyKernel, StudyKind
from tracker.pages.kernels.queries import named
from tracker.pages.studies.queries import MOST_KERNELS, kind_of

_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,49}\Z")


def choose(handles: Sequence[str]) -> list[Kernel]:
    """Return the kernels of these handles, each once, in order. Raises InvalidInput for an unknown one."""
    if len(handles) > MOST_KERNELS:
        raise InvalidInput(f"of: expected at most {MOST_KERNELS} kernels, found {len(handles)}")
    if any("\0" in handle for handle in handles):
        raise InvalidInput("of: a kernel name must not contain NUL")
    found = named(handles) if handles else []
    if unknown := [handle for handle, kernel in zip(handles, found, strict=True) if kernel is None]:
        raise InvalidInput(f"of: no kernel {unknown[0][:80]!r} was measured")
    return list(dict.fromkeys(kernel for kernel in found if kernel))


@transaction.atomic
def make(slug: str, title: str, kind: str, handles: Sequence[str], now: datetime) -> Study:
    """Create a study of these kernels; `kind` "": guessed from them. Raises InvalidInput, which says what is wrong."""
    if not _SLUG.match(slug):
        raise InvalidInput(f"slug: expected lower-case letters, digits and hyphens; found {slug[:60]!r}")
    if not title:
        raise InvalidInput("title: expected a title; found none")
    if kind and kind not in StudyKind.values:
        raise InvalidInput(f"kind: expected one of {', '.join(StudyKind.values)}; found {kind[:20]!r}")
    chosen = choose(handles)
    if len(chosen) < 2:
        raise InvalidInput("of: expected at least two kernels")
    if Study.objects.filter(slug=slug).exists():
        raise InvalidInput(f"slug: study {slug} already exists")
    study = Study.objects.create(slug=slug, title=title, kind=kind or kind_of(chosen), made_at=now)
    StudyKernel.objects.bulk_create(
        StudyKernel(study=study, position=number, kernel=kernel) for number, kernel in enumerate(chosen, 1)
    )
    return study
