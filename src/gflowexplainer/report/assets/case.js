// Puts one case together: picture, slider, class probabilities, ranked subgraphs, other explainers.

const className = (scene, k) => (scene.classes && scene.classes[k] !== undefined ? scene.classes[k] : "class " + k);

function renderCase(scene, interactive) {
  const picture = draw(scene, scene.p, scene.q);
  const what = scene.kind === "sentence" ? "words" : scene.kind === "molecule" ? "atoms" : "nodes";
  if (scene.kind !== "sentence") {
    picture.root.setAttribute("aria-label",
      `${scene.name}: ${scene.ids.length} ${what}, coloured by probability; the listed subgraphs say the same in words.`);
  }
  const stage = make("div", {class: "stage"}, picture.root);
  const left = make("div", null, stage);
  const right = make("div");
  const root = make("div", {class: "case"},
    make("div", {class: "wide"},
      make("h2", null, scene.name),
      scene.note ? make("p", {class: "user"}, scene.note) : null,
      ...scene.notes.map((note) => make("p", {class: "quiet"}, note))),
    left, right);
  const multiples = scene.others.length ? others(scene) : null;
  const classes = make("div");
  const rows = [];
  let chosen = null;

  const show = (inside, joined) => {
    picture.nodes.forEach((list, slot) => list.forEach((e) => e.classList.toggle("faded", !inside(slot))));
    picture.edges.forEach((list, k) => list.forEach((e) => e.classList.toggle("faded", !joined(k))));
  };
  const between = (inside) => (k) => inside(scene.ends[k][0]) && inside(scene.ends[k][1]);
  const choose = (number) => {
    chosen = number;
    rows.forEach((row, i) => {
      row.classList.toggle("chosen", i === number);
      row.querySelector("button")?.setAttribute("aria-pressed", String(i === number));
    });
    classes.replaceChildren(classTable(scene, scene.subgraphs[number === null ? 0 : number], number));
  };

  let reset = () => {};
  if (interactive) {
    const panel = controls(scene, what, (inside, joined) => { choose(null); show(inside, joined || between(inside)); });
    reset = panel.reset;
    left.append(panel.root);
    if (scene.truth) {
      const box = make("input", {type: "checkbox", checked: true});
      box.addEventListener("change", () => root.classList.toggle("no-truth", !box.checked));
      panel.root.append(make("label", null, box, " ground truth"));
    }
  }
  left.append(legend(scene));
  right.append(classes, make("h3", null, "Ranked subgraphs"));
  const body = make("tbody");
  const listed = interactive ? scene.subgraphs : scene.subgraphs.slice(0, 4);
  listed.forEach((subgraph, number) => {
    const text = subgraph.text;
    const label = interactive ? make("button", {type: "button", "aria-pressed": "false"}, text) : text;
    const row = make("tr", {"data-subgraph": number},
      make("td", {class: "user"}, label),
      make("td", {class: "number"}, bar(subgraph.p)),
      make("td", {class: "number"}, digits(subgraph.r)));
    if (interactive) {
      row.addEventListener("click", () => {
        if (chosen === number) return reset();
        reset();
        choose(number);
        const slots = new Set(subgraph.slots);
        show((slot) => slots.has(slot), between((slot) => slots.has(slot)));
      });
    }
    rows.push(row);
    body.append(row);
  });
  right.append(make("div", {class: "scroll ranked"}, make("table", null,
    make("thead", null, make("tr", null, make("th", {scope: "col"}, what),
      make("th", {scope: "col", class: "number"}, "probability"), make("th", {scope: "col", class: "number"}, "reward"))),
    body)));
  const more = scene.more + scene.subgraphs.length - listed.length;
  if (more > 0) right.append(make("p", {class: "quiet"}, `and ${more} less probable ones.`));
  scene.facts.forEach((fact) => right.append(make("p", {class: "quiet"}, fact)));
  if (multiples) root.append(multiples);
  choose(null);
  return {root, reset: () => reset()};
}

// A slider over the number of nodes or the probability; tells `show` which nodes and edges are in.
function controls(scene, what, show) {
  const range = make("input", {type: "range", "aria-label": "how much is shown"});
  const output = make("output");
  const ranked = scene.p.map((_, slot) => slot)
    .sort((a, b) => (b === scene.ring) - (a === scene.ring) || scene.p[b] - scene.p[a] || a - b);
  const place = new Map(ranked.map((slot, i) => [slot, i]));
  const some = Math.max(scene.p.filter((p) => p > 0).length, 1);
  const mode = (value, text, checked) => {
    const radio = make("input", {type: "radio", name: "mode", value, checked});
    radio.addEventListener("change", () => { start(value); apply(); });
    return make("label", null, radio, " " + text);
  };
  let current = "probability";
  const start = (value) => {
    current = value;
    const bounds = value === "size" ? [1, some, 1, some] : [0, 1, 0.01, 0];
    ["min", "max", "step", "value"].forEach((name, i) => { range[name] = bounds[i]; });
  };
  const apply = () => {
    const value = Number(range.value);
    const count = (list) => list.filter(Boolean).length;
    let inside = (slot) => place.get(slot) < value;
    let joined = (k) => inside(scene.ends[k][0]) && inside(scene.ends[k][1]);
    let text = `the ${value} most probable ${what}`;
    if (current === "probability") {
      inside = (slot) => scene.p[slot] >= value;
      joined = (k) => scene.q[k] >= value;
      text = value === 0 ? `all ${what}` : `${what} of probability ≥ ${value.toFixed(2)}: ${count(scene.p.map((_, s) => inside(s)))}`;
    }
    range.setAttribute("aria-valuetext", text);
    output.textContent = text;
    show(inside, joined);
  };
  range.addEventListener("input", apply);
  const root = make("div", {class: "controls"},
    make("fieldset", null, make("legend", null, "Show by"), mode("probability", "probability", true), mode("size", "size", false)),
    range, output);
  const reset = () => { start(current); apply(); };
  start(current);
  output.textContent = `all ${what}`;
  return {root, reset};
}

function bar(value) {
  const length = make("i");
  length.style.width = `${100 * Math.min(Math.max(value || 0, 0), 1)}%`;
  return make("span", {class: "bar"}, length, digits(value));
}

// Class probabilities (or values) on the whole graph, with only the subgraph, and without it.
function classTable(scene, subgraph, number) {
  const columns = [["whole graph", scene.whole], ["with only it", subgraph.only], ["without it", subgraph.without]]
    .filter(([, values]) => values);
  const count = subgraph.only.length;
  const regression = scene.held === null && count === 1;
  const weight = (k) => (k === scene.held ? 9 : 0) + (scene.whole || subgraph.only)[k];
  const classes = subgraph.only.map((_, k) => k).sort((a, b) => weight(b) - weight(a) || a - b);
  const shown = classes.slice(0, 5).sort((a, b) => a - b);
  const cell = (value) => make("td", {class: "number"}, regression ? digits(value) : bar(value));
  const body = make("tbody", null, ...shown.map((k) => make("tr", {class: k === scene.held ? "held" : null},
    make("th", {scope: "row", class: "user"}, regression ? "value" : short(className(scene, k), 32) + (k === scene.held ? " (explained)" : "")),
    ...columns.map(([, values]) => cell(values[k])))));
  const which = number === null ? "most probable subgraph" : `chosen subgraph, number ${number + 1}`;
  return make("div", null, make("h3", null, `${regression ? "Prediction" : "Class probabilities"}: ${which}`),
    make("div", {class: "scroll plain"}, make("table", null, make("thead", null, make("tr", null, make("td"),
      ...columns.map(([name]) => make("th", {scope: "col", class: "number"}, name)))), body)),
    classes.length > shown.length ? make("p", {class: "quiet"}, `and ${classes.length - shown.length} other classes.`) : null,
    make("p"));
}

function legend(scene) {
  const scale = make("svg", {viewBox: "0 0 100 14", "aria-hidden": "true"},
    ...Array.from({length: 20}, (_, i) => make("rect", {x: i * 5, y: 1, width: 5.2, height: 12, class: "halo", v: (i + 0.5) / 20})));
  const sample = (kind) => make("svg", {viewBox: "0 0 24 24", "aria-hidden": "true"},
    make("circle", {cx: 12, cy: 12, r: 8, class: "node", v: 0}), make("circle", {cx: 12, cy: 12, r: kind === "truth" ? 11 : 9, class: kind, "fill-opacity": 0}));
  return make("div", {class: "legend"},
    make("span", null, "probability 0 ", scale, "1"),
    scene.ring === null ? null : make("span", null, sample("node ring"), "explained"),
    scene.truth ? make("span", null, scene.kind === "sentence" ? "dashed underline: ground truth" : sample("truth"),
      scene.kind === "sentence" ? "" : "ground truth", scene.found ? ` (${scene.found[0]} of ${scene.found[1]} edges found)` : "") : null);
}

function others(scene) {
  const figure = (name, nodes, edges) => {
    const picture = draw(scene, nodes, edges);
    if (scene.kind !== "sentence") picture.root.setAttribute("aria-label", `scores of ${name}`);
    return make("figure", null, picture.root, make("figcaption", {class: "user"}, name));
  };
  return make("div", {class: "wide"}, make("h3", null, "Other explainers"),
    make("p", {class: "quiet"}, "Edge scores of each, divided by its largest on this instance; nodes take the largest score of their edges."),
    make("div", {class: "small"}, figure("this explanation", scene.p, scene.q),
      ...scene.others.map((other) => figure(other.name, other.p, other.q))));
}
