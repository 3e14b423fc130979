// The dashboard in a real browser, against a real gateway. It prints what each section found.
import { attacks, begin } from "./attacks.mjs";
import { faults, restart } from "./faults.mjs";
import { hostile } from "./hostile.mjs";
import { keys } from "./keys.mjs";
import { finish } from "./kit.mjs";
import { many } from "./many.mjs";
import { others, pages } from "./pages.mjs";

const page = await begin();
await pages(page);
await keys(page);
await others();
await faults(page);
await many();
await hostile(page);
await attacks(page);
await restart(page);
await finish();
