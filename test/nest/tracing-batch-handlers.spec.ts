import { Injectable } from '@nestjs/common';
import { SpanStatusCode, trace } from '@opentelemetry/api';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { AsynqClient, TaskHandler } from 'nestjs-asynq';
import { testApp } from './support.js';

const exporter = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });

beforeAll(() => provider.register());
beforeEach(() => exporter.reset());
afterAll(() => provider.shutdown());

const named = (name: string): ReadableSpan[] => exporter.getFinishedSpans().filter((span) => span.name === name);

@Injectable()
class Tasks {
  active: unknown;

  @TaskHandler('index', { batch: { size: 10 } })
  async index(payloads: readonly boolean[]) {
    await undefined;
    this.active = trace.getActiveSpan();
    return payloads.map((fails) => (fails ? new TypeError('no') : undefined));
  }
}

async function run(...payloads: boolean[]): Promise<Tasks> {
  const { app, tasks } = await testApp({ providers: [Tasks] }, { server: { queues: ['default', 'other'] } });
  const client = app.get(AsynqClient);
  for (const [index, payload] of payloads.entries()) {
    await client.enqueue('index', payload, { queue: index === 2 ? 'other' : 'default' });
  }
  await tasks.drain();
  return app.get(Tasks);
}

it('a call of a batch handler is one span, with a link to the trace of each task', async () => {
  const { active } = await run(false, false);
  const [span, ...others] = named('process default');
  expect(others).toEqual([]);
  expect(active).toBe(span);
  expect(span!.parentSpanContext).toBeUndefined();
  expect(span!.links.map(({ context }) => context.spanId)).toEqual(
    named('send default').map((send) => send.spanContext().spanId),
  );
  expect(span!.attributes).toEqual({
    'messaging.system': 'asynq',
    'messaging.destination.name': 'default',
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.batch.message_count': 2,
    'asynq.task.type': 'index',
  });
  expect(span!.status.code).toBe(SpanStatusCode.UNSET);
  expect(named('wait default')).toHaveLength(2);
});

it('the span says how many tasks have failed, and names no queue when there are several', async () => {
  await run(true, false, true);
  const [span] = named('process');
  expect(span!.attributes).toMatchObject({ 'messaging.batch.message_count': 3, 'asynq.batch.failed_count': 2 });
  expect(span!.attributes).not.toHaveProperty('messaging.destination.name');
  expect(span!.status).toEqual({ code: SpanStatusCode.ERROR, message: 'no' });
  expect(span!.events.map(({ name }) => name)).toEqual(['exception']);
});
