// Explains a request: the answer in the first line, then what to change, then the steps.
import { get } from "./api.js";
import { advice, verdict } from "./advice.js";
import { badge, code, counted, day, el, hash, link, muted, number, table } from "./dom.js";
import { findingTable, objectLink } from "./findings.js";
import { backendLink, hostLink } from "./hosts.js";

// target is the link for what somebody typed above: a URL or a host is explained, a word is
// searched for among the hosts. A host that has TLS is asked with https.
export async function target(text) {
  if (!/[./:]/.test(text)) return hash(["hosts"], { q: text });
  if (/^[a-z]+:\/\//i.test(text)) return hash(["explain"], { url: text });
  const name = text.split(/[/?#:]/)[0].toLowerCase();
  const found = await get("routes", { host: name, limit: 1 }).catch(() => null);
  return hash(["explain"], { url: (found?.host.tls ? "https://" : "http://") + text });
}

export function explain(parameters) {
  return {
    title: "Explain",
    still: true,
    controls: form(parameters),
    async load(signal) {
      if (!parameters.url) return el("p", { class: "muted" }, "Says how a request would be handled, and why, without sending it.");
      const headers = (parameters.headers ?? "").split("\n").map((line) => line.trim()).filter(Boolean);
      const asked = { url: parameters.url, method: parameters.method, from: parameters.from, header: headers };
      const [answer, status] = await Promise.all([get("explain", asked, signal), get("status", {}, signal)]);
      return shown(answer, status.source, parameters);
    },
  };
}

function form(parameters) {
  const field = (name, label, attributes) => {
    const input = el(attributes.rows ? "textarea" : "input", { id: "explain-" + name, name, autocomplete: "off", spellcheck: "false", ...attributes });
    input.value = parameters[name] ?? "";
    return el("div", { class: "field " + name }, el("label", { for: "explain-" + name }, label), input);
  };
  return el("form", {
    class: "explain", onsubmit: (event) => {
      event.preventDefault();
      const values = Object.fromEntries(new FormData(event.target));
      values.url = values.url.trim();
      const to = hash(["explain"], values);
      if (location.hash === to) window.dispatchEvent(new HashChangeEvent("hashchange"));
      location.hash = to;
    },
  },
  field("url", "URL", { required: true, placeholder: "https://shop.example.com/cart" }),
  field("method", "Method", { placeholder: "GET", size: 8 }),
  field("from", "Client's address", { placeholder: "any", size: 16 }),
  field("headers", "Headers, one on each line", { rows: 2, placeholder: "Name: value" }),
  el("button", { type: "submit" }, "Explain"));
}

function shown(e, source, parameters) {
  const first = verdict(e);
  const steps = advice(e, source);
  const more = e.more_findings ?? 0;
  return [
    el("section", { class: "verdict " + first.state, "aria-label": "Answer" },
      el("p", { class: "what" }, badge(first.state, first.what)),
      el("p", { class: "why" }, `${e.request.method} ${e.request.url}: ${first.why}.`),
      first.next && el("p", null, link(hash(["explain"], { ...parameters, url: first.next }), `Explain ${first.next}`)),
      e.answers.slice(1).map((other) => el("p", { class: "muted" }, `Over ${other.scheme}: ${otherwise(other, e.answers[0])}.`))),
    steps.length > 0 && el("section", null, el("h2", null, "What to do"), el("ul", { class: "advice" }, steps.map((step) => el("li", null, step)))),
    e.findings.length > 0 && el("section", null, el("h2", null, counted(e.findings.length + more, "finding")), findingTable(e.findings),
      more > 0 && el("p", { class: "muted" }, `and ${number(more)} more: each object above has a page of its own.`)),
    el("section", null, el("h2", null, "Step by step"), el("ol", { class: "steps" }, stepsOf(e))),
    settings(e),
  ];
}

// otherwise says what a request with the other scheme gets, compared with the first answer.
function otherwise(other, answer) {
  if (["ends", "status", "location", "backend", "why"].every((name) => other[name] === answer[name])) return "the same";
  const what = other.ends ? "no response" : other.status ? [other.status, other.location].filter(Boolean).join(" to ") : "the backend " + other.backend;
  return `${what} – ${other.why}`;
}

function stepsOf(e) {
  return [
    e.client && step("Client", [e.client.address ? code(e.client.address) : null, " ", e.client.why]),
    e.name && step("Name", [hostLink(e.name.host), e.name.ingresses?.length > 0 ? [" of ", e.name.ingresses.map((i, n) => [n > 0 ? ", " : null, objectLink(i)])] : null, ` – ${e.name.why}`],
      [...(e.name.lost ?? []), ...(e.name.refused ?? [])].map((claim) => [`not ${claim.name} of ${claim.ingresses.join(", ")}: ${claim.why}`]),
      (e.unserved ?? []).map((one) => [objectLink(one.ingress), ` is not served: ${one.why}`])),
    e.route && step("Route", [code(e.route.path), ofIngress(e.route), ` – ${e.route.why}`, e.route.denied ? [" ", badge("down", "denied: 503")] : null],
      (e.lost ?? []).map((rule) => [code(rule.path), ofIngress(rule), ` – ${rule.outcome}: ${rule.why}`])),
    ...(e.backends ?? []).map((backend) => step(backend.role === "route" ? "Backend" : `Backend (${backend.role})`,
      [backendLink(backend.key), ` – ${backend.service === "does not exist" ? "" : backend.service + ", "}`, backend.used.length > 0 ? counted(backend.used.length, "endpoint") : badge("down", "no endpoint in use"), backend.when ? ` (${backend.when})` : null, backend.why ? ` – ${backend.why}` : null],
      (backend.endpoints ?? []).slice(0, 20).map((endpoint) => [code(endpoint.address), ` ${endpoint.state}`, endpoint.why ? `: ${endpoint.why}` : null]),
      (backend.endpoints ?? []).length > 20 ? [[backendLink(backend.key), " has all"]] : [])),
    e.certificate && step("Certificate", [e.certificate.default ? ["the default certificate", e.certificate.default_secret ? [" ", objectLink(e.certificate.default_secret)] : null, e.certificate.secret ? [" instead of ", objectLink(e.certificate.secret)] : null]
      : e.certificate.secret ? objectLink(e.certificate.secret) : "none", ` – ${e.certificate.why}`,
      e.certificate.not_after ? `, until ${day(e.certificate.not_after)}` : null, e.certificate.problem ? [" ", badge("degraded", e.certificate.problem)] : null]),
    e.data_plane && step("NGINX", nginx(e.data_plane)),
    e.edges && edges(e),
  ];
}

const ofIngress = (rule) => rule.ingress ? [" of ", objectLink(rule.ingress)] : null;

function step(name, line, ...details) {
  const list = details.flat(1);
  return el("li", null, el("h3", null, name), el("p", null, line), list.length > 0 && el("ul", null, list.map((detail) => el("li", null, detail))));
}

// nginx says whether the workers have what this explanation is about.
function nginx(plane) {
  if (plane.problem) return badge("down", plane.problem);
  const stale = (plane.units ?? []).filter((unit) => !unit.current);
  const workers = plane.workers ?? [];
  const errors = workers.flatMap((worker) => (worker.units ?? []).filter((unit) => unit.error).map((unit) => `worker ${worker.pid}: ${unit.kind} ${unit.name}: ${unit.error}`));
  return [`${counted(workers.length, "worker")}, generation ${plane.generation}. `,
    stale.length === 0 ? badge("ok", "NGINX has the newest version of everything that this request needs") : badge("degraded", `NGINX does not have the newest version of ${stale.map((unit) => `${unit.kind} ${unit.name}`).join(", ")}`),
    errors.map((text) => el("div", null, badge("down", text)))];
}

// edges says it of each edge.
function edges(e) {
  const all = e.edges.length + (e.more_edges ?? 0);
  return step("NGINX", `of ${counted(all, "edge")}`, e.edges.map((edge) => [code(edge.name), ": ", nginx(edge)]), e.more_edges ? [muted(`and ${counted(e.more_edges, "edge")} more`)] : []);
}

function settings(e) {
  const all = e.policies ?? [];
  const set = all.filter((policy) => policy.from !== "default" || policy.rejected || policy.denies);
  const row = (policy) => [code(policy.setting), policy.value === "" ? muted("empty") : code(policy.value),
    [policy.from, policy.object ? [" ", objectLink(policy.object)] : null, policy.rejected ? [" ", badge("degraded", "rejected"), " ", code(policy.written)] : null]];
  return el("section", null, el("h2", null, "Settings"),
    set.length > 0 ? table("Settings that are not defaults", ["Setting", "Value", "From"], set.map(row)) : el("p", { class: "muted" }, "All are defaults."),
    all.length > set.length && el("details", null, el("summary", null, counted(all.length - set.length, "default")), table("Defaults", ["Setting", "Value", "From"], all.filter((policy) => !set.includes(policy)).map(row))),
    e.profile && !e.profile.default && el("p", null, "Profile ", code(e.profile.name), ": ", (e.profile.differs ?? []).map((d) => [code(`${d.setting} ${d.value}`), ` (default ${d.default}) `])));
}

