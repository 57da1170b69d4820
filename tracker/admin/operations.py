"""The admin of operations: when tasks ran, and who was mailed what does not work."""

from __future__ import annotations

from django.contrib import admin

from tracker import models
from tracker.admin.read_only import ReadOnly


@admin.register(models.TaskRun)
class TaskRunAdmin(ReadOnly):
    list_display = ("task", "at", "seconds", "error")


@admin.register(models.FaultMail)
class FaultMailAdmin(ReadOnly):
    list_display = ("address", "day", "at")


@admin.register(models.Restoration)
class RestorationAdmin(ReadOnly):
    list_display = ("backup_at", "restored_at")


@admin.register(models.Folding)
class FoldingAdmin(ReadOnly):
    list_display = ("version", "folded_to")
