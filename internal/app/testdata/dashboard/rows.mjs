// Ten thousand sandboxes and questions. It prints what each section found.
import { finish } from "./kit.mjs";
import { boxesAndQuestions } from "./many.mjs";

await boxesAndQuestions();
await finish();
