// Makes elements. All text is set as text: nothing that a tenant wrote is ever parsed as HTML.

// el makes an element with attributes and children, which are elements, texts, lists of them, or
// nothing (null, undefined, false).
export function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), value);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...flat(children));
  return element;
}

function flat(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

// hash is the link to a page: its path in pieces, and parameters, of which empty ones are left out.
export function hash(pieces, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters ?? {})) {
    if (value !== "" && value !== null && value !== undefined && value !== false && value !== 0) {
      query.set(name, value);
    }
  }
  const text = query.toString();
  return "#/" + pieces.map(encodeURIComponent).join("/") + (text ? "?" + text : "");
}

export const link = (to, ...children) => el("a", { href: to }, children);
export const code = (...children) => el("code", null, children);
export const short = (...children) => el("span", { class: "short" }, children);

// path is a text that may be broken at its slashes.
export const path = (text) => text.split(/(?<=\/)/).map((piece, i) => [i > 0 ? el("wbr") : null, piece]);

export const muted = (...children) => el("span", { class: "muted" }, children);

// table makes a table with a caption for screen readers. A row is a list of cells.
export function table(caption, heads, rows) {
  const head = el("tr", null, heads.map((text) => el("th", { scope: "col" }, text)));
  const body = rows.map((cells) => el("tr", null, cells.map((cell, i) =>
    i === 0 ? el("th", { scope: "row" }, cell) : el("td", { "data-label": heads[i] }, cell))));
  return el("div", { class: "scroll" }, el("table", null,
    el("caption", { class: "hidden" }, caption), el("thead", null, head), el("tbody", null, body)));
}

const marks = { ok: "●", degraded: "▲", down: "■", note: "◆" };

// badge says a state in words, with a mark, so that it does not need colours. A short one stays
// in a line.
export function badge(state, text) {
  return el("span", { class: `badge ${state}${text.length < 24 ? " short" : ""}` }, el("span", { "aria-hidden": "true" }, marks[state]), " ", text);
}

const healthWords = { ok: "ok", degraded: "degraded", down: "down" };
export const health = (state) => badge(state, healthWords[state]);

// few lists the first of many names.
export function few(list, show = (name) => code(name)) {
  const items = list.names.map((name, i) => [i > 0 ? ", " : null, show(name)]);
  const more = list.total - list.names.length;
  return [items, more > 0 ? muted(` and ${number(more)} more`) : null];
}

export const number = (n) => n.toLocaleString("en");
export const counted = (n, one, many = one + "s") => `${number(n)} ${n === 1 ? one : many}`;

export function rate(n) {
  return n === 0 ? "0" : n < 10 ? n.toFixed(1) : number(Math.round(n));
}

export function duration(seconds) {
  if (seconds < 0.001) return "< 1 ms";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

// ago is how long a time is over, by the clock of the controller, and keepTime has it go on.
export function ago(text) {
  const element = el("time", { datetime: text, title: moment(text) });
  setAgo(element);
  return element;
}

let ahead = 0;
export function setClock(now) {
  ahead = new Date(now).getTime() - Date.now();
}

function setAgo(element) {
  const seconds = (Date.now() + ahead - new Date(element.dateTime).getTime()) / 1000;
  const words = seconds >= 0 ? `${duration(Math.max(1, Math.floor(seconds)))} ago` : `in ${duration(-seconds)}`;
  if (element.textContent !== words) element.textContent = words;
}

export function keepTime() {
  for (const element of document.querySelectorAll("time[datetime]")) setAgo(element);
}

export const until = (text) => (new Date(text).getTime() - Date.now() - ahead) / 1000;

// moment is a time in full, in UTC.
export const moment = (text) => new Date(text).toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");
export const day = (text) => new Date(text).toISOString().slice(0, 10);
