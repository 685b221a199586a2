// Certificates with their dates.
import { get } from "./api.js";
import { badge, code, day, duration, few, hash, link, muted, short, table, until } from "./dom.js";
import { hostLink } from "./hosts.js";
import { controls, pager, query } from "./list.js";

export function certificates(parameters) {
  return {
    title: "Certificates",
    controls: controls(["certificates"], parameters, { label: "Secret or name", problems: "that expire within 10 days only" }),
    async load(signal) {
      const page = await get("certificates", query(parameters), signal);
      return [pager(["certificates"], parameters, page, "certificates"), page.items.length > 0 && table("Certificates, the first to expire first",
        ["Secret", "Expires", "Valid from", "For", "Shown for", "Issuer"], page.items.map((certificate) => [
          [certificate.secret ? link(hash(["findings"], { object: "secret/" + certificate.secret }), certificate.secret) : "made by Headgate",
            certificate.default ? [" ", badge("note", "default")] : null],
          left(certificate), certificate.not_before ? short(day(certificate.not_before)) : "", few(certificate.names),
          few(certificate.shown_for, (name) => name === "default" ? "all names without one" : hostLink(name)), certificate.issuer ? code(certificate.issuer) : ""]))];
    },
  };
}

function left(certificate) {
  if (!certificate.not_after) return badge("down", "can't be read");
  const seconds = until(certificate.not_after);
  const state = seconds < 0 ? "down" : seconds < 10 * 86400 ? "degraded" : "ok";
  return [badge(state, day(certificate.not_after)), " ", short(muted(seconds < 0 ? `${duration(-seconds)} ago` : `in ${duration(seconds)}`))];
}
