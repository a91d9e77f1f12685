// Gantt charts to zoom, in place of their picture: explore(figure) makes those of a figure from its
// data, which are those of optsched.report.pictures.gantt. Charts of one figure show the same time,
// and a job that is chosen in one is marked in all; it has the color of its number in all of them.
const DAY = 86400;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200]
  .concat([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((days) => days * DAY));
const MARGIN = { left: 56, right: 8, top: 8, bottom: 34 };
const SHORTEST = 10;  // seconds that can be seen at once

class GanttChart {
  constructor(figure, data) {
    this.figure = figure;
    this.data = data;
    this.rectangles = [];
    data.places.forEach((places, row) => {
      for (const interval of places.split(" ").filter(Boolean)) {
        const [low, high] = interval.split("-").map(Number);
        this.rectangles.push({ row, low, high: (high ?? low) + 1 });
      }
    });
    this.height = this.rectangles.reduce((most, { high }) => Math.max(most, high), 1);
    this.chosen = -1;  // row of a job
    this.area = { width: 1, height: 1 };
    this.build();
    this.show({ begin: data.view[0], end: data.view[1], low: 0, high: this.height });
  }

  build() {
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", `Gantt chart${this.data.name ? ` of ${this.data.name}` : ""}. ${this.data.about}. Arrow keys move, plus `
      + "and minus zoom the time, Shift with up and down zooms the processors, N and P choose the next and the previous job, 0 shows all.");
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.setAttribute("role", "status");
    this.tip.hidden = true;
    this.panel = document.createElement("div");
    this.panel.className = "panel";
    this.panel.append(this.canvas, this.tip);
    this.canvas.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    this.canvas.addEventListener("pointerdown", (event) => this.onDown(event));
    this.canvas.addEventListener("pointermove", (event) => this.onMove(event));
    this.canvas.addEventListener("pointerup", () => { this.grabbed = null; });
    this.canvas.addEventListener("pointercancel", () => { this.grabbed = null; });
    this.canvas.addEventListener("pointerleave", () => { if (!this.grabbed) this.choose(-1); });
    new ResizeObserver(() => this.draw()).observe(this.panel);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  others() {
    return GanttChart.all.filter((other) => other !== this && other.figure === this.figure);
  }

  // Show a part of the chart, and the same time in the other charts of the figure.
  show(view) {
    this.set(view);
    const { begin, end } = this.view;
    this.others().forEach((other) => other.set({ ...other.view, begin, end }));
  }

  set({ begin, end, low, high }) {
    const [first, last] = this.data.period;
    [begin, end] = within(begin, end, first, last, SHORTEST);
    [low, high] = within(low, high, 0, this.height, Math.min(4, this.height));
    this.view = { begin, end, low, high };
    this.draw();
  }

  showAll() {
    this.show({ begin: this.data.period[0], end: this.data.period[1], low: 0, high: this.height });
  }

  move(time, processors) {
    const { begin, end, low, high } = this.view;
    const [dt, dp] = [time * (end - begin), processors * (high - low)];
    this.show({ begin: begin + dt, end: end + dt, low: low + dp, high: high + dp });
  }

  // Zoom the time by a factor, with the time at a share of the width in its place.
  zoom(factor, share = 0.5) {
    const { begin, end } = this.view;
    const at = begin + share * (end - begin);
    this.show({ ...this.view, begin: at - (at - begin) / factor, end: at + (end - at) / factor });
  }

  zoomProcessors(factor, share = 0.5) {
    const { low, high } = this.view;
    const at = low + share * (high - low);
    this.show({ ...this.view, low: at - (at - low) / factor, high: at + (high - at) / factor });
  }

  x(time) {
    return MARGIN.left + (time - this.view.begin) / (this.view.end - this.view.begin) * this.area.width;
  }

  y(processor) {
    return MARGIN.top + (this.view.high - processor) / (this.view.high - this.view.low) * this.area.height;
  }

  draw() {
    const { clientWidth, clientHeight } = this.canvas;
    if (!clientWidth) return;
    this.area = {
      width: Math.max(clientWidth - MARGIN.left - MARGIN.right, 1),
      height: Math.max(clientHeight - MARGIN.top - MARGIN.bottom, 1),
    };
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = clientWidth * scale;
    this.canvas.height = clientHeight * scale;
    const pen = this.canvas.getContext("2d");
    const style = getComputedStyle(this.figure);
    const [paper, ink, gray, faint] = ["paper", "ink", "gray", "faint"].map((name) => style.getPropertyValue(`--${name}`));
    const fills = matchMedia("(prefers-color-scheme: dark)").matches ? this.data.dark : this.data.fills;
    pen.scale(scale, scale);
    pen.font = `12px ${style.fontFamily}`;
    this.drawAxes(pen, gray, faint);
    pen.save();
    pen.beginPath();
    pen.rect(MARGIN.left, MARGIN.top, this.area.width, this.area.height);
    pen.clip();
    const { begin, end, low, high } = this.view;
    for (const one of this.rectangles) {
      const [from, until] = this.times(one.row);
      if (until <= begin || from >= end || one.high <= low || one.low >= high) continue;
      const [left, top] = [this.x(from), this.y(one.high)];
      const [width, height] = [this.x(until) - left, this.y(one.low) - top];
      pen.fillStyle = fills[this.data.job[one.row] % fills.length];
      pen.fillRect(left, top, Math.max(width, 0.5), Math.max(height, 0.5));
      if (one.row === this.chosen) {
        pen.strokeStyle = ink;
        pen.lineWidth = 2;
        pen.strokeRect(left + 1, top + 1, Math.max(width - 2, 1), Math.max(height - 2, 1));
      } else if (width > 3 && height > 3) {
        pen.strokeStyle = paper;
        pen.lineWidth = 0.7;
        pen.strokeRect(left, top, width, height);
      }
      const text = String(this.data.job[one.row]);
      const [first, last] = [Math.max(left, MARGIN.left), Math.min(left + width, MARGIN.left + this.area.width)];
      if (height > 13 && last - first > 8 * text.length + 6) {
        pen.fillStyle = ink;
        pen.textAlign = "center";
        pen.textBaseline = "middle";
        pen.fillText(text, (first + last) / 2, top + height / 2);
      }
    }
    pen.restore();
  }

  drawAxes(pen, gray, faint) {
    const { begin, end, low, high } = this.view;
    const bottom = MARGIN.top + this.area.height;
    pen.strokeStyle = faint;
    pen.fillStyle = gray;
    pen.lineWidth = 1;
    const label = (text, x, y, align, baseline) => {
      pen.textAlign = align;
      pen.textBaseline = baseline;
      pen.fillText(text, x, y);
    };
    const line = (...ends) => {
      pen.beginPath();
      pen.moveTo(ends[0], ends[1]);
      pen.lineTo(ends[2], ends[3]);
      pen.stroke();
    };
    const step = STEPS.find((one) => (end - begin) / one <= this.area.width / 110) ?? STEPS.at(-1);
    for (let time = Math.ceil(begin / step) * step; time <= end; time += step) {
      line(this.x(time), MARGIN.top, this.x(time), bottom + 4);
      label(timeLabel(time, step), Math.min(this.x(time), this.canvas.clientWidth - 30), bottom + 6, "center", "top");
    }
    const rows = [1, 2, 5].flatMap((of) => [1, 10, 100, 1e3, 1e4, 1e5].map((power) => of * power)).sort((a, b) => a - b);
    const rise = rows.find((one) => (high - low) / one <= this.area.height / 40) ?? 1e6;
    for (let row = Math.ceil(low / rise) * rise; row <= high; row += rise) {
      label(row.toLocaleString("en"), MARGIN.left - 5, this.y(row), "right", "middle");
    }
    pen.strokeRect(MARGIN.left, MARGIN.top, this.area.width, this.area.height);
    const axes = "days since the first submission; processors upwards";
    const room = this.canvas.clientWidth - pen.measureText(axes).width;
    label(axes, Math.max(0, Math.min(MARGIN.left, room)), bottom + 20, "left", "top");
  }

  times(row) {
    const begin = this.data.begin[row];
    return [begin, begin + this.data.length[row]];
  }

  onWheel(event) {
    const before = { ...this.view };
    const factor = Math.exp(-Math.sign(event.deltaY || event.deltaX) * 0.25);
    if (event.shiftKey) this.zoomProcessors(factor, 1 - (event.offsetY - MARGIN.top) / this.area.height);
    else this.zoom(factor, (event.offsetX - MARGIN.left) / this.area.width);
    const moved = Object.keys(before).some((key) => before[key] !== this.view[key]);
    if (moved) event.preventDefault();  // else the page scrolls on
  }

  onKey(event) {
    const shifted = event.shiftKey;
    const keys = {
      ArrowLeft: () => this.move(-0.2, 0),
      ArrowRight: () => this.move(0.2, 0),
      ArrowUp: () => (shifted ? this.zoomProcessors(1.4) : this.move(0, 0.2)),
      ArrowDown: () => (shifted ? this.zoomProcessors(1 / 1.4) : this.move(0, -0.2)),
      "+": () => this.zoom(1.5),
      "=": () => this.zoom(1.5),
      "-": () => this.zoom(1 / 1.5),
      0: () => this.showAll(),
      n: () => this.step(1),
      p: () => this.step(-1),
      Escape: () => this.choose(-1),
    };
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  onDown(event) {
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.grabbed = { x: event.offsetX, y: event.offsetY, view: { ...this.view } };
    this.onMove(event);
  }

  onMove(event) {
    if (this.grabbed) {
      const { x, y, view } = this.grabbed;
      const dt = (x - event.offsetX) / this.area.width * (view.end - view.begin);
      const dp = (event.offsetY - y) / this.area.height * (view.high - view.low);
      this.show({ begin: view.begin + dt, end: view.end + dt, low: view.low + dp, high: view.high + dp });
    }
    const time = this.view.begin + (event.offsetX - MARGIN.left) / this.area.width * (this.view.end - this.view.begin);
    const processor = this.view.high - (event.offsetY - MARGIN.top) / this.area.height * (this.view.high - this.view.low);
    const found = this.rectangles.find(({ row, low, high }) => {
      const [from, until] = this.times(row);
      return low <= processor && processor < high && from <= time && time < until;
    });
    this.choose(found ? found.row : -1, event.offsetX, event.offsetY);
  }

  // Choose the next or the previous job by start; at first the first one in view.
  step(by) {
    const count = this.data.job.length;
    let row = this.chosen + by;
    if (this.chosen < 0) row = this.data.begin.findIndex((begin) => begin >= this.view.begin);
    row = Math.min(Math.max(row, 0), count - 1);
    const [from] = this.times(row);
    const length = this.view.end - this.view.begin;
    if (from < this.view.begin || from > this.view.end) {
      this.show({ ...this.view, begin: from - length / 2, end: from + length / 2 });
    }
    const { high } = this.rectangles.find((one) => one.row === row);
    this.choose(row, this.x(from), Math.max(this.y(high), MARGIN.top));
  }

  mark(row) {
    this.tip.hidden = true;
    if (row === this.chosen) return;
    this.chosen = row;
    this.draw();
  }

  // Mark a job, -1 for none, in all charts of the figure, and tell about it near a place.
  choose(row, x = 0, y = 0) {
    this.mark(row);
    const job = this.data.job[row];
    this.others().forEach((other) => other.mark(row < 0 ? -1 : other.data.job.indexOf(job)));
    if (row < 0) return;
    this.tip.textContent = this.words(row);
    this.tip.hidden = false;
    const { offsetWidth, offsetHeight } = this.tip;
    this.tip.style.left = `${Math.max(0, Math.min(x + 14, this.canvas.clientWidth - offsetWidth))}px`;
    this.tip.style.top = `${y + 14 + offsetHeight > this.canvas.clientHeight ? Math.max(0, y - 14 - offsetHeight) : y + 14}px`;
  }

  words(row) {
    const { job, users, user, processors, wait, length } = this.data;
    const owner = users[user[row]];
    return [
      `job ${job[row]}`,
      owner === "-1" ? "user unknown" : `user ${owner}`,
      processors[row] === 1 ? "1 processor" : `${processors[row].toLocaleString("en")} processors`,
      wait[row] ? `waited ${spoken(wait[row])}` : "started at once",
      `ran for ${spoken(length[row])}`,
    ].join("\n");
  }
}
GanttChart.all = [];

function within(begin, end, first, last, shortest) {
  const length = Math.min(Math.max(end - begin, shortest), last - first);
  const middle = (begin + end) / 2;
  const from = Math.min(Math.max(middle - length / 2, first), last - length);
  return [from, from + length];
}

function spoken(seconds) {
  const [unit, name] = [[DAY, "day"], [3600, "hour"], [60, "minute"]].find(([one]) => seconds >= one) ?? [1, "second"];
  const amount = String(Number((seconds / unit).toPrecision(3)));
  return `${amount} ${name}${amount === "1" ? "" : "s"}`;
}

function timeLabel(time, step) {
  const day = Math.floor(time / DAY);
  if (step >= DAY) return day.toLocaleString("en");
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  const rest = time - day * DAY;
  const seconds = step < 60 ? `:${two(rest % 60)}` : "";
  return `${day} d ${two(rest / 3600)}:${two(rest % 3600 / 60)}${seconds}`;
}

function dataOf(figure) {
  return JSON.parse(figure.querySelector("script").textContent);
}

function explore(figure) {
  const charts = dataOf(figure).map((data) => new GanttChart(figure, data));
  GanttChart.all.push(...charts);
  const named = ({ data, panel }) => {
    const name = document.createElement("div");
    name.className = "chart-name";
    name.textContent = data.name;
    return data.name ? [name, panel] : [panel];
  };
  figure.querySelector(".box").replaceWith(...charts.flatMap(named));
  charts.forEach((chart) => chart.draw());
  return charts[0];
}

function addControls(figure) {
  const bar = document.createElement("div");
  bar.className = "controls";
  const add = (text, label, act) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.setAttribute("aria-label", label);
    button.addEventListener("click", act);
    bar.append(button);
    return button;
  };
  const label = dataOf(figure).length > 1 ? "Zoom in these charts" : "Zoom in this chart";
  const begin = add(label, label, () => {
    const chart = explore(figure);
    begin.remove();
    add("+", "Zoom in", () => chart.zoom(1.5));
    add("\u2212", "Zoom out", () => chart.zoom(1 / 1.5));
    add("\u2190", "Earlier", () => chart.move(-0.5, 0));
    add("\u2192", "Later", () => chart.move(0.5, 0));
    add("All", "Show all", () => chart.showAll());
    const help = document.createElement("small");
    help.textContent = `${chart.data.about}. Drag, wheel (with Shift: processors), or keys: arrows, + and \u2212, N and P for jobs.`;
    bar.append(help);
    chart.canvas.focus({ preventScroll: true });
  });
  figure.querySelector("figcaption").before(bar);
}
document.querySelectorAll("figure.gantt").forEach(addControls);
