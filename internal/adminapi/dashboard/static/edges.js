// Edges: the NGINX of each, where the controller has none of its own.
import { get } from "./api.js";
import { ago, badge, code, counted, el, hash, link, muted, number, table } from "./dom.js";
import { controls, pager, query } from "./list.js";

export function edges(parameters) {
  return {
    title: "Edges",
    controls: controls(["edges"], parameters, { label: "Name or group", problems: "with problems or findings only" }),
    async load(signal) {
      const answer = await get("edges", query(parameters), signal);
      return [pager(["edges"], parameters, { items: answer.edges, total: answer.total }, "edges"), answer.edges.length > 0 && edgeTable(answer.edges)];
    },
  };
}

// edgeTable has one row for each. All texts come from edges.
export function edgeTable(list) {
  const grouped = list.some((edge) => edge.group);
  const heads = ["Edge", grouped && "Group", "State", "Findings", "NGINX", "Release", "Connected"];
  return table("Edges, those that need a look first", heads.filter(Boolean), list.map((edge) => [
    edge.name, grouped && (edge.group ? code(edge.group) : muted("all")), state(edge), findingsOf(edge), edge.nginx ?? "", edge.release ?? "", ago(edge.since),
  ].filter((cell) => cell !== false)));
}

function state(edge) {
  const working = edge.synced ? "ok" : "degraded";
  return badge(edge.silent ? "down" : !edge.reported ? "note" : edge.serving ? working : "down", edge.state);
}

function findingsOf(edge) {
  const list = edge.findings ?? [];
  const all = list.length + (edge.more_findings ?? 0);
  if (all === 0) return muted("none");
  return [badge("degraded", counted(all, "finding")), el("ul", { class: "few" },
    list.map((finding) => el("li", null, code(finding.object), ": ", el("span", { class: "text" }, finding.message))),
    all > list.length && el("li", null, muted(`and ${number(all - list.length)} more`)))];
}

// edgesBadge says how many there are: "3 edges, 1 with a problem".
export function edgesBadge(count) {
  if (count.total === 0) return badge("down", "no edge is connected");
  return count.broken > 0 ? badge("down", `${counted(count.total, "edge")}, ${number(count.broken)} with a problem`) : badge("ok", counted(count.total, "edge"));
}

export const edgesLink = (...children) => link(hash(["edges"]), children);
