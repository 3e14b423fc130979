import { signal } from "@preact/signals";

/** now is the time at the gateway, which dates everything that pages show. It ticks once in five seconds. */
export const now = signal(Date.now());

let ahead = 0; // how far the gateway's clock is before this browser's, in milliseconds
const close = 5000; // what differs less is the time that an answer took

/** gatewayTime returns the time at the gateway in milliseconds. */
export function gatewayTime(): number {
  return Date.now() + ahead;
}

/** setClock takes the time at the gateway from the header Date of an answer. */
export function setClock(date: string | null): void {
  const differs = Date.parse(date ?? "") - Date.now();
  if (Number.isNaN(differs)) return;
  const before = ahead;
  ahead = Math.abs(differs) < close ? 0 : differs;
  if (Math.abs(before - ahead) >= close) now.value = gatewayTime();
}

setInterval(() => {
  if (!document.hidden) now.value = gatewayTime();
}, 5000);
