"""A result of a kernel as a whole, as a value: what it was measured to do, with no other kernel beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.results.bisect_result import MachineInfo
from tracker.domain.statistics.samples import SampleSummary


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """`name`: "v5.6", or a sha of 40 digits; `variant`: how it was set up."""

    name: str
    variant: str = ""
    describe: str = ""


@dataclass(frozen=True, slots=True)
class KernelMeasurement:
    """One metric. `direction`: higher, lower or unknown. Samples are empty where only sums are told."""

    metric: str
    unit: str
    direction: str
    role: str
    side: SampleSummary
    samples: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ScenarioInfo:
    """One scenario on one machine, and what was measured there."""

    suite: str
    params: Mapping[str, str]
    machine: MachineInfo
    measured: tuple[KernelMeasurement, ...]


@dataclass(frozen=True, slots=True)
class ToolOutputInfo:
    """A file that a tool wrote while the first test ran."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class KernelResult:
    """What a lab hands in about a kernel. `payload` is that, in canonical JSON; (producer, id) is its key."""

    producer: str
    id: str
    created_at: datetime
    kernel: KernelInfo
    tests: tuple[ScenarioInfo, ...]
    evidence: tuple[ToolOutputInfo, ...]
    payload: str

    @property
    def key(self) -> tuple[str, str]:
        return (self.producer, self.id)
