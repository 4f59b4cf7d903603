import { Controller, Get, Header } from '@nestjs/common';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node';
import { newest } from './tracing.js';

const SHOWN = 20;
const COLUMN = 60;

const milliseconds = ([seconds, nanoseconds]: [number, number]): number => seconds * 1e3 + nanoseconds / 1e6;

@Controller('traces')
export class TracesController {
  /** The newest traces with an attempt, as trees: request, task, wait, attempt, and the tasks it enqueued. */
  @Get()
  @Header('content-type', 'text/plain; charset=utf-8')
  list(): string {
    const worked = [...newest.traces.values()].filter((spans) => spans.some(({ name }) => name.startsWith('process')));
    return worked.slice(-SHOWN).reverse().map(draw).join('\n');
  }
}

function draw(spans: readonly ReadableSpan[]): string {
  const start = Math.min(...spans.map(({ startTime }) => milliseconds(startTime)));
  const ids = new Set(spans.map((span) => span.spanContext().spanId));
  const lines = (parent: string | undefined, depth: number): string[] =>
    spans
      .filter(({ parentSpanContext: of }) => (of && ids.has(of.spanId) ? of.spanId : undefined) === parent)
      .toSorted((a, b) => milliseconds(a.startTime) - milliseconds(b.startTime))
      .flatMap((span) => [line(span, depth, start), ...lines(span.spanContext().spanId, depth + 1)]);
  return [`trace ${spans[0]!.spanContext().traceId}`, ...lines(undefined, 1), ''].join('\n');
}

function line({ name, attributes, startTime, duration, status }: ReadableSpan, depth: number, start: number): string {
  const what = `${'  '.repeat(depth)}${name} ${attributes['asynq.task.type'] ?? ''}`.padEnd(COLUMN);
  const when = `+${(milliseconds(startTime) - start).toFixed(0)} ms`.padStart(9);
  const took = `${milliseconds(duration).toFixed(1)} ms`.padStart(12);
  return `${what}${when}${took}  ${attributes['asynq.task.outcome'] ?? ''} ${status.message ?? ''}`.trimEnd();
}
