import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ProblemBox } from "./parts/parts";

/** Props are what a page is given: the id of its address. */
export interface Props {
  id: string;
}

/** PageOf is a page as its module gives it. */
export type PageOf = ComponentType<Props>;

const loaded = new Map<() => Promise<PageOf>, PageOf>();

/** Lazy shows a page once its module is there. */
export function Lazy({ load, id }: { load: () => Promise<PageOf>; id: string }) {
  const [, again] = useState(0);
  const [failed, setFailed] = useState(false);
  const Page = loaded.get(load);
  useEffect(() => {
    if (loaded.has(load)) return;
    setFailed(false);
    load().then((page) => {
      loaded.set(load, page);
      again((n) => n + 1);
    }, () => setFailed(true));
  }, [load]);
  if (Page !== undefined) return <Page id={id} />;
  if (!failed) return null;
  return (
    <div class="page">
      <ProblemBox problem={{ type: "about:blank", title: "Not loaded", status: 0, code: "not_loaded", detail: "This page could not be loaded.", hint: "The gateway does not answer, or was replaced by another version since the page was opened." }} />
      <div class="row"><button type="button" onClick={() => location.reload()}>Load it again</button></div>
    </div>
  );
}
