import { useLayoutEffect, useRef } from "preact/hooks";
import type { Place } from "./places";

const keys: [string, string][] = [["Ctrl K", "go to anything"], ["/", "filter"], ["j k", "next, previous"], ["Enter", "open"], ["x", "mark to compare"], ["Esc", "back to the list"], ["?", "this help"]];

/** Help lists the keys. */
export function Help({ places, onClose }: { places: Place[]; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-label="Keys" onClose={onClose}>
      <div class="title"><h2>Keys</h2><span class="grow" /><button type="button" onClick={() => dialog.current?.close()}>Close</button></div>
      <dl>{[...keys, ...places.map((place): [string, string] => [`g ${place.key}`, place.title])].map(([key, what]) => [<dt key={key}><kbd>{key}</kbd></dt>, <dd key={`${key} what`}>{what}</dd>])}</dl>
    </dialog>
  );
}
