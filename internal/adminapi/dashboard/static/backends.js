// Backends and their endpoints.
import { endpointsOf } from "./advice.js";
import { get } from "./api.js";
import { badge, code, counted, el, few, health, muted, table } from "./dom.js";
import { backendLink, fact, hostLink } from "./hosts.js";
import { controls, pager, query } from "./list.js";

export function backends(parameters) {
  return {
    title: "Backends",
    controls: controls(["backends"], parameters, { label: "Namespace, Service or port", problems: "with problems only" }),
    async load(signal) {
      const page = await get("backends", query(parameters), signal);
      return [pager(["backends"], parameters, page, "backends"), page.items.length > 0 && table("Backends",
        ["Backend", "Health", "Endpoints", "Hosts"], page.items.map((backend) => [
          backendLink(backend.key), health(backend.health), endpoints(backend), few(backend.hosts, hostLink)]))];
    },
  };
}

export function endpoints(backend) {
  if (backend.endpoints === 0) return badge("down", "no endpoint: requests are answered 503");
  return [counted(backend.endpoints, "endpoint"),
    backend.unhealthy > 0 ? [", ", badge("degraded", `${backend.unhealthy} unhealthy`)] : null,
    backend.ejected > 0 ? [", ", badge("degraded", `${backend.ejected} ejected`)] : null];
}

const states = { ok: "ok", unhealthy: "down", ejected: "degraded", terminating: "note" };

export function backend(parameters, key) {
  return {
    title: key,
    controls: controls(["backend", key], parameters, { label: "Address", problems: "with problems only" }),
    async load(signal) {
      const [page, status] = await Promise.all([get("endpoints", { backend: key, ...query(parameters) }, signal), get("status", {}, signal)]);
      const one = page.backend;
      return [
        el("dl", { class: "facts" },
          fact("Health", health(one.health)),
          one.namespace && fact("Namespace", code(one.namespace)),
          fact("Service", code(one.service), one.port ? [" port ", code(one.port)] : null),
          fact("Endpoints", endpoints(one)),
          fact("Health checks", one.checked ? "by the controller, see the annotation health-check" : "none; NGINX's workers avoid endpoints that take no connections"),
          fact("Hosts", one.hosts.total > 0 ? few(one.hosts, hostLink) : muted("none")),
        ),
        one.endpoints === 0 && one.namespace && el("p", { class: "hint" }, endpointsOf(one.namespace, one.service, status.source)),
        pager(["backend", key], parameters, page, "endpoints"),
        page.items.length > 0 && table(`Endpoints of ${key}`, ["Address", "State", "Requests", "Why"], page.items.map((endpoint) => [
          code(endpoint.address), badge(states[endpoint.state], endpoint.state), endpoint.used ? "gets requests" : "gets none", endpoint.why ?? ""])),
      ];
    },
  };
}
