"use strict";
// The OpenAPI description of this server as a page: every request with its fields, its answers and an example.
(async function () {
  const node = Stretto.node,
    found = await Stretto.ask("/openapi.json");
  const named = part => (part && part.$ref ? found.components.schemas[part.$ref.split("/").pop()] : part);
  const json = value => JSON.stringify(value);
  function range(part) {
    const least = part.minimum ?? part.exclusiveMinimum,
      most = part.maximum ?? part.exclusiveMaximum;
    if (least !== undefined && most !== undefined) return ", " + least + " to " + most;
    if (least !== undefined) return part.minimum === undefined ? ", above " + least : ", at least " + least;
    return most === undefined ? "" : ", at most " + most;
  }
  function kind(part) {
    if (part.$ref) return named(part).enum ? kind(named(part)) : part.$ref.split("/").pop();
    if (part.anyOf) return part.anyOf.map(kind).join(" or ");
    if (part.enum) return part.enum.map(json).join(", ");
    if (part.const !== undefined) return json(part.const);
    if (part.type === "array") return "list of " + kind(part.items || {});
    return (part.type || "any") + range(part);
  }
  const rest = (part, isNeeded) => [
    kind(part),
    part.default === undefined ? (isNeeded ? "required" : "") : json(part.default),
    part.description || "",
  ];
  const properties = (schema, where) =>
    Object.entries((schema && schema.properties) || {}).map(([name, part]) => [
      name,
      ...where,
      ...rest(part, (schema.required || []).includes(name)),
    ]);
  const sent = operation => named(operation.requestBody?.content["application/json"].schema);
  const asked = operation => [
    ...(operation.parameters || []).map(one => [
      one.name,
      one.in,
      ...rest({ ...one.schema, description: one.description || one.schema.description }, one.required),
    ]),
    ...properties(sent(operation), ["body"]),
  ];
  const answers = operation =>
    Object.entries(operation.responses).map(([status, one]) => {
      const [type, content] = Object.entries(one.content || {})[0] || ["", {}];
      return [status, type, content.schema ? kind(content.schema) : "", one.description];
    });
  // The models that the answers of a request name, and those that are in them.
  function models(part, seen = new Map()) {
    if (part && typeof part === "object") {
      if (part.$ref && !seen.has(part.$ref)) {
        seen.set(part.$ref, named(part));
        models(named(part), seen);
      }
      Object.values(part).forEach(one => models(one, seen));
    }
    return seen;
  }
  function example(method, path, operation) {
    const start = "curl " + window.location.origin + path + ' -H @<(echo "Authorization: Bearer $TOKEN")';
    if (method === "get") return start;
    if (method !== "post") return start + " -X " + method.toUpperCase();
    return start + " -H 'Content-Type: application/json' -d '" + json(sent(operation)?.examples?.[0] || {}) + "'";
  }
  // Names of commands and headers stand between backticks.
  const coded = text => text.split("`").map((part, k) => (k % 2 ? node("code", {}, part) : part));
  const folded = (title, ...content) => node("details", {}, node("summary", {}, title), ...content);
  const counted = (rows, word) => rows.length + " " + word + (rows.length > 1 ? "s" : "");
  function section(id, method, path, operation) {
    const fields = asked(operation),
      replies = answers(operation);
    const heads = ["type", "default", "meaning"];
    const shapes = [...models(operation.responses)].map(([ref, model]) => [
      node("h3", {}, ref.split("/").pop()),
      Stretto.table(["field", ...heads], properties(model, [])),
    ]);
    return node(
      "section",
      { id },
      node(
        "header",
        {},
        node("h2", {}, method.toUpperCase() + " " + path),
        node("p", {}, ...coded(operation.description || operation.summary)),
      ),
      node("pre", { tabindex: "0" }, example(method, path, operation)),
      fields.length ? folded(counted(fields, "field"), Stretto.table(["field", "in", ...heads], fields)) : null,
      folded(
        counted(replies, "answer"),
        Stretto.table(["status", "content", "type", "meaning"], replies),
        ...shapes.flat(),
      ),
    );
  }
  const list = node("ul", {});
  for (const [path, methods] of Object.entries(found.paths))
    for (const [method, operation] of Object.entries(methods)) {
      const id = operation.operationId;
      const link = node("a", { href: "#" + id }, method.toUpperCase() + " " + path);
      list.append(node("li", {}, link, " ", ...coded((operation.description || operation.summary).split(/[.;]/)[0])));
      document.getElementById("operations").append(section(id, method, path, operation));
    }
  document.getElementById("contents").append(list);
  document.body.dataset.ready = "true";
  if (window.location.hash) document.getElementById(window.location.hash.slice(1))?.scrollIntoView();
})();
