// A model as boxes in rows: drag or scroll to move, Ctrl+wheel or buttons to zoom, a click on a
// sign opens or closes a module ({toggle: key}), a click on a box shows its figures.
const SVG = "http://www.w3.org/2000/svg", FORWARD = "#0072B2", BACKWARD = "#E69F00";
const LEAST = 0.05, MOST = 3, BEND = 11, STEP = 60;
const draw = (tag, parent, attributes = {}) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  parent.appendChild(made);
  return made;
};
const make = (tag, name, parent, text = "") => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text) made.textContent = text;
  parent.appendChild(made);
  return made;
};
const press = (element, act) => {
  element.setAttribute("tabindex", "0");
  element.setAttribute("role", "button");
  element.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" && e.key !== " ") return;
    e.preventDefault();
    e.stopPropagation();
    act();
  });
};
// Straight where it goes straight down, a soft bend where it changes sides.
const path = (points) => points.reduce((text, [x, y], i) => {
  if (!i) return `M${x} ${y}`;
  const [a, b] = points[i - 1];
  if (Math.abs(a - x) < 0.5) return `${text}L${x} ${y}`;
  const bend = Math.max(BEND, (y - b) / 2);
  return `${text}C${a} ${b + bend} ${x} ${y - bend} ${x} ${y}`;
}, "");

class Graph {
  constructor(root) {
    this.root = make("div", "graph", root);
    this.view = make("div", "view", this.root);
    this.svg = draw("svg", this.view, { role: "application", tabindex: "0" });
    this.world = draw("g", this.svg);
    this.note = make("div", "note", this.view);
    this.tools();
    this.side = make("div", "side", this.root);
    this.scale = 1;
    this.x = this.y = 0;
    this.svg.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    this.svg.addEventListener("pointerdown", (e) => this.grab(e));
    this.svg.addEventListener("keydown", (e) => this.key(e));
    this.watch = new ResizeObserver(() => { if (this.data && this.fresh) this.first(); });
    this.watch.observe(this.view);
  }

  tools() {
    const bar = make("div", "tools", this.view);
    const button = (label, title, act) => {
      const made = make("button", "", bar, label);
      made.type = "button";
      made.title = title;
      made.setAttribute("aria-label", title);
      made.onclick = act;
    };
    button("−", "Zoom out", () => this.zoom(1 / 1.25));
    button("+", "Zoom in", () => this.zoom(1.25));
    button("Fit", "Show the whole model", () => this.fit());
    button("1:1", "Legible size, from the top", () => this.first());
    button("SVG", "Download the picture", () => this.download());
  }

  show(data, send) {
    this.data = data;
    this.send = send;
    const before = this.places;
    this.places = new Map(data.boxes.map((box) => [box.key, box]));
    if (!this.places.has(this.chosen)) this.chosen = "";
    const sought = data.chosen && data.chosen !== this.sought;
    this.sought = data.chosen;
    if (sought) this.chosen = data.chosen;
    this.paint();
    this.tell();
    if (this.model !== data.model) this.first();
    else if (sought) this.seek(data.chosen);
    else if (this.touched && before) this.keep(before.get(this.touched));
    this.model = data.model;
  }

  // ---- where one looks
  get wide() { return this.view.clientWidth || 600; }
  get high() { return this.view.clientHeight || 600; }
  moved() {
    const { width, height } = this.data, left = 60;
    this.x = Math.min(this.wide - left, Math.max(left - width * this.scale, this.x));
    this.y = Math.min(this.high - left, Math.max(left - height * this.scale, this.y));
    this.world.setAttribute("transform", `translate(${this.x} ${this.y}) scale(${this.scale})`);
    this.fresh = false;
  }
  first() {
    const { width, height } = this.data;
    this.scale = Math.min(1, Math.max(0.55, (this.wide - 40) / width));
    this.x = (this.wide - width * this.scale) / 2;
    this.y = height * this.scale < this.high - 60 ? (this.high - height * this.scale) / 2 : 44;
    this.moved();
    this.fresh = true;
  }
  fit() {
    const { width, height } = this.data;
    this.scale = Math.max(LEAST, Math.min(1, (this.wide - 40) / width, (this.high - 40) / height));
    this.x = (this.wide - width * this.scale) / 2;
    this.y = (this.high - height * this.scale) / 2;
    this.moved();
  }
  zoom(by, x = this.wide / 2, y = this.high / 2) {
    const next = Math.min(MOST, Math.max(LEAST, this.scale * by));
    this.x = x - (x - this.x) * next / this.scale;
    this.y = y - (y - this.y) * next / this.scale;
    this.scale = next;
    this.moved();
  }
  seek(key) {
    const box = this.places.get(key);
    if (!box) return;
    this.scale = Math.max(this.scale, 0.8);
    this.x = this.wide / 2 - (box.x + box.w / 2) * this.scale;
    this.y = this.high / 2 - (box.y + box.h / 2) * this.scale;
    this.moved();
  }
  keep(before) {  // what was opened or closed stays where it was, unless its end is out of sight
    const now = this.places.get(this.touched);
    if (before && now) {
      this.x += (before.x + before.w / 2 - now.x - now.w / 2) * this.scale;
      this.y += (before.y - now.y) * this.scale;
      const top = this.y + now.y * this.scale, below = top + now.h * this.scale - this.high + 44;
      if (now.open) this.y -= Math.max(0, Math.min(below, top - 44));
      this.moved();
    }
    this.touched = "";
  }
  wheel(e) {
    const box = this.svg.getBoundingClientRect();
    const [x, y] = [this.x, this.y];
    if (e.ctrlKey || e.metaKey) this.zoom(Math.exp(-e.deltaY / 300), e.clientX - box.left, e.clientY - box.top);
    else {
      const room = this.data.height * this.scale - this.high + 80;
      if (room <= 0 && !e.deltaX) return;
      const before = this.y;
      this.x -= e.deltaX;
      this.y = Math.min(44, Math.max(-room + 44, this.y - e.deltaY));
      if (this.y === before && !e.deltaX) return;  // at the end the page scrolls on
      this.moved();
    }
    if (x !== this.x || y !== this.y || e.ctrlKey) e.preventDefault();
  }
  grab(e) {
    if (e.button) return;
    const from = [e.clientX - this.x, e.clientY - this.y], start = [e.clientX, e.clientY];
    const move = (m) => {
      if (!this.svg.classList.contains("held") && Math.hypot(m.clientX - start[0], m.clientY - start[1]) < 4) return;
      this.svg.classList.add("held");
      [this.x, this.y] = [m.clientX - from[0], m.clientY - from[1]];
      this.moved();
    };
    const end = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", end);
      setTimeout(() => this.svg.classList.remove("held"));
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
  }
  key(e) {
    const by = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] }[e.key];
    if (by) [this.x, this.y] = [this.x + by[0], this.y + by[1]];
    else if (e.key === "+" || e.key === "=") this.zoom(1.25);
    else if (e.key === "-") this.zoom(0.8);
    else if (e.key === "0") this.fit();
    else return;
    e.preventDefault();
    this.moved();
  }

  // ---- what one sees
  paint() {
    const focused = this.root.getRootNode().activeElement, word = focused && focused.dataset ? focused.dataset.key : "";
    this.world.replaceChildren();
    const under = draw("g", this.world), lines = draw("g", this.world), over = draw("g", this.world);
    for (const [points, tie] of this.data.lines) draw("path", lines, { class: tie ? "line tie" : "line", d: path(points) });
    for (const box of this.data.boxes) this.box(box, box.open ? under : over, over);
    this.svg.setAttribute("aria-label", this.data.alt);
    this.note.textContent = this.data.note;
    const again = word && [...this.world.querySelectorAll("[data-key]")].find((each) => each.dataset.key === word);
    if (again) again.focus({ preventScroll: true });
  }
  box(box, layer, over) {
    const { x, y, w, h } = box;
    const kind = box.open ? "frame" : box.module ? "shut" : "leaf";
    const made = draw("g", layer, { class: `box ${kind}${box.key === this.chosen ? " chosen" : ""}`, transform: `translate(${x} ${y})` });
    draw("title", made).textContent = box.path;
    if (kind === "shut") draw("rect", made, { class: "back", x: 4, y: 4, width: w, height: h });
    draw("rect", made, { class: "body", width: w, height: h });
    made.addEventListener("click", (e) => { e.stopPropagation(); this.choose(box.key); });
    if (box.open) {
      draw("text", made, { class: "name", x: 30, y: 17 }).textContent = box.name;
      return this.sign(box, over, x + 15, y + 13);
    }
    const left = box.module ? 30 : 10;
    draw("text", made, { class: "name", x: left, y: 19 }).textContent = box.name;
    draw("text", made, { class: "quiet", x: left, y: 34 }).textContent = box.remark;
    draw("text", made, { class: "quiet", x: w - 10, y: 34, "text-anchor": "end" }).textContent = box.time;
    const [forward, backward] = box.bars.map((share) => share * (w - 20));
    draw("rect", made, { x: 10, y: h - 9, width: forward, height: 4, fill: FORWARD });
    draw("rect", made, { x: 10 + forward, y: h - 9, width: backward, height: 4, fill: BACKWARD });
    made.dataset.key = box.key;
    made.setAttribute("aria-label", `${box.path}, ${box.remark}, ${box.time}`);
    press(made, () => this.choose(box.key));
    if (box.module) {
      made.addEventListener("dblclick", () => this.toggle(box.key));
      this.sign(box, over, x + 16, y + 21);
    }
  }
  sign(box, parent, x, y) {
    const made = draw("g", parent, { class: "sign", transform: `translate(${x} ${y})` });
    draw("circle", made, { r: 8 });
    draw("path", made, { d: box.open ? "M-4 0H4" : "M-4 0H4M0 -4V4" });
    made.setAttribute("aria-label", `${box.open ? "Close" : "Open"} ${box.path}`);
    made.dataset.key = `sign ${box.key}`;
    made.addEventListener("click", (e) => { e.stopPropagation(); this.toggle(box.key); });
    press(made, () => this.toggle(box.key));
  }
  toggle(key) {
    if (this.svg.classList.contains("held")) return;
    this.touched = key;
    this.send(key);
  }
  choose(key) {
    if (this.svg.classList.contains("held")) return;
    this.chosen = key;
    this.paint();
    this.tell();
  }
  tell() {
    const box = this.places.get(this.chosen), side = this.side;
    side.replaceChildren();
    make("h4", "", side, box ? box.path : "The whole model");
    make("div", "kind", side, box ? box.kind : this.data.kind);
    const list = make("dl", "", side);
    for (const [label, text] of box ? box.facts : this.data.facts) {
      make("dt", "", list, label);
      make("dd", "", list, text);
    }
    if (box && box.module) {
      const button = make("button", "", side, box.open ? "Close this module" : "Open this module");
      button.type = "button";
      button.onclick = () => this.toggle(box.key);
    }
    const legend = make("div", "legend", side);
    for (const [colour, word] of [[FORWARD, "forward"], [BACKWARD, "backward"]]) {
      const item = make("span", "", legend);
      make("i", "", item).style.background = colour;
      item.append(word);
    }
    if (this.data.lines.some(([, tie]) => tie)) {
      const item = make("span", "", legend);
      make("i", "tie", item);
      item.append("shared weight");
    }
    make("span", "", legend, "+ and − open and close a module");
  }
  download() {
    const copy = this.svg.cloneNode(true), { width, height } = this.data;
    const style = getComputedStyle(this.view);
    copy.setAttribute("xmlns", SVG);
    copy.setAttribute("viewBox", `-20 -20 ${width + 40} ${height + 40}`);
    copy.setAttribute("width", width + 40);
    copy.setAttribute("height", height + 40);
    copy.firstChild.removeAttribute("transform");
    const rules = draw("style", copy);
    rules.textContent = `svg{font-family:sans-serif;color:${style.color};background:${style.backgroundColor}}` +
      "text{fill:currentColor;font-size:12px}.name{font-weight:600}.quiet{opacity:.72;font-size:11px}" +
      `.body,.back,.sign circle{fill:${style.backgroundColor};stroke:#808A98;rx:7}` +
      ".frame .body{fill:#808A98;fill-opacity:.08}.sign path{stroke:currentColor}.line{fill:none;stroke:#808A98}" +
      ".line.tie{stroke:#CC79A7;stroke-dasharray:5 4}";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
    link.download = `${this.data.file}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
}

const graphs = new WeakMap();
export default function ({ parentElement, data, setTriggerValue }) {
  if (!graphs.has(parentElement)) graphs.set(parentElement, new Graph(parentElement));
  const graph = graphs.get(parentElement);
  graph.show(data, (key) => setTriggerValue("toggle", key));
  return () => { graph.watch.disconnect(); graphs.delete(parentElement); };
}
