// Hosts and their routes.
import { get } from "./api.js";
import { badge, code, counted, day, el, few, hash, health, link, muted, number, path, rate, table, until } from "./dom.js";
import { findingTable, objectLink } from "./findings.js";
import { controls, pager, query } from "./list.js";

export const backendLink = (key) => link(hash(["backend", key]), path(key));
export const hostLink = (name) => link(hash(["host", name]), name === "_" ? "all other names" : name);

export function hosts(parameters) {
  return {
    title: "Hosts",
    controls: controls(["hosts"], parameters, { label: "Host, alias, Ingress or Service", problems: "with problems only" }),
    async load(signal) {
      const [page, rates] = await Promise.all([get("hosts", query(parameters), signal), get("rates", { q: parameters.q, limit: 200 }, signal)]);
      const byHost = new Map((rates.items ?? []).map((item) => [item.host, item]));
      return [pager(["hosts"], parameters, page, "hosts"), page.items.length > 0 && table("Hosts",
        ["Host", "Backends", "Certificate", "Routes", "Ingresses", ...(rates.enabled ? ["Requests/s"] : [])],
        page.items.map((host) => [
          [hostLink(host.name), host.aliases.total > 0 ? el("div", { class: "muted" }, "also ", few(host.aliases)) : null],
          [health(host.health), host.denied > 0 ? [" ", badge("down", `${counted(host.denied, "path")} denied`)] : null],
          certificateOf(host), String(host.routes), few(host.ingresses, objectLink),
          ...(rates.enabled ? [rateOf(byHost.get(host.name), rates)] : []),
        ])), rates.enabled ? null : metricsHint()];
    },
  };
}

function rateOf(item, rates) {
  if (rates.over === 0) return muted("measuring");
  if (!item) return rates.total > rates.items.length ? muted("–") : "0";
  return [rate(item.all), item.classes[5] > 0 ? [" ", badge("down", `${rate(item.classes[5])} are 5xx`)] : null];
}

export function metricsHint() {
  return el("p", { class: "hint" }, "Requests are not counted. To see live rates by host, start the controller with ", code("--enable-metrics"),
    " (in the chart: ", code("controller.metrics.enabled: true"), ").");
}

function certificateOf(host) {
  if (host.passthrough) return ["passed through to ", backendLink(host.passthrough)];
  if (!host.tls) return muted("no TLS");
  const certificate = host.certificate;
  if (!certificate) return badge("down", "none");
  if (certificate.default && !certificate.secret) return badge("degraded", "made by Headgate");
  return [certificate.default ? "default: " : null, secretLink(certificate), " ", expiry(certificate)];
}

export function secretLink(certificate) {
  if (!certificate.secret) return muted("made by Headgate");
  return link(hash(["certificates"], { q: certificate.secret }), certificate.secret);
}

// expiry is when a certificate ends, and how urgent that is.
export function expiry(certificate) {
  if (!certificate.not_after) return badge("down", "can't be read");
  const days = until(certificate.not_after) / 86400;
  const text = days < 0 ? `expired on ${day(certificate.not_after)}` : `until ${day(certificate.not_after)}`;
  return days < 0 ? badge("down", text) : days < 10 ? badge("degraded", text) : muted(text);
}

// someFindings is how many findings the page of a host has itself.
const someFindings = 5;

export function host(parameters, name) {
  return {
    title: name === "_" ? "All other names" : name,
    controls: controls(["host", name], parameters, { label: "Path, Ingress or Service", problems: "with problems only" }),
    async load(signal) {
      const [page, rates, findings] = await Promise.all([
        get("routes", { host: name, ...query(parameters) }, signal), get("rates", { q: name }, signal), get("findings", { host: name, limit: someFindings }, signal),
      ]);
      const measured = (rates.items ?? []).find((item) => item.host === name);
      const one = page.host;
      return [
        el("dl", { class: "facts" },
          fact("Backends", health(one.health)),
          one.aliases.total > 0 && fact("Aliases", few(one.aliases)),
          fact("Ingresses", few(one.ingresses, objectLink)),
          fact("Certificate", certificateOf(one)),
          rates.enabled && fact("Requests", classes(measured, rates)),
        ),
        pager(["host", name], parameters, page, "routes"),
        page.items.length > 0 && table(`Routes of ${name}`, ["Path", "Backend", "Health", "Ingress", ""], page.items.map((route) => [
          [code(route.path), " ", muted(route.kind)],
          route.backend ? [backendLink(route.backend), route.fallback ? ["; without endpoints: ", backendLink(route.fallback)] : null] : muted("none: Headgate answers 404"),
          route.denied ? badge("down", "denied: 503") : health(route.health),
          route.ingress ? objectLink(route.ingress) : muted("–"),
          explainLink(one, route),
        ])),
        findings.total > 0 && el("section", null, el("h2", null, counted(findings.total, "finding"), " about this host"), findingTable(findings.findings),
          findings.total > findings.findings.length && el("p", null, link(hash(["findings"], { host: name }), `all ${number(findings.total)} findings`))),
      ];
    },
  };
}

function explainLink(one, route) {
  if (route.kind === "pattern" || one.name.includes("*") || one.name === "_") return muted("–");
  const url = `${one.tls ? "https" : "http"}://${one.name}${route.path}`;
  return el("a", { href: hash(["explain"], { url }), "aria-label": `Explain ${url}` }, "explain");
}

// classes are the rates by class of status.
export function classes(measured, rates) {
  if (rates.over === 0) return muted("measuring");
  if (!measured) return "0 per second";
  return [`${rate(measured.all)} per second`, measured.classes.map((value, i) =>
    value > 0 ? [" ", badge(i === 5 ? "down" : i === 4 ? "degraded" : "ok", `${rate(value)} ${i === 0 ? "others" : i + "xx"}`)] : null)];
}

export function fact(term, ...value) {
  return [el("dt", null, term), el("dd", null, value)];
}
