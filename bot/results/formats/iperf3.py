"""iperf3: the JSON of `-J`, one file a run. Its names are those of lkp-tests: `tcp.receiver.bps`. Pure."""

from collections.abc import Mapping
from typing import Any

from bot.results.formats.benchmark import HIGHER, LOWER, Document, Metric, Reading, Test

NAME = "iperf3 JSON"


def recognises(document: Document) -> bool:
    value = document.json
    start = value.get("start") if isinstance(value, dict) else None
    return isinstance(start, dict) and "iperf" in str(start.get("version", ""))


def read(document: Document) -> Reading:
    value, start = document.json, document.json["start"]
    if value.get("error"):
        document.fault("/error", f"the run failed: {str(value['error'])[:200]}")
    setup: Mapping[str, Any] = {}
    if "test_start" in start or not document.faults:
        setup = document.mapping(start.get("test_start"), "/start/test_start")
    protocol = str(setup.get("protocol", "TCP")).lower()
    names = {"streams": "num_streams", "block_size": "blksize", "reverse": "reverse", "bitrate": "target_bitrate"}
    params = {"protocol": protocol, **{name: str(setup[key]) for name, key in names.items() if setup.get(key)}}
    end = document.mapping(value.get("end"), "/end")
    metrics = []
    if end and not any(name in end for name in ("sum_sent", "sum_received", "sum")):
        document.fault("/end", "a run cut short: expected sum_sent and sum_received, found neither")
    for field, name in (("sum_sent", "sender"), ("sum_received", "receiver")):
        if field in end:
            side = document.mapping(end[field], f"/end/{field}")
            rate = document.number(side.get("bits_per_second"), f"/end/{field}/bits_per_second", lowest=0)
            if rate is not None:
                metrics.append(Metric(f"iperf3.{protocol}.{name}.bps", (rate,), "bit/s", HIGHER))
    sent, received = (end.get(name) for name in ("sum_sent", "sum"))
    for part, field, unit in (
        (sent, "retransmits", ""),
        (received, "jitter_ms", "ms"),
        (received, "lost_percent", "%"),
    ):
        if isinstance(part, dict) and field in part:
            number = document.number(part[field], f"/end, {field}", lowest=0)
            if number is not None:
                metrics.append(Metric(f"iperf3.{protocol}.{field}", (number,), unit, LOWER))
    system = str(start.get("system_info", "")).split()
    return Reading(
        (Test("iperf3", params, tuple(metrics)),),
        tool=str(start["version"])[:80],
        kernel=system[2][:100] if len(system) > 2 and system[0] == "Linux" else "",
        machine=system[1][:200] if len(system) > 2 else "",
    )
