// Says in words what a request gets, and what to change, from an explanation.
import { code, hash, link } from "./dom.js";

const reasons = {
  200: "OK", 301: "Moved Permanently", 302: "Found", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
  404: "Not Found", 405: "Method Not Allowed", 413: "Payload Too Large", 421: "Misdirected Request", 429: "Too Many Requests", 500: "Internal Server Error",
  502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
};

// verdict is the answer in one line: its state, what it is, and why.
export function verdict(explanation) {
  const answer = explanation.answers[0];
  const failing = ejections(explanation);
  const unsafe = answer.scheme === "https" && !answer.ends ? distrust(explanation) : null;
  if (answer.ends) return { state: "down", what: "No response: the TLS handshake fails", why: answer.why };
  if (answer.status) {
    const what = `${answer.status} ${reasons[answer.status] ?? ""}`.trim() + " from Headgate";
    const state = answer.status >= 500 ? "down" : answer.status >= 400 ? "degraded" : "ok";
    const next = /^https?:\/\//.test(answer.location ?? "") ? answer.location : null;
    return { state: unsafe && state === "ok" ? "degraded" : state, what: answer.location ? `${what}, to ${answer.location}` : what, why: [cause(explanation), answer.why, unsafe].filter(Boolean).join("; "), next };
  }
  const count = answer.endpoints ?? 0;
  const what = `The backend ${answer.backend} gets the request`;
  const why = [cause(explanation), answer.why, unsafe].filter(Boolean).join("; ");
  if (failing.length > 0) return { state: "degraded", what, why: `${why}; but NGINX knows that ${failing.length} of ${count} endpoints fail` };
  // After a semicolon is what else may answer, such as an auth service, which is not asked here.
  if (answer.why.includes("; ")) return { state: unsafe ? "degraded" : "note", what: `The backend ${answer.backend} may get the request`, why };
  return { state: unsafe ? "degraded" : "ok", what, why };
}

// cause is why a request gets what no rule has, if it does.
function cause(e) {
  if (!e.route || e.route.field || e.route.denied || !/default backend/.test(e.answers[0].why)) return null;
  if (e.name?.by === "default") return `no Ingress that is served has the host ${e.request.host || e.request.url}`;
  return `no path of the host ${e.name.host} matches ${e.request.path}`;
}

// distrust is why clients may reject the certificate, if they may.
function distrust(e) {
  if (e.certificate?.problem) return `clients may reject the certificate: ${e.certificate.problem}`;
  return e.certificate?.default && e.certificate.secret ? `clients get the default certificate: ${e.certificate.why}` : null;
}

// ejections are the endpoints that workers know to fail, each once.
export function ejections(explanation) {
  const found = new Map();
  for (const worker of [explanation.data_plane, ...(explanation.edges ?? [])].flatMap((plane) => plane?.workers ?? [])) {
    for (const one of worker.ejected ?? []) found.set(one.backend + " " + one.endpoint, one);
  }
  return [...found.values()];
}

// advice lists what to change or where to look next, the most important first. Source is where objects
// come from, as the status has it.
export function advice(explanation, source) {
  return [...unknownName(explanation), ...denied(explanation), ...noRoute(explanation), ...conflicts(explanation), ...noEndpoint(explanation, source), ...failing(explanation),
    ...certificate(explanation)];
}

function unknownName(e) {
  if (e.name?.by !== "default") return [];
  const list = (e.unserved ?? []).map((one) => [code(one.ingress), ` has the host ${e.request.host}, but is not served: ${one.why}`]);
  const lost = (e.name.lost ?? []).map((claim) => [claim.ingresses.map((i) => [code(i), " "]), `is for ${claim.name}: ${claim.why}`]);
  return [...list, ...lost, ["No Ingress that is served has the host ", code(e.request.tls_name || e.request.host || e.request.url),
    ". Look at ", code("spec.rules[].host"), " and ", code("spec.ingressClassName"), " of the Ingress that should have it.", ...siblings(e.request.host)]];
}

// siblings leads to the hosts of the same domain: the name may be misspelt.
function siblings(host) {
  const domain = (host ?? "").split(".").slice(1).join(".");
  return domain ? [" Is the name misspelt? ", link(hash(["hosts"], { q: domain }), "Hosts with ", code(domain)), "."] : [];
}

function denied(e) {
  return (e.policies ?? []).filter((policy) => policy.denies).map((policy) => [
    "Correct ", code(policy.setting), policy.object ? [" of ", code(policy.object)] : null, policy.written ? [", which is ", code(policy.written)] : null,
    ". As long as it is invalid, nobody gets access; the findings below say what it must be."]);
}

function noRoute(e) {
  if (!e.route || e.route.field || e.name?.by === "default" || e.route.denied) return [];
  const near = (e.lost ?? []).map((rule) => [code(rule.path), " of ", code(rule.ingress ?? "–"), `: ${rule.why}`]);
  return [["No rule of the host has a path that matches ", code(e.request.path), ". ", link(hash(["host", e.name.host]), `Paths of ${e.name.host}`), "."], ...near];
}

// conflicts are rules with the path that another Ingress has: whoever asks may expect their backend.
function conflicts(e) {
  return (e.lost ?? []).filter((rule) => rule.outcome === "rejected" && rule.ingress && e.route?.field).map((rule) => [
    code(rule.ingress), " has the path ", code(rule.path), rule.backend ? [" too, with the backend ", code(rule.backend)] : " too", ", but is not used: ", rule.why, rule.to ? [" (", code(rule.to), ")"] : null, "."]);
}

function noEndpoint(e, source) {
  return (e.backends ?? []).filter((backend) => backend.used.length === 0 && backend.role === "route" && !e.route?.denied).flatMap((backend) => {
    const [namespace, service] = backend.key.split("/");
    if (backend.service === "does not exist") {
      return [["Create the Service ", code(service), " in the namespace ", code(namespace), ", or correct its name in ", code(`${e.route?.ingress}`), " (", code(e.route?.field ?? ""), ")."]];
    }
    const pods = (backend.endpoints ?? []).map((endpoint) => [code(endpoint.address), ` is ${endpoint.state}${endpoint.why ? ": " + endpoint.why : ""}`]);
    return [[`The Service ${service} has no endpoint that is used`, backend.why ? `: ${backend.why}.` : "."], ...pods.slice(0, 10),
      namespace && (source === "cluster" || !backend.why) ? endpointsOf(namespace, service, source) : null].filter(Boolean);
  });
}

// endpointsOf says where to look for the endpoints of a Service: in a cluster, at its selector and the
// pods that it selects.
export function endpointsOf(namespace, service, source) {
  if (source !== "cluster") {
    return ["Its endpoints are those of the manifests: an EndpointSlice in the namespace ", code(namespace), " with the label ", code(`kubernetes.io/service-name: ${service}`),
      ", or Endpoints with the name of the Service. They must have ready addresses, and the port of the Service."];
  }
  return ["Are its pods running and ready, and does its selector match them? ", code(`kubectl describe service -n ${namespace} ${service}`), " shows the selector, and ",
    code(`kubectl get endpointslices -n ${namespace} -l kubernetes.io/service-name=${service} -o yaml`), " which pods it finds, and whether they are ready."];
}

function failing(e) {
  return ejections(e).slice(0, 10).map((one) => [code(one.endpoint), ` of ${one.backend}: `,
    one.reason === "connect" ? "NGINX can't connect to it. Does the pod listen on this port, and does a network policy allow it?" : "requests to it failed in a row. Look at the log of the pod.",
    one.avoided ? null : " It gets requests nevertheless, since too many endpoints fail."]);
}

function certificate(e) {
  const c = e.certificate;
  if (c?.problem) return [["Clients may reject the certificate: ", c.problem, c.secret ? [" (", code(c.secret), ")"] : null, "."]];
  if (e.answers[0].scheme !== "https" || !c?.default) return [];
  return [["Clients get the default certificate, and may reject it: ", c.why, ".", c.ingress ? [" Correct ", code(c.field), " of ", code(c.ingress), c.secret ? [", or create ", code(c.secret)] : null, "."] : null]];
}
