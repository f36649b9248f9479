"use strict";
// Draws a case as SVG or as a sentence. Text only ever goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";
const DRAWN = ["svg", "g", "line", "circle", "text", "rect", "path"];

function make(tag, attributes, ...children) {
  const element = DRAWN.includes(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "v") { // a share; below 0 it lowers a value
      element.style.setProperty("--v", (100 * Math.min(Math.abs(value), 1)).toFixed(1) + "%");
      if (value < 0) element.classList.add("against");
    } else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

const signed = (value) => (value > 0 ? "+" : "") + digits(value);
const digits = (value, count = 3) => (value === null || value === undefined ? "–" : value.toFixed(count));
const shade = (value) => (Math.abs(value) > 0.75 ? " mid high" : Math.abs(value) > 0.55 ? " mid" : "");
const short = (text, count) => ([...text].length > count ? [...text].slice(0, count - 1).join("") + "…" : text);
const RADIUS = [19, 9.5, 5.5];

// Draws what `level` shows and all of `focus`, a set of slots that is drawn large; gives the drawing and its box.
function draw(scene, nodeValues, edgeValues, level, focus, faded = true) {
  const neutral = scene.most !== null && nodeValues === scene.v; // what nodes add to a value says nothing of edges
  if (scene.kind === "sentence") return {root: drawSentence(scene, nodeValues, focus), box: null};
  const molecule = scene.kind === "molecule";
  const core = focus || new Set(scene.level.flatMap((l, slot) => (l === 0 ? [slot] : [])));
  const chosen = Boolean(focus) && faded;
  const shown = scene.ids.map((_, slot) => scene.level[slot] <= level || core.has(slot));
  const radius = (slot) => (molecule ? 13 : core.has(slot) ? RADIUS[0] : RADIUS[Math.max(scene.level[slot], 1)]);
  const root = make("svg", {role: "group"});
  const bands = root.appendChild(make("g"));
  const layers = ["under", "lines", "dots", "over"].map(() => root.appendChild(make("g")));
  const add = (layer, element) => layers[layer].append(element);
  const at = (k) => {
    const [a, b] = scene.ends[k];
    return {x1: scene.x[a], y1: scene.y[a], x2: scene.x[b], y2: scene.y[b]};
  };
  const inside = (k) => core.has(scene.ends[k][0]) && core.has(scene.ends[k][1]);
  const thick = (value, k) => (molecule ? 13 : inside(k) ? 2 + 5 * value : 1 + 2 * value);
  const visible = scene.ends.map((_, k) => k).filter((k) => shown[scene.ends[k][0]] && shown[scene.ends[k][1]]);
  const truth = (scene.truth || []).filter((k) => visible.includes(k));
  for (const k of truth) {
    add(0, make("line", {...at(k), class: "truth", "stroke-width": thick(edgeValues[k], k) + 8}));
    add(0, make("line", {...at(k), class: "gap", "stroke-width": thick(edgeValues[k], k) + 4}));
  }
  for (const slot of new Set(truth.flatMap((k) => scene.ends[k]))) {
    add(0, make("circle", {cx: scene.x[slot], cy: scene.y[slot], r: radius(slot) + 5, class: "truth"}));
  }
  for (const k of visible.sort((a, b) => edgeValues[a] - edgeValues[b])) {
    const value = edgeValues[k];
    const outer = Math.max(...scene.ends[k].map((slot) => (core.has(slot) ? 0 : scene.level[slot])));
    const far = inside(k) ? "" : chosen ? " faded" : outer < 2 ? " far" : " farther";
    if (molecule) {
      if (value > 0 && !neutral) add(0, make("line", {...at(k), class: "bandage" + (chosen ? far : ""), v: value, "stroke-width": 13}));
      if (scene.unbound.includes(k)) add(2, make("line", {...at(k), class: "bond dotted"}));
    } else {
      const kind = (value > 0 && !neutral ? "edge" : "edge none") + far;
      add(1, make("line", {...at(k), class: kind, v: value, "stroke-width": thick(value, k)}));
    }
    add(1, make("line", {...at(k), class: "touch", "data-edge": k}));
  }
  scene.strokes.forEach(([d, kind]) => add(2, make("path", {d, class: `bond ${kind}`})));
  if (scene.marked.length === 2) {
    const [a, b] = scene.marked;
    add(1, make("line", {x1: scene.x[a], y1: scene.y[a], x2: scene.x[b], y2: scene.y[b], class: "asked"}));
  }
  if (scene.relations) {
    for (const k of visible) {
      const {x1, y1, x2, y2} = at(k);
      if (inside(k) && scene.relations[k]) add(2, make("text", {x: (x1 + x2) / 2, y: (y1 + y2) / 2, class: "relation"}, short(scene.relations[k], 24)));
    }
  }
  const rank = (slot) => (explained(scene, slot) ? 2 : core.has(slot) ? 1 : 0);
  const order = scene.ids.map((_, slot) => slot).filter((slot) => shown[slot]).sort((a, b) => rank(a) - rank(b));
  const room = makeRoom(scene, shown, radius, inside);
  for (const slot of order) drawNode(scene, slot, nodeValues[slot], radius(slot), core.has(slot), chosen, molecule, add);
  // What is explained gets its room first, and all that is written lies above all nodes.
  for (const slot of molecule ? [] : order.reverse()) writeLabel(scene, slot, nodeValues[slot], radius(slot), core.has(slot), chosen, room, add);
  if (!focus) drawParts(scene, radius, room, bands, add);
  if (!molecule && !chosen) drawCounts(scene, level, core, room, add);
  return {root, box: boxAround(scene, order, radius, room.rooms)};
}

// Lays a band of its own colour under each of several parts, and puts its number beside it.
function drawParts(scene, radius, room, bands, add) {
  const parts = severalParts(scene);
  parts.forEach(({slots}, number) => {
    const inside = new Set(slots);
    const name = `part-${(number % 4) + 1}`;
    const wide = 2 * (slots.length ? radius(slots[0]) : 0) + 14;
    scene.ends.forEach(([a, b]) => {
      if (!inside.has(a) || !inside.has(b)) return;
      bands.append(make("line", {x1: scene.x[a], y1: scene.y[a], x2: scene.x[b], y2: scene.y[b], class: `band ${name}`, "stroke-width": wide}));
    });
    slots.forEach((slot) => bands.append(make("circle", {cx: scene.x[slot], cy: scene.y[slot], r: wide / 2, class: `band ${name}`})));
  });
  parts.forEach(({slots}, number) => {
    if (!slots.length) return;
    const top = slots.reduce((best, slot) => (scene.y[slot] < scene.y[best] ? slot : best));
    const [cx, cy] = room.place(top, 22, 22);
    add(3, make("g", {class: "tag", "aria-hidden": "true"}, make("circle", {cx, cy, r: 9, class: `badge part-${(number % 4) + 1}`}),
      make("text", {x: cx, y: cy, class: "number"}, String(number + 1))));
  });
}

const severalParts = (scene) => (scene.list.length > 1 ? scene.list : []);

// Finds room beside nodes for what is written there: below, above, right or left, where the least lies under it.
function makeRoom(scene, shown, radius, inside) {
  const busy = scene.ids.flatMap((_, slot) => (shown[slot] ? [[scene.x[slot], scene.y[slot], radius(slot), slot]] : []));
  scene.ends.forEach(([a, b], k) => {
    if (!inside(k)) return;
    for (let i = 1; i < 8; i += 1) {
      busy.push([scene.x[a] + (i / 8) * (scene.x[b] - scene.x[a]), scene.y[a] + (i / 8) * (scene.y[b] - scene.y[a]), 3, -1]);
    }
  });
  const rooms = [];
  const place = (slot, width, height) => {
    const gap = radius(slot) + 4;
    const [high, wide] = [gap + height / 2, gap + width / 2];
    const spots = [[0, high], [0, -high], [wide, 0], [-wide, 0], ...[[1, 1], [-1, 1], [1, -1], [-1, -1]]
      .map(([right, down]) => [right * (0.7 * gap + width / 2), down * (0.7 * gap + height / 2)]), [0, high + 14], [0, -high - 14]]
      .map(([dx, dy]) => [scene.x[slot] + dx, scene.y[slot] + dy]);
    const cost = ([x, y]) => busy.filter(([bx, by, r, own]) => own !== slot && Math.abs(bx - x) < width / 2 + r && Math.abs(by - y) < height / 2 + r).length +
      3 * rooms.filter(([rx, ry, w, h]) => Math.abs(rx - x) < (w + width) / 2 && Math.abs(ry - y) < (h + height) / 2).length;
    const best = spots.reduce((a, b) => (cost(b) < cost(a) - 0.5 ? b : a));
    rooms.push([...best, width, height]);
    return best;
  };
  return {place, rooms};
}

function drawNode(scene, slot, value, radius, large, chosen, molecule, add) {
  const place = {cx: scene.x[slot], cy: scene.y[slot]};
  const ring = explained(scene, slot) ? " ring" : "";
  const faint = large ? "" : chosen ? " faded" : " faint";
  const says = scene.most === null ? "" : `, adds ${signed(scene.v[slot] * scene.most)}`;
  const group = make("g", {"data-node": slot, class: large ? "core" : null, tabindex: large ? "0" : null,
    role: large ? "img" : null, "aria-label": large ? `${scene.names[slot]}, probability ${digits(scene.p[slot])}${says}${ring ? ", explained" : ""}` : null});
  add(molecule ? 1 : 2, group);
  if (molecule) {
    group.append(make("circle", {...place, r: 13, class: (value ? "halo" : "halo none") + (large ? " first" : "") + (chosen ? faint : ""), v: value}));
    if (ring) group.append(make("circle", {...place, r: 15, class: "node ring", "fill-opacity": 0}));
    return;
  }
  const kind = scene.kinds ? scene.kinds[slot] : 0;
  const drawn = shape(kind, place, radius + (ring ? 1.5 : 0), "node" + ring + faint, value);
  if (scene.kinds && !ring) outline(drawn, scene.colours[kind]);
  group.append(drawn);
}

// Writes a node's text on it, or beside it where it is long.
function writeLabel(scene, slot, value, radius, large, chosen, room, add) {
  const text = scene.labels ? scene.labels[slot] : String(scene.ids[slot]);
  const count = [...text].length;
  if (large && count > 4) {
    const shown = short(text, 22);
    const [x, y] = room.place(slot, 7.3 * [...shown].length, 15);
    add(3, make("text", {x, y, class: "caption"}, shown));
  } else if (large || (count <= 4 && radius > 8)) {
    const size = Math.min(radius * 0.78, (radius * 2.6) / Math.max(count, 1));
    const tone = make("text", {x: scene.x[slot], y: scene.y[slot], "font-size": size.toFixed(1), class: "label" + shade(value)}, text);
    if (!large) tone.classList.add(chosen ? "faded" : "faint");
    add(3, tone);
  }
}

const explained = (scene, slot) => scene.marked.includes(slot);

function outline(drawn, colour) {
  drawn.style.setProperty("--outline", colour);
  drawn.classList.add("typed");
  return drawn;
}

// Types are shapes: a circle, a square, a diamond, a triangle, a hexagon.
function shape(kind, place, r, name, value) {
  if (!kind) return make("circle", {...place, r, class: name, v: value});
  const corners = [[4, 45], [4, 0], [3, 30], [6, 0], [3, 90], [5, 54], [8, 22.5]][(kind - 1) % 7];
  const points = Array.from({length: corners[0]}, (_, i) => {
    const angle = ((corners[1] + (360 * i) / corners[0]) * Math.PI) / 180;
    return `${(place.cx + 1.15 * r * Math.cos(angle)).toFixed(1)},${(place.cy + 1.15 * r * Math.sin(angle)).toFixed(1)}`;
  });
  return make("path", {d: `M${points.join("L")}Z`, class: name, v: value});
}

// Counts the neighbours of a node that are not drawn up to a level.
const undrawn = (scene, slot, level) => scene.degree[slot] -
  scene.ends.filter((pair) => pair.includes(slot) && pair.every((end) => scene.level[end] <= level)).length;

// Says at nodes of the explanation how many of their neighbours are not drawn.
function drawCounts(scene, level, core, room, add) {
  for (const slot of level ? core : []) {
    const count = undrawn(scene, slot, level);
    if (scene.level[slot] > 0 || count <= 0) continue;
    const text = `+${count} neighbour${count === 1 ? "" : "s"}`;
    const width = 6.1 * text.length + 12;
    const [x, y] = room.place(slot, width, 16);
    const button = level === 1 && undrawn(scene, slot, 2) < count;
    add(3, make("g", {class: button ? "more press" : "more", "data-more": slot, tabindex: button ? "0" : null, role: button ? "button" : null,
      "aria-label": button ? `${count} more neighbours of ${scene.names[slot]}: show surroundings` : null},
      make("rect", {x: x - width / 2, y: y - 8, width, height: 16, rx: 8}),
      make("text", {x, y}, text)));
  }
}

function boxAround(scene, slots, radius, rooms) {
  const rects = [...slots.map((slot) => [scene.x[slot], scene.y[slot], 2 * radius(slot), 2 * radius(slot)]), ...rooms];
  const edge = (axis, sign) => Math[sign < 0 ? "min" : "max"](...rects.map((rect) => rect[axis] + sign * (rect[axis + 2] / 2 + 12)));
  const [left, right, top, bottom] = [edge(0, -1), edge(0, 1) + 34, edge(1, -1), edge(1, 1)]; // room for buttons
  const [width, height] = [Math.max(right - left, 300), Math.max(bottom - top, 190)];
  return [(left + right - width) / 2, (top + bottom - height) / 2, width, height];
}

function drawSentence(scene, nodeValues, focus) {
  const marked = new Set((scene.truth || []).flatMap((k) => scene.ends[k]));
  const root = make("p", {class: "sentence"});
  const partOf = new Map(focus ? [] : severalParts(scene).flatMap(({slots}, number) => slots.map((slot) => [slot, number])));
  scene.ids.forEach((id, slot) => {
    const value = nodeValues[slot];
    const core = focus ? focus.has(slot) : scene.level[slot] === 0;
    const kind = "word" + (value ? "" : " none") + shade(value) + (explained(scene, slot) ? " ring" : "") +
      (core ? " core" : focus ? " faded" : "") + (partOf.has(slot) ? ` part-${(partOf.get(slot) % 4) + 1}` : "");
    if (slot) root.append(" ");
    root.append(make("span", {class: kind + (marked.has(slot) ? " marked" : ""), v: value, "data-node": slot}, scene.labels[slot]));
    if (partOf.has(slot)) root.append(make("sup", {class: "quiet"}, String(partOf.get(slot) + 1)));
  });
  return root;
}
