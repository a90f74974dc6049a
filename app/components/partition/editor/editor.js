// The partition over its layers: drag a cut, step replicas, split or join stages.
// Every change is sent as {stops, replicas}; the server answers with a prediction.
const HEAD = 40, PLOT = 232, LEFT = 46, RIGHT = 52;
const FORWARD = "#0072B2", BACKWARD = "#E69F00", NEUTRAL = "#808A98", GRID = "rgba(128,138,152,.18)";
const three = (v) => (v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2));
const scale = (v, steps) => steps.find(([least]) => v >= least) || steps[steps.length - 1];
const TIMES = [[1, 1, "s"], [1e-3, 1e3, "ms"], [1e-6, 1e6, "µs"], [0, 1e9, "ns"]];
const SIZES = [[2 ** 40, 2 ** -40, "TiB"], [2 ** 30, 2 ** -30, "GiB"], [2 ** 20, 2 ** -20, "MiB"],
  [1024, 2 ** -10, "KiB"], [0, 1, "B"]];
const text = (v, steps) => { const [, by, unit] = scale(v, steps); return `${three(v * by)}\u00a0${unit}`; };
const seconds = (v) => text(v, TIMES);
const size = (v) => (v < 1024 ? `${v}\u00a0B` : text(v, SIZES));
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
    for (const [colour, word] of [[FORWARD, "forward"], [BACKWARD, "backward"], [NEUTRAL, "parameters (dotted, right)"]]) {
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
  get step() { return (this.wide - LEFT - RIGHT) / this.data.names.length; }
  get widest() { return Math.max(0, ...this.data.labels.map((label) => label.length)); }
  get slanted() { return this.data.labels.length * this.widest * 6.2 > this.wide - LEFT - RIGHT; }
  get foot() { return this.slanted ? 20 + this.widest * 4.3 : 24; }
  x(layer) { return LEFT + layer * this.step; }
  first(stage) { return stage ? this.stops[stage - 1] : 0; }
  load(stage) {
    return sum(this.data.forward, this.first(stage), this.stops[stage]) + sum(this.data.backward, this.first(stage), this.stops[stage]);
  }

  // ---- changes
  move(cut, stop) {
    const least = this.first(cut) + 1, most = this.stops[cut + 1] - 1;
    const now = Math.max(least, Math.min(most, stop));
    if (now === this.stops[cut]) return false;
    this.stops[cut] = now;
    this.draw();
    return true;
  }
  commit() { this.send({ stops: this.stops, replicas: this.replicas }); }
  add(stage, by) {
    const positions = this.stops.length / this.data.chunks;
    for (let s = stage % positions; s < this.stops.length; s += positions) this.replicas[s] += by;
    this.draw();
    this.commit();
  }
  split(stage) {
    const first = this.first(stage), half = this.load(stage) / 2;
    let cut = first + 1;
    while (cut < this.stops[stage] - 1 && sum(this.data.forward, first, cut) + sum(this.data.backward, first, cut) < half) cut++;
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
    const ratio = window.devicePixelRatio || 1, tall = HEAD + PLOT + this.foot;
    this.canvas.width = this.wide * ratio;
    this.canvas.height = tall * ratio;
    this.canvas.style.height = `${tall}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.clearRect(0, 0, this.wide, tall);
    const ink = getComputedStyle(this.root).color;
    const family = getComputedStyle(this.root).fontFamily;
    this.paintBands(pen);
    this.paintBars(pen, ink, family);
    this.paintNames(pen, ink, family);
    this.place();
    this.tools();
  }
  paintBands(pen) {
    this.stops.forEach((stop, stage) => {
      pen.globalAlpha = stage === this.chosen ? 0.2 : 0.12;
      pen.fillStyle = this.data.hues[stage % this.data.hues.length];
      pen.fillRect(this.x(this.first(stage)), HEAD, this.x(stop) - this.x(this.first(stage)), PLOT);
    });
    pen.globalAlpha = 1;
  }
  paintBars(pen, ink, family) {
    const { forward, backward, parameters, names } = this.data;
    const top = 1.12 * Math.max(1e-12, ...names.map((_, i) => forward[i] + backward[i]));
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
    const thick = Math.max(0.8, this.step * 0.78);
    names.forEach((_, i) => {
      const x = this.x(i) + (this.step - thick) / 2, f = (forward[i] / top) * PLOT, b = (backward[i] / top) * PLOT;
      pen.fillStyle = FORWARD;
      pen.fillRect(x, base - f, thick, f);
      pen.fillStyle = BACKWARD;
      pen.fillRect(x, base - f - b, thick, b);
    });
    this.paintParameters(pen, ink, parameters);
  }
  paintParameters(pen, ink, parameters) {
    const most = Math.max(...parameters);
    if (!most) return;
    const top = 1.12 * most, [, by, unit] = scale(most, SIZES), base = HEAD + PLOT;
    pen.strokeStyle = NEUTRAL;
    pen.setLineDash([2, 3]);
    pen.beginPath();
    parameters.forEach((v, i) => pen.lineTo(this.x(i) + this.step / 2, base - (v / top) * PLOT));
    pen.stroke();
    pen.setLineDash([]);
    pen.textAlign = "left";
    pen.fillStyle = ink;
    pen.globalAlpha = 0.75;
    for (let tick = 0, gap = nice(top * by); tick <= top * by; tick += gap)
      pen.fillText(String(+tick.toPrecision(3)), this.wide - RIGHT + 6, base - (tick / by / top) * PLOT);
    pen.fillText(unit, this.wide - RIGHT + 6, HEAD - 8);
    pen.globalAlpha = 1;
  }
  paintNames(pen, ink, family) {
    const { places, labels } = this.data;
    const { slanted } = this, room = 13, shown = [];
    pen.font = `11px ${family}`;
    pen.fillStyle = ink;
    pen.globalAlpha = 0.8;
    places.forEach((place, n) => {
      const x = this.x(place + 0.5);
      if (shown.length && x - shown[shown.length - 1] < room) return;
      shown.push(x);
      pen.save();
      pen.translate(x, HEAD + PLOT + 10);
      if (slanted) pen.rotate(-Math.PI / 4);
      pen.textAlign = slanted ? "right" : "center";
      pen.fillText(labels[n], 0, 0);
      pen.restore();
    });
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
    const sent = size(this.data.cuts[this.stops[cut] - 1]);
    Object.assign(handle.style, { left: `${this.x(this.stops[cut])}px`, top: `${HEAD}px`, height: `${PLOT}px` });
    const most = this.stops[cut + 1] - 1;
    handle.setAttribute("aria-valuemin", this.first(cut) + 1);
    handle.setAttribute("aria-valuemax", most);
    handle.setAttribute("aria-valuenow", this.stops[cut]);
    handle.setAttribute("aria-valuetext", `behind ${this.data.names[this.stops[cut] - 1]}, sends ${sent} per microbatch`);
    const next = cut + 1 < this.handles.length ? this.x(this.stops[cut + 1]) : this.wide;
    handle.firstChild.textContent = this.stops.length <= 8 && next - this.x(this.stops[cut]) > 74 ? `✂ ${sent}` : "";
    handle.classList.toggle("last", this.x(this.stops[cut]) > this.wide - RIGHT - 60);
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
      if (this.move(cut, Math.round((e.clientX - left - LEFT) / this.step))) this.moved = true;
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
      if (!this.move(cut, this.stops[cut] + by)) return;
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
      `${size(sum(this.data.parameters, this.first(stage), this.stops[stage]))} of parameters` +
      (frozen ? `, ${size(frozen)} frozen` : ""));
    const button = (label, title, can, act, parent) => {
      const made = make("button", "", parent || this.bar);
      made.type = "button";
      made.textContent = label;
      made.title = title;
      made.dataset.word = title;
      made.setAttribute("aria-label", title);
      made.disabled = !can;
      made.onclick = act;
      if (title === word) made.focus();
    };
    const steps = make("span", "step", this.bar);
    steps.append("Replicas ");
    button("−", "One replica less", this.replicas[stage] > 1, () => this.add(stage, -1), steps);
    make("output", "", steps).textContent = this.replicas[stage];
    button("+", "One replica more", used < devices, () => this.add(stage, 1), steps);
    make("span", "", this.bar).textContent = `${used} of ${devices} devices`;
    const long = this.stops[stage] - this.first(stage) > 1;
    button("✂ Split", "Split this stage", chunks === 1 && long && (used < devices || this.replicas[stage] > 1), () => this.split(stage));
    button("Join next", "Join this stage with the next", chunks === 1 && stage < this.stops.length - 1, () => this.join(stage));
  }
  hover(e) {
    const box = this.root.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
    const i = Math.floor((x - LEFT) / this.step), d = this.data;
    const inside = d && !this.held && i >= 0 && i < d.names.length && y > HEAD && y < HEAD + PLOT;
    this.tip.style.display = inside ? "block" : "none";
    if (!inside) return;
    this.tip.textContent = `${d.names[i]} · ${d.kinds[i]} · layer ${i}\nforward ${seconds(d.forward[i])} · backward ${seconds(d.backward[i])}` +
      `\nparameters ${size(d.parameters[i])} · output ${size(d.outputs[i])}\ncut behind it sends ${size(d.cuts[i])}`;
    this.tip.style.left = `${Math.min(x + 14, this.wide - this.tip.offsetWidth - 4)}px`;
    this.tip.style.top = `${y + 12}px`;
  }
}

const editors = new WeakMap();
export default function ({ parentElement, data, setTriggerValue }) {
  if (!editors.has(parentElement)) editors.set(parentElement, new Editor(parentElement));
  const editor = editors.get(parentElement);
  editor.show(data, (change) => setTriggerValue("edit", change));
  return () => { editor.watch.disconnect(); editors.delete(parentElement); };
}
