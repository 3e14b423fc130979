/** money returns an amount of millionths of a dollar: two digits, four below a cent, and no more. */
export function money(microUsd: number): string {
  const dollars = microUsd / 1e6;
  if (dollars > 0 && dollars < 0.0001) return "<$0.0001";
  const digits = dollars !== 0 && Math.abs(dollars) < 0.01 ? 4 : 2;
  return `$${dollars.toFixed(digits)}`;
}

/** bytes returns a size in binary units. */
export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  for (; n >= 1024 && at < units.length - 1; at++) n /= 1024;
  return `${at === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[at]}`;
}

/** duration returns a length of time in milliseconds in two units at most. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const s = Math.round(ms / 1000);
  if (s < 60) return `${(ms / 1000).toFixed(1)} s`;
  if (s < 3600) return s % 60 === 0 ? `${s / 60} min` : `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** ago returns how long ago a time is, in one unit. */
export function ago(at: number, now: number): string {
  const s = Math.round((now - at) / 1000);
  if (s < -5) return `in ${unit(-s)}`;
  if (s < 5) return "now";
  return `${unit(s)} ago`;
}

function unit(s: number): string {
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

/** printable removes escapes of terminals from text that others wrote, makes the rest visible, and bounds it. */
export function printable(text: string, most = 20000): string {
  const shown = text.length > most ? `${text.slice(0, most)} … (${text.length - most} more characters)` : text;
  // eslint-disable-next-line no-control-regex
  return visible(shown.replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, "").replace(/\u001b[\]PX^_][^\u0007\u001b]*(\u0007|\u001b\\)?/g, ""));
}

/** visible replaces control characters and marks that turn the direction of text. */
export function visible(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u202a-\u202e\u2066-\u2069\u200e\u200f]/g, "\ufffd");
}

/** count returns a number with separators. */
export function count(n: number): string {
  return n.toLocaleString("en-US");
}
