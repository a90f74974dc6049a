// The partition over its layers: drag a cut, step replicas, split or join stages.
// Every change is sent as {stops, replicas}; the server answers with a prediction.
// Above the seconds of each layer or fold, below its parameters: each with an axis of its own.
const HEAD = 40, PLOT = 186, GAP = 20, HELD = 42, TALL = PLOT + GAP + HELD, LEFT = 52, RIGHT = 14, ROOM = 18;
const FORWARD = "#0072B2", BACKWARD = "#E69F00", NEUTRAL = "#808A98", GRID = "rgba(128,138,152,.18)";
// As the server rounds, also 12.25: the same bytes stand in its tables.
const rounded = [0, 1, 2].map((digits) => new Intl.NumberFormat("en",
  { minimumFractionDigits: digits, maximumFractionDigits: digits, roundingMode: "halfEven" }));
const three = (v) => rounded[v >= 100 ? 0 : v >= 10 ? 1 : 2].format(v);
const scale = (v, steps) => steps.find(([least]) => v >= least) || steps[steps.length - 1];
const TIMES = [[1, 1, "s"], [1e-3, 1e3, "ms"], [1e-6, 1e6, "µs"], [0, 1e9, "ns"]];
const SIZES = [[2 ** 40, 2 ** -40, "TiB"], [2 ** 30, 2 ** -30, "GiB"], [2 ** 20, 2 ** -20, "MiB"],
  [1024, 2 ** -10, "KiB"], [0, 1, "B"]];
const text = (v, steps) => { const [, by, unit] = scale(v, steps); return `${three(v * by)}\u00a0${unit}`; };
const seconds = (v) => text(v, TIMES);
const bytes = (v) => (v < 1024 ? `${v}\u00a0B` : text(v, SIZES));
const sum = (list, first, stop) => { let s = 0; for (let i = first; i < stop; i++) s += list[i]; return s; };
const make = (tag, name, parent) => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  parent.appendChild(made);
  return made;
};
const nice = (top) => {
  const raw = top / 4, power = 10 ** Math.floor(Math.log10(raw || 1));
  return [1, 2, 2.5, 5, 10].map((f) => f * power).find((f) => f >= raw) || power;
};

class Editor {
  constructor(root) {
    this.root = make("div", "editor", root);
    this.canvas = make("canvas", "", this.root);
    this.over = make("div", "", this.root);
    this.tip = make("div", "tip", this.root);
    this.bar = make("div", "bar", this.root);
    this.bar.setAttribute("role", "group");
    this.bar.setAttribute("aria-label", "The chosen stage");
    const legend = make("div", "legend", this.root);
    for (const [colour, word] of [[FORWARD, "forward"], [BACKWARD, "backward"], [NEUTRAL, "parameters (below)"]]) {
      const item = make("span", "", legend);
      make("i", "swatch", item).style.background = colour;
      item.append(word);
    }
    this.chosen = 0;
    this.bands = [];
    this.handles = [];
    this.canvas.setAttribute("role", "img");
    this.root.addEventListener("pointermove", (e) => this.hover(e));
    this.root.addEventListener("pointerleave", () => { this.tip.style.display = "none"; });
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.root);
  }

  show(data, send) {
    this.send = send;
    this.data = data;
    if (!this.held) { this.stops = [...data.stops]; this.replicas = [...data.replicas]; }
    this.canvas.setAttribute("aria-label", data.alt);
    this.chosen = Math.min(this.chosen, this.stops.length - 1);
    this.draw();
  }

  // ---- geometry
  get wide() { return this.root.clientWidth || 800; }
  get step() { return (this.wide - LEFT - RIGHT) / this.data.at[this.data.names.length]; }
  get foot() { return this.slanted ? 20 + this.widest * 0.72 : 24; }
  unit(units) { return LEFT + units * this.step; }
  x(layer) { return this.unit(this.data.at[layer]); }
  layer(x) {  // the one that is drawn there
    const { at } = this.data, units = (x - LEFT) / this.step;
    let i = at.findIndex((end) => end > units) - 1;
    return i < -1 ? at.length : i;
  }
  barOf(layer) { return this.data.bars.find((bar) => layer < bar.stop); }
  first(stage) { return stage ? this.stops[stage - 1] : 0; }
  load(stage) {
    return sum(this.data.forward, this.first(stage), this.stops[stage]) + sum(this.data.backward, this.first(stage), this.stops[stage]);
  }

  // ---- changes
  within(first, stop) { return this.data.marks.filter((mark) => first < mark && mark < stop); }
  near(cut, x) {  // the end of a block next to the pointer
    const far = (mark) => Math.abs(this.x(mark) - x), open = this.within(this.first(cut), this.stops[cut + 1]);
    return open.reduce((best, mark) => (far(mark) < far(best) ? mark : best), open[0]);
  }
  beside(cut, by) {  // so many ends of blocks further on
    const open = this.within(this.first(cut), this.stops[cut + 1]), now = this.stops[cut];
    const ahead = by > 0 ? open.filter((mark) => mark > now) : open.filter((mark) => mark < now).reverse();
    return ahead[Math.min(Math.abs(by), ahead.length) - 1];
  }
  move(cut, now) {
    if (now === undefined || now === this.stops[cut]) return false;
    this.stops[cut] = now;
    this.draw();
    return true;
  }
  commit() { this.send({ stops: this.stops, replicas: this.replicas }); }
  add(stage, by) {
    const { holders } = this.data;
    this.stops.forEach((_, s) => { if (s === stage || holders[s] === holders[stage]) this.replicas[s] += by; });
    this.draw();
    this.commit();
  }
  split(stage) {
    const first = this.first(stage), half = this.load(stage) / 2;
    const every = Array.from({ length: this.stops[stage] - first - 1 }, (_, n) => first + 1 + n);
    const ends = this.within(first, this.stops[stage]), open = ends.length ? ends : every;
    const before = (stop) => sum(this.data.forward, first, stop) + sum(this.data.backward, first, stop);
    const cut = open.find((stop) => before(stop) >= half) || open[open.length - 1];
    const extra = this.replicas[stage] > 1 ? Math.floor(this.replicas[stage] / 2) : 1;
    if (this.replicas[stage] > 1) this.replicas[stage] -= extra;
    this.stops.splice(stage, 0, cut);
    this.replicas.splice(stage + 1, 0, extra);
    this.draw();
    this.commit();
  }
  join(stage) {
    this.stops.splice(stage, 1);
    this.replicas[stage] += this.replicas[stage + 1];
    this.replicas.splice(stage + 1, 1);
    this.draw();
    this.commit();
  }

  // ---- drawing
  draw() {
    if (!this.data) return;
    const ratio = window.devicePixelRatio || 1, family = getComputedStyle(this.root).fontFamily;
    this.measure(this.canvas.getContext("2d"), family);
    const tall = HEAD + TALL + this.foot;
    this.canvas.width = this.wide * ratio;
    this.canvas.height = tall * ratio;
    this.canvas.style.height = `${tall}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.clearRect(0, 0, this.wide, tall);
    const ink = getComputedStyle(this.root).color;
    this.paintBands(pen);
    this.paintBars(pen, ink, family);
    this.paintFolds(pen, ink);
    this.paintNames(pen, ink, family);
    this.place();
    this.tools();
  }
  paintBands(pen) {
    this.stops.forEach((stop, stage) => {
      pen.globalAlpha = stage === this.chosen ? 0.35 : 0.16;
      pen.fillStyle = this.data.hues[stage % this.data.hues.length];
      pen.fillRect(this.x(this.first(stage)), HEAD, this.x(stop) - this.x(this.first(stage)), TALL);
    });
    pen.globalAlpha = 1;
  }
  paintBars(pen, ink, family) {
    const { forward, backward, bars } = this.data;
    const top = 1.12 * Math.max(1e-12, ...bars.map((bar) => bar.most));
    const [, by, unit] = scale(top, TIMES), base = HEAD + PLOT;
    const y = (v) => base - (v / top) * PLOT;
    pen.font = `11px ${family}`;
    pen.fillStyle = ink;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (let tick = 0, gap = nice(top * by); tick <= top * by; tick += gap) {
      pen.globalAlpha = 0.75;
      pen.fillText(String(+tick.toPrecision(3)), LEFT - 6, y(tick / by));
      pen.globalAlpha = 1;
      pen.fillStyle = GRID;
      pen.fillRect(LEFT, y(tick / by), this.wide - LEFT - RIGHT, 1);
      pen.fillStyle = ink;
    }
    pen.globalAlpha = 0.75;
    pen.fillText(unit, LEFT - 6, HEAD - 8);
    pen.globalAlpha = 1;
    bars.forEach((bar) => {
      const { first, stop, count } = bar, [x, thick] = this.column(bar), share = PLOT / top / count;
      const f = sum(forward, first, stop) * share, b = sum(backward, first, stop) * share;
      pen.fillStyle = FORWARD;
      pen.fillRect(x, base - f, thick, f);
      pen.fillStyle = BACKWARD;
      pen.fillRect(x, base - f - b, thick, b);
    });
    this.top = top;
    this.paintParameters(pen, ink, bars.map((bar) => sum(this.data.parameters, bar.first, bar.stop) / bar.count));
  }
  column({ first, stop }) {  // where the bar of a layer or fold begins, and its width
    const room = this.x(stop) - this.x(first), thick = Math.max(0.8, room - this.step * 0.22);
    return [this.x(first) + (room - thick) / 2, thick];
  }
  paintFolds(pen, ink) {  // how blocks are shared over the stages, and how far they differ
    const base = HEAD + PLOT, y = (v) => base - (v / this.top) * PLOT;
    pen.textAlign = "center";
    for (const { first, stop, count, least, most } of this.data.bars) {
      if (count === 1) continue;
      const forward = PLOT * sum(this.data.forward, first, stop) / this.top / count;
      const backward = PLOT * sum(this.data.backward, first, stop) / this.top / count;
      const [colour, up] = Math.max(forward, backward) < 16 ? [ink, base - y(most) + 10]
        : forward >= 16 ? ["#FFFFFF", forward / 2] : ["#1B2430", forward + backward / 2];
      pen.fillStyle = ink;
      const size = (stop - first) / count, block = (this.x(stop) - this.x(first)) / count;
      pen.globalAlpha = 0.55;
      if (block >= 3) for (let n = 0; n <= count; n++) pen.fillRect(this.x(first) + n * block - 0.5, base, 1, 4);
      pen.globalAlpha = 1;
      this.stops.forEach((end, stage) => {
        const from = Math.max(first, this.first(stage)), to = Math.min(stop, end);
        if (from >= to) return;
        const room = this.x(to) - this.x(from) - 16, middle = (this.x(from) + this.x(to)) / 2;
        const number = +((to - from) / size).toFixed(1), words = [`${number} of ${count} blocks`, `${number} ×`, `${number}`];
        const text = words.find((word) => pen.measureText(word).width <= room);
        pen.fillStyle = colour;
        if (text) pen.fillText(text, middle, base - up);
        pen.fillStyle = ink;
        if (most > least) {
          const x = Math.round(middle);
          pen.fillRect(x - 0.5, y(most), 1, y(least) - y(most));
          for (const v of [least, most]) pen.fillRect(x - 3, y(v) - 0.5, 6, 1);
        }
      });
    }
    pen.globalAlpha = 1;
  }
  paintParameters(pen, ink, parameters) {
    const most = Math.max(...parameters);
    if (!most) return;
    const [, by, unit] = scale(most, SIZES), base = HEAD + TALL;
    pen.fillStyle = NEUTRAL;
    this.data.bars.forEach((bar, n) => {
      const [x, thick] = this.column(bar), high = (parameters[n] / most) * HELD;
      pen.fillRect(x, base - high, thick, high);
    });
    pen.fillStyle = GRID;
    for (const y of [base, base - HELD]) pen.fillRect(LEFT, y, this.wide - LEFT - RIGHT, 1);
    pen.textAlign = "right";
    pen.fillStyle = ink;
    pen.globalAlpha = 0.75;
    pen.fillText(unit, LEFT - 6, base);
    pen.fillText(three(most * by), LEFT - 6, base - HELD);
    pen.globalAlpha = 1;
  }
  measure(pen, family) {  // which labels have room, and how
    const { places, labels } = this.data;
    pen.font = `11px ${family}`;
    const wide = labels.map((label) => pen.measureText(label).width), at = places.map((place) => this.unit(place + 0.5));
    this.widest = Math.max(0, ...wide);
    this.slanted = at.some((x, n) => n && x - at[n - 1] < (wide[n] + wide[n - 1]) / 2 + 8);
    this.shown = [];
    at.forEach((x, n) => {
      if (!this.slanted || !this.shown.length || x - at[this.shown[this.shown.length - 1]] >= ROOM) this.shown.push(n);
    });
  }
  fit(pen, label, room) {  // the end of it, where its beginning would be outside
    const has = (text) => pen.measureText(text).width * Math.SQRT1_2 <= room - 2;
    let at = 0;
    while (at < label.length && !has(at ? `…${label.slice(at)}` : label)) at++;
    return at ? `…${label.slice(at)}` : label;
  }
  paintNames(pen, ink, family) {
    const { places, labels } = this.data;
    pen.font = `11px ${family}`;
    pen.fillStyle = ink;
    pen.globalAlpha = 0.8;
    for (const n of this.shown) {
      pen.save();
      pen.translate(this.unit(places[n] + 0.5), HEAD + TALL + 10);
      if (this.slanted) pen.rotate(-Math.PI / 4);
      pen.textAlign = this.slanted ? "right" : "center";
      pen.fillText(this.slanted ? this.fit(pen, labels[n], this.unit(places[n] + 0.5)) : labels[n], 0, 0);
      pen.restore();
    }
    pen.globalAlpha = 1;
  }
  place() {
    const pool = (list, count, build) => {
      while (list.length < count) list.push(build(list.length));
      while (list.length > count) list.pop().remove();
    };
    pool(this.bands, this.stops.length, (n) => this.band(n));
    pool(this.handles, this.stops.length - 1, (n) => this.handle(n));
    this.bands.forEach((band, stage) => this.placeBand(band, stage));
    this.handles.forEach((handle, cut) => this.placeHandle(handle, cut));
  }
  placeBand(band, stage) {
    const left = this.x(this.first(stage)), wide = this.x(this.stops[stage]) - left;
    const many = this.replicas[stage] > 1;
    Object.assign(band.style, { left: `${left}px`, width: `${wide}px`, height: `${HEAD - 2}px` });
    band.setAttribute("aria-pressed", stage === this.chosen);
    band.setAttribute("aria-label", `Stage ${stage}, ${this.replicas[stage]} replicas, ${seconds(this.load(stage))} of compute`);
    const second = wide > 130 && many ? `${this.replicas[stage]} replicas · ${seconds(this.load(stage))}`
      : many ? `×${this.replicas[stage]}` : wide > 62 ? seconds(this.load(stage)) : "";
    band.replaceChildren();
    make("b", "", band).textContent = wide > 56 ? `Stage ${stage}` : String(stage);
    make("br", "", band);
    band.append(second);
  }
  placeHandle(handle, cut) {
    const sent = bytes(this.data.cuts[this.stops[cut] - 1]);
    Object.assign(handle.style, { left: `${this.x(this.stops[cut])}px`, top: `${HEAD}px`, height: `${TALL}px` });
    const most = this.stops[cut + 1] - 1;
    handle.setAttribute("aria-valuemin", this.first(cut) + 1);
    handle.setAttribute("aria-valuemax", most);
    handle.setAttribute("aria-valuenow", this.stops[cut]);
    handle.setAttribute("aria-valuetext", `behind ${this.data.names[this.stops[cut] - 1]}${this.block(this.stops[cut])}, sends ${sent} per microbatch`);
    const next = cut + 1 < this.handles.length ? this.x(this.stops[cut + 1]) : this.wide;
    handle.firstChild.textContent = this.stops.length <= 8 && next - this.x(this.stops[cut]) > 74 ? `✂ ${sent}` : "";
    handle.classList.toggle("last", this.x(this.stops[cut]) > this.wide - RIGHT - 60);
  }
  block(stop) {  // where in a fold a cut is
    const { first, stop: end, count } = this.barOf(stop - 1), size = (end - first) / count;
    if (count === 1 || stop === end) return "";
    const whole = Math.floor((stop - first) / size), rest = (stop - first) % size;
    return `, ${whole} of ${count} blocks${rest ? ` and ${rest} of ${size} layers` : ""}`;
  }
  band(stage) {
    const band = make("button", "band", this.over);
    band.type = "button";
    band.onclick = () => { this.chosen = stage; this.draw(); };
    return band;
  }
  handle(cut) {
    const handle = make("div", "handle", this.over);
    make("span", "", handle);
    handle.tabIndex = 0;
    handle.setAttribute("role", "slider");
    handle.setAttribute("aria-label", `Cut behind stage ${cut}`);
    handle.onpointerdown = (e) => {
      handle.setPointerCapture(e.pointerId);
      handle.classList.add("held");
      this.held = true;
      handle.focus();
      e.preventDefault();
    };
    handle.onpointermove = (e) => {
      if (!this.held || !handle.hasPointerCapture(e.pointerId)) return;
      const left = this.root.getBoundingClientRect().left;
      if (this.move(cut, this.near(cut, e.clientX - left))) this.moved = true;
    };
    handle.onpointerup = handle.onpointercancel = () => {
      handle.classList.remove("held");
      this.held = false;
      if (this.moved) this.commit();
      this.moved = false;
    };
    handle.onkeydown = (e) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -5, PageUp: 5, Home: -1e6, End: 1e6 }[e.key];
      if (!by) return;
      e.preventDefault();
      if (!this.move(cut, this.beside(cut, by))) return;
      clearTimeout(this.later);
      this.later = setTimeout(() => this.commit(), 80);
    };
    return handle;
  }
  tools() {
    const stage = this.chosen, { names, chunks, devices } = this.data;
    const used = sum(this.replicas, 0, this.stops.length / chunks), focused = this.root.getRootNode().activeElement;
    const word = focused && this.bar.contains(focused) ? focused.dataset.word : "";
    const frozen = sum(this.data.frozen, this.first(stage), this.stops[stage]);
    this.bar.replaceChildren();
    const what = make("span", "grow", this.bar);
    make("i", "swatch", what).style.background = this.data.hues[stage % this.data.hues.length];
    make("b", "", what).textContent = `Stage ${stage}`;
    what.append(`: ${names[this.first(stage)]} to ${names[this.stops[stage] - 1]} · ${seconds(this.load(stage))} · ` +
      `${bytes(sum(this.data.parameters, this.first(stage), this.stops[stage]))} of parameters` +
      (frozen ? `, ${bytes(frozen)} frozen` : ""));
    const button = (label, title, can, act, parent) => {
      const made = make("button", "", parent);
      made.type = "button";
      made.textContent = label;
      made.title = title;
      made.dataset.word = title;
      made.setAttribute("aria-label", title);
      made.disabled = !can;
      made.onclick = act;
      if (title === word) made.focus();
    };
    const tools = make("span", "tools", this.bar), steps = make("span", "step", tools);
    steps.append("Replicas ");
    button("−", "One replica less", this.replicas[stage] > 1, () => this.add(stage, -1), steps);
    make("output", "", steps).textContent = this.replicas[stage];
    button("+", "One replica more", used < devices, () => this.add(stage, 1), steps);
    make("span", "", tools).textContent = `${used} of ${devices} devices`;
    const long = this.stops[stage] - this.first(stage) > 1;
    button("✂ Split", "Split this stage", chunks === 1 && long && (used < devices || this.replicas[stage] > 1), () => this.split(stage), tools);
    button("Join next", "Join this stage with the next", chunks === 1 && stage < this.stops.length - 1, () => this.join(stage), tools);
  }
  hover(e) {
    const box = this.root.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
    const d = this.data, i = d ? this.layer(x) : -1;
    const inside = d && !this.held && i >= 0 && i < d.names.length && y > HEAD && y < HEAD + TALL;
    this.tip.style.display = inside ? "block" : "none";
    if (!inside) return;
    const bar = this.barOf(i), { first, stop, count } = bar, size = (stop - first) / count;
    const all = sum(d.forward, first, stop) + sum(d.backward, first, stop), far = `${seconds(bar.least)} to ${seconds(bar.most)}`;
    if (stop - first > 1) this.tip.textContent = `${bar.name} · ${bar.kind}\n` +
      (count > 1 ? `equal blocks, ${seconds(all / count)} each (${far})\n` : "") +
      `together ${seconds(all)} · parameters ${bytes(sum(d.parameters, first, stop))}` +
      (count > 1 ? `\nhere block ${Math.floor((i - first) / size)}: ${d.names[i]}` : "");
    else this.tip.textContent = `${d.names[i]} · ${d.kinds[i]} · layer ${i}\nforward ${seconds(d.forward[i])} · backward ${seconds(d.backward[i])}` +
      `\nparameters ${bytes(d.parameters[i])} · output ${bytes(d.outputs[i])}\ncut behind it sends ${bytes(d.cuts[i])}`;
    this.tip.style.left = `${Math.min(x + 14, this.wide - this.tip.offsetWidth - 4)}px`;
    this.tip.style.top = `${y + 12}px`;
  }
}

// kept on the element, as the timeline of canvas.js is
export default function ({ parentElement, data, setTriggerValue }) {
  const editor = (parentElement.editor ||= new Editor(parentElement));
  editor.show(data, (change) => setTriggerValue("edit", change));
  return () => { editor.watch.disconnect(); editor.root.remove(); delete parentElement.editor; };
}
