// A timeline of any length on a canvas: one row per rank, the predicted as a thin ghost below.
// Neighbours that work on the same stages fold into the row of the first of them.
// What is narrower than a pixel is added up per pixel and drawn as the shares of its kinds.
const GUTTER = 118, AXIS = 24, THIN = 1.4;
const HELP = "W / S   zoom in, out\nA / D   move left, right (or drag)\n0   everything\n↑ / ↓   choose a rank\n" +
  ", / .   previous, next action\nCtrl + wheel   zoom at the pointer\n?   this help";
const UNITS = [[1, 1, "s"], [1e-3, 1e3, "ms"], [1e-6, 1e6, "µs"], [0, 1e9, "ns"]];
const three = (v) => { const n = Math.abs(v); return n >= 100 ? v.toFixed(0) : n >= 10 ? v.toFixed(1) : v.toFixed(2); };
const seconds = (v) => { const [, by, unit] = UNITS.find(([least]) => Math.abs(v) >= least); return `${three(v * by)}\u00a0${unit}`; };
const moment = (at, long) => { // as many digits as tell the two ends of `long` apart
  const [, by, unit] = UNITS.find(([least]) => Math.abs(at) >= least);
  return `${(at * by).toFixed(Math.max(0, Math.min(9, 2 - Math.floor(Math.log10(long * by)))))}\u00a0${unit}`;
};
const make = (tag, name, parent) => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  parent.appendChild(made);
  return made;
};
const TYPES = { f32: Float32Array, i32: Int32Array, i16: Int16Array, i8: Int8Array, u32: Uint32Array, u8: Uint8Array };

// bytes: u32 length of the header, the header (JSON), then the columns, each at a multiple of 8
function unpack(bytes) {
  const whole = bytes.byteOffset % 8 ? bytes.slice() : bytes;
  const long = new DataView(whole.buffer, whole.byteOffset, 4).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(whole.subarray(4, 4 + long)));
  for (const set of head.sets) {
    for (const [name, [type, at, count]] of Object.entries(set.columns))
      set[name] = new TYPES[type](whole.buffer, whole.byteOffset + at, count);
    set.start = new Float64Array(set.ticks.length);
    for (let i = 0; i < set.start.length; i++) set.start[i] = set.ticks[i] * head.tick;
  }
  return head;
}

class Timeline {
  constructor(root) {
    this.root = make("div", "timeline", root);
    this.tools = make("div", "tools", this.root);
    this.name = make("span", "name", this.tools);
    this.legend = make("span", "grow", this.tools);
    const button = (label, title, act, name = "") => {
      const made = make("button", name, this.tools);
      made.type = "button"; made.textContent = label; made.title = title;
      made.setAttribute("aria-label", title);
      made.onclick = act;
      return made;
    };
    this.folding = button("", "", () => { this.folded = !this.folded; this.arrange(); }, "own");
    this.freeing = button("Slack", "Pale: what may end later and the whole no longer", () => { this.free = !this.free; this.tint(); }, "own free");
    button("−", "Zoom out", () => this.zoom(2));
    button("+", "Zoom in", () => this.zoom(0.5));
    button("All", "Show everything", () => this.show(0, this.extent));
    button("PNG", "Save as PNG", () => this.save(), "own");
    button("?", "Keyboard help", () => this.toggleHelp());
    this.view = make("div", "view", this.root);
    this.canvas = make("canvas", "", this.view);
    this.spacer = make("div", "", this.view);
    this.tip = make("div", "tip", this.root);
    this.help = make("div", "help", this.root);
    this.help.textContent = HELP;
    this.said = make("div", "said", this.root);
    this.said.setAttribute("aria-live", "polite");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.listen();
  }

  load(bytes) {
    if (this.bytes === bytes || (this.bytes && this.bytes.length === bytes.length && this.same(bytes))) { this.paint(); this.remember(); return; }
    this.bytes = bytes;
    Object.assign(this, unpack(bytes));
    this.canvas.setAttribute("aria-label", `${this.alt}. Press question mark for the keys.`);
    this.name.textContent = this.title;
    this.root.classList.toggle("follows", this.follows);
    this.legend.replaceChildren();
    this.kinds.forEach(({ word, colour }, kind) => {
      if (!this.present.includes(kind)) return;
      const item = make("span", "", this.legend);
      make("i", "", item).style.background = colour;
      item.append(word);
    });
    if (this.sets.length > 1) make("span", "", this.legend).textContent = "thin below: predicted";
    this.pale = make("span", "", this.legend);
    this.pale.textContent = "pale: may take longer at no cost";
    this.tint();
    const linked = this.linked();
    const kept = this.touched && this.b <= this.extent * 1.05;
    [this.a, this.b] = linked || (kept ? [this.a, this.b] : this.first || [0, this.extent]);
    this.at = null;
    this.arrange();
    this.remember();
  }
  arrange() {  // the rows that are shown: ranks, and the first of those that are folded
    this.rows = [];
    const words = this.folded ? ["All replicas", "A row for every replica"] : ["Fold replicas", "One row for the replicas of a stage"];
    this.folding.hidden = !this.folds.length;
    [this.folding.textContent, this.folding.title] = words;
    this.folding.setAttribute("aria-label", words[1]);
    this.folding.setAttribute("aria-pressed", this.folded);
    const inside = new Map(this.folded ? this.folds.map((fold) => [fold.first, fold]) : []);
    for (let rank = 0; rank < this.names.length; rank += (inside.get(rank) || { count: 1 }).count)
      this.rows.push({ rank, name: (inside.get(rank) || { name: this.names[rank] }).name });
    this.at = null;
    this.measure();
  }
  tint() {  // with slack, what may end later is pale
    this.freeing.hidden = !this.sets[0].slack;
    this.pale.hidden = !(this.free && this.sets[0].slack);
    this.freeing.setAttribute("aria-pressed", !!this.free);
    this.paint();
  }
  same(bytes) {
    const last = this.bytes;
    for (let i = 0; i < bytes.length; i += 4099) if (bytes[i] !== last[i]) return false;
    return true;
  }
  linked() {
    const text = new URLSearchParams(location.search).get(this.param || "");
    const found = text && text.split("~").map(Number);
    return found && found.length === 2 && found[0] < found[1] && found[0] < this.extent ? found : null;
  }

  // ---- the window
  show(a, b, quiet) {
    const least = this.extent * 1e-7 || 1e-9, most = this.extent * 1.02;
    let wide = Math.min(Math.max(b - a, least), most);
    a = Math.min(Math.max(a, -0.01 * this.extent), most - wide);
    this.a = wide >= most ? 0 : a;
    this.b = this.a + wide;
    this.paint();
    this.touched = true;
    if (quiet) return;
    if (this.group) window.dispatchEvent(new CustomEvent("stageflow-window", { detail: [this.group, this, this.a, this.b] }));
    clearTimeout(this.later);
    this.later = setTimeout(() => this.remember(), 250);
  }
  remember() {
    if (!this.param || !this.sets || !this.root.isConnected) return;
    const url = new URL(location.href), whole = this.a <= 0 && this.b >= this.extent;
    const places = Math.max(0, Math.min(9, 3 - Math.floor(Math.log10(this.b - this.a))));
    const untouched = this.first && this.a === this.first[0] && this.b === this.first[1];
    if (whole || untouched) url.searchParams.delete(this.param);
    else url.searchParams.set(this.param, `${this.a.toFixed(places)}~${this.b.toFixed(places)}`);
    if (url.href !== location.href) history.replaceState(history.state, "", url);
  }
  zoom(by, middle = (this.a + this.b) / 2) { this.show(middle - (middle - this.a) * by, middle + (this.b - middle) * by); }
  move(share) { const by = (this.b - this.a) * share; this.show(this.a + by, this.b + by); }

  // ---- geometry
  get wide() { return this.root.clientWidth || 800; }
  get plot() { return this.wide - GUTTER - 8; }
  measure() {
    const ranks = this.rows.length, ghost = this.sets.length > 1;
    this.row = Math.max(ghost ? 22 : 14, Math.min(ghost ? 46 : 34, (this.most - AXIS) / ranks));
    this.tall = Math.min(this.most, AXIS + ranks * this.row);
    this.view.style.height = `${this.tall}px`;
    this.spacer.style.height = `${Math.max(0, AXIS + ranks * this.row - this.tall)}px`;
    this.paint();
  }
  lane(set) {
    const gap = this.row * 0.09;
    if (this.sets.length === 1) return [gap, this.row - 2 * gap];
    return set ? [this.row * 0.7, this.row * 0.2] : [gap, this.row * 0.56];
  }
  find(set, track, time) {
    let low = set.rows[track], high = set.rows[track + 1];
    while (low < high) { const middle = (low + high) >> 1; if (set.start[middle] <= time) low = middle + 1; else high = middle; }
    return low - 1;
  }

  // ---- drawing
  paint() {
    if (!this.waiting) this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.draw(); });
  }
  draw() {
    if (!this.sets) return;
    const began = performance.now(), ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(this.wide * ratio) || this.canvas.height !== Math.round(this.tall * ratio)) {
      this.canvas.width = this.wide * ratio; this.canvas.height = this.tall * ratio;
      this.canvas.style.width = `${this.wide}px`; this.canvas.style.height = `${this.tall}px`;
    }
    const pen = (this.pen = this.canvas.getContext("2d")), look = getComputedStyle(this.root);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.wide, this.tall);
    this.ink = look.color; this.family = look.fontFamily;
    this.axis(pen);
    pen.save();
    pen.beginPath(); pen.rect(0, AXIS, this.wide, this.tall - AXIS); pen.clip();
    const top = this.view.scrollTop, first = Math.floor(top / this.row);
    const last = Math.min(this.rows.length, Math.ceil((top + this.tall - AXIS) / this.row));
    for (let row = first; row < last; row++) this.rank(pen, this.rows[row], AXIS + row * this.row - top);
    pen.restore();
    this.root.dataset.drawn = (performance.now() - began).toFixed(1);
  }
  axis(pen) {
    const span = this.b - this.a, raw = span / Math.max(2, this.plot / 110), power = 10 ** Math.floor(Math.log10(raw));
    const gap = [1, 2, 5, 10].map((f) => f * power).find((f) => f >= raw);
    const [, by, unit] = UNITS.find(([least]) => Math.max(Math.abs(this.b), span) >= least);
    const places = Math.max(0, -Math.floor(Math.log10(gap * by) + 1e-9));
    pen.font = `11px ${this.family}`; pen.textBaseline = "middle"; pen.textAlign = "center";
    for (let t = Math.ceil(this.a / gap) * gap; t <= this.b; t += gap) {
      const x = GUTTER + ((t - this.a) / span) * this.plot;
      pen.fillStyle = "rgba(128,138,152,.18)"; pen.fillRect(x, AXIS, 1, this.tall);
      pen.fillStyle = this.ink; pen.globalAlpha = 0.75;
      pen.fillText(`${(t * by).toFixed(places)} ${unit}`, Math.min(x, this.wide - 24), AXIS / 2);
      pen.globalAlpha = 1;
    }
  }
  rank(pen, { rank, name }, y) {
    pen.font = `11px ${this.family}`; pen.textAlign = "right"; pen.textBaseline = "middle";
    pen.fillStyle = this.ink; pen.globalAlpha = this.at && this.at[1] >> 1 === rank ? 1 : 0.8;
    pen.fillText(name, GUTTER - 8, y + this.row / 2, GUTTER - 12);
    pen.globalAlpha = 1;
    this.sets.forEach((set, n) => {
      const [down, high] = this.lane(n), until = Math.min(set.extent, this.b), from = Math.max(0, this.a);
      pen.fillStyle = "rgba(128,138,152,.16)";
      if (until > from && !n) pen.fillRect(this.px(from), y + down, this.px(until) - this.px(from), high);
      pen.globalAlpha = n ? 0.5 : 1;
      this.track(pen, set, 2 * rank, y + down, high, n === 0);
      if (!n) this.track(pen, set, 2 * rank + 1, y + down + high, Math.max(2, this.row * 0.08), false);
      pen.globalAlpha = 1;
    });
  }
  px(time) { return GUTTER + ((time - this.a) / (this.b - this.a)) * this.plot; }
  track(pen, set, track, y, high, worded) {
    const { start, long, kind, microbatch } = set, a = this.a, by = this.plot / (this.b - a), wide = Math.ceil(this.plot);
    const count = this.kinds.length, stop = set.rows[track + 1];
    if (!this.sums || this.sums.length < count * (wide + 2)) this.sums = new Float32Array(count * (wide + 2));
    const sums = this.sums, boxes = [];
    let low = wide, until = -1;
    for (let i = Math.max(set.rows[track], this.find(set, track, a)); i < stop; i++) {
      const x = (start[i] - a) * by, w = long[i] * by;
      if (x > wide) break;
      if (x + w < 0) continue;
      if (w >= THIN) { boxes.push(i); continue; }
      const at = x < 0 ? 0 : x | 0;
      sums[at * count + kind[i]] += w;
      if (at < low) low = at;
      if (at > until) until = at;
    }
    for (let at = low; at <= until; at++) {
      let sum = 0, from = y + high;
      for (let k = 0; k < count; k++) sum += sums[at * count + k];
      if (!sum) continue;
      const scale = high / Math.max(1, sum);
      for (let k = 0; k < count; k++) {
        const tall = Math.max(sums[at * count + k] * scale, 0);
        if (!tall) continue;
        sums[at * count + k] = 0;
        pen.fillStyle = this.kinds[k].colour;
        from -= tall;
        pen.fillRect(GUTTER + at, from, 1, tall);
      }
    }
    const clip = (v) => Math.min(Math.max(v, 0), wide);
    for (const i of boxes) {
      const x = clip((start[i] - a) * by), w = clip((start[i] + long[i] - a) * by) - x;
      pen.fillStyle = this.kinds[kind[i]].colour;
      if (this.free && set.slack) pen.globalAlpha = set.slack[i] > 0 ? 0.3 : 1;
      pen.fillRect(GUTTER + x, y, w > 4 ? w - 0.6 : w, high);
    }
    if (worded && high > 9 && boxes.length < 4000) this.words(pen, set, boxes, y + high / 2, clip, by);
    if (this.at && this.sets[this.at[0]] === set && this.at[1] === track) this.mark(pen, set, this.at[2], y, high, clip, by);
  }
  words(pen, set, boxes, y, clip, by) {
    pen.font = `10px ${this.family}`; pen.textAlign = "center"; pen.textBaseline = "middle";
    for (const i of boxes) {
      if (set.microbatch[i] < 0) continue;
      const x = clip((set.start[i] - this.a) * by), w = clip((set.start[i] + set.long[i] - this.a) * by) - x, text = String(set.microbatch[i]);
      if (w < 7 * text.length + 4) continue;
      pen.fillStyle = this.kinds[set.kind[i]].on;
      pen.fillText(text, GUTTER + x + w / 2, y);
    }
  }
  mark(pen, set, i, y, high, clip, by) {
    const x = clip((set.start[i] - this.a) * by), w = clip((set.start[i] + set.long[i] - this.a) * by) - x;
    pen.strokeStyle = this.ink; pen.lineWidth = 2;
    pen.strokeRect(GUTTER + x - 1, y - 1, Math.max(w, 1) + 2, high + 2);
    pen.lineWidth = 1;
  }

  // ---- what an action is
  tell(set, i, rank) {
    const s = this.sets[set], kind = this.kinds[s.kind[i]], lines = [];
    lines.push(`${kind.word}${set ? " · predicted" : ""} · ${this.names[rank]}`);
    const parts = [`stage ${s.stage[i]}`];
    if (s.microbatch[i] >= 0) parts.push(`microbatch ${s.microbatch[i].toLocaleString("en")}`);
    if (s.version[i] >= 0) parts.push(`${kind.makes ? "makes" : "weights"} version ${s.version[i].toLocaleString("en")}`);
    if (s.peer[i] >= 0) parts.push(`to rank ${s.peer[i]}`);
    lines.push(parts.join(", "));
    lines.push(`${seconds(s.long[i])}, from ${moment(s.start[i], s.long[i])} to ${moment(s.start[i] + s.long[i], s.long[i])}`);
    if (s.slack) lines.push(s.slack[i] > 0 ? `may end ${seconds(s.slack[i])} later at no cost` : "on the critical path");
    const wanted = s.expected && s.expected[i];
    if (wanted > 0) {
      const off = s.long[i] - wanted, share = (100 * off) / wanted;
      lines.push(`predicted ${seconds(wanted)}: ${off < 0 ? "−" : "+"}${seconds(Math.abs(off))} (${share < 0 ? "−" : "+"}${three(Math.abs(share))}\u00a0%)`);
    }
    return lines.join("\n");
  }
  under(x, y) {
    const down = y - AXIS + this.view.scrollTop, row = Math.floor(down / this.row), inside = down - row * this.row;
    if (y < AXIS || row < 0 || row >= this.rows.length || x < GUTTER) return null;
    const { rank } = this.rows[row];
    const time = this.a + ((x - GUTTER) / this.plot) * (this.b - this.a), near = (1.5 * (this.b - this.a)) / this.plot;
    const [top, high] = this.lane(0), tracks = inside > top + high + this.row * 0.1 && this.sets.length > 1
      ? [[1, 2 * rank]] : inside > top + high - 1 ? [[0, 2 * rank + 1], [0, 2 * rank]] : [[0, 2 * rank]];
    for (const [n, track] of tracks) {
      const set = this.sets[n], i = this.find(set, track, time + near);
      if (i >= set.rows[track] && set.start[i] + set.long[i] >= time - near) return [n, track, i];
    }
    const set = this.sets[0], i = this.find(set, 2 * rank, time), before = i >= set.rows[2 * rank];
    const from = before ? set.start[i] + set.long[i] : 0, to = i + 1 < set.rows[2 * rank + 1] ? set.start[i + 1] : set.extent;
    return time < set.extent && time >= 0 ? { text: `waiting · ${this.names[rank]}\n${seconds(to - from)}, from ${seconds(from)} to ${seconds(to)}` } : null;
  }
  point(text, x, y) {
    this.tip.style.display = text ? "block" : "none";
    if (!text) return;
    this.tip.textContent = text;
    const left = x + 16 + this.tip.offsetWidth > this.wide ? x - this.tip.offsetWidth - 12 : x + 16;
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${y + 14 + this.tools.offsetHeight}px`;
  }
  choose(by, rows) {
    if (!this.at) this.at = [0, 0, Math.max(0, this.find(this.sets[0], 0, this.a))];
    let [n, track, i] = this.at;
    const set = this.sets[n], middle = set.start[i];
    const now = this.rows.findIndex(({ rank }) => rank === track >> 1);
    const row = Math.min(Math.max(now + rows, 0), this.rows.length - 1);
    if (rows) {
      track = 2 * this.rows[row].rank;
      i = Math.max(set.rows[track], this.find(set, track, middle));
    }
    i = Math.min(Math.max(i + by, set.rows[track]), set.rows[track + 1] - 1);
    if (i < set.rows[track]) return;
    this.at = [n, track, i];
    const wide = this.b - this.a, from = set.start[i], rank = track >> 1;
    if (from < this.a || from + set.long[i] > this.b) this.show(from - 0.2 * wide, from + 0.8 * wide);
    const y = AXIS + row * this.row;
    if (y < this.view.scrollTop + AXIS || y + this.row > this.view.scrollTop + this.tall) this.view.scrollTop = y - AXIS;
    this.paint();
    const text = this.tell(n, i, rank);
    this.said.textContent = text;
    this.point(text, Math.min(Math.max(this.px(from), GUTTER), this.wide - 40), y - this.view.scrollTop + this.row);
  }

  // ---- hands
  listen() {
    const { canvas } = this, place = (e) => { const box = canvas.getBoundingClientRect(); return [e.clientX - box.left, e.clientY - box.top]; };
    canvas.onpointerdown = (e) => { if (e.button) return; canvas.setPointerCapture(e.pointerId); canvas.focus({ preventScroll: true }); this.from = [e.clientX, this.a, this.b]; canvas.classList.add("held"); };
    canvas.onpointerup = canvas.onpointercancel = () => { this.from = null; canvas.classList.remove("held"); };
    canvas.onpointermove = (e) => {
      const [x, y] = place(e);
      if (this.from) {
        const by = ((this.from[0] - e.clientX) / this.plot) * (this.from[2] - this.from[1]);
        if (Math.abs(this.from[0] - e.clientX) > 2) this.show(this.from[1] + by, this.from[2] + by);
        this.point("");
        return;
      }
      const found = this.under(x, y);
      this.point(!found ? "" : found.text || this.tell(found[0], found[2], found[1] >> 1), x, y);
    };
    canvas.onpointerleave = () => this.point("");
    canvas.ondblclick = () => this.show(0, this.extent);
    canvas.onblur = () => { this.point(""); this.at = null; this.paint(); };
    canvas.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.metaKey && !e.shiftKey) return;
      e.preventDefault();
      const time = this.a + ((place(e)[0] - GUTTER) / this.plot) * (this.b - this.a);
      if (e.shiftKey) this.move((e.deltaY || e.deltaX) / 900);
      else this.zoom(Math.exp(Math.max(-60, Math.min(60, e.deltaY)) / 200), time);
    }, { passive: false });
    canvas.onkeydown = (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      const act = {
        w: () => this.zoom(0.6), s: () => this.zoom(1 / 0.6), a: () => this.move(-0.25), d: () => this.move(0.25),
        arrowleft: () => this.move(-0.25), arrowright: () => this.move(0.25), 0: () => this.show(0, this.extent),
        "?": () => this.toggleHelp(), escape: () => { this.help.style.display = "none"; this.point(""); },
        ",": () => this.choose(-1, 0), ".": () => this.choose(1, 0), arrowup: () => this.choose(0, -1), arrowdown: () => this.choose(0, 1),
      }[e.key.toLowerCase()];
      if (!act) return;
      e.preventDefault();
      e.stopPropagation();
      this.point("");
      act();
    };
    this.view.onscroll = () => this.paint();
    this.hear = (e) => { const [group, from, a, b] = e.detail; if (group === this.group && from !== this && this.sets) this.show(a, b, true); };
    window.addEventListener("stageflow-window", this.hear);
    this.watch = new ResizeObserver(() => this.paint());
    this.watch.observe(this.root);
    this.keep = setInterval(() => this.remember(), 1000); // the server may rewrite the URL without the window
  }
  toggleHelp() {
    const open = this.help.style.display !== "block";
    this.help.style.display = open ? "block" : "none";
    if (open) this.said.textContent = HELP;
  }
  save() {
    this.canvas.toBlob((blob) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = "timeline.png";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }
  end() { clearInterval(this.keep); this.watch.disconnect(); window.removeEventListener("stageflow-window", this.hear); clearTimeout(this.later); this.root.remove(); }
}

// kept on the element: while a page loads, this module may be there twice, each with its own variables
export default function ({ parentElement, data }) {
  const timeline = (parentElement.timeline ||= new Timeline(parentElement));
  timeline.load(data);
  return () => { timeline.end(); delete parentElement.timeline; };
}
