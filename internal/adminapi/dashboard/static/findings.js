// Findings: what is wrong, and what is served instead. The worst are first.
import { get } from "./api.js";
import { badge, code, el, hash, link, muted, number, path, table } from "./dom.js";
import { controls, pageSize, pager } from "./list.js";

export function findings(parameters) {
  const all = parameters.object || parameters.code || parameters.host;
  return {
    title: "Findings",
    controls: controls(["findings"], parameters, {
      label: "Object, field or text",
      more: all ? [el("span", { class: "filter" }, "only ", [parameters.host, parameters.object, parameters.code].filter(Boolean).map((text) => [code(text), " "]),
        link(hash(["findings"], { q: parameters.q }), "show all"))] : [],
    }),
    async load(signal) {
      const asked = { q: parameters.q, object: parameters.object, code: parameters.code, host: parameters.host, offset: parameters.offset, limit: pageSize };
      const answer = await get("findings", asked, signal);
      const page = { items: answer.findings, total: answer.total };
      return [codes(answer.codes, parameters), pager(["findings"], parameters, page, "findings"),
        page.items.length > 0 && findingTable(page.items)];
    },
  };
}

export function codes(counts, parameters) {
  const list = Object.entries(counts).sort((a, b) => b[1] - a[1]);
  if (list.length < 2 && !parameters.code) return null;
  return el("ul", { class: "chips" }, list.map(([name, count]) =>
    el("li", null, link(hash(["findings"], { ...parameters, code: name, offset: 0 }), `${name} ${number(count)}`))));
}

export const objectLink = (object) => link(hash(["findings"], { object }), path(object));

// states are those of severities. An explanation has none.
const states = { denial: "down", error: "degraded", notice: "note" };

export function findingTable(list) {
  return table("Findings", ["Object", "Field", "What is wrong, and what it must be", "What is served instead"], list.map((finding) => [
    [objectLink(finding.object), el("div", null, badge(states[finding.severity] ?? "degraded", finding.code))], el("code", { class: "field-name" }, path(finding.field)), el("span", { class: "text" }, finding.message),
    finding.effect ? el("span", { class: "text" }, finding.effect) : muted("–")]));
}
