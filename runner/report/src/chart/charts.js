// Makes the charts of a page interactive. A chart is a `figure[data-chart]` with a drawing, a legend, and its data as JSON
// (`data.rs`). uPlot draws in the place of the drawing once it comes into view: zoom, values under the cursor, lines that can
// be switched off. Charts of a group share range, cursor and lines. `setUpCharts(element)` does it for what a page replaces.
(() => {
  "use strict";
  const DAY = 86400;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const font = (size) => `${size}px system-ui, sans-serif`;
  // What the reader chose, by group or chart: the range, and by name the lines that are shown.
  const ranges = new Map();
  const choices = new Map();
  let plots = [];

  const decimals = (step) => {
    let digits = 0;
    while (digits < 8 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6 * step * 10 ** digits) digits++;
    return digits;
  };
  const value = (y, unit, digits = 4) => {
    if (y == null) return "–";
    const size = Math.abs(y);
    if (unit === "percent") return `${value(100 * y, "plain", 3)} %`;
    if (unit === "money" && size >= 100) return Math.round(y).toLocaleString("en-US").replace("-", "−");
    if (size > 0 && (size < 1e-4 || size >= 1e9)) return y.toExponential(2).replace(/-/g, "−");
    return y.toLocaleString("en-US", { maximumSignificantDigits: size >= 1000 ? 6 : digits }).replace("-", "−");
  };
  const ticks = (unit) => (plot, splits, axis, space, step) => {
    const most = Math.max(...splits.map(Math.abs));
    const [scale, suffix] = unit === "percent" ? [100, " %"] : most >= 1e6 ? [1e-6, "M"] : most >= 1e4 ? [1e-3, "k"] : [1, ""];
    if (scale * step < 1e-6) return splits.map((y) => value(y));
    const label = (y) => `${(y * scale).toFixed(decimals(step * scale)).replace("-", "−")}${suffix}`;
    return splits.map((y) => (Math.abs(y) < 1e-6 * step ? (unit === "percent" ? "0 %" : "0") : label(y)));
  };
  const iso = (seconds, length) => new Date(1000 * seconds).toISOString().slice(0, length).replace("T", " ");
  const dates = (plot, splits, axis, space, step) => splits.map((x) => iso(x, step >= 360 * DAY ? 4 : step >= 28 * DAY ? 7 : step >= DAY ? 10 : 16));

  const build = (figure) => {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const drawing = figure.querySelector("svg");
    const isDays = data.axis === "days";
    const xs = data.x.map((steps) => { let at = 0; return steps.map((step) => (at += step, isDays ? Math.round(at * DAY) : at)); });
    const key = data.group || keyOf(figure);
    const choice = choices.get(key) ?? new Map();
    choices.set(key, choice);

    // The policy comes last in the data, and is drawn over the others; `lines` stands in the legend's order.
    const lines = data.series.map((line, at) => ({ ...line, at }));
    for (const line of lines) {
      if (!choice.has(line.name)) choice.set(line.name, line.show);
      line.show = choice.get(line.name);
    }
    const tables = [];
    const series = [{}];
    const bands = [];
    for (const line of [...lines].sort((a, b) => (a.colour === "policy") - (b.colour === "policy"))) {
      line.columns = [];
      if (line.band) {
        tables.push([xs[line.band.x], line.band.low, line.band.high]);
        line.columns.push(series.length, series.length + 1);
        bands.push({ series: [series.length + 1, series.length], fill: () => `${colour(line.colour)}26` });
        series.push(...[0, 1].map(() => ({ show: line.show, width: 0, stroke: "transparent", points: { show: false } })));
      }
      if (line.y.length) {
        line.column = series.length;
        line.columns.push(series.length);
        tables.push([xs[line.x], line.y]);
        series.push({ show: line.show, width: line.width, dash: line.dash, stroke: () => colour(line.colour),
          points: { show: line.y.length < 3, size: 5, stroke: () => colour(line.colour), fill: () => colour(line.colour) } });
      }
    }
    const columns = uPlot.join(tables);
    const visible = () => lines.filter((line) => line.show && line.column);
    // The value of a line at a row, or the last one before it: rows of other lines lie between.
    const valueAt = (line, row) => {
      const values = columns[line.column];
      let at = row;
      while (at > 0 && values[at] === undefined) at--;
      return values[at];
    };

    // Names at the right ends of few lines.
    const named = () => { const all = visible(); return all.length > 1 && all.length <= 4 && figure.clientWidth > 420 ? all : []; };
    const short = (name) => (name.length > 18 ? `${name.slice(0, 17)}…` : name);
    const measure = Object.assign(document.createElement("canvas").getContext("2d"), { font: font(11) });
    const room = () => Math.max(10, ...named().map((line) => measure.measureText(short(line.name)).width + 12));
    const names = (plot) => {
      const ends = named().map((line) => [line, valueAt(line, plot.series[0].idxs?.[1] ?? columns[0].length - 1)]).filter(([, y]) => y != null);
      const places = ends.map(([line, y]) => ({ line, y: plot.valToPos(y, "y", true) })).sort((a, b) => a.y - b.y);
      const { left, top, width, height } = plot.bbox;
      const gap = 13 * devicePixelRatio;
      plot.ctx.save();
      plot.ctx.font = font(11 * devicePixelRatio);
      plot.ctx.fillStyle = colour("fg");
      plot.ctx.textAlign = "left";
      plot.ctx.textBaseline = "middle";
      let free = top;
      places.forEach((place, i) => {
        const most = top + height - (places.length - 1 - i) * gap;
        const y = Math.max(free, Math.min(place.y, most));
        free = y + gap;
        plot.ctx.fillText(short(place.line.name), left + width + 6 * devicePixelRatio, y);
      });
      plot.ctx.restore();
    };

    // The values under the cursor.
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.role = "status";
    tip.hidden = true;
    const sample = (line) => figure.querySelectorAll(".legend .key")[line.at]?.cloneNode(true) ?? "";
    const showTip = (plot) => {
      const row = plot.cursor.idx;
      tip.hidden = row == null || plot.cursor.left < 0;
      if (tip.hidden) return;
      const x = columns[0][row];
      const head = document.createElement("b");
      head.textContent = isDays ? iso(x, x % DAY ? 16 : 10) : x.toLocaleString("en-US");
      const rows = visible().map((line) => [line, valueAt(line, row)]).sort((a, b) => (b[1] ?? -Infinity) - (a[1] ?? -Infinity));
      tip.replaceChildren(head, ...rows.map(([line, y]) => {
        const entry = document.createElement("span");
        const shown = document.createElement("i");
        shown.textContent = value(y, data.unit);
        entry.append(sample(line), lines.length > 1 ? line.name : "", shown);
        return entry;
      }));
      const isRight = plot.cursor.left > plot.over.clientWidth / 2;
      const at = plotElement.offsetLeft + plot.over.offsetLeft + plot.cursor.left + (isRight ? -12 - tip.offsetWidth : 12);
      tip.style.left = `${Math.max(0, at)}px`;
      tip.style.top = `${plotElement.offsetTop + plot.over.offsetTop + 4}px`;
    };

    const size = () => {
      const width = plotElement.clientWidth;
      return { width, height: Math.round(Math.max(180, Math.min(420, (data.height * width) / 640))) };
    };
    const plotElement = document.createElement("div");
    plotElement.className = "plot";
    plotElement.tabIndex = 0;
    plotElement.role = "img";
    plotElement.ariaLabel = `${drawing.ariaLabel}. Arrow keys move the cursor, plus and minus zoom.`;
    drawing.replaceWith(plotElement);
    plotElement.after(tip);

    const axis = (values, more) => ({ stroke: () => colour("dim"), font: font(11), values, grid: { stroke: () => colour("line"), width: 1 },
      ticks: { show: false }, ...more });
    const full = [columns[0][0], columns[0].at(-1)];
    const plot = new uPlot({
      ...size(), series, bands,
      tzDate: (seconds) => uPlot.tzDate(new Date(1000 * seconds), "Etc/UTC"),
      padding: [10, room, 0, 0],
      scales: { x: { time: isDays } },
      axes: [axis(isDays ? dates : ticks("plain"), { size: 24, space: 62 }), axis(ticks(data.unit), { size: 56, space: 32 })],
      legend: { show: false },
      cursor: { y: false, points: { size: 6 }, drag: { x: true, y: false, uni: 10 },
        ...(data.group && { sync: { key: data.group, setSeries: false, scales: ["x", null] } }) },
      hooks: {
        setCursor: [showTip], draw: [names],
        setScale: [(plot, scale) => {
          if (scale !== "x") return;
          const { min, max } = plot.scales.x;
          if (min > full[0] || max < full[1]) ranges.set(key, { min, max });
          else ranges.delete(key);
          for (const other of plots) if (other.choice === choice && other.plot !== plot) other.follow();
        }],
      },
    }, columns, plotElement);
    const zoom = (min, max) => plot.setScale("x", { min: Math.max(full[0], min), max: Math.min(full[1], max) });
    // The range of the group, or all.
    const follow = () => {
      const { min, max } = ranges.get(key) ?? { min: full[0], max: full[1] };
      const now = plot.scales.x;
      if (Math.max(full[0], min) !== now.min || Math.min(full[1], max) !== now.max) zoom(min, max);
    };
    if (ranges.has(key)) follow();

    // The keyboard.
    plotElement.addEventListener("keydown", (event) => {
      const [first, last] = plot.series[0].idxs;
      const { min, max } = plot.scales.x;
      const row = plot.cursor.idx;
      const go = { ArrowLeft: (row ?? last + 1) - 1, ArrowRight: (row ?? first - 1) + 1, Home: first, End: last }[event.key];
      const scale = { "+": 0.25, "-": 1 }[event.key];
      if (go != null) {
        const at = columns[0][Math.max(first, Math.min(last, go))];
        plot.setCursor({ left: plot.valToPos(at, "x"), top: 10 }, true, true);
      } else if (scale) {
        const middle = row == null ? (min + max) / 2 : columns[0][row];
        zoom(middle - scale * (max - min), middle + scale * (max - min));
      } else if (event.key === "Escape") {
        plot.setCursor({ left: -10, top: -10 }, true, true);
        zoom(...full);
      } else return;
      event.preventDefault();
    });
    plotElement.addEventListener("blur", () => plot.setCursor({ left: -10, top: -10 }, true, true));

    // The legend: buttons that switch lines off and on.
    const buttons = [...figure.querySelectorAll(".legend > span")].map((span, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...span.childNodes);
      button.addEventListener("click", () => {
        choice.set(lines[at].name, !lines[at].show);
        for (const other of plots) if (other.choice === choice) other.apply();
      });
      span.replaceWith(button);
      return button;
    });
    const apply = () => plot.batch(() => {
      for (const line of lines) {
        line.show = choice.get(line.name);
        for (const column of line.columns) plot.setSeries(column, { show: line.show }, false);
        if (buttons[line.at]) buttons[line.at].ariaPressed = String(line.show);
      }
    });
    apply();
    new ResizeObserver(() => {
      const { width, height } = size();
      if (width > 0 && width !== plot.width) plot.setSize({ width, height });
    }).observe(figure);
    plots.push({ figure, plot, choice, apply, follow });
  };

  const built = new Set();
  const keyOf = (figure) => {
    const same = [...document.querySelectorAll("figure[data-chart]")].filter((other) => other.dataset.chart === figure.dataset.chart);
    return `${figure.dataset.chart} ${same.indexOf(figure)}`;
  };
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) if (isIntersecting) begin(target);
  }, { rootMargin: "300px" });
  const begin = (figure) => {
    observer.unobserve(figure);
    built.add(keyOf(figure));
    if (!figure.querySelector(".plot")) build(figure);
  };
  const setUp = (element) => {
    for (const gone of plots.filter(({ figure }) => !figure.isConnected)) gone.plot.destroy();
    plots = plots.filter(({ figure }) => figure.isConnected);
    for (const figure of element.querySelectorAll("figure[data-chart]")) {
      // What was interactive before it was replaced is so again at once.
      if (built.has(keyOf(figure)) && figure.clientWidth > 0) begin(figure);
      else observer.observe(figure);
    }
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const { plot } of plots) plot.redraw(false); });
  window.setUpCharts = setUp;
  setUp(document);
})();
