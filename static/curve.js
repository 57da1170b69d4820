// A curve with hover, zoom and keyboard: replaces the drawn picture, whose numbers it fetches.
"use strict";
(async () => {
  const figure = document.getElementById("drawn");
  const readout = document.getElementById("readout");
  const answer = await fetch(figure.dataset.source);
  const data = answer.ok ? await answer.json() : null; // else the picture stays
  if (!data || data.names.length < 2 || typeof uPlot === "undefined") return;
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  const places = data.names.map((_, place) => place);
  const kinds = { change: "warn", culprit: "bad", fix: "good", release: "soft" };
  const day = (place) => new Date(1000 * data.dates[place]).toISOString().slice(0, 10);
  const shown = (value) => value.toLocaleString("en", { maximumSignificantDigits: 6 });

  function describe(place) {
    const interval = data.runs[place] > 1 ? `, 95% CI ${shown(data.low[place])} to ${shown(data.high[place])}` : "";
    const marks = data.marks.filter((mark) => mark[0] === place).map((mark) => `; ${mark[1]} ${mark[2]}`);
    return `${data.names[place]}, ${day(place)}: ${shown(data.means[place])} ${data.unit}${interval}, ` +
      `${data.runs[place]} run${data.runs[place] === 1 ? "" : "s"}${marks.join("")}`;
  }

  function drawMarks(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.lineWidth = devicePixelRatio;
    for (const [place, kind, label] of data.marks) {
      const x = plot.valToPos(place, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.strokeStyle = ctx.fillStyle = color(kinds[kind] || "soft");
      ctx.setLineDash(kind === "release" ? [4, 4] : []);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.fillText(label, x + 4 * devicePixelRatio, bbox.top + 10 * devicePixelRatio);
    }
    ctx.restore();
  }

  const axis = { stroke: color("soft"), grid: { stroke: color("line") }, ticks: { stroke: color("line") } };
  const options = {
    width: figure.clientWidth,
    height: 340,
    scales: { x: { time: false } },
    cursor: { drag: { x: true, y: false } },
    legend: { show: false },
    axes: [
      { ...axis, space: 90, values: (_, ticks) => ticks.map((each) => (Number.isInteger(each) && data.dates[each] ? day(each) : "")) },
      { ...axis, size: 70, values: (_, ticks) => ticks.map(shown) },
    ],
    series: [
      {},
      { stroke: "transparent", points: { show: false } },
      { stroke: "transparent", points: { show: false } },
      { stroke: color("link"), width: 2, points: { size: 4 } },
    ],
    bands: [{ series: [1, 2], fill: color("here") }],
    hooks: {
      draw: [drawMarks],
      setCursor: [(plot) => { if (plot.cursor.idx != null) readout.textContent = describe(plot.cursor.idx); }],
    },
  };
  const picture = figure.querySelector(".curve");
  const holder = document.createElement("div");
  holder.tabIndex = 0;
  holder.className = "curve live";
  holder.setAttribute("role", "application");
  holder.setAttribute("aria-label", `${data.metric} by build: arrow keys read the builds, drag zooms, Escape shows all`);
  picture.replaceWith(holder);
  document.getElementById("dots").remove(); // the picture had them
  const plot = new uPlot(options, [places, data.high, data.low, data.means], holder);
  addEventListener("resize", () => plot.setSize({ width: figure.clientWidth, height: 340 }));

  let at = places.length - 1;
  holder.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") plot.setScale("x", { min: 0, max: places.length - 1 });
    if (!(event.key in steps)) return;
    event.preventDefault();
    at = Math.max(0, Math.min(places.length - 1, at + steps[event.key]));
    plot.setCursor({ left: plot.valToPos(at, "x"), top: plot.valToPos(data.means[at], "y") });
    readout.textContent = describe(at);
  });
})();
