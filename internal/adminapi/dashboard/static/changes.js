// What changed lately, what followed, and how long it took.
import { get } from "./api.js";
import { ago, badge, code, counted, duration, el, hash, link, moment, muted, number, short, table } from "./dom.js";
import { objectLink } from "./findings.js";
import { backendLink, hostLink } from "./hosts.js";
import { controls, pager, query } from "./list.js";

export function changes(parameters) {
  return {
    title: "Changes",
    controls: controls(["changes"], parameters, { label: "Object, host or reason" }),
    async load(signal) {
      const { problems, ...asked } = query(parameters);
      const page = await get("changes", asked, signal);
      return [el("p", { class: "muted" }, "The last 200, since the controller started. The time is from the arrival of a change until NGINX serves it."),
        pager(["changes"], parameters, page, "changes"), page.items.length > 0 && changeTable(page.items)];
    },
  };
}

export function changeTable(list) {
  return table("Changes, the newest first", ["When", "What", "What followed", "Took"], list.map((event) => [
    [ago(event.at), el("div", null, short(muted(moment(event.at))))], what(event), followed(event), took(event)]));
}

function what(event) {
  if (event.kind === "reload") return [badge(event.error ? "down" : "note", event.error ? "reload failed" : "NGINX reloaded"), event.reason ? [" because of ", event.reason] : null];
  if (event.kind === "restart") return badge("down", "NGINX ended and was started again");
  return named(event.objects, event.total, (object) => [objectLink(object.object), object.deleted ? " deleted" : null]);
}

function followed(event) {
  if (event.error) return el("span", { class: "text" }, event.error);
  if (event.kind === "reload") return ["generation ", number(event.generation)];
  if (!event.pushed) return muted(event.kind === "restart" ? "everything is pushed again" : "nothing to push");
  return [counted(event.pushed, "unit"), " pushed: ", named(event.units, event.pushed, (unit) => [unitLink(unit), unit.deleted ? " deleted" : null])];
}

function unitLink(unit) {
  if (unit.kind === "host") return ["host ", hostLink(unit.name)];
  if (unit.kind === "backend") return ["backend ", backendLink(unit.name)];
  if (unit.kind === "name") return ["name ", link(hash(["hosts"], { q: unit.name }), unit.name)];
  return [unit.kind, " ", code(unit.name.slice(0, 24))];
}

// shown is how many objects and units a row lists: the others are behind a click.
const shown = 4;

function named(list, total, show) {
  const items = (part) => part.map((item, i) => [i > 0 ? ", " : null, show(item)]);
  const rest = total - shown;
  if (rest <= 0) return items(list);
  return [items(list.slice(0, shown)), el("details", null, el("summary", null, `and ${number(rest)} more`), items(list.slice(shown)),
    total > list.length ? muted(` and ${number(total - list.length)} that are not kept`) : null)];
}

function took(event) {
  if (event.took === undefined) return event.kind === "restart" ? muted("–") : badge("degraded", "waits");
  return short(duration(event.took));
}
