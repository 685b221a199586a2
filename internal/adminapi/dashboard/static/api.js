// Asks the controller's API: docs/controller-api.md.

export class Failure extends Error {}

// get asks for a resource. Empty parameters are left out.
export async function get(path, parameters, signal) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== "" && one !== null && one !== undefined && one !== false) query.append(name, one);
    }
  }
  const text = query.toString();
  let response;
  try {
    response = await fetch(`/v1/${path}${text ? "?" + text : ""}`, { signal, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure("The controller does not answer.");
  }
  const body = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (!response.ok) throw new Failure(body.error ?? `status ${response.status}`);
  return body;
}
