import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { WorkflowRunWithGraph, WorkflowStep } from '../api/link-types.js';
import { useNow } from '../live/clock.js';
import { paths } from '../state/router.js';
import { visible } from '../text/visible.js';
import { Button } from '../ui/button.js';
import { layOut, pathOf, type Picture, STEP_HEIGHT, STEP_WIDTH } from './layout.js';
import { durationOf, lateText } from './step-text.js';
import { fit, pan, type View, zoom } from './view.js';

const MAX_NAME_LENGTH = 22;
const STEP_PX = 60;
const KEYS: Readonly<Record<string, { x: number; y: number }>> = {
  ArrowLeft: { x: STEP_PX, y: 0 },
  ArrowRight: { x: -STEP_PX, y: 0 },
  ArrowUp: { x: 0, y: STEP_PX },
  ArrowDown: { x: 0, y: -STEP_PX },
};
const ZOOMS: Readonly<Record<string, number>> = { '+': 1.25, '=': 1.25, '-': 0.8 };

function shorten(name: string): string {
  const shown = visible(name);
  return shown.length > MAX_NAME_LENGTH ? `${shown.slice(0, MAX_NAME_LENGTH - 1)}…` : shown;
}

function Step({ step, x, y, now }: { step: WorkflowStep; x: number; y: number; now: number }) {
  const late = lateText(step, now);
  const state = late === '' ? step.state : `${step.state}, late`;
  const detail = [state, durationOf(step, now), step.optional ? 'optional' : ''].filter(Boolean).join(' · ');
  const title = [step.name, step.error ?? '', late].filter(Boolean).join(': ');
  const drawn = (
    <g
      class={`step color-${step.state}${late === '' ? '' : ' late'}`}
      transform={`translate(${x - STEP_WIDTH / 2} ${y - STEP_HEIGHT / 2})`}
      data-step={step.name}
    >
      <title>{visible(title)}</title>
      <rect width={STEP_WIDTH} height={STEP_HEIGHT} rx="6" />
      <rect class="step-state" width="4" height={STEP_HEIGHT} rx="2" />
      <text class="step-name" x="14" y="22">
        {shorten(step.name)}
      </text>
      <text class="step-detail" x="14" y="40">
        {detail}
      </text>
    </g>
  );
  const hasTask = step.queue !== null && (step.state === 'ready' || step.state === 'failed');
  if (!hasTask) return drawn;
  return (
    <a href={paths.task(step.queue!, step.task_id)} tabindex={-1}>
      {drawn}
    </a>
  );
}

function Lines({ picture, states }: { picture: Picture; states: ReadonlyMap<string, string> }) {
  return (
    <>
      {picture.lines.map(({ from, to, points }) => (
        <path key={`${from}\n${to}`} class={`line color-${states.get(from) ?? ''}`} d={pathOf(points)} />
      ))}
    </>
  );
}

/** The size of an element; changes with it. */
function useSize(element: { current: HTMLElement | null }): { width: number; height: number } | undefined {
  const [size, setSize] = useState<{ width: number; height: number }>();
  useEffect(() => {
    const node = element.current;
    if (!node) return;
    const observer = new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = node;
      if (width > 0 && height > 0) setSize({ width, height });
    });
    observer.observe(node);
    return () => observer.disconnect();
  }, []);
  return size;
}

/**
 * The graph of a run: drag to move it, Ctrl and the wheel to zoom, or the keys. Screen readers and
 * narrow screens have the list of the steps instead.
 */
export function RunGraph({ run }: { run: WorkflowRunWithGraph }) {
  const now = useNow();
  const element = useRef<HTMLDivElement>(null);
  const size = useSize(element);
  const shape = run.graph.map(({ name, after }) => [name, ...after].join('\n')).join('\n\n');
  const picture = useMemo(() => layOut(run.graph), [shape]);
  const [moved, setMoved] = useState<View>();
  const dragged = useRef<{ x: number; y: number } | undefined>(undefined);
  const view = moved ?? (size && fit(picture, size));
  const states = new Map(run.graph.map(({ name, state }) => [name, state]));
  const change = (next: (view: View) => View): void => {
    if (view) setMoved(next(view));
  };
  const middle = { x: (size?.width ?? 0) / 2, y: (size?.height ?? 0) / 2 };
  const onKeyDown = (event: KeyboardEvent): void => {
    const [by, factor] = [KEYS[event.key], ZOOMS[event.key]];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (by) change((old) => pan(old, by));
    else if (factor) change((old) => zoom(old, factor, middle));
    else if (event.key === '0') setMoved(undefined);
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    const node = element.current;
    const onWheel = (event: WheelEvent): void => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = node!.getBoundingClientRect();
      const at = { x: event.clientX - box.left, y: event.clientY - box.top };
      change((old) => zoom(old, Math.exp(-event.deltaY / 300), at));
    };
    // Preact's listeners are passive, and the page must not zoom with the graph.
    node?.addEventListener('wheel', onWheel, { passive: false });
    return () => node?.removeEventListener('wheel', onWheel);
  });
  const onPointerDown = (event: PointerEvent): void => {
    if (event.button === 0) dragged.current = { x: event.clientX, y: event.clientY };
  };
  const onPointerMove = (event: PointerEvent): void => {
    const from = dragged.current;
    if (!from || event.buttons === 0) return;
    dragged.current = { x: event.clientX, y: event.clientY };
    change((old) => pan(old, { x: event.clientX - from.x, y: event.clientY - from.y }));
  };
  return (
    <section class="run-graph" aria-label="Graph">
      <div class="graph-tools">
        <Button small label="Zoom in" onClick={() => change((old) => zoom(old, 1.25, middle))}>
          +
        </Button>
        <Button small label="Zoom out" onClick={() => change((old) => zoom(old, 0.8, middle))}>
          −
        </Button>
        <Button small label="Fit all of the graph" onClick={() => setMoved(undefined)}>
          Fit
        </Button>
      </div>
      <div
        ref={element}
        class="graph"
        role="group"
        aria-label="Graph of the run, with the steps of the list below. Arrows move it, plus and minus zoom, 0 shows all"
        tabIndex={0}
        onKeyDown={onKeyDown}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={() => (dragged.current = undefined)}
      >
        {view && size && (
          <svg
            aria-hidden="true"
            width={size.width}
            height={size.height}
            viewBox={`${view.x} ${view.y} ${size.width / view.scale} ${size.height / view.scale}`}
          >
            <Lines picture={picture} states={states} />
            {run.graph.map((step) => (
              <Step key={step.name} step={step} now={now} {...picture.steps.get(step.name)!} />
            ))}
          </svg>
        )}
      </div>
    </section>
  );
}
