"use strict";
// Everything is readable without this script: it sorts, filters, opens what a link leads to, and keeps the reader's theme.
(function () {
  var root = document.documentElement, KEY = "lmms-patch-theme", MANY = 200;
  root.classList.add("js");
  function all(selector, within) { return Array.prototype.slice.call((within || document).querySelectorAll(selector)); }
  function theme(name) {
    if (name === "light" || name === "dark") { root.setAttribute("data-theme", name); } else { root.removeAttribute("data-theme"); }
  }
  try { theme(localStorage.getItem(KEY)); } catch (error) { /* private window: not remembered */ }

  function themes() {
    all("input[name=theme]").forEach(function (input) {
      input.checked = input.value === (root.getAttribute("data-theme") || "auto");
      input.addEventListener("change", function () {
        theme(input.value);
        try { localStorage.setItem(KEY, input.value); } catch (error) { /* likewise */ }
      });
    });
  }

  // --- sorting: numbers by data-value, what is not defined last in either direction ---
  function sort(table, column, header) {
    var body = table.tBodies[0], down = header.getAttribute("aria-sort") === "ascending";
    var rows = all("tr", body).map(function (row) {
      var cell = row.cells[column], key = cell.hasAttribute("data-value") ? cell.getAttribute("data-value") : cell.textContent;
      return { row: row, key: key.trim().replace(/^(\d{1,3})(,\d{3})+$/, function (text) { return text.replace(/,/g, ""); }) };
    });
    var known = rows.filter(function (one) { return one.key !== "" && one.key !== "N/A"; });
    var numeric = known.every(function (one) { return isFinite(Number(one.key)); });
    known.sort(function (a, b) {
      var order = numeric ? Number(a.key) - Number(b.key) : a.key.localeCompare(b.key, undefined, { numeric: true, sensitivity: "base" });
      return (down ? -order : order) || a.row.rowIndex - b.row.rowIndex;
    });
    all("[aria-sort]", table.tHead).forEach(function (other) { other.removeAttribute("aria-sort"); });
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    known.concat(rows.filter(function (one) { return known.indexOf(one) < 0; })).forEach(function (one) { body.appendChild(one.row); });
    filter();
  }
  function sorting() {
    all("table.sortable").forEach(function (table) {
      if (table.tBodies[0].rows.length < 2) { return; }
      all("th", table.tHead).forEach(function (header, column) {
        var button = document.createElement("button");
        button.type = "button";
        while (header.firstChild) { button.appendChild(header.firstChild); }
        header.appendChild(button);
        button.addEventListener("click", function () { sort(table, column, header); });
      });
    });
  }

  // --- the filter: rows of tables, results and examples that have all words; of a long table the first rows alone, until the reader asks for all ---
  var items = [], tables = [];
  function filter() {
    var box = document.getElementById("everywhere"), words = (box ? box.value : "").toLowerCase().split(/\s+/).filter(Boolean), shown = 0;
    items.forEach(function (one) {
      one.hit = words.every(function (word) { return one.text.indexOf(word) >= 0; });
      shown += one.hit;
      if (!one.inTable) { one.element.hidden = !one.hit; }
    });
    tables.forEach(function (table) {
      var left = table.whole ? Infinity : MANY;
      all("tr", table.tBodies[0]).forEach(function (row) {
        var hit = !row.item || row.item.hit;
        left -= hit;
        row.hidden = !hit || left < 0;
      });
      if (table.more) { table.more.hidden = left >= 0; }
    });
    var output = document.getElementById("count");
    if (output) { output.textContent = words.length ? shown + " of " + items.length + " rows and results" : ""; }
  }
  function filters() {
    tables = all("table.sortable");
    tables.forEach(function (table) {
      if (!table.closest(".entry")) {
        all("tr", table.tBodies[0]).forEach(function (row) {
          row.item = { element: row, inTable: true, text: row.textContent.toLowerCase() };
          items.push(row.item);
        });
      }
      if (table.tBodies[0].rows.length > MANY) {
        table.more = document.createElement("button");
        table.more.type = "button";
        table.more.className = "plain";
        table.more.textContent = "Show all rows";
        table.more.addEventListener("click", function () { table.whole = true; filter(); table.parentNode.focus(); });
        table.parentNode.insertAdjacentElement("afterend", table.more);
      }
    });
    all("[data-find]").forEach(function (element) { items.push({ element: element, text: element.getAttribute("data-find").toLowerCase() }); });
    var box = document.getElementById("everywhere");
    if (box) { box.addEventListener("input", filter); }
    filter();
  }

  // --- details: a link to something in a closed one opens it; on paper all are open ---
  function reveal() {
    var target = null;
    try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch (error) { return; }
    for (var at = target; at; at = at.parentElement) { if (at.tagName === "DETAILS") { at.open = true; } }
    if (target) { target.scrollIntoView(); }
  }
  function opening() {
    document.addEventListener("click", function (event) {
      var link = event.target.closest("a[href^='#']");
      if (link && link.getAttribute("href") === location.hash) { reveal(); }
    });
    window.addEventListener("hashchange", reveal);
    if (location.hash) { reveal(); }
    window.addEventListener("beforeprint", function () { all("details:not([open])").forEach(function (one) { one.open = one.forPaper = true; }); });
    window.addEventListener("afterprint", function () { all("details").forEach(function (one) { if (one.forPaper) { one.open = one.forPaper = false; } }); });
  }

  document.addEventListener("DOMContentLoaded", function () { themes(); sorting(); filters(); opening(); });
})();
