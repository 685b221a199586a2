// Shows the page that the link names, and looks again every few seconds while it is visible.
import { Failure, get } from "./api.js";
import { ago, badge, counted, el, hash, keepTime, link, muted, number, setClock } from "./dom.js";
import { backend, backends } from "./backends.js";
import { certificates } from "./certificates.js";
import { changes } from "./changes.js";
import { edges, edgesBadge, edgesLink } from "./edges.js";
import { explain, target } from "./explain.js";
import { findings } from "./findings.js";
import { host, hosts } from "./hosts.js";
import { overview } from "./overview.js";

const pause = 3000;
const pages = { "": overview, hosts, host, backends, backend, certificates, edges, findings, explain, changes };
const main = document.getElementById("main");

let view = null; // what is shown: page, region, controller of its requests
let timer = 0;

// place reads the link: #/page/argument?parameters
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const pieces = path.split("/").map((piece) => { try { return decodeURIComponent(piece); } catch { return piece; } });
  return { pieces, parameters: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

function navigate(first) {
  const { pieces, parameters } = place();
  const make = Object.hasOwn(pages, pieces[0]) ? pages[pieces[0]] : () => ({ title: "No such page", async load() { return el("p", null, link("#/", "Overview")); } });
  view?.abort.abort();
  const page = make(parameters, pieces[1] ?? "");
  const region = el("div", { class: "region", "aria-busy": "true" });
  const heading = el("h1", { tabindex: "-1" }, page.title);
  view = { page, region, abort: new AbortController(), shown: null };
  main.replaceChildren(...[heading, page.controls, region].filter(Boolean));
  document.title = `${page.title} – Headgate`;
  const section = { host: "hosts", backend: "backends" }[pieces[0]] ?? pieces[0];
  for (const item of document.querySelectorAll("header nav a")) {
    if (item.getAttribute("href") === "#/" + section) item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
  }
  document.getElementById("search-text").value = pieces[0] === "explain" ? parameters.url ?? "" : "";
  if (!first) heading.focus({ preventScroll: true });
  window.scrollTo(0, 0);
  refresh(true);
}

// refresh loads what is shown, unless it is about one moment only, like an explanation.
async function refresh(always) {
  clearTimeout(timer);
  const now = view;
  try {
    await Promise.all([refreshStatus(now.abort.signal), always || !now.page.still ? load(now) : null]);
  } catch (error) {
    if (error.name === "AbortError") return;
    throw error;
  }
  if (now === view && !document.hidden) timer = setTimeout(refresh, pause);
}

async function load(now) {
  let content;
  try {
    content = [await now.page.load(now.abort.signal)];
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    content = [el("p", { class: "failure", role: "alert" }, error.message)];
  }
  if (now === view) replace(now, content);
}

// replace shows new content. What is the same stays, so that focus and selection do too.
function replace(now, content) {
  const next = el("div", null, content);
  now.region.setAttribute("aria-busy", "false");
  if (now.shown !== null && plain(next) === now.shown) return;
  const selection = document.getSelection();
  if (now.shown !== null && selection && !selection.isCollapsed && now.region.contains(selection.anchorNode)) return;
  const focused = now.region.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  now.shown = plain(next);
  now.region.replaceChildren(...next.childNodes);
  if (focused) [...now.region.querySelectorAll("a")].find((one) => one.getAttribute("href") === focused)?.focus({ preventScroll: true });
}

// plain is a text of an element to compare by, without what changes with time alone.
function plain(element) {
  const copy = element.cloneNode(true);
  for (const time of copy.querySelectorAll("time")) time.textContent = "";
  return [...copy.querySelectorAll("a")].map((one) => one.getAttribute("href")).join(" ") + copy.textContent;
}

async function refreshStatus(signal) {
  const strip = document.getElementById("status");
  try {
    const status = await get("status", {}, signal);
    setClock(status.now);
    strip.replaceChildren(...statusItems(status));
    document.getElementById("source").textContent = [`Headgate ${status.release}`, !status.edges && `NGINX ${status.nginx}`, status.source].filter(Boolean).join(", ");
    document.getElementById("edges").hidden = !status.edges;
    document.getElementById("refreshed").textContent = `as of ${new Date(status.now).toISOString().slice(11, 19)} UTC`;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    strip.replaceChildren(badge("down", error.message));
  }
}

function statusItems(status) {
  const reload = status.last_reload;
  // A control has no NGINX of its own.
  const does = status.edges ? "publishing" : "serving";
  return [
    status.serving ? badge("ok", does) : badge("down", `not ${does}: ${status.problem}`),
    status.synced ? badge("ok", "synced") : badge("degraded", "applying changes"),
    link(hash(["findings"]), status.findings > 0 ? badge("degraded", counted(status.findings, "finding")) : badge("ok", "no findings")),
    status.ejected > 0 ? link(hash(["backends"], { problems: true }), badge("degraded", counted(status.ejected, "endpoint") + " ejected")) : null,
    status.edges && edgesLink(edgesBadge(status.edges)),
    !status.edges && el("span", { title: "The generation is the number of the nginx.conf that a worker runs with." }, `${counted(status.workers.length, "worker")} of generation ${number(status.generation)}`),
    status.edges ? null : reload ? el("span", null, link(hash(["changes"], { q: "reload" }), "last reload"), " ", ago(reload.at)) : muted("no reload"),
    el("span", null, "started ", ago(status.started)),
  ].filter(Boolean);
}

document.getElementById("search").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = document.getElementById("search-text").value.trim();
  if (text) location.hash = await target(text);
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", () => navigate(false));
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh(false)));
setInterval(keepTime, 1000);
navigate(true);
