import { useState } from "preact/hooks";

/** Series is one stack of a plot: a name and a value for each place. */
export interface Series {
  name: string;
  values: number[];
}

const width = 1000;
const height = 200;

/** Plot shows stacked bars over time, with an axis, and names what is under the pointer. Values that are no numbers, or negative, count as none. */
export function Plot({ series, times, shown, label }: { series: Series[]; times: string[]; shown: (value: number) => string; label: string }) {
  const [at, setAt] = useState(-1);
  const clean = (value: number | undefined): number => (value !== undefined && Number.isFinite(value) && value > 0 ? value : 0);
  const sums = times.map((_, i) => series.reduce((sum, one) => sum + clean(one.values[i]), 0));
  const top = scaleOf(Math.max(...sums, 0));
  const step = width / Math.max(1, times.length);
  const y = (value: number): number => height - (value / top) * height;
  const total = sums.reduce((sum, value) => sum + value, 0);
  return (
    <figure class="plot">
      <div class="axis" aria-hidden="true">{[1, 0.5, 0].map((part) => <span key={part}>{shown(top * part)}</span>)}</div>
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={`${label}: ${shown(total)} in all, ${shown(Math.max(...sums, 0))} at most`} onPointerLeave={() => setAt(-1)}>
        {[0, 0.5].map((part) => <line key={part} x1={0} x2={width} y1={height * part} y2={height * part} />)}
        {times.map((time, i) => {
          let base = 0;
          return (
            <g key={time} class={i === at ? "at" : ""} onPointerEnter={() => setAt(i)}>
              <rect class="hit" x={i * step} width={step} y={0} height={height} />
              {series.map((one, n) => {
                const value = clean(one.values[i]);
                base += value;
                return value > 0 && <rect key={one.name} class={`c${n % 6}`} x={i * step + step * 0.12} width={step * 0.76} y={y(base)} height={Math.max(1, (value / top) * height)} />;
              })}
            </g>
          );
        })}
      </svg>
      <div class="times" aria-hidden="true"><span>{times[0]}</span><span>{times[Math.floor((times.length - 1) / 2)]}</span><span>{times[times.length - 1]}</span></div>
      <figcaption>
        {series.map((one, n) => <span key={one.name} class={`c${n % 6}`}><i aria-hidden="true" />{one.name}{at >= 0 && <b>{shown(clean(one.values[at]))}</b>}</span>)}
        <span class="grow" /><span class="faint">{at >= 0 ? `${times[at] ?? ""}: ${shown(sums[at] ?? 0)}` : `${shown(total)} in all`}</span>
      </figcaption>
    </figure>
  );
}

/** scaleOf returns the end of an axis that has a value: 1, 2 or 5 times a power of ten. */
export function scaleOf(value: number): number {
  if (!Number.isFinite(value) || value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((n) => n * power).find((end) => end >= value) ?? 10 * power;
}
