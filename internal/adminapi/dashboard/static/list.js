// Lists with a search, a filter and pages of their own, whose state is in the link.
import { el, hash, link, muted, number } from "./dom.js";

export const pageSize = 50;

// controls is the search above a list. It goes to the link of what is searched for.
export function controls(pieces, parameters, { label, problems, more = [] }) {
  const input = el("input", { id: "filter", name: "q", type: "search", value: parameters.q ?? "", autocomplete: "off", spellcheck: "false" });
  const box = problems ? el("input", { id: "problems", name: "problems", type: "checkbox", checked: parameters.problems === "true" }) : null;
  const go = () => {
    location.hash = hash(pieces, { ...parameters, q: input.value.trim(), problems: box?.checked, offset: 0 });
  };
  box?.addEventListener("change", go);
  return el("form", { class: "controls", onsubmit: (event) => { event.preventDefault(); go(); } },
    el("label", { for: "filter" }, label), input,
    el("button", { type: "submit" }, "Search"),
    box ? el("span", { class: "check" }, box, el("label", { for: "problems" }, problems)) : null,
    more);
}

export function query(parameters) {
  return { q: parameters.q, problems: parameters.problems, offset: parameters.offset, limit: pageSize };
}

// pager says which part of a list is shown, and leads to the others.
export function pager(pieces, parameters, page, what) {
  const offset = Number(parameters.offset ?? 0);
  const to = (place) => hash(pieces, { ...parameters, offset: Math.max(0, place) });
  if (page.total === 0) return el("p", { class: "pager" }, `No ${what}${parameters.q || parameters.problems || parameters.code ? " match" : ""}.`);
  const last = Math.min(offset + page.items.length, page.total);
  const text = page.items.length === 0 ? `Nothing here: there are ${number(page.total)} ${what}.` : `${number(offset + 1)}–${number(last)} of ${number(page.total)} ${what}`;
  return el("nav", { class: "pager", "aria-label": "Parts of the list" }, el("span", null, text),
    offset > 0 ? link(to(0), "First") : muted("First"),
    offset > 0 ? link(to(offset - pageSize), "Previous") : muted("Previous"),
    last < page.total ? link(to(offset + pageSize), "Next") : muted("Next"),
    last < page.total ? link(to(Math.floor((page.total - 1) / pageSize) * pageSize), "Last") : muted("Last"));
}
