// Reads deliveries from stdin, one JSON object a line, and verifies each with the reference library.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
const require = createRequire(process.env.STANDARDWEBHOOKS + "/package.json");
const { Webhook } = require(process.env.STANDARDWEBHOOKS);
for await (const line of createInterface({ input: process.stdin })) {
  const { secret, headers, raw } = JSON.parse(line);
  try {
    const data = new Webhook(secret).verify(raw, headers);
    console.log(`verified ${headers["webhook-id"]} ${data.type}`);
  } catch (error) {
    console.log(`refused ${headers["webhook-id"]}: ${error.message}`);
  }
}
