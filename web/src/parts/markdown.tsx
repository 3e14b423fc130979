import type { ComponentChildren, VNode } from "preact";
import { printable } from "./format";

const longest = 60000;

/** Markdown shows what a model wrote: headings, lists, code, emphasis and links, as elements and never as HTML. Images are left out. */
export function Markdown({ text }: { text: string }) {
  return <div class="markdown">{blocks(printable(text, longest))}</div>;
}

function blocks(text: string): VNode[] {
  const made: VNode[] = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length;) {
    const line = lines[at] ?? "";
    const fence = /^\s*(```+|~~~+)\s*(\S*)/.exec(line);
    const many = (test: RegExp): string[] => {
      const taken: string[] = [];
      for (; at < lines.length && test.test(lines[at] ?? ""); at++) taken.push((lines[at] ?? "").replace(test, ""));
      return taken;
    };
    if (line.trim() === "") at++;
    else if (fence) {
      const end = lines.findIndex((other, i) => i > at && other.trim().startsWith(fence[1] ?? "```"));
      const until = end < 0 ? lines.length : end;
      made.push(<pre class="code" key={at} tabIndex={0}>{lines.slice(at + 1, until).join("\n")}</pre>);
      at = until + 1;
    } else if (/^#{1,6}\s/.test(line)) {
      made.push(<p class="heading" key={at}>{spans(line.replace(/^#+\s+/, ""))}</p>);
      at++;
    } else if (/^\s*[-*+]\s+/.test(line)) {
      made.push(<ul key={at}>{many(/^\s*[-*+]\s+/).map((item, i) => <li key={i}>{spans(item)}</li>)}</ul>);
    } else if (/^\s*\d+[.)]\s+/.test(line)) {
      made.push(<ol key={at}>{many(/^\s*\d+[.)]\s+/).map((item, i) => <li key={i}>{spans(item)}</li>)}</ol>);
    } else if (line.startsWith(">")) {
      made.push(<blockquote key={at}>{spans(many(/^>\s?/).join("\n"))}</blockquote>);
    } else {
      const begin = at;
      for (at++; at < lines.length && (lines[at] ?? "").trim() !== "" && !/^(\s*(```|~~~|[-*+]\s|\d+[.)]\s)|#{1,6}\s|>)/.test(lines[at] ?? ""); at++);
      made.push(<p key={begin}>{spans(lines.slice(begin, at).join("\n"))}</p>);
    }
  }
  return made;
}

const pattern = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|!?\[([^\]\n]{0,300})\]\(([^)\s]{1,2000})\)/g;

function spans(text: string): ComponentChildren[] {
  const made: ComponentChildren[] = [];
  let last = 0;
  for (const match of text.matchAll(pattern)) {
    made.push(text.slice(last, match.index));
    last = match.index + match[0].length;
    if (match[1] !== undefined) made.push(<code>{match[1]}</code>);
    else if (match[2] !== undefined) made.push(<strong>{match[2]}</strong>);
    else if (match[3] !== undefined) made.push(<em>{match[3]}</em>);
    else made.push(<OutLink to={match[5] ?? ""} text={match[4] ?? ""} />);
  }
  made.push(text.slice(last));
  return made;
}

/** OutLink is a link to another site, with its host shown; anything but https is text. */
export function OutLink({ to, text }: { to: string; text?: string }) {
  const url = URL.parse(to);
  const name = text === undefined || text === "" ? "" : `${printable(text, 300)} `;
  if (url?.protocol !== "https:") return <span>{name}{printable(to, 300)}</span>;
  return <a href={url.href} rel="noopener noreferrer" target="_blank">{name === "" ? printable(`${url.host}${url.pathname}`, 120) : <>{name}<span class="faint">({url.host})</span></>}</a>;
}
