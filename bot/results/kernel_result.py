"""A release result as a value: the measurements of one kernel, without another one to compare with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.results.bisect_result import MachineInfo
from tracker.domain.statistics.samples import SampleSummary


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """A kernel. `name`: "v5.6", or a sha of 40 digits; `variant`: how it was configured."""

    name: str
    variant: str = ""
    describe: str = ""
    committed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class KernelMeasurement:
    """One metric. `direction`: higher, lower or unknown. `samples` is empty if only a summary is given."""

    metric: str
    unit: str
    direction: str
    role: str
    side: SampleSummary
    samples: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ScenarioInfo:
    """One scenario on one machine, with its measurements."""

    suite: str
    params: Mapping[str, str]
    machine: MachineInfo
    measured: tuple[KernelMeasurement, ...]


@dataclass(frozen=True, slots=True)
class ToolOutputInfo:
    """A file written by a tool while the first test ran."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class KernelResult:
    """A lab's result for one kernel. `payload` is its canonical JSON; (producer, id) is its key."""

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
