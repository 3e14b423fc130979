import { AtollError } from "./errors.js";

/** One event of a stream. */
export interface ServerEvent {
  id: string;
  name: string;
  data: any;
}

const maxLine = 64 << 20; // characters of a line

/** parseEvents yields server-sent events: fields of an event a line each, an empty line after. */
export async function* parseEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  let event = { id: "", name: "message", data: "" };
  for await (const line of lines(chunks)) {
    const colon = line.indexOf(":");
    const value = line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (line === "") {
      if (event.data !== "") yield { ...event, data: JSON.parse(event.data) };
      event = { id: "", name: "message", data: "" };
    } else if (line.startsWith("event:")) {
      event.name = value;
    } else if (line.startsWith("data:")) {
      event.data += value;
    } else if (line.startsWith("id:")) {
      event.id = value;
    }
  }
}

/** lines yields the lines of a text without their ends. */
async function* lines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let parts: string[] = []; // of a line that has not ended
  let length = 0;
  for await (const chunk of chunks) {
    const pieces = decoder.decode(chunk, { stream: true }).split("\n");
    const last = pieces.pop() ?? "";
    for (const piece of pieces) {
      yield (parts.join("") + piece).replace(/\r$/, "");
      parts = [];
      length = 0;
    }
    parts.push(last);
    length += last.length;
    if (length > maxLine) throw new AtollError({ code: "event_too_long", detail: "the gateway sent an event that is too long" });
  }
}
