"use strict";
/* The explorer. All text of runs reaches the page as text (textContent); nothing is made of markup. */

const SIGNS = { right: "✓", wrong: "✗", unscored: "○", failed: "!", "not asked": "–" };
const STATE = { 1: "right", 0: "wrong", u: "unscored", f: "failed", n: "not asked" };
const MEANING = ["right without its image", "right on one part alone", "right on the whole alone", "never right"];
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const HEIGHT = 54, MOST = 500000, KEPT = 50;
const FILTERS = { task: "", cat: "", need: "", by: "0", first: "", pair: "", out: "", sort: "", q: "" };
const DEFAULTS = { ...FILTERS, doc: "", grid: "" };

const $ = (id) => document.getElementById(id);
const form = $("filters"), list = $("list"), space = $("space"), article = $("doc");
let about, columns, state = { ...DEFAULTS }, rows = [], at = -1, shown = null;

/* --- small things --- */

function make(tag, options, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(options || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "text") node.textContent = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  node.append(...children.flat().filter((one) => one !== null && one !== undefined));
  return node;
}

const many = () => about.models.length > 1;
const number = (value) => value.toLocaleString("en");
const percent = ([value, low, high]) => `${Math.round(100 * value)}\u00a0%${low === null ? "" : ` [${Math.round(100 * low)}, ${Math.round(100 * high)}]`}`;
const told = (view) => view.state + (view.unfinished ? ", unfinished" : "");
const muted = (text) => make("p", { class: "muted", text });

function sign(view) {
  return make("span", { class: `sign is-${view.state.split(" ")[0]}`, title: told(view) },
    make("span", { "aria-hidden": "true", text: SIGNS[view.state] + (view.unfinished ? "…" : "") }), make("span", { class: "sr", text: told(view) }));
}

function longText(text) {
  const scrolls = text.length > 300 ? { tabindex: "0", role: "region", "aria-label": "the whole text" } : {};
  return make("p", { class: "text", dir: "auto", text, ...scrolls });
}

const copier = (label, text) => make("button", { type: "button", text: label, onclick: async ({ currentTarget: button }) => {
  try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { button.textContent = "Not allowed here"; }
  setTimeout(() => { button.textContent = label; }, 1200);
} });

/* --- pieces: a page from disk can load scripts alone, so each piece is one that calls ``arrived`` --- */

const waiting = new Map(), pieces = new Map();
window.arrived = (name, value) => waiting.get(name)(value);

function piece(name) {
  if (!pieces.has(name)) {
    const node = make("script", { src: `data/${name}.js` });
    pieces.set(name, new Promise((done, failed) => {
      waiting.set(name, done);
      node.addEventListener("error", () => { pieces.delete(name); failed(new Error(`data/${name}.js cannot be read: the whole folder belongs to this page`)); });
    }).finally(() => node.remove()));
    document.head.append(node);
    const docs = [...pieces.keys()].filter((one) => one.includes("-"));
    if (docs.length > KEPT) pieces.delete(docs[0]);
  }
  return pieces.get(name);
}

/* --- the state in the address --- */

function readState() {
  const given = new URLSearchParams(location.hash.slice(1));
  state = { ...DEFAULTS };
  for (const key of Object.keys(DEFAULTS)) if (given.has(key)) state[key] = given.get(key).slice(0, 500);
}

function writeState(push) {
  const hash = `#${new URLSearchParams(Object.entries(state).filter(([key, value]) => value !== DEFAULTS[key]))}`;
  if (hash !== (location.hash || "#")) history[push ? "pushState" : "replaceState"](null, "", hash);
}

function change(changes, push = true) {
  if ("task" in changes && changes.task !== state.task && !("cat" in changes)) changes.cat = "";
  Object.assign(state, changes);
  writeState(push);
  show();
}

/* --- which docs --- */

const model = () => Math.min(Number(state.by) || 0, about.models.length - 1);
const taskNow = () => (about.tasks.length === 1 ? 0 : about.tasks.findIndex((task) => task.name === state.task));

/* What a doc needs: by its image alone where it was not asked without it. */
function needOf(side, place) {
  if (!side) return { need: -1 };
  const sure = side.need[place] !== "-", digit = sure ? side.need[place] : side.image[place];
  return { need: digit === "-" ? -1 : Number(digit), sure };
}

function keeps(column) {
  const side = column.sides[model()], words = state.q.toLowerCase(), tests = [];
  const category = column.categories.indexOf(state.cat), [one, two] = column.sides;
  const has = (texts, place) => texts[place].toLowerCase().includes(words);
  if (state.cat) tests.push((place) => category >= 0 && column.category[place] === category);
  if (state.first === "cut") tests.push((place) => side && side.unfinished[place] === "1");
  else if (state.first) tests.push((place) => (side ? side.first[place] : "n") === state.first);
  if (state.out) tests.push((place) => side && side[state.out][place] === "1");
  if (state.pair && many()) tests.push((place) => one && two && state.pair.split(" ").includes(one.first[place] + two.first[place]));
  if (words) tests.push((place) => String(column.ids[place]) === words || has(column.questions, place) || has(column.golds, place)
    || (column.categories[column.category[place]] || "").toLowerCase().includes(words) || column.sides.some((each) => each && has(each.answers, place)));
  return (place) => tests.every((test) => test(place));
}

function filter() {
  const wanted = about.needs.indexOf(state.need), counts = about.needs.map(() => ({ sure: 0, maybe: 0 }));
  rows = [];
  columns.forEach((column, task) => {
    if (taskNow() >= 0 && task !== taskNow()) return;
    const keep = keeps(column);
    for (let place = 0; place < column.ids.length; place++) {
      if (!keep(place)) continue;
      const { need, sure } = needOf(column.sides[model()], place);
      if (need >= 0) counts[need][sure ? "sure" : "maybe"]++;
      if (wanted < 0 || need === wanted) rows.push({ task, place });
    }
  });
  if (state.sort) {
    const cells = ({ task, place }) => (columns[task].sides[model()] ? columns[task].sides[model()].cells[place] : 0);
    rows.sort((a, b) => (state.sort === "most" ? cells(b) - cells(a) : cells(a) - cells(b)));
  }
  return counts;
}

const keyOf = ({ task, place }) => `${about.tasks[task].name}:${columns[task].ids[place]}`;

/* --- showing --- */

function show() {
  fillForm();
  const counts = filter(), all = about.tasks.reduce((sum, task) => sum + task.docs, 0);
  $("count").textContent = `${number(rows.length)} of ${number(all)} docs${rows.length > MOST ? `; the list shows the first ${number(MOST)}` : ""}`;
  $("clear").disabled = Object.keys(FILTERS).every((key) => state[key] === FILTERS[key]);
  showNeeds(counts);
  showBars();
  at = rows.findIndex((row) => keyOf(row) === state.doc);
  if (at < 0 && rows.length) {
    at = 0;
    state.doc = keyOf(rows[0]);
    writeState(false);
  }
  space.style.height = `${Math.min(rows.length, MOST) * HEIGHT}px`;
  scrollTo(at);
  showRows();
  showDoc();
}

function options(name, given) {
  form[name].replaceChildren(...given.map(([value, text]) => make("option", { value, text })));
  form[name].value = state[name];
  form[name].parentNode.hidden = given.length < 2;
}

function fillForm() {
  const known = taskNow() >= 0 ? columns[taskNow()].categories : [...new Set(columns.flatMap((one) => one.categories))].sort();
  options("task", [...(about.tasks.length > 1 ? [["", "all tasks"]] : []), ...about.tasks.map(({ name }) => [about.tasks.length > 1 ? name : "", name])]);
  options("cat", [["", "all"], ...known.map((name) => [name, name])]);
  options("by", about.models.map((name, place) => [String(place), name]));
  form.pair.parentNode.hidden = !many();
  for (const name of ["first", "pair", "out", "sort"]) form[name].value = state[name];
  if (document.activeElement !== $("q")) $("q").value = state.q;
}

/* The shares that the choice is of: of the task, or of its category. */
function shares() {
  if (taskNow() < 0) return null;
  const task = about.tasks[taskNow()];
  return (state.cat ? task.parts[state.cat] || [] : task.maps)[model()] || null;
}

function ofShares() {
  if (taskNow() < 0) return "Choose a class, a part of a bar, or a task.";
  const task = about.tasks[taskNow()], map = shares(), of = state.cat ? `category ${state.cat}` : "this task";
  const note = task.note ? ` Note: ${task.note}.` : "";
  if (!map) return `No shares are known of ${of}.${note}`;
  const known = about.needs.map((need) => map.shares[need][0] === null ? null : `${need} ${percent(map.shares[need])}`).filter(Boolean);
  const how = `${task.clips ? `${map.n} segments` : `grid ${map.n}×${map.n}`}; ${number(map.again)} of ${number(map.docs)} docs asked again`;
  const level = known.length ? `, ${+(100 * map.level).toFixed(2)} % intervals` : "";
  return `Shares of the docs of ${of}${many() ? ` by ${about.models[model()]}` : ""}, luck removed (${how}${level}): ${known.join(", ") || `none, ${map.reason}`}. Docs as they answer:${note}`;
}

function kept(box, draw) {
  const focus = box.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  box.replaceChildren(...draw());
  if (focus) [...box.querySelectorAll("[data-key]")].find((node) => node.dataset.key === focus)?.focus();
}

function showNeeds(counts) {
  $("of").textContent = ofShares();
  kept($("needs"), () => about.needs.map((need, place) => {
    const { sure, maybe } = counts[place], text = `${number(sure + maybe)} docs${maybe ? `, ${number(maybe)} not checked` : ""}`;
    return make("li", {}, make("button", { type: "button", "data-key": need, "aria-pressed": String(state.need === need), onclick: () => change({ need: state.need === need ? "" : need }) },
      make("span", { class: `swatch need${place}` }), make("span", { text: need }), make("span", { class: "muted", text: MEANING[place] }), make("span", { class: "muted count", text })));
  }));
}

function showBars() {
  kept($("bars"), () => about.tasks.map((task) => {
    const chosen = state.task === task.name, why = task.maps.map((map) => map && map.reason).find(Boolean);
    const bars = task.maps.map((map, side) => map && map.shares[about.needs[0]][0] !== null ? bar(task, map, side) : null).filter(Boolean);
    return make("div", { class: "row" },
      make("button", { type: "button", class: "task", "data-key": task.name, "aria-pressed": String(chosen), title: task.name, text: task.name, onclick: () => change({ task: chosen ? "" : task.name }) }),
      make("div", {}, bars.length ? bars : make("span", { class: "muted", title: why, text: why ? `no shares: ${why}` : "no shares" })));
  }));
}

function bar(task, map, side) {
  const name = task.name + (many() ? `, ${about.models[side]}` : ""), total = about.needs.reduce((sum, need) => sum + map.shares[need][0], 0) || 1;
  return make("div", { class: "bar", role: "group", "aria-label": name }, about.needs.map((need, place) => {
    const share = map.shares[need], part = share[0] / total, chosen = state.task === task.name && state.need === need && model() === side;
    if (!part) return null;
    const node = make("button", { type: "button", class: `need${place}`, "data-key": `${name}/${need}`, title: `${name}: ${need} ${percent(share)}`, "aria-label": `${need}, ${percent(share)}`,
      "aria-pressed": String(chosen), text: part > 0.2 ? `${need} ${Math.round(100 * share[0])} %` : part > 0.055 ? `${Math.round(100 * share[0])} %` : "",
      onclick: () => change(chosen ? { need: "" } : { task: task.name, need, by: String(side) }) });
    node.style.width = `${100 * part}%`;
    return node;
  }));
}

/* --- the list --- */

function scrollTo(place) {
  const top = place * HEIGHT, height = list.clientHeight;
  if (place >= 0 && top < list.scrollTop) list.scrollTop = top;
  else if (place >= 0 && top + HEIGHT > list.scrollTop + height) list.scrollTop = top + HEIGHT - height;
}

function showRows() {
  const length = Math.min(rows.length, MOST), from = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 4);
  const nodes = rows.slice(from, Math.min(length, Math.ceil((list.scrollTop + list.clientHeight) / HEIGHT) + 4)).map((row, i) => item(row, from + i, length));
  if (at >= from && at < from + nodes.length) list.setAttribute("aria-activedescendant", `item-${at}`);
  else list.removeAttribute("aria-activedescendant");
  const none = make("div", { class: "item", role: "option", "aria-disabled": "true", "aria-selected": "false" }, muted("No doc is like this. Clear filters to see all."));
  space.replaceChildren(...(length ? nodes : [none]));
}

function item({ task, place }, i, length) {
  const column = columns[task], category = column.categories[column.category[place]];
  const marks = column.sides.map((side) => side && sign({ state: STATE[side.first[place]], unfinished: side.unfinished[place] === "1" }));
  const what = [about.tasks.length > 1 && !state.task ? about.tasks[task].name : "", category].filter(Boolean).join(" · ");
  const node = make("div", { class: "item", role: "option", id: `item-${i}`, "aria-selected": String(i === at), "aria-setsize": length, "aria-posinset": i + 1, onclick: () => step(i, true) },
    make("p", { class: "first" }, marks, make("span", { text: `#${column.ids[place]}` }), make("span", { class: "what", text: what }), chip(column.sides[model()], place)),
    make("p", { dir: "auto", text: column.questions[place] || "(no text)" }));
  node.style.top = `${i * HEIGHT}px`;
  return node;
}

function chip(side, place) {
  const { need, sure } = needOf(side, place);
  return need < 0 ? null : make("span", { class: `chip ${sure ? `need${need}` : ""}`, title: sure ? MEANING[need] : "not asked without its image: it may be text", text: about.needs[need] + (sure ? "" : "?") });
}

function step(place, push = false) {
  if (place < 0 || place >= Math.min(rows.length, MOST)) return;
  at = place;
  state.doc = keyOf(rows[place]);
  writeState(push);
  scrollTo(place);
  showRows();
  showDoc();
  if (push && window.innerWidth < 900) { article.focus(); article.scrollIntoView(); }
}

/* --- the doc --- */

async function showDoc() {
  const row = rows[at];
  if (!row) { shown = null; return article.replaceChildren(muted("No doc is like this. Clear filters to see all.")); }
  const key = keyOf(row);
  try {
    const docs = await piece(`${row.task}-${Math.floor(row.place / about.piece)}`);
    if (!rows[at] || keyOf(rows[at]) !== key) return;
    fault("");
    const same = shown && shown.key === key;
    if (!same) article.scrollTop = 0;
    if (!same || shown.grid !== state.grid) {
      shown = { key, grid: state.grid, ...row, doc: docs[row.place % about.piece] };
      draw();
    }
    article.querySelector("[data-key=before]").disabled = at <= 0;
    article.querySelector("[data-key=after]").disabled = at >= rows.length - 1;
  } catch (error) { fault(error.message); }
}

function fault(text) {
  $("fault").textContent = text;
  $("fault").hidden = !text;
}

function draw() {
  const { doc, task, place } = shown, known = doc.sides.map((side, which) => ({ ...side, which, name: about.models[which] })).filter(({ views }) => views);
  const grids = [...new Set(known.flatMap(({ views }) => views.map(({ n, row }) => (row === undefined ? 0 : n))))].filter(Boolean).sort((a, b) => a - b);
  const grid = grids.includes(Number(state.grid)) ? Number(state.grid) : grids[grids.length - 1];
  const chips = columns[task].sides.map((side, which) => { const made = chip(side, place); return made && make("span", {}, many() ? make("span", { class: "muted", text: `${about.models[which]}: ` }) : null, made); });
  const chooser = grids.length > 1 ? make("div", { class: "grids", role: "group", "aria-label": "Grid" }, grids.map((n) =>
    make("button", { type: "button", "data-key": `grid ${n}`, "aria-pressed": String(n === grid), text: about.tasks[task].clips ? `${n} segments` : `${n} × ${n}`, onclick: () => change({ grid: String(n) }, false) }))) : null;
  const pictures = make("div", {}, chooser, make("div", { class: known.length > 1 ? "pair" : "" }, known.map((side) => figure(doc, side, grid))));
  kept(article, () => [
    make("div", { class: "head" }, make("h2", { text: `Doc ${doc.id}` }), make("span", { class: "muted", text: about.tasks[task].name }), chips, copier("Copy id", String(doc.id)),
      make("span", { class: "step" }, make("button", { type: "button", "data-key": "before", "aria-keyshortcuts": "k", text: "← Before", onclick: () => step(at - 1) }),
        make("button", { type: "button", "data-key": "after", "aria-keyshortcuts": "j", text: "Next →", onclick: () => step(at + 1) }))),
    make("div", { class: `columns ${known.length > 1 ? "two" : ""}` }, pictures, make("div", {}, question(doc, known))),
    ...answers(known), ...without(known), ...again(known, doc)]);
}

/* A cell's box in percent of the image. Boxes are cut at whole pixels; windows move by half a cell; a segment is a part of the clip's length. */
function box({ kind, n, row, col }, width, height) {
  const parts = kind === "window" ? 2 * n : n, wide = kind === "window" ? 2 : 1;
  const ends = (i, side) => [Math.floor((side * i) / parts), Math.floor((side * (i + wide)) / parts)].map((end) => (100 * end) / side);
  if (kind === "segment") return { left: (100 * col) / n, top: 0, width: 100 / n, height: 100 };
  const [left, right] = ends(col, width), [top, bottom] = ends(row, height);
  return { left, top, width: right - left, height: bottom - top };
}

function figure(doc, side, grid) {
  const width = doc.width || 1000, height = doc.height || 1000, sized = Boolean(doc.width && doc.height);
  const cells = side.views.filter(({ n, row }) => n === grid && row !== undefined);
  const under = make("p", { class: "under muted", text: "Point at a cell, or step to it, to read its answer." });
  const frame = make("div", { class: `frame${sized && Math.max(width, height) < 200 ? " small" : ""}`, role: "group", "aria-label": `cells${many() ? ` of ${side.name}` : ""}` });
  const fit = (wide, high) => { frame.style.aspectRatio = `${wide} / ${high}`; frame.style.maxWidth = `calc(62vh * ${wide / high})`; };
  fit(width, height);
  const other = doc.seen !== undefined && side.seen !== doc.seen;  // two runs of a _swap task that drew other images
  if (doc.file && !other) frame.append(make("img", { src: doc.file, alt: `the image of doc ${doc.seen}`, onload: ({ target }) => sized || fit(target.naturalWidth, target.naturalHeight) }));
  else frame.append(make("p", { class: "why", text: other ? `This model was shown the image of doc ${side.seen}.` : doc.why }));
  cells.forEach((cell, place) => {
    const read = () => under.replaceChildren(sign(cell), ` ${cell.place}: `, make("span", { dir: "auto", text: cell.answer || cell.why || "(nothing)" }));
    const node = make("button", { type: "button", class: `cell is-${cell.state.split(" ")[0]}`, tabindex: place ? "-1" : "0", "aria-pressed": "false", "aria-label": `${cell.place}, ${told(cell)}: ${(cell.answer || "").slice(0, 200)}`,
      onmouseenter: read, onfocus: read, onclick: () => alone(frame, node), onkeydown: (event) => walk(event, frame, place, grid) }, make("span", { "aria-hidden": "true", text: SIGNS[cell.state] + (cell.unfinished ? "…" : "") }));
    for (const [edge, value] of Object.entries(box(cell, width, height))) node.style[edge] = `${value}%`;
    frame.append(node);
  });
  const first = side.views[0], facts = [first ? `${first.name}, ${told(first)}` : "not asked", sized ? `${width} × ${height} pixels` : ""].filter(Boolean).join("; ");
  return make("figure", {}, make("figcaption", { text: (many() ? `${side.name}: ` : "") + facts }), cells.length || doc.file || doc.width ? frame : null, cells.length ? under : null);
}

function alone(frame, node) {
  const on = node.getAttribute("aria-pressed") === "true";
  for (const cell of frame.querySelectorAll(".cell")) cell.setAttribute("aria-pressed", String(cell === node && !on));
  frame.classList.toggle("alone", !on);
}

function walk(event, frame, place, grid) {
  const move = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid, ArrowDown: grid }[event.key];
  if (!move) return;
  event.preventDefault();
  event.stopPropagation();
  const cells = [...frame.querySelectorAll(".cell")], next = cells[place + move];
  if (!next) return;
  cells.forEach((cell) => { cell.tabIndex = cell === next ? 0 : -1; });
  next.focus();
}

function question(doc, known) {
  const gold = (doc.gold || "").trim(), named = doc.options.includes(gold);
  const isGold = (option, place) => (named ? gold === option : gold === LETTERS[place] || gold === `(${LETTERS[place]})`);
  const options = doc.options.map((option, place) => make("li", { class: isGold(option, place) ? "gold" : "" }, make("span", { text: LETTERS[place] || "" }), make("span", { dir: "auto", text: option }),
    isGold(option, place) ? make("span", { class: "is-right", text: "gold" }) : null));
  const facts = [["category", doc.category], ["cluster", doc.cluster], ...known.map(({ name, excluded }) => [many() ? `left out of ${name}` : "left out", excluded])].filter(([, value]) => value);
  return [make("h3", { text: "Question" }), doc.question === undefined ? muted("The log has no text of it.") : longText(doc.question),
    options.length ? [make("h3", { text: "Options" }), make("ul", { class: "options" }, options)] : [],
    make("h3", { text: "Gold" }), doc.gold === undefined ? muted("not known") : longText(doc.gold),
    make("h3", { text: `Answer to: ${[...new Set(known.map(({ views }) => (views[0] ? views[0].name : "nothing")))].join(", ")}` }),
    known.map(({ name, views }) => make("div", {}, many() ? muted(name) : null, answer(views[0]))),
    facts.length ? [make("h3", { text: "About" }), make("dl", { class: "facts" }, facts.map(([name, value]) => make("div", {}, make("dt", { text: name }), make("dd", { text: value }))))] : []].flat();
}

function answer(view) {
  if (!view) return make("span", { class: "muted", text: "–" });
  const score = view.score === undefined || view.score === 0 || view.score === 1 ? "" : ` (scores ${Number(view.score.toPrecision(3))})`;
  const said = view.state === "failed" ? view.why : view.answer;
  return make("div", { class: "answer" }, view.caption ? muted(`Caption: ${view.caption}`) : null, sign(view), score, longText(said || (view.state === "not asked" ? "not asked" : "(nothing)")),
    view.state === "unscored" && view.why ? muted(view.why) : null);
}

/* Two models may have been asked different views: a row is of the views of one name. */
function table(known, pick, caption) {
  const views = known.map((side) => new Map(pick(side).map((view) => [view.name, view])));
  const names = [...new Set(views.flatMap((of) => [...of.keys()]))];
  return make("table", {}, make("caption", { class: "sr", text: caption }),
    make("thead", {}, make("tr", {}, make("th", { scope: "col", text: "Shown" }), known.map(({ name }) => make("th", { scope: "col", text: many() ? name : "Answer" })))),
    make("tbody", {}, names.map((name) => make("tr", {}, make("th", { scope: "row", text: name }), views.map((of) => make("td", {}, answer(of.get(name))))))));
}

function answers(known) {
  return known.some(({ views }) => views.length > 1) ? [make("h3", { text: "Every answer" }), table(known, ({ views }) => views, "Every answer")] : [];
}

function without(known) {
  const some = known.filter(({ wrong, blind }) => wrong.length || blind), rest = some.filter(({ wrong }) => wrong.length > 1);
  if (!some.length) return about.tasks[shown.task].classes ? [muted("This doc was not asked without its image, so it is not known whether it needs one.")] : [];
  return [make("h3", { text: "Without its image" }), table(some, ({ wrong, blind }) => [...(blind ? [blind] : []), ...wrong.slice(0, 1)], "Answers without its image"),
    ...(rest.length ? [make("details", {}, make("summary", { text: "Cells of the other image" }), table(rest, ({ wrong }) => wrong.slice(1), "Answers to cells of another image"))] : [])];
}

function again(known, doc) {
  const commands = known.map(({ which }) => about.tasks[shown.task].commands[which]).map((one) => (one.endsWith(" --offset") ? `${one} ${doc.id}` : one));
  return [make("h3", { text: "Ask it again" }), ...[...new Set(commands)].map((text) => make("p", { class: "command" }, make("code", { text }), copier("Copy command", text)))];
}

/* --- events --- */

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  if (event.key === "Escape" && event.target === $("q")) return list.focus();
  if (/^(INPUT|SELECT)$/.test(event.target.tagName)) return;
  const free = event.target === document.body || event.target === list;
  const move = { j: 1, k: -1, ...(free ? { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -rows.length, End: rows.length } : {}) }[event.key];
  if (move) step(Math.max(0, Math.min(rows.length - 1, at + move)));
  else if (event.key === "/") $("q").select();
  else if (event.key === "?") $("help").showModal();
  else return;
  event.preventDefault();
}

async function start() {
  try {
    about = await piece("about");
    columns = await Promise.all(about.tasks.map((task, place) => piece(String(place))));
  } catch (error) { return fault(error.message); }
  document.title = $("title").textContent = about.title;
  readState();
  for (const name of ["task", "cat", "by", "first", "pair", "out", "sort"]) form[name].addEventListener("change", () => change({ [name]: form[name].value }));
  let timer = 0, frame = 0;
  $("q").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => change({ q: $("q").value.trim() }, false), 120); });
  form.addEventListener("submit", (event) => event.preventDefault());
  $("clear").addEventListener("click", () => { $("q").value = ""; change({ ...FILTERS }); });
  $("open-help").addEventListener("click", () => $("help").showModal());
  $("skip").addEventListener("click", (event) => { event.preventDefault(); article.focus(); });
  list.addEventListener("scroll", () => { cancelAnimationFrame(frame); frame = requestAnimationFrame(showRows); });
  window.addEventListener("resize", showRows);
  window.addEventListener("popstate", () => { readState(); $("q").value = state.q; show(); });
  document.addEventListener("keydown", keys);
  show();
}

start();
