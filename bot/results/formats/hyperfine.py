"""hyperfine: the JSON of `--export-json`. Each command is a test, each of its runs a sample. Pure."""

from bot.results.formats.benchmark import LOWER, Document, Metric, Reading, Test

NAME = "hyperfine JSON"


def recognises(document: Document) -> bool:
    value = document.json
    results = value.get("results") if isinstance(value, dict) else None
    return isinstance(results, list) and any(isinstance(part, dict) and "command" in part for part in results)


def read(document: Document) -> Reading:
    tests, seen = [], set()
    for index, element in enumerate(document.sequence(document.json["results"], "/results")):
        place = f"/results/{index}"
        result = document.mapping(element, place)
        if not result:
            continue
        command = document.string(result.get("command"), f"{place}/command")
        given = result.get("parameters", {})
        params = {
            "command": command,
            **{str(name): str(value) for name, value in (given.items() if isinstance(given, dict) else ())},
        }
        if tuple(params.items()) in seen:
            document.fault(
                f"{place}/command", f"the command {command[:60]!r} stands twice: name it with --command-name"
            )
        seen.add(tuple(params.items()))
        codes = result.get("exit_codes")
        for run, code in enumerate(codes if isinstance(codes, list) else ()):
            if code != 0:
                document.fault(f"{place}/exit_codes/{run}", f"the command failed: expected exit code 0, found {code}")
        times = document.numbers(result.get("times"), f"{place}/times")
        runs = result.get("times")
        if isinstance(codes, list) and isinstance(runs, list) and len(codes) != len(runs):
            document.fault(f"{place}/exit_codes", f"expected one for each of {len(runs)} runs, found {len(codes)}")
        for run, seconds in enumerate(times):
            if seconds <= 0:
                document.fault(f"{place}/times/{run}", f"expected seconds above 0, found {seconds:g}")
        metrics = [Metric("hyperfine.time", times, "s", LOWER)]
        for name in ("user", "system"):
            if result.get(name) is not None:
                mean = document.number(result[name], f"{place}/{name}", lowest=0)
                metrics += [Metric(f"hyperfine.{name}_time", (mean,), "s", LOWER)] if mean is not None else []
        tests.append(Test("hyperfine", params, tuple(metrics)))
    return Reading(tuple(tests), tool="hyperfine")
