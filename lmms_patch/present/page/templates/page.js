"use strict";
// Everything is readable without this script: it sorts, filters, makes tabs of lists of links, and keeps the reader's theme.
(function () {
  var root = document.documentElement;
  var KEY = "lmms-patch-theme";
  root.classList.add("js");

  function all(selector, within) { return Array.prototype.slice.call((within || document).querySelectorAll(selector)); }
  function words(text) { return text.toLowerCase().split(/\s+/).filter(Boolean); }
  function plural(count, of, what) { return (count === of ? "" : count + " of ") + of + " " + what + (of === 1 ? "" : "s"); }

  // --- theme: before the first paint ---
  function stored() { try { return localStorage.getItem(KEY); } catch (error) { return null; } }
  function setTheme(theme) {
    if (theme === "light" || theme === "dark") { root.setAttribute("data-theme", theme); } else { root.removeAttribute("data-theme"); }
  }
  setTheme(stored());
  function themes() {
    all("input[name=theme]").forEach(function (input) {
      input.checked = input.value === (root.getAttribute("data-theme") || "auto");
      input.addEventListener("change", function () {
        setTheme(input.value);
        try { localStorage.setItem(KEY, input.value); } catch (error) { /* private window: not remembered */ }
      });
    });
  }

  // --- sorting: numbers by data-value, what is not defined last in either direction ---
  function key(row, column) {
    var cell = row.cells[column];
    if (!cell) { return ""; }
    return (cell.hasAttribute("data-value") ? cell.getAttribute("data-value") : cell.textContent).trim();
  }
  function sort(table, column, header) {
    var body = table.tBodies[0];
    var rows = Array.prototype.slice.call(body.rows).map(function (row) { return { row: row, key: key(row, column) }; });
    var known = rows.filter(function (one) { return one.key !== ""; });
    var numeric = known.every(function (one) { return isFinite(Number(one.key)); });
    var down = header.getAttribute("aria-sort") === "ascending";
    known.sort(function (a, b) {
      var order = numeric ? Number(a.key) - Number(b.key) : a.key.localeCompare(b.key, undefined, { numeric: true, sensitivity: "base" });
      return (down ? -order : order) || a.row.rowIndex - b.row.rowIndex;
    });
    all("[aria-sort]", table.tHead).forEach(function (other) { other.removeAttribute("aria-sort"); });
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    known.concat(rows.filter(function (one) { return one.key === ""; })).forEach(function (one) { body.appendChild(one.row); });
    counted();
  }
  function sorting() {
    all("table.sortable").forEach(function (table) {
      if (!table.tHead || !table.tBodies.length || table.tBodies[0].rows.length < 2) { return; }
      Array.prototype.forEach.call(table.tHead.rows[table.tHead.rows.length - 1].cells, function (header, column) {
        if (header.tagName !== "TH" || header.hasAttribute("data-nosort")) { return; }
        var button = document.createElement("button");
        button.type = "button";
        while (header.firstChild) { button.appendChild(header.firstChild); }
        header.appendChild(button);
        button.addEventListener("click", function () { sort(table, column, header); });
      });
    });
  }

  // --- filters: what hides an element is kept by name, so that several filters go together ---
  function hide(element, name, off) {
    var by = element.hiddenBy || (element.hiddenBy = {});
    by[name] = off;
    element.hidden = Object.keys(by).some(function (one) { return by[one]; });
  }
  function matches(element, wanted) {
    var text = (element.getAttribute("data-find") || element.textContent).toLowerCase();
    return wanted.every(function (word) { return text.indexOf(word) >= 0; });
  }
  function filters() {
    all("input[data-filters]").forEach(function (input) {
      var table = document.getElementById(input.getAttribute("data-filters"));
      if (!table) { return; }
      var rows = Array.prototype.slice.call(table.tBodies[0].rows);
      rows.forEach(function (row) { row.wholeText = row.textContent.toLowerCase(); });
      input.addEventListener("input", function () {
        var wanted = words(input.value);
        rows.forEach(function (row) {
          hide(row, "table", !wanted.every(function (word) { return row.wholeText.indexOf(word) >= 0; }));
        });
        counted();
      });
    });
    var everywhere = document.getElementById("everywhere");
    if (everywhere) {
      everywhere.addEventListener("input", function () {
        var wanted = words(everywhere.value);
        all("[data-find]").forEach(function (element) { hide(element, "everywhere", !matches(element, wanted)); });
        counted();
      });
    }
    counted();
  }

  // --- long tables: of the rows that the filters leave, the first ones are shown until the reader asks for all ---
  var MANY = 200;
  var long = [];
  function trim(table) {
    var left = table.whole ? Infinity : MANY;
    Array.prototype.forEach.call(table.tBodies[0].rows, function (row) {
      var by = row.hiddenBy || {};
      if (!Object.keys(by).some(function (one) { return one !== "rest" && by[one]; })) { left -= 1; }
      if (Boolean(by.rest) !== left < 0) { hide(row, "rest", left < 0); }
    });
    table.more.hidden = left >= 0;
  }
  function trimming() {
    all("table.sortable").forEach(function (table) {
      if (!table.tBodies.length || table.tBodies[0].rows.length <= MANY) { return; }
      table.more = document.createElement("button");
      table.more.type = "button";
      table.more.className = "plain";
      table.more.textContent = "Show all rows";
      table.more.addEventListener("click", function () { table.whole = true; counted(); table.parentNode.focus(); });
      table.parentNode.insertAdjacentElement("afterend", table.more);
      long.push(table);
    });
  }
  function say(output, text) { if (output && output.textContent !== text) { output.textContent = text; } }
  function shown(elements) { return elements.filter(function (one) { return !one.hidden; }).length; }
  function counted() {
    long.forEach(trim);
    all("output[data-counts]").forEach(function (output) {
      var table = document.getElementById(output.getAttribute("data-counts"));
      if (!table) { return; }
      var rows = Array.prototype.slice.call(table.tBodies[0].rows);
      say(output, plural(shown(rows), rows.length, "row"));
    });
    var entries = all("details.entry");
    say(document.getElementById("everywhere-count"), plural(shown(entries), entries.length, "result"));
    var cards = all(".card");
    say(document.getElementById("gallery-count"), plural(shown(cards), cards.length, "example"));
    all(".none-left").forEach(function (line) { line.hidden = shown(cards) > 0; });
  }
  function gallery() {
    var selects = all("select[data-gallery]");
    selects.forEach(function (select) {
      select.addEventListener("change", function () {
        all(".card").forEach(function (card) {
          hide(card, "gallery", selects.some(function (one) { return one.value !== "" && card.getAttribute("data-" + one.getAttribute("data-gallery")) !== one.value; }));
        });
        counted();
      });
    });
  }

  // --- tabs (WAI-ARIA authoring practices: arrow keys, Home and End; a tab is chosen when it gets the focus) ---
  function tabs() {
    all(".tabs").forEach(function (box) {
      var list = box.querySelector(".tablist");
      var links = all("a", list);
      var panels = links.map(function (link) { return document.getElementById(link.getAttribute("href").slice(1)); });
      if (panels.some(function (panel) { return !panel; })) { return; }
      function choose(at, focus) {
        links.forEach(function (link, i) {
          link.setAttribute("aria-selected", i === at ? "true" : "false");
          link.tabIndex = i === at ? 0 : -1;
          if (i === at) { panels[i].removeAttribute("hidden"); } else { panels[i].setAttribute("hidden", "until-found"); }
        });
        if (focus) { links[at].focus(); }
      }
      list.setAttribute("role", "tablist");
      list.setAttribute("aria-label", box.getAttribute("data-label") || "Tabs");
      links.forEach(function (link, i) {
        link.parentNode.setAttribute("role", "presentation");
        link.setAttribute("role", "tab");
        link.id = panels[i].id + "-tab";
        link.setAttribute("aria-controls", panels[i].id);
        panels[i].setAttribute("role", "tabpanel");
        panels[i].setAttribute("aria-labelledby", link.id);
        panels[i].addEventListener("beforematch", function () { choose(i, false); }); // found by the browser's search, or named in the address
        link.addEventListener("click", function (event) { event.preventDefault(); choose(i, true); });
        link.addEventListener("keydown", function (event) {
          var last = links.length - 1;
          var to = { ArrowRight: i === last ? 0 : i + 1, ArrowLeft: i === 0 ? last : i - 1, Home: 0, End: last, " ": i }[event.key];
          if (to === undefined) { return; }
          event.preventDefault();
          choose(to, true);
        });
      });
      choose(0, false);
    });
  }

  // --- details: a link to something in a closed one opens it; on paper all are open ---
  function reveal() {
    var target = null;
    try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch (error) { return; }
    if (!target) { return; }
    if (target.hidden) { target.dispatchEvent(new Event("beforematch")); }
    for (var at = target; at; at = at.parentElement) { if (at.tagName === "DETAILS") { at.open = true; } }
    target.scrollIntoView();
  }
  function opening() {
    var button = document.getElementById("open-all");
    if (button) {
      button.addEventListener("click", function () {
        var open = button.getAttribute("aria-pressed") !== "true";
        all("details.entry").forEach(function (one) { one.open = open; });
        button.setAttribute("aria-pressed", open ? "true" : "false");
        button.textContent = open ? "Close all" : "Open all";
      });
    }
    document.addEventListener("click", function (event) {
      var link = event.target.closest ? event.target.closest("a[href^='#']") : null;
      if (link && link.getAttribute("href") === location.hash) { reveal(); }
    });
    window.addEventListener("hashchange", reveal);
    if (location.hash) { reveal(); }
    window.addEventListener("beforeprint", function () {
      all("details:not([open])").forEach(function (one) { one.open = true; one.forPaper = true; });
    });
    window.addEventListener("afterprint", function () {
      all("details").forEach(function (one) { if (one.forPaper) { one.open = false; one.forPaper = false; } });
    });
  }

  document.addEventListener("DOMContentLoaded", function () {
    themes(); sorting(); trimming(); gallery(); filters(); tabs(); opening();
  });
})();
