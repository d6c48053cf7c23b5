"use strict";
/* The explorer. All text of runs reaches the page as text (textContent); nothing is made of markup. Two sources of docs: the server, or the page itself. */

const SIGNS = { right: "✓", wrong: "✗", unscored: "○", failed: "!", "not asked": "–" };
const STATE = { 1: "right", 0: "wrong", u: "unscored", f: "failed", n: "not asked" };
const CUT = ", unfinished";
const MEANING = ["right without its image", "right on one part alone", "right on the whole alone", "never right"];
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const TOKEN = "X-Explore-Token", ENDED = "The explorer has ended, or this address lacks its token. Type lmms-patch explore again, or open the address that it printed.";
const HEIGHT = 54, PAGE = 100, KEPT = 5000, MOST = 500000;
const DEFAULTS = { task: "", cat: "", need: "", by: "0", first: "", pair: "", out: "", sort: "", q: "", doc: "", grid: "" };

const $ = (id) => document.getElementById(id);
const form = $("filters"), list = $("list"), space = $("space"), article = $("doc");

let source, about = null, state = { ...DEFAULTS };
let columns = [], hits = null, view = { tasks: new Uint16Array(0), places: new Uint32Array(0), length: 0 };
let at = -1, shown = null, texts = new Map(), asked = new Set(), searched = "";

/* --- small things --- */

function make(tag, options, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(options || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "text") node.textContent = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((one) => one !== null && one !== undefined));
  return node;
}

function sign(name, cut) {
  const said = name + (cut ? CUT : "");
  return make("span", { class: `sign is-${name.split(" ")[0]}`, title: said }, make("span", { "aria-hidden": "true", text: SIGNS[name] + (cut ? "…" : "") }), make("span", { class: "sr", text: said }));
}

function number(value) { return value.toLocaleString("en"); }
function percent(value) { return value === null ? "not known" : `${Math.round(100 * value)} %`; }
function atLevel(map) {
  const known = Object.values(map.shares).find(share => share && share.low !== null);
  return known ? `, ${+(100 * known.level).toFixed(2)} % interval` : "";
}
function ends(share) { return share.low === null ? "" : ` [${Math.round(100 * share.low)}, ${Math.round(100 * share.high)}]`; }

function longText(text) {
  const node = make("p", { class: "text", dir: "auto", text });
  if (text.length > 300) { node.tabIndex = 0; node.setAttribute("role", "region"); node.setAttribute("aria-label", "the whole text"); }
  return node;
}

async function copy(text, button) {
  const before = button.textContent;
  try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
  catch { button.textContent = "Not allowed here"; }
  setTimeout(() => { button.textContent = before; }, 1200);
}

/* --- the two sources --- */

function tokenOf() {
  /* localStorage belongs to this port alone, unlike a cookie; with it a reload and a second tab need no token in the address. */
  const given = new URLSearchParams(location.search).get("token");
  try {
    if (given) localStorage.setItem(TOKEN, given);
    return given || localStorage.getItem(TOKEN) || "";
  } catch { return given || ""; }
}

function ofServer() {
  const headers = { [TOKEN]: tokenOf() };
  let picture = "";
  const ask = async (path, query) => {
    const answer = await fetch(`${path}${query ? "?" + new URLSearchParams(query) : ""}`, { headers, credentials: "omit" }).catch(() => { throw new Error(ENDED); });
    if (answer.ok) return answer;
    if (answer.status === 403) throw new Error(ENDED);
    const told = await answer.json().catch(() => null);
    throw new Error((told && told.error) || `The explorer could not answer (HTTP ${answer.status}).`);
  };
  const get = async (path, query) => (await ask(`/api/${path}`, query)).json();
  return {
    about: () => get("about"),
    columns: (task) => get("columns", { task }),
    rows: (task, places) => get("rows", { task, places: places.join(",") }),
    doc: (task, place) => get("doc", { task, place }),
    maps: (task, category) => get("maps", { task, category }),
    search: (q) => get("search", { q }),
    async image(task, place) {
      const here = () => shown && shown.task === task && shown.place === place;
      for (;;) {
        const found = await get("image", { task, place });
        if (!here()) return null;
        if (found.why) return { url: "", why: found.why };
        if (found.ready) break;
        await new Promise((done) => setTimeout(done, 300));
        if (!here()) return null;
      }
      const file = await (await ask("/image", { task, place })).blob();
      URL.revokeObjectURL(picture);
      picture = URL.createObjectURL(file);
      return { url: picture, why: "" };
    },
    ahead: (task, place) => { get("image", { task, place }).catch(() => {}); },
  };
}

function ofPage(data) {
  const short = (text) => (text || "").replace(/\s+/g, " ").slice(0, 160);
  const first = (side) => (side && side.views.length ? side.views[0].answer || "" : "");
  return {
    about: async () => data.about,
    columns: async (task) => data.columns[task],
    rows: async (task, places) => places.map((place) => {
      const doc = data.docs[task][place];
      return { question: short(doc.question), gold: short(doc.gold), answers: doc.sides.map((side) => side && short(first(side))) };
    }),
    doc: async (task, place) => data.docs[task][place],
    maps: async (task, category) => data.maps[task][category],
    search: async (q) => {
      const words = q.toLowerCase();
      const has = (text) => (text || "").toLowerCase().includes(words);
      return data.docs.map((docs) => docs.flatMap((doc, place) =>
        has(doc.question) || has(doc.gold) || has(doc.category) || doc.sides.some((side) => has(first(side))) ? [place] : []));
    },
    image: async (task, place) => { const found = data.images[task][place]; return { url: found.file, why: found.why }; },
    ahead: () => {},
  };
}

/* --- the state in the address --- */

function readState() {
  const given = new URLSearchParams(location.hash.slice(1));
  state = { ...DEFAULTS };
  for (const key of Object.keys(DEFAULTS)) if (given.has(key)) state[key] = given.get(key).slice(0, 500);
}

function writeState(push) {
  const said = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) if (value !== DEFAULTS[key]) said.set(key, value);
  const hash = `#${said}`;
  if (hash !== (location.hash || "#")) history[push ? "pushState" : "replaceState"](null, "", hash);
}

const oneTask = () => (about.tasks.length === 1 ? 0 : taskNow());

async function change(changes, push = true) {
  state = { ...state, ...changes };
  if ("task" in changes && !("cat" in changes)) state.cat = "";
  writeState(push);
  await show();
}

/* --- which docs --- */

const modelNow = () => Math.min(Number(state.by) || 0, about.models.length - 1);
const taskNow = () => about.tasks.findIndex((task) => task.name === state.task);

function needOf(column, model, place) {
  if (!column.need[model]) return { need: -1, sure: false };
  const known = column.need[model][place];
  return known === "-" ? { need: column.image[model][place] === "-" ? -1 : Number(column.image[model][place]), sure: false } : { need: Number(known), sure: true };
}

function keeps(task, column) {
  const model = modelNow(), first = column.first[model], category = state.cat === "" ? -1 : column.categories.indexOf(state.cat);
  const [one, two] = column.first;
  const flags = state.out === "failed" ? column.failed[model] : column.excluded[model];
  const found = hits && state.q ? new Set(hits[task]) : null, id = /^\d+$/.test(state.q) ? Number(state.q) : -1;
  const tests = [];
  if (state.cat !== "") tests.push((place) => category >= 0 && column.category[place] === category);
  if (state.first === "cut") tests.push((place) => Boolean(first) && column.unfinished[model][place] === "1");
  else if (state.first) tests.push((place) => (first ? first[place] : "n") === state.first);
  if (state.out) tests.push((place) => Boolean(flags) && (flags[place] === "1") === (state.out !== "used"));
  if (state.pair && about.models.length > 1) {
    const wanted = { a: ["10"], b: ["01"], differ: ["10", "01"], right: ["11"], wrong: ["00"] }[state.pair] || [];
    tests.push((place) => Boolean(one && two) && wanted.includes(one[place] + two[place]));
  }
  if (found) tests.push((place) => found.has(place) || column.ids[place] === id);
  return (place) => tests.every((test) => test(place));
}

function filter() {
  const only = taskNow(), wanted = state.need === "" ? -1 : about.needs.indexOf(state.need), model = modelNow();
  const counts = about.needs.map(() => ({ sure: 0, maybe: 0 }));
  const tasks = [], places = [];
  columns.forEach((column, task) => {
    if (!column || (state.task && task !== only)) return;
    const keep = keeps(task, column);
    for (let place = 0; place < column.ids.length; place++) {
      if (!keep(place)) continue;
      const { need, sure } = needOf(column, model, place);
      if (need >= 0) counts[need][sure ? "sure" : "maybe"]++;
      if (wanted >= 0 && need !== wanted) continue;
      tasks.push(task);
      places.push(place);
    }
  });
  view = sorted(tasks, places, model);
  return counts;
}

function sorted(tasks, places, model) {
  const order = Uint32Array.from(tasks, (_, i) => i);
  if (state.sort) {
    const side = state.sort === "most" ? -1 : 1;
    const key = Float64Array.from(order, (i) => side * (columns[tasks[i]].cells[model] || [])[places[i]] || 0);
    order.sort((a, b) => key[a] - key[b] || a - b);
  }
  return { tasks: Uint16Array.from(order, (i) => tasks[i]), places: Uint32Array.from(order, (i) => places[i]), length: order.length };
}

const keyOf = (task, place) => `${about.tasks[task].name}:${columns[task].ids[place]}`;

function findDoc(key) {
  const cut = key.lastIndexOf(":"), task = about.tasks.findIndex((one) => one.name === key.slice(0, cut));
  if (task < 0 || !columns[task]) return -1;
  const place = columns[task].ids.indexOf(Number(key.slice(cut + 1)));
  for (let i = 0; i < view.length; i++) if (view.tasks[i] === task && view.places[i] === place) return i;
  return -1;
}

/* --- showing --- */

async function show() {
  if (state.q !== searched) {
    const q = state.q;
    const found = q ? await source.search(q) : null;
    if (q !== state.q) return;
    hits = found;
    searched = q;
  }
  fillForm();
  const counts = filter();
  showCount();
  showNeeds(counts);
  showBars();
  let place = state.doc ? findDoc(state.doc) : -1;
  if (place < 0 && view.length) {
    place = 0;
    state.doc = keyOf(view.tasks[0], view.places[0]);
    writeState(false);
  }
  space.style.height = `${Math.min(view.length, MOST) * HEIGHT}px`;
  at = place;
  scrollTo(place);
  showRows();
  await Promise.all([showDoc(), loadCategory()]);
}

function fillForm() {
  const task = taskNow(), column = columns[task];
  const names = about.tasks.map((one) => one.name);
  options(form.task, [["", names.length > 1 ? "all tasks" : names[0] || ""], ...(names.length > 1 ? names.map((name) => [name, name]) : [])], state.task);
  const known = column ? column.categories : [...new Set(columns.flatMap((one) => (one ? one.categories : [])))].sort();
  options(form.cat, [["", "all"], ...known.map((name) => [name, name])], state.cat);
  options(form.by, about.models.map((name, place) => [String(place), name]), state.by);
  for (const name of ["first", "pair", "out", "sort"]) form[name].value = state[name];
  if (document.activeElement !== $("q")) $("q").value = state.q;
  for (const node of form.querySelectorAll("[data-for]")) node.hidden = node.dataset.for === "models" ? about.models.length < 2 : known.length < 2 && !state.cat;
}

function options(select, given, value) {
  const said = JSON.stringify(given);
  if (select.dataset.said !== said) {
    select.dataset.said = said;
    select.replaceChildren(...given.map(([key, text]) => make("option", { value: key, text })));
  }
  select.value = value;
}

const isRead = (task) => task.whole || Boolean(task.fault);

function whyEmpty() {
  const tasks = oneTask() < 0 ? about.tasks : [about.tasks[oneTask()]];
  if (tasks.some((task) => task.docs)) return "No doc is like this. Clear filters to see all.";
  return tasks.every((task) => task.fault) ? tasks.map((task) => task.fault).join("; ") : tasks.every(isRead) ? "The run has no docs." : "Reading the docs…";
}

function showCount() {
  const all = about.tasks.reduce((sum, task) => sum + (isRead(task) ? task.docs : Math.max(task.of, task.docs)), 0);
  const more = about.tasks.every(isRead) ? "" : "; still reading";
  const cut = view.length > MOST ? `; the list shows the first ${number(MOST)}` : "";
  $("count").textContent = `${number(view.length)} of ${number(all)} docs${more}${cut}`;
  $("clear").disabled = Object.keys(DEFAULTS).every((key) => ["doc", "grid"].includes(key) || state[key] === DEFAULTS[key]);
}

/* The maps that the shares come from: of the whole task, or of the category that is chosen; null while those are on their way. */
let ofCategory = { key: "", maps: null };

const categoryKey = () => JSON.stringify([oneTask(), state.cat, about.tasks[oneTask()].whole]);

function mapsNow() {
  const task = oneTask();
  if (task < 0) return [];
  if (!state.cat) return about.tasks[task].maps;
  return ofCategory.key === categoryKey() ? ofCategory.maps : null;
}

async function loadCategory() {
  const task = oneTask();
  if (task < 0 || !state.cat || !columns[task] || !about.tasks[task].whole || ofCategory.key === categoryKey()) return;
  const key = categoryKey(), category = columns[task].categories.indexOf(state.cat);
  ofCategory = { key, maps: null };
  try {
    const maps = category < 0 ? about.tasks[task].maps.map(() => null) : await source.maps(task, category);
    if (ofCategory.key !== key) return;
    ofCategory.maps = maps;
  } catch (error) {
    if (ofCategory.key === key) ofCategory.key = "";
    throw error;
  }
  if (state.cat) showNeeds(filter());
}

function showNeeds(counts) {
  const maps = mapsNow(), map = maps && maps[modelNow()], one = oneTask() >= 0, of = state.cat ? `category ${state.cat}` : "task";
  const model = about.models.length > 1 ? ` by ${about.models[modelNow()]}` : "";
  if (!one) $("of").textContent = `Choose a class, a part of a bar, or a task${model ? "; docs as answered" + model : ""}.`;
  else if (!maps) $("of").textContent = `Computing the shares of the ${of}…`;
  else if (!map) $("of").textContent = `This ${of} has no necessity map${model}.`;
  else {
    const how = `${number(map.again)} of ${number(map.docs)} docs asked again`;
    const shares = about.needs.filter((need) => map.shares[need].value !== null).map((need) => `${need} ${percent(map.shares[need].value)}${ends(map.shares[need])}`);
    const told = shares.length ? `: ${shares.join(", ")}` : `: none, ${map.shares[about.needs[1]].reason}`;
    $("of").textContent = `Share of docs${state.cat ? ` in ${of}` : ""}${model}${atLevel(map)}, luck removed (${about.tasks[oneTask()]?.kind === "trci" ? `${map.n} segments` : `grid ${map.n}×${map.n}`}; ${how})${told}. Docs as they answer:`;
  }
  const focus = $("needs").contains(document.activeElement) ? [...$("needs").querySelectorAll("button")].indexOf(document.activeElement) : -1;
  const note = one ? about.tasks[oneTask()].note : "";
  if (note) $("of").textContent += ` Note: ${note}.`;
  $("needs").replaceChildren(...about.needs.map((need, place) => {
    const { sure, maybe } = counts[place];
    const said = `${number(sure + maybe)} docs${maybe ? `, ${number(maybe)} not checked` : ""}`;
    return make("li", {}, make("button", { type: "button", "aria-pressed": String(state.need === need), title: MEANING[place], onclick: () => safely(change)({ need: state.need === need ? "" : need }) },
      make("span", { class: `swatch need${place}` }), make("span", { text: need }), make("span", { class: "meaning", text: MEANING[place] }), make("span", { class: "count", text: said })));
  }));
  if (focus >= 0) $("needs").querySelectorAll("button")[focus].focus();
}

function showBars() {
  const many = about.models.length > 1;
  const focus = $("bars").contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const tasks = about.tasks.filter((task) => !state.task || task.name === state.task || about.tasks.length <= 8);
  $("bars").replaceChildren(...tasks.map((task) => {
    const chosen = state.task === task.name;
    const refused = task.maps.map((map) => map && map.shares[about.needs[1]]).find((share) => share && share.value === null);
    const bars = task.maps.map((map, model) => (map && map.shares[about.needs[1]].value !== null ? bar(task, map, model, task.name + (many ? `, ${about.models[model]}` : "")) : null)).filter(Boolean);
    return make("div", { class: "row" },
      make("button", { type: "button", class: "task", "data-key": task.name, "aria-pressed": String(chosen), title: task.name, text: task.name, onclick: () => safely(change)({ task: chosen ? "" : task.name }) }),
      make("div", { class: many ? "both" : "" }, ...(bars.length ? bars : [make("span", { class: "none", text: task.fault ? "its docs cannot be read" : refused ? `no shares: ${refused.reason.split(/[:(]/)[0].trim()}` : task.whole ? "no necessity map" : "reading…", title: task.fault || (refused && refused.reason) || null })])));
  }));
  const again = focus && [...$("bars").querySelectorAll("[data-key]")].find((node) => node.dataset.key === focus);
  if (again) again.focus();
  $("which").textContent = many ? `upper bars: ${about.models[0]}; lower bars: ${about.models[1]}` : "";
  $("which").hidden = !many;
}

function bar(task, map, model, name) {
  const total = about.needs.reduce((sum, need) => sum + (map.shares[need].value || 0), 0) || 1;
  return make("div", { class: "bar", role: "group", "aria-label": name }, ...about.needs.map((need, place) => {
    const share = map.shares[need];
    if (!share.value) return null;
    const node = make("button", {
      type: "button", class: `need${place}`, "data-key": `${name}/${need}`, title: `${need}: ${percent(share.value)}${ends(share)}`,
      "aria-label": `${need}, ${percent(share.value)}${ends(share)}`,
      "aria-pressed": String(state.task === task.name && state.need === need && modelNow() === model),
      text: share.value / total > 0.2 ? `${need} ${percent(share.value)}` : share.value / total > 0.055 ? percent(share.value) : "",
      onclick: () => safely(change)(state.task === task.name && state.need === need && modelNow() === model ? { need: "" } : { task: task.name, need, by: String(model) }),
    });
    node.style.width = `${(100 * share.value) / total}%`;
    return node;
  }));
}

/* --- the list --- */

function scrollTo(place) {
  if (place < 0) return;
  const top = place * HEIGHT, height = list.clientHeight;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + HEIGHT > list.scrollTop + height) list.scrollTop = top + HEIGHT - height;
}

function showRows() {
  const length = Math.min(view.length, MOST);
  const from = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 4), to = Math.min(length, Math.ceil((list.scrollTop + list.clientHeight) / HEIGHT) + 4);
  const nodes = [];
  for (let i = from; i < to; i++) nodes.push(item(i, length));
  space.replaceChildren(...nodes);
  const there = at >= from && at < to;
  if (there) list.setAttribute("aria-activedescendant", `item-${at}`);
  else list.removeAttribute("aria-activedescendant");
  if (!length) space.replaceChildren(make("div", { class: "item", role: "option", "aria-disabled": "true", "aria-selected": "false" }, make("p", { class: "muted", text: whyEmpty() })));
  fetchTexts(from, to);
}

function item(i, length) {
  const task = view.tasks[i], place = view.places[i], column = columns[task], known = texts.get(`${task}:${place}`);
  const marks = column.first.map((first, model) => (first ? sign(STATE[first[place]], column.unfinished[model][place] === "1") : null));
  const category = column.category[place] >= 0 ? column.categories[column.category[place]] : "";
  const what = [about.tasks.length > 1 && !state.task ? about.tasks[task].name : "", category].filter(Boolean).join(" · ");
  const node = make("div", { class: "item", role: "option", id: `item-${i}`, "aria-selected": String(i === at), "aria-setsize": length, "aria-posinset": i + 1, onclick: () => safely(step)(i, true) },
    make("p", { class: "first" }, ...marks, make("span", { text: `#${column.ids[place]}` }), make("span", { class: "what", text: what }), chip(column, modelNow(), place)),
    make("p", { dir: "auto", text: known ? known.question || "(no text)" : "…" }));
  node.style.top = `${i * HEIGHT}px`;
  return node;
}

function chip(column, model, place) {
  const { need, sure } = needOf(column, model, place);
  if (need < 0) return null;
  return make("span", { class: `chip ${sure ? `need${need}` : "unsure"}`, title: sure ? MEANING[need] : "not asked without its image: it may be text", text: about.needs[need] + (sure ? "" : "?") });
}

async function fetchTexts(from, to) {
  const wanted = new Map();
  for (let block = Math.floor(from / PAGE); block * PAGE < to; block++) {
    for (let i = block * PAGE; i < Math.min((block + 1) * PAGE, view.length); i++) {
      const key = `${view.tasks[i]}:${view.places[i]}`;
      if (texts.has(key) || asked.has(key)) continue;
      asked.add(key);
      if (!wanted.has(view.tasks[i])) wanted.set(view.tasks[i], []);
      wanted.get(view.tasks[i]).push(view.places[i]);
    }
  }
  const pages = [...wanted].flatMap(([task, places]) => Array.from({ length: Math.ceil(places.length / PAGE) }, (_, page) => [task, places.slice(page * PAGE, (page + 1) * PAGE)]));
  if (!pages.length) return;
  try {
    await Promise.all(pages.map(async ([task, places]) => {
      const rows = await source.rows(task, places).finally(() => places.forEach((place) => asked.delete(`${task}:${place}`)));
      rows.forEach((row, i) => texts.set(`${task}:${places[i]}`, row));
    }));
  } catch (error) { return fault(error); }
  for (const key of [...texts.keys()].slice(0, Math.max(0, texts.size - KEPT))) texts.delete(key);
  showRows();
}

async function step(place, push = false) {
  if (place < 0 || place >= Math.min(view.length, MOST)) return;
  at = place;
  state.doc = keyOf(view.tasks[place], view.places[place]);
  writeState(push);
  scrollTo(place);
  showRows();
  await showDoc();
  if (push && window.innerWidth < 900) { article.focus(); article.scrollIntoView(); }
}

/* --- the doc --- */

async function showDoc() {
  if (at < 0) {
    shown = null;
    article.replaceChildren(make("p", { class: "muted", text: whyEmpty() }));
    return;
  }
  const task = view.tasks[at], place = view.places[at];
  if (shown && shown.task === task && shown.place === place) return drawSteps();
  const doc = await source.doc(task, place);
  if (at < 0 || view.tasks[at] !== task || view.places[at] !== place) return;
  shown = { task, place, doc };
  draw();
  article.scrollTop = 0;
  takeImage(task, place).catch(fault);  // nobody waits for it: lmms-eval may take minutes to load the task
}

async function takeImage(task, place) {
  const image = await source.image(task, place);
  if (!image || !shown || shown.task !== task || shown.place !== place) return;
  shown.image = image;
  showImage();
  for (const i of [at + 1, at + 2, at - 1]) if (i >= 0 && i < view.length) source.ahead(view.tasks[i], view.places[i]);
}

function drawSteps() {
  const before = article.querySelector(".before"), after = article.querySelector(".after");
  if (before) before.disabled = at <= 0;
  if (after) after.disabled = at >= view.length - 1;
}

function draw() {
  const { doc, task } = shown, known = doc.sides.map((side, model) => ({ side, model })).filter(({ side }) => side);
  const grids = [...new Set(known.flatMap(({ side }) => side.views.filter((one) => one.n).map((one) => one.n)))].sort();
  const grid = grids.includes(Number(state.grid)) ? Number(state.grid) : grids[grids.length - 1];
  shown.grid = grid;
  const pictures = doc.size || grids.length ? make("div", {}, grids.length > 1 ? gridButtons(grids, grid) : null,
    make("div", { class: known.length > 1 ? "pair" : "" }, ...known.map(({ side, model }) => figure(doc, side, model, grid)))) : null;
  const words = make("div", {}, ...question(doc, known));
  article.replaceChildren(head(doc, task),
    make("div", { class: `columns ${known.length > 1 ? "two" : ""}` }, pictures || "", words),
    ...answers(known), ...without(known), ...again(known));
  drawSteps();
  showImage();
}

function head(doc, task) {
  const id = String(doc.id), column = columns[task];
  const chips = about.models.map((name, model) => {
    const made = column.first[model] && chip(column, model, doc.place);
    return made ? make("span", {}, about.models.length > 1 ? make("span", { class: "muted", text: `${name}: ` }) : null, made) : null;
  });
  return make("div", { class: "head" }, make("h2", { text: `Doc ${id}` }), make("span", { class: "muted", text: about.tasks[task].name }), ...chips,
    make("button", { type: "button", text: "Copy id", onclick: (event) => copy(id, event.currentTarget) }),
    make("span", { class: "step" },
      make("button", { type: "button", class: "before", "aria-keyshortcuts": "k", text: "← Before", onclick: () => safely(step)(at - 1) }),
      make("button", { type: "button", class: "after", "aria-keyshortcuts": "j", text: "Next →", onclick: () => safely(step)(at + 1) })));
}

function gridButtons(grids, grid) {
  return make("div", { class: "grids", role: "group", "aria-label": "Grid" }, ...grids.map((n) =>
    make("button", { type: "button", "aria-pressed": String(n === grid), text: about.tasks[shown.task].kind === "trci" ? `${n} segments` : `${n} × ${n}`, onclick: () => { state.grid = String(n); writeState(false); draw(); article.querySelector(`.grids button[aria-pressed="true"]`).focus(); } })));
}

function figure(doc, side, model, grid) {
  const [width, height] = doc.size || [1, 1];
  const under = make("p", { class: "under muted", text: "Point at a cell, or step to it, to read its answer." });
  const cells = side.views.filter((one) => one.n === grid);
  const frame = make("div", { class: "frame", role: "group", "data-seen": String(side.seen), "aria-label": `cells${about.models.length > 1 ? " of " + about.models[model] : ""}` });
  fitFrame(frame, width, height);
  cells.forEach((cell, place) => {
    const said = () => under.replaceChildren(sign(cell.state, cell.unfinished), ` ${cell.place}: `, make("span", { dir: "auto", text: cell.answer || cell.why || "(nothing)" }));
    const node = make("button", {
      type: "button", class: `cell is-${cell.state.split(" ")[0]}`, tabindex: place ? "-1" : "0", "aria-pressed": "false",
      "aria-label": `${cell.place}, ${cell.state}${cell.unfinished ? CUT : ""}: ${(cell.answer || "").slice(0, 200)}`,
      onmouseenter: said, onfocus: said, onclick: () => alone(frame, node), onkeydown: (event) => walk(event, frame, place, grid),
    }, make("span", { "aria-hidden": "true", text: SIGNS[cell.state] + (cell.unfinished ? "…" : "") }));
    const [left, top, wide, high] = cell.box;
    Object.assign(node.style, { left: `${left}%`, top: `${top}%`, width: `${wide}%`, height: `${high}%` });
    frame.append(node);
  });
  const name = about.models.length > 1 ? `${about.models[model]}: ` : "";
  const told = [side.views.length ? `${side.views[0].name}, ${side.views[0].state}${side.views[0].unfinished ? CUT : ""}` : "not asked", doc.size ? `${width} × ${height} pixels` : ""];
  return make("figure", {}, make("figcaption", { text: name + told.filter(Boolean).join("; ") }), frame, cells.length ? under : null);
}

function fitFrame(frame, width, height) {
  frame.style.aspectRatio = `${width} / ${height}`;
  frame.style.maxWidth = `calc(62vh * ${width / height})`;
}

function alone(frame, node) {
  const on = node.getAttribute("aria-pressed") === "true";
  for (const cell of frame.querySelectorAll(".cell")) cell.setAttribute("aria-pressed", String(cell === node && !on));
  frame.classList.toggle("alone", !on);
}

function walk(event, frame, place, grid) {
  const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid, ArrowDown: grid };
  if (!(event.key in moves)) return;
  event.preventDefault();
  event.stopPropagation();
  const cells = [...frame.querySelectorAll(".cell")], next = cells[place + moves[event.key]];
  if (!next) return;
  cells.forEach((cell) => { cell.tabIndex = cell === next ? 0 : -1; });
  next.focus();
}

function showImage() {
  const { doc } = shown, own = shown.image || { url: "", why: "The image is being taken; the first of a task waits for lmms-eval." };
  for (const frame of article.querySelectorAll(".frame")) {
    for (const old of frame.querySelectorAll("img, .why")) old.remove();
    const other = frame.dataset.seen !== String(doc.seen);  // of two runs of a _swap task that drew other images
    const image = other ? { url: "", why: `This model was shown the image of doc ${frame.dataset.seen}.` } : own;
    if (image.url) {
      const node = make("img", { alt: `the image of doc ${doc.seen}` });
      if (!doc.size) node.addEventListener("load", () => fitFrame(frame, node.naturalWidth, node.naturalHeight));
      node.src = image.url;
      frame.classList.toggle("small", Boolean(doc.size) && Math.max(...doc.size) < 200);
      frame.prepend(node);
    } else frame.append(make("p", { class: "why", text: image.why }));
  }
}

function question(doc, known) {
  const gold = (doc.gold || "").trim();
  const named = doc.options.includes(gold);
  const isGold = (option, place) => (named ? gold === option : gold === LETTERS[place] || gold === `(${LETTERS[place]})`);
  const options = doc.options.length ? make("ul", { class: "options" }, ...doc.options.map((option, place) =>
    make("li", { class: isGold(option, place) ? "gold" : "" }, make("span", { text: LETTERS[place] || "" }), make("span", { dir: "auto", text: option }), isGold(option, place) ? make("span", { class: "is-right", text: "gold" }) : null))) : null;
  const facts = [["category", doc.category], ["cluster", doc.cluster], ...known.map(({ side, model }) => [about.models.length > 1 ? `left out of ${about.models[model]}` : "left out", side.excluded])].filter(([, value]) => value);
  return [make("h3", { text: "Question" }), doc.question === null ? make("p", { class: "muted", text: "The log has no text of it." }) : longText(doc.question),
    ...(options ? [make("h3", { text: "Options" }), options] : []),
    make("h3", { text: "Gold" }), doc.gold === null ? make("p", { class: "muted", text: "not known" }) : longText(doc.gold),
    make("h3", { text: `Answer to: ${[...new Set(known.map(({ side }) => (side.views.length ? side.views[0].name : "nothing")))].join(", ")}` }),
    ...known.map(({ side, model }) => make("div", {}, about.models.length > 1 ? make("p", { class: "muted", text: about.models[model] }) : null, side.views.length ? answer(side.views[0]) : null)),
    ...(facts.length ? [make("h3", { text: "About" }), make("dl", { class: "facts" }, ...facts.map(([name, value]) => make("div", {}, make("dt", { text: name }), make("dd", { text: value }))))] : [])];
}

function answer(view) {
  if (!view) return make("span", { class: "muted", text: "–" });
  const score = view.score === null || view.score === 0 || view.score === 1 ? "" : ` (scores ${Number(view.score.toPrecision(3))})`;
  const said = view.state === "failed" ? view.why : view.answer;
  const told = view.caption === undefined ? "" : make("p", { class: "muted", dir: "auto", text: `Caption: ${view.caption || "(nothing)"}` });
  return make("div", { class: "answer" }, told, sign(view.state, view.unfinished), score, longText(said || (view.state === "not asked" ? "not asked" : "(nothing)")), view.state === "unscored" && view.why ? make("p", { class: "muted", text: view.why }) : null);
}

/* Two models may have been asked different views: a row is of the views of one name. */
function table(known, pick, caption) {
  const views = known.map(({ side }) => new Map(pick(side).map((view) => [view.name, view])));
  const names = [...new Set(views.flatMap((of) => [...of.keys()]))];
  const rows = names.map((name) => make("tr", {}, make("th", { scope: "row", text: name }), ...views.map((of) => make("td", {}, answer(of.get(name))))));
  return make("table", {}, make("caption", { class: "sr", text: caption }), make("thead", {}, make("tr", {}, make("th", { scope: "col", text: "Shown" }),
    ...known.map(({ model }) => make("th", { scope: "col", text: about.models.length > 1 ? about.models[model] : "Answer" })))), make("tbody", {}, ...rows));
}

function answers(known) {
  if (known.every(({ side }) => side.views.length < 2)) return [];
  return [make("h3", { text: "Every answer" }), table(known, (side) => side.views, "Every answer")];
}

function without(known) {
  const some = known.filter(({ side }) => side.wrong.length || side.blind);
  if (!some.length) return about.tasks[shown.task].classes ? [make("p", { class: "muted", text: "This doc was not asked without its image, so it is not known whether it needs one." })] : [];
  const first = (side) => [...(side.blind ? [{ ...side.blind, name: "no image" }] : []), ...side.wrong.slice(0, 1).map((view) => ({ ...view, name: `image of doc ${side.wrong_from}` }))];
  const rest = some.filter(({ side }) => side.wrong.length > 1);
  return [make("h3", { text: "Without its image" }), table(some, first, "Answers without its image"),
    rest.length ? make("details", {}, make("summary", { text: "Cells of the other image" }), table(rest, (side) => side.wrong.slice(1).map((view) => ({ ...view, name: `${view.name} of doc ${side.wrong_from}` })), "Answers to cells of another image")) : ""];
}

function again(known) {
  return [make("h3", { text: "Ask it again" }), ...[...new Set(known.map(({ side }) => side.command))].map((command) => make("p", { class: "command" }, make("code", { text: command }),
    make("button", { type: "button", text: "Copy command", onclick: (event) => copy(command, event.currentTarget) })))];
}

/* --- events --- */

let passing = "";

/* Tasks that cannot be read are told as long as the page is open; what went wrong with an action, until the next action. */
function showFaults() {
  const told = [about && about.fault, passing].filter(Boolean).join(" ");
  if ($("fault").textContent !== told) $("fault").textContent = told;
  $("fault").hidden = !told;
}

function fault(error) {
  passing = error.message || String(error);
  showFaults();
}

const safely = (work) => async (...given) => {
  passing = "";
  showFaults();
  try { await work(...given); } catch (error) { fault(error); }
};

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "radio";
  if (event.key === "Escape" && event.target === $("q")) { list.focus(); return; }
  if (typing) return;
  const free = !event.target.closest || event.target === document.body || event.target === list;
  const move = { j: 1, k: -1, ...(free ? { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 } : {}) }[event.key];
  if (move) {
    event.preventDefault();
    safely(step)(Math.max(0, Math.min(view.length - 1, at + move)));
  } else if (free && (event.key === "Home" || event.key === "End")) {
    event.preventDefault();
    safely(step)(event.key === "Home" ? 0 : Math.min(view.length, MOST) - 1);
  } else if (event.key === "/") {
    event.preventDefault();
    $("q").focus();
    $("q").select();
  } else if (event.key === "?") $("help").showModal();
}

function listen() {
  const changed = safely(change);
  for (const name of ["task", "cat", "by", "first", "pair", "out", "sort"]) form[name].addEventListener("change", () => changed({ [name]: form[name].value }));
  let timer = 0;
  $("q").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => changed({ q: $("q").value.trim() }, false), 120); });
  form.addEventListener("submit", (event) => event.preventDefault());
  $("clear").addEventListener("click", () => { $("q").value = ""; changed({ ...DEFAULTS, doc: state.doc, grid: state.grid }); });
  $("open-help").addEventListener("click", () => $("help").showModal());
  $("skip").addEventListener("click", (event) => { event.preventDefault(); article.focus(); });
  let frame = 0;
  list.addEventListener("scroll", () => { cancelAnimationFrame(frame); frame = requestAnimationFrame(showRows); });
  window.addEventListener("resize", showRows);
  document.addEventListener("keydown", keys);
  window.addEventListener("popstate", safely(async () => { readState(); $("q").value = state.q; await show(); }));
  for (const input of document.querySelectorAll("[name=theme]")) input.addEventListener("change", () => {
    if (input.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = input.value;
  });
}

async function load() {
  let read = [];
  for (;;) {
    about = await source.about();
    document.title = about.title;
    $("title").textContent = about.title;
    showFaults();
    const told = about.tasks.map((task) => `${task.docs}/${isRead(task)}`);
    const fresh = about.tasks.map((task, place) => place).filter((place) => about.tasks[place].docs && told[place] !== read[place]);
    for (const place of fresh) columns[place] = await source.columns(place);
    hits = fresh.length && state.q ? await source.search(state.q) : hits;
    const news = told.join() !== read.join();
    read = told;
    if (news || !view.length) await show().catch(fault);
    if (about.tasks.every(isRead)) return;
    await new Promise((done) => setTimeout(done, view.length ? 300 : 80));
  }
}

function start() {
  const data = $("data");
  source = data ? ofPage(JSON.parse(data.textContent)) : ofServer();
  if (!data && location.search) history.replaceState(null, "", location.pathname + location.hash);
  readState();
  listen();
  safely(load)();
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
