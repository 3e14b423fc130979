import { options, type VNode } from "preact";
import { visible } from "./parts/format";

// Whatever a component shows passes here: no text of others gets control characters or marks
// of direction into the document, even if its component forgot printable.
const next = options.vnode;
options.vnode = (vnode) => {
  clean(vnode as VNode<Record<string, unknown>>);
  next?.(vnode);
};

const attributes = ["title", "aria-label", "placeholder"];

/** clean replaces what must not be shown in the text and the named attributes of a node. */
function clean({ props }: VNode<Record<string, unknown>>): void {
  if (props === null) return; // a node of text
  for (const name of attributes) {
    const value = props[name];
    if (typeof value === "string") props[name] = visible(value);
  }
  const { children } = props;
  if (typeof children === "string") props["children"] = visible(children);
  else if (Array.isArray(children)) props["children"] = children.map((child: unknown) => (typeof child === "string" ? visible(child) : child));
}
