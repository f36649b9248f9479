// The stage: one drawing that can be zoomed, moved and asked; levels show more and more of the graph around it.

const LEVELS = ["explanation", "neighbours", "surroundings"];

function makeStage(scene, interactive) {
  const root = make("div", {class: "stage"});
  const tip = make("div", {class: "tip", hidden: true});
  const what = scene.kind === "sentence" ? "words" : scene.kind === "molecule" ? "atoms" : "nodes";
  const counts = LEVELS.map((_, number) => scene.level.filter((own) => own <= number).length);
  let level = counts[1] > counts[0] || counts[2] === counts[0] ? 1 : 2;
  let focus = null;
  let fitted = null;
  let box = null;
  let svg = null;

  const frame = (next) => {
    box = next;
    svg.setAttribute("viewBox", box.map((value) => value.toFixed(1)).join(" "));
  };
  const render = () => {
    const drawn = draw(scene, scene.v, scene.q, level, focus);
    if (scene.kind !== "sentence") {
      drawn.root.setAttribute("aria-label", `${scene.name}: ${scene.ids.length} ${what}, coloured by ${scene.most === null ? "probability" : "what each adds to the value"}; ` +
        "the listed subgraphs say the same in words.");
      svg = drawn.root;
      fitted = drawn.box;
      frame(fitted);
      if (interactive) svg.setAttribute("tabindex", "0");
    }
    root.replaceChildren(drawn.root, ...(interactive ? [tip, ...(svg ? [buttons] : [])] : []));
    tip.hidden = true;
  };
  const zoom = (factor, x = 0.5, y = 0.5) => {
    const width = Math.min(Math.max(box[2] * factor, fitted[2] / 12), fitted[2] * 4);
    const height = (box[3] * width) / box[2];
    frame([box[0] + (box[2] - width) * x, box[1] + (box[3] - height) * y, width, height]);
  };
  const move = (dx, dy) => frame([box[0] + dx, box[1] + dy, box[2], box[3]]);
  const button = (text, name, act) => {
    const made = make("button", {type: "button", "aria-label": name, title: name}, text);
    made.addEventListener("click", act);
    return made;
  };
  const buttons = make("div", {class: "zoom screen"}, button("+", "zoom in", () => zoom(0.75)),
    button("−", "zoom out", () => zoom(1 / 0.75)), button("⤢", "fit", () => frame(fitted)));

  const levels = make("fieldset", {class: "levels"}, make("legend", null, "Show"));
  const show = (next) => {
    level = next;
    levels.querySelectorAll("input").forEach((radio) => { radio.checked = Number(radio.value) === level; });
    render();
  };
  const group = `level-${Math.random()}`;
  counts.forEach((count, number) => {
    if (scene.kind !== "graph" || (number && count === counts[number - 1])) return;
    const radio = make("input", {type: "radio", name: group, value: number, checked: number === level});
    radio.addEventListener("change", () => { focus = null; root.dispatchEvent(new Event("shown")); show(number); });
    levels.append(make("label", null, radio, ` ${LEVELS[number]}`, make("span", {class: "quiet"}, ` ${count}`)));
  });

  if (interactive) {
    const say = (target, x, y) => {
      const node = target?.closest?.("[data-node]");
      const edge = target?.closest?.("[data-edge]");
      if (!node && !edge) { tip.hidden = true; return; }
      tip.replaceChildren(...(node ? aboutNode(scene, Number(node.dataset.node)) : aboutEdge(scene, Number(edge.dataset.edge))));
      tip.hidden = false;
      const area = root.getBoundingClientRect();
      tip.style.left = `${Math.max(Math.min(x - area.left + 14, area.width - tip.offsetWidth - 6), 4)}px`;
      tip.style.top = `${Math.max(Math.min(y - area.top + 14, area.height - tip.offsetHeight - 6), 4)}px`;
    };
    let held = null;
    root.addEventListener("pointermove", (event) => {
      if (!held) return say(event.target, event.clientX, event.clientY);
      const scale = box[2] / svg.getBoundingClientRect().width;
      move((held[0] - event.clientX) * scale, (held[1] - event.clientY) * scale);
      held = [event.clientX, event.clientY];
    });
    root.addEventListener("pointerleave", () => { tip.hidden = true; });
    root.addEventListener("pointerdown", (event) => {
      if (!svg || !event.target.closest("svg") || event.target.closest("[data-more]") || event.pointerType === "touch") return;
      held = [event.clientX, event.clientY];
      root.setPointerCapture(event.pointerId);
      tip.hidden = true;
    });
    root.addEventListener("pointerup", () => { held = null; });
    // A page that is scrolled over a drawing goes on scrolling: zooming asks for a key, as maps do.
    root.addEventListener("wheel", (event) => {
      if (!svg || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      const area = svg.getBoundingClientRect();
      zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, (event.clientX - area.left) / area.width, (event.clientY - area.top) / area.height);
    }, {passive: false});
    root.addEventListener("focusin", (event) => {
      const area = event.target.getBoundingClientRect();
      if (event.target.matches("[data-node]")) say(event.target, area.right, area.bottom);
    });
    root.addEventListener("click", (event) => { if (event.target.closest(".more.press")) show(2); });
    root.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !svg) return;
      const step = box[2] / 10;
      const act = {"+": () => zoom(0.75), "=": () => zoom(0.75), "-": () => zoom(1 / 0.75), 0: () => frame(fitted),
        ArrowLeft: () => move(-step, 0), ArrowRight: () => move(step, 0), ArrowUp: () => move(0, -step), ArrowDown: () => move(0, step)};
      if (["Enter", " "].includes(event.key) && event.target.closest(".more.press")) { event.preventDefault(); show(2); }
      else if (act[event.key] && !event.target.closest("button")) { event.preventDefault(); event.stopPropagation(); act[event.key](); }
    });
  }
  render();
  return {root, levels: levels.children.length > 2 ? levels : null,
    highlight: (slots) => { focus = slots && new Set(slots); render(); }};
}

function aboutNode(scene, slot) {
  const line = (text, name) => make("div", {class: name}, text);
  return [line(scene.names[slot], "user strong"), line(`probability ${digits(scene.p[slot])}`),
    scene.most === null ? "" : line(`adds ${signed(scene.v[slot] * scene.most)} to the value`),
    scene.kinds ? line(scene.types[scene.kinds[slot]], "user") : "",
    line(`${scene.degree[slot]} neighbour${scene.degree[slot] === 1 ? "" : "s"}`),
    scene.features && scene.features[slot] ? line(`features: ${scene.features[slot]}`) : ""];
}

function aboutEdge(scene, k) {
  const [a, b] = scene.ends[k];
  return [make("div", {class: "user strong"}, `${scene.names[a]} – ${scene.names[b]}`), make("div", null, `probability ${digits(scene.q[k])}`),
    scene.relations && scene.relations[k] ? make("div", {class: "user"}, scene.relations[k]) : ""];
}
