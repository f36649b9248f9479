"use strict";
// Draws a case as SVG or as a sentence. Text only ever goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function make(tag, attributes, ...children) {
  const svg = ["svg", "g", "line", "circle", "text", "rect", "title", "path", "linearGradient", "stop"].includes(tag);
  const element = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "v") element.style.setProperty("--v", (100 * Math.min(Math.max(value, 0), 1)).toFixed(1) + "%");
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

const digits = (value, count = 3) => (value === null || value === undefined ? "–" : value.toFixed(count));
const shade = (value) => (value > 0.75 ? " mid high" : value > 0.55 ? " mid" : "");
const short = (text, count) => ([...text].length > count ? [...text].slice(0, count - 1).join("") + "…" : text);

// Gives {root, nodes, edges}: the drawing, and for each node and edge the elements that fade together.
function draw(scene, nodeValues, edgeValues) {
  if (scene.kind === "sentence") return drawSentence(scene, nodeValues);
  const [width, height, radius] = scene.size;
  const root = make("svg", {viewBox: `0 0 ${width} ${height}`, role: "img"});
  const nodes = scene.ids.map(() => []);
  const edges = scene.ends.map(() => []);
  const layers = ["under", "lines", "dots", "over"].map(() => root.appendChild(make("g")));
  const add = (layer, list, element) => { layers[layer].append(element); if (list) list.push(element); };
  const at = (k) => {
    const [a, b] = scene.ends[k];
    return {x1: scene.x[a], y1: scene.y[a], x2: scene.x[b], y2: scene.y[b]};
  };
  const molecule = scene.kind === "molecule";
  const thick = (value) => (molecule ? 13 : 1 + 5 * value);
  const truth = scene.truth || [];
  for (const k of truth) {
    add(0, null, make("line", {...at(k), class: "truth", "stroke-width": thick(edgeValues[k]) + 8}));
    add(0, null, make("line", {...at(k), class: "gap", "stroke-width": thick(edgeValues[k]) + 4}));
  }
  for (const slot of new Set(truth.flatMap((k) => scene.ends[k]))) {
    add(0, null, make("circle", {cx: scene.x[slot], cy: scene.y[slot], r: radius + 5, class: "truth"}));
  }
  const order = scene.ends.map((_, k) => k).sort((a, b) => edgeValues[a] - edgeValues[b]);
  for (const k of order) {
    const value = edgeValues[k];
    const title = make("title", null, `${scene.names[scene.ends[k][0]]} – ${scene.names[scene.ends[k][1]]}: ${digits(value)}`);
    if (molecule) {
      if (value > 0) add(1, edges[k], make("line", {...at(k), class: "bandage", v: value, "stroke-width": thick(value)}, title));
      bond(at(k), scene.order[k]).forEach((line) => add(2, null, line));
    } else {
      const kind = value > 0 ? "edge" : "edge none";
      add(1, edges[k], make("line", {...at(k), class: kind, v: value, "stroke-width": thick(value)}, title));
    }
  }
  scene.ids.forEach((id, slot) => {
    const value = nodeValues[slot];
    const place = {cx: scene.x[slot], cy: scene.y[slot]};
    const title = make("title", null, `${scene.names[slot]}: ${digits(value)}`);
    const ring = slot === scene.ring ? " ring" : "";
    const text = scene.labels ? scene.labels[slot] : String(id);
    const shown = short(text, 5);
    if (molecule) {
      add(1, nodes[slot], make("circle", {...place, r: 13, class: value > 0 ? "halo" : "halo none", v: value}, title));
      if (ring) add(1, nodes[slot], make("circle", {...place, r: 15, class: "node ring", "fill-opacity": 0}));
      if (!shown) return;
      const small = shown === "H";
      add(3, null, make("circle", {...place, r: small ? 6 : 8, class: value > 0 ? "halo" : "mask", v: value}));
      add(3, null, letter(place, shown, small ? 11 : 15, value));
    } else {
      add(2, nodes[slot], make("circle", {...place, r: radius + (ring ? 1.5 : 0), class: "node" + ring, v: value}, title));
      const size = Math.min(radius * 0.9, (radius * 2.7) / Math.max([...shown].length, 1));
      if (size >= 3.5) add(2, nodes[slot], letter(place, shown, size, value));
    }
  });
  return {root, nodes, edges};
}

function letter(place, text, size, value) {
  return make("text", {x: place.cx, y: place.cy, "font-size": size.toFixed(1), class: "label" + shade(value)}, text);
}

function bond({x1, y1, x2, y2}, order) {
  const long = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [dx, dy] = [(-(y2 - y1) / long) * 2.6, ((x2 - x1) / long) * 2.6];
  const line = (shift, kind) => make("line", {
    x1: x1 + shift * dx, y1: y1 + shift * dy, x2: x2 + shift * dx, y2: y2 + shift * dy, class: "bond" + kind,
  });
  if (order === 0) return [line(0, " dotted")];
  if (order === 1.5) return [line(-0.8, ""), line(0.8, " dotted")];
  if (order === 2) return [line(-0.9, ""), line(0.9, "")];
  if (order === 3) return [line(-1.6, ""), line(0, ""), line(1.6, "")];
  return [line(0, "")];
}

function drawSentence(scene, nodeValues) {
  const marked = new Set((scene.truth || []).flatMap((k) => scene.ends[k]));
  const root = make("p", {class: "sentence"});
  const nodes = scene.ids.map((id, slot) => {
    const value = nodeValues[slot];
    const kind = "word" + (value > 0 ? "" : " none") + shade(value) + (slot === scene.ring ? " ring" : "");
    const word = make("span", {class: kind + (marked.has(slot) ? " marked" : ""), v: value,
      title: `${scene.names[slot]}: ${digits(value)}`}, scene.labels[slot]);
    if (slot) root.append(" ");
    root.append(word);
    return [word];
  });
  return {root, nodes, edges: []};
}
