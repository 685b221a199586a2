// What needs attention, what changed last, and which hosts are busy.
import { get } from "./api.js";
import { badge, code, counted, el, few, hash, health, link, muted, number, rate, table } from "./dom.js";
import { changeTable } from "./changes.js";
import { edgesLink, edgeTable } from "./edges.js";
import { backendLink, classes, expiry, hostLink, metricsHint, secretLink } from "./hosts.js";
import { endpoints } from "./backends.js";
import { objectLink } from "./findings.js";

export function overview() {
  return {
    title: "Overview",
    async load(signal) {
      const [status, hosts, backends, certificates, changes, rates] = await Promise.all([
        get("status", {}, signal), get("hosts", { problems: true, limit: 5 }, signal), get("backends", { problems: true, limit: 5 }, signal),
        get("certificates", { problems: true, limit: 5 }, signal), get("changes", { limit: 5 }, signal), get("rates", { limit: 8 }, signal),
      ]);
      const edges = status.edges ? await get("edges", { limit: 5 }, signal) : null;
      return [
        el("ul", { class: "tiles" },
          tile(hash(["hosts"], { problems: hosts.total > 0 }), "Hosts", status.hosts, hosts.total, "with problems", "no problems"),
          tile(hash(["backends"], { problems: backends.total > 0 }), "Backends", status.backends, backends.total, "degraded or down", "all work"),
          tile(hash(["certificates"], { problems: certificates.total > 0 }), "Certificates", status.certificates, certificates.total, "within 10 days", "none expires soon"),
          tile(hash(["findings"]), "Findings", status.findings, null),
          edges && tile(hash(["edges"]), "Edges", status.edges.total, status.edges.broken, "with a problem", status.edges.total > 0 ? "all serve" : "none is connected"),
          rates.enabled && tile(hash(["hosts"]), "Requests/s", rates.over > 0 ? rate(rates.all.all) : "…", rates.over > 0 && rates.all.classes[5] > 0 ? rate(rates.all.classes[5]) : 0, "are 5xx", "no 5xx")),
        attention(hosts, backends, certificates, status),
        edges && el("section", null, el("h2", null, edgesLink("Edges")),
          edges.edges.length > 0 ? edgeTable(edges.edges) : el("p", { class: "muted" }, "No edge is connected: nothing serves."),
          edges.total > edges.edges.length && el("p", null, edgesLink(`all ${number(edges.total)} edges`))),
        el("section", null, el("h2", null, "Busiest hosts"), rates.enabled ? busiest(rates) : metricsHint()),
        el("section", null, el("h2", null, link(hash(["changes"]), "Last changes")),
          changes.items.length > 0 ? changeTable(changes.items) : el("p", { class: "muted" }, "Nothing changed since the controller started.")),
      ];
    },
  };
}

function tile(to, name, count, problems, words, fine) {
  return el("li", null, el("a", { href: to },
    el("span", { class: "name" }, name), el("span", { class: "count" }, typeof count === "number" ? number(count) : count),
    problems === null ? null : problems ? badge("down", `${typeof problems === "number" ? number(problems) : problems} ${words}`) : badge("ok", fine)));
}

function attention(hosts, backends, certificates, status) {
  const codes = Object.entries(status.codes).sort((a, b) => b[1] - a[1]);
  const rows = [
    ...backends.items.map((b) => [health(b.health), ["backend ", backendLink(b.key)], [endpoints(b), "; used by ", few(b.hosts, hostLink)]]),
    ...hosts.items.filter((h) => h.denied > 0).map((h) => [badge("down", "denied"), ["host ", hostLink(h.name)], [counted(h.denied, "path"), " denied with 503 because of a setting: ", few(h.ingresses, objectLink)]]),
    ...certificates.items.map((c) => [expiry(c), ["certificate ", secretLink(c)], ["shown for ", few(c.shown_for, hostLink)]]),
  ];
  return el("section", null, el("h2", null, "Needs attention"),
    codes.length > 0 && el("ul", { class: "chips" }, codes.map(([name, count]) => el("li", null, link(hash(["findings"], { code: name }), `${name} ${number(count)}`)))),
    rows.length > 0 ? table("What needs attention", ["State", "What", "Details"], rows) : codes.length === 0 ? el("p", null, badge("ok", "Nothing")) : null,
    more(backends, "backends"), more(certificates, "certificates"));
}

function more(page, what) {
  return page.total > page.items.length && el("p", null, link(hash([what], { problems: true }), `all ${number(page.total)} ${what}`));
}

function busiest(rates) {
  if (rates.over === 0) return el("p", { class: "muted" }, "Measuring…");
  const busy = rates.items.filter((item) => item.all > 0);
  if (busy.length === 0) return el("p", { class: "muted" }, `No request in the last ${Math.round(rates.over)} seconds.`);
  return table("Busiest hosts", ["Host", "Requests/s", "By status", "So far"], busy.map((item) => [
    item.host === "" ? muted("other requests") : hostLink(item.host), rate(item.all), classes(item, rates).slice(1), code(number(item.requests))]));
}
