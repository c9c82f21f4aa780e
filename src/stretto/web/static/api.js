"use strict";
// The API's own description as a page that can be read.
(async function () {
  const node = Stretto.node,
    root = document.getElementById("operations"),
    found = await Stretto.ask("/openapi.json");
  const schema = ref => found.components.schemas[ref.split("/").pop()];
  function kind(part) {
    if (part.$ref) return kind(schema(part.$ref));
    if (part.anyOf) return part.anyOf.map(kind).join(" or ");
    if (part.enum) return part.enum.map(value => JSON.stringify(value)).join(", ");
    return part.const !== undefined ? JSON.stringify(part.const) : part.type || "any";
  }
  const value = part => (part.default === undefined ? "" : JSON.stringify(part.default));
  function fields(operation) {
    const rows = (operation.parameters || []).map(one => [
      one.name,
      one.in,
      kind(one.schema),
      value(one.schema),
      one.description || one.schema.description || "",
    ]);
    const body = operation.requestBody && schema(operation.requestBody.content["application/json"].schema.$ref);
    if (body)
      for (const [name, part] of Object.entries(body.properties))
        rows.push([name, "body", kind(part), value(part), part.description || ""]);
    return rows;
  }
  function example(method, path, operation) {
    const body = operation.requestBody && schema(operation.requestBody.content["application/json"].schema.$ref),
      start = "curl " + window.location.origin + path + ' -H @<(echo "Authorization: Bearer $TOKEN")';
    if (method === "get") return start;
    if (method !== "post") return start + " -X " + method.toUpperCase();
    return (
      start +
      " -H 'Content-Type: application/json' -d '" +
      JSON.stringify(body && body.examples ? body.examples[0] : {}) +
      "'"
    );
  }
  for (const [path, methods] of Object.entries(found.paths))
    for (const [method, operation] of Object.entries(methods)) {
      const rows = fields(operation),
        heads = ["field", "in", "type", "default", "meaning"];
      root.append(
        node(
          "section",
          {},
          node(
            "header",
            {},
            node("h2", {}, method.toUpperCase() + " " + path),
            node("p", {}, operation.description || operation.summary),
          ),
          node("pre", { tabindex: "0" }, example(method, path, operation)),
          rows.length
            ? node(
                "details",
                {},
                node("summary", {}, rows.length + (rows.length > 1 ? " fields" : " field")),
                Stretto.table(heads, rows),
              )
            : null,
        ),
      );
    }
})();
