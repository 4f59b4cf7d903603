import { Injectable, UseInterceptors, type CallHandler, type ExecutionContext } from '@nestjs/common';
import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import {
  type AggregatedTask,
  AsynqClient,
  AsynqServer,
  defineTask,
  type GroupedTask,
  OnTaskEvent,
  Payload,
  PeriodicTask,
  PostponeTask,
  RevokeTask,
  SkipRetry,
  Steps,
  TaskAggregator,
  type TaskContext,
  TaskCtx,
  type TaskEvent,
  TaskHandler,
  type TaskSteps,
  workflow,
} from 'nestjs-asynq';
import { testApp } from './support.js';

const exporter = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
const tracer = trace.getTracer('test');

beforeAll(() => provider.register());
beforeEach(() => exporter.reset());
afterAll(() => provider.shutdown());

const spans = (): ReadableSpan[] => exporter.getFinishedSpans();
const named = (name: string): ReadableSpan => spans().find((span) => span.name === name)!;
const idOf = (span: ReadableSpan): string => span.spanContext().spanId;

/** Runs the function in a span of the application; returns that span. */
async function within(work: () => Promise<unknown>): Promise<ReadableSpan> {
  return tracer.startActiveSpan('request', async (span) => {
    await work();
    span.end();
    return span as unknown as ReadableSpan;
  });
}

let intercepted: unknown;
class Intercept {
  intercept(_: ExecutionContext, next: CallHandler) {
    intercepted = trace.getActiveSpan();
    return next.handle();
  }
}

@Injectable()
class Work {
  failures = 0;
  active: unknown;
  baggage: unknown;

  constructor(private readonly client: AsynqClient) {}

  @TaskHandler('parent')
  async parent(): Promise<void> {
    await Promise.resolve();
    await this.client.enqueue('child', { n: 1 }, { queue: 'other' });
  }

  @TaskHandler('child')
  @UseInterceptors(Intercept)
  child(): void {
    this.active = trace.getActiveSpan();
    this.baggage = propagation.getActiveBaggage()?.getEntry('tenant')?.value;
  }

  @TaskHandler('flaky')
  flaky(): void {
    if (this.failures-- > 0) throw new TypeError('not today');
  }

  @TaskHandler('throws')
  throws(what: 'skip' | 'revoke' | 'postpone' | 'text'): void {
    if (what === 'skip') throw new SkipRetry('enough');
    if (what === 'revoke') throw new RevokeTask('no');
    if (what === 'postpone') throw new PostponeTask('1m');
    throw 'a text';
  }
}

const made = async (providers: NonNullable<Parameters<typeof testApp>[0]['providers']> = []) => {
  const { app, tasks } = await testApp(
    { providers: [Work, ...providers] },
    { server: { queues: ['default', 'other'], groupGracePeriod: '10s' } },
  );
  return { app, tasks, client: app.get(AsynqClient), work: app.get(Work) };
};

describe('a task', () => {
  it('has spans for its enqueue, its wait and its attempt, by the conventions, in the trace of the caller', async () => {
    const { client, tasks, work } = await made();
    const request = await within(() => client.enqueue('child', { n: 1 }, { taskId: 'a', maxRetry: 3 }));
    expect(tasks.enqueued('child')[0]!.headers).toEqual({
      traceparent: `00-${request.spanContext().traceId}-${idOf(named('send default'))}-01`,
    });
    tasks.clock.advance(1_500);
    await tasks.drain();
    const [send, wait, process] = [named('send default'), named('wait default'), named('process default')];
    expect(new Set(spans().map((span) => span.spanContext().traceId))).toEqual(
      new Set([request.spanContext().traceId]),
    );
    expect(send.parentSpanContext?.spanId).toBe(idOf(request));
    expect([wait, process].map((span) => span.parentSpanContext?.spanId)).toEqual([idOf(send), idOf(send)]);
    expect([send.kind, wait.kind, process.kind]).toEqual([SpanKind.PRODUCER, SpanKind.INTERNAL, SpanKind.CONSUMER]);
    const task = {
      'messaging.system': 'asynq',
      'messaging.destination.name': 'default',
      'messaging.message.id': 'a',
      'asynq.task.type': 'child',
    };
    const operation = (name: string) => ({
      ...task,
      'messaging.operation.name': name,
      'messaging.operation.type': name,
      'messaging.message.body.size': 7,
    });
    expect(send.attributes).toEqual(operation('send'));
    expect(wait.attributes).toEqual(task);
    expect(process.attributes).toEqual({
      ...operation('process'),
      'asynq.task.retried': 0,
      'asynq.task.max_retry': 3,
      'asynq.task.waited': 1_500,
      'asynq.task.outcome': 'done',
    });
    expect(process.status.code).toBe(SpanStatusCode.UNSET);
    const [seconds, nanoseconds] = wait.duration;
    expect(seconds + nanoseconds / 1e9).toBeCloseTo(1.5);
    expect(work.active).toMatchObject({ name: 'process default' });
    expect(intercepted).toBe(work.active);
  });

  it('passes its trace and baggage on to the tasks that its handler enqueues', async () => {
    const { client, tasks, work } = await made();
    const baggage = propagation.createBaggage({ tenant: { value: 'acme' } });
    await context.with(propagation.setBaggage(ROOT_CONTEXT, baggage), () => client.enqueue('parent'));
    await tasks.drain();
    expect(named('send other').parentSpanContext?.spanId).toBe(idOf(named('process default')));
    expect(named('process other').parentSpanContext?.spanId).toBe(idOf(named('send other')));
    expect(work.baggage).toBe('acme');
  });

  it('runs listeners of its events in its trace', async () => {
    @Injectable()
    class Alerts {
      constructor(private readonly client: AsynqClient) {}
      @OnTaskEvent(['started', 'archived'], { type: 'throws' })
      async on({ event }: TaskEvent<'started' | 'archived'>): Promise<void> {
        await this.client.enqueue('child', event);
      }
    }
    const { client, tasks } = await made([Alerts]);
    await client.enqueue('throws', 'skip');
    await tasks.drain();
    const failed = spans().find(({ attributes }) => attributes['asynq.task.outcome'] === 'archived')!;
    const alerts = spans().filter(({ parentSpanContext }) => parentSpanContext?.spanId === idOf(failed));
    expect(alerts.map(({ name }) => name)).toEqual(['send default', 'send default']);
  });

  it('keeps its trace over retries, each attempt a span with its error', async () => {
    const { client, tasks, work } = await made();
    work.failures = 1;
    await client.enqueue('flaky');
    await tasks.advance('1h');
    const [first, second] = spans().filter(({ name }) => name === 'process default');
    expect([first, second].map((span) => span!.parentSpanContext?.spanId)).toEqual(
      Array(2).fill(idOf(named('send default'))),
    );
    expect(first!.status).toEqual({ code: SpanStatusCode.ERROR, message: 'not today' });
    expect(first!.attributes).toMatchObject({ 'error.type': 'TypeError', 'asynq.task.outcome': 'retry' });
    expect(first!.events).toMatchObject([{ name: 'exception', attributes: { 'exception.message': 'not today' } }]);
    expect(second!.attributes).toMatchObject({ 'asynq.task.retried': 1, 'asynq.task.outcome': 'done' });
  });

  it.each([
    ['skip', 'archived', SpanStatusCode.ERROR, 'ASYNQ_SKIP_RETRY'],
    ['text', 'retry', SpanStatusCode.ERROR, '_OTHER'],
    ['revoke', 'revoked', SpanStatusCode.UNSET, undefined],
    ['postpone', 'postponed', SpanStatusCode.UNSET, undefined],
  ])('that throws (%s) is %s', async (what, outcome, code, type) => {
    const { tasks } = await made();
    await tasks.work('throws', what);
    const { attributes, status } = named('process default');
    expect([attributes['asynq.task.outcome'], status.code, attributes['error.type']]).toEqual([outcome, code, type]);
  });

  it('that has no handler has a span of its failure', async () => {
    const { tasks } = await made();
    await tasks.work('unknown');
    expect(named('process default').attributes).toMatchObject({ 'error.type': 'ASYNQ_HANDLER_NOT_FOUND' });
  });

  it('that is refused ends its span with the error', async () => {
    const { client } = await made();
    await client.enqueue('child', undefined, { unique: '1h' });
    exporter.reset();
    await client.enqueue('child', undefined, { unique: '1h' }).catch(() => undefined);
    expect(named('send default')).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { 'error.type': 'ASYNQ_DUPLICATE_TASK' },
    });
  });
});

describe('headers', () => {
  it('of the user take precedence', async () => {
    const { client, tasks } = await made();
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    await client.enqueue('child', undefined, { headers: { traceparent, from: 'web' } });
    expect(tasks.enqueued('child')[0]!.headers).toEqual({ traceparent, from: 'web' });
    await tasks.drain();
    expect(named('process default').spanContext().traceId).toBe('a'.repeat(32));
    expect(named('process default').parentSpanContext).toMatchObject({ spanId: 'b'.repeat(16), isRemote: true });
  });

  it.each([
    ['garbage', { traceparent: 'not a trace', tracestate: '=,=' }],
    ['zeroes', { traceparent: `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01` }],
    ['megabytes', { traceparent: '0'.repeat(1 << 20), baggage: ',='.repeat(1 << 19) }],
    ['odd names', { __proto__: 'x', constructor: 'y', traceparent: '' }],
  ])('with %s begin a new trace without an error', async (_, headers) => {
    const { client, tasks } = await made();
    await client.enqueue('child', undefined, { headers });
    expect(await tasks.drain()).toMatchObject({ done: 1 });
    expect(named('process default').parentSpanContext).toBeUndefined();
    expect(named('wait default').parentSpanContext?.spanId).toBe(idOf(named('process default')));
  });

  it('of an unsampled trace keep it unsampled', async () => {
    const { client, tasks, work } = await made();
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`;
    await client.enqueue('parent', undefined, { headers: { traceparent } });
    exporter.reset();
    await tasks.drain();
    expect(spans()).toEqual([]);
    expect((work.active as ReadableSpan).spanContext().traceId).toBe('a'.repeat(32));
  });
});

describe('enqueueMany', () => {
  it('is one span, whose context all tasks carry, with the number of refused tasks', async () => {
    const { client, tasks } = await made();
    const results = await client.enqueueMany('child', [1, 2, 2], { unique: '1h' });
    expect(results.map(({ ok }) => ok)).toEqual([true, true, false]);
    expect(spans()).toHaveLength(1);
    const send = named('send default');
    expect(send.attributes).toEqual({
      'messaging.system': 'asynq',
      'messaging.operation.name': 'send',
      'messaging.operation.type': 'send',
      'messaging.destination.name': 'default',
      'messaging.batch.message_count': 3,
      'asynq.batch.failed_count': 1,
      'error.type': 'ASYNQ_DUPLICATE_TASK',
    });
    await tasks.drain();
    const work = spans().filter(({ name }) => name === 'process default');
    expect(work.map((span) => span.parentSpanContext?.spanId)).toEqual([idOf(send), idOf(send)]);
  });

  it('names no queue if there may be several, and creates no span without tasks', async () => {
    const { client } = await made();
    await client.enqueueMany([{ type: 'child' }, { type: 'child', options: { queue: 'other' } }]);
    await client.enqueueMany('child', []);
    expect(spans().map(({ name, status }) => [name, status.code])).toEqual([['send', SpanStatusCode.UNSET]]);
  });
});

describe('tasks of the scheduler or of a group', () => {
  it('have a trace for each planned time', async () => {
    class Clockwork {
      @PeriodicTask('@every 10s', { type: 'tick' })
      tick(): void {}
    }
    const { tasks } = await made([Clockwork]);
    await within(() => tasks.advance('20s')); // timers keep what was going on when they were set
    const sends = spans().filter(({ name }) => name === 'send default');
    expect(sends.map(({ parentSpanContext }) => parentSpanContext)).toEqual([undefined, undefined]);
    const traces = new Set(spans().map((span) => span.spanContext().traceId));
    expect(traces.size).toBe(3); // and the one around
  });

  it('are linked to the tasks of the group, and carry the trace of the aggregation', async () => {
    let inside: unknown;
    class Groups {
      @TaskAggregator()
      async collect(_: string, tasks: readonly GroupedTask[]): Promise<AggregatedTask> {
        await Promise.resolve();
        inside = trace.getActiveSpan();
        if (tasks.length === 1) throw new Error('too few');
        return { type: 'child' };
      }
    }
    const { client, tasks } = await made([Groups]);
    for (const name of ['a', 'b']) await client.enqueue('note', name, { group: 'g' });
    const senders = spans().map((span) => span.spanContext().spanId);
    exporter.reset();
    await tasks.advance('10s');
    const [aggregation] = spans().filter(({ links }) => links.length > 0);
    expect(aggregation).toMatchObject({
      name: 'process default',
      kind: SpanKind.CONSUMER,
      attributes: { 'messaging.batch.message_count': 2, 'asynq.task.group': 'g', 'asynq.task.outcome': 'done' },
    });
    expect(aggregation!.links.map((link) => link.context.spanId).sort()).toEqual(senders.sort());
    expect(inside).toBe(aggregation);
    expect(named('send default').parentSpanContext?.spanId).toBe(idOf(aggregation!));
    const handled = spans().find(({ parentSpanContext }) => parentSpanContext?.spanId === idOf(named('send default')));
    expect(handled?.spanContext().traceId).toBe(aggregation!.spanContext().traceId);
    exporter.reset();
    await client.enqueue('note', 'c', { group: 'g' });
    await tasks.advance('10s');
    expect(named('process default').status).toEqual({ code: SpanStatusCode.ERROR, message: 'too few' });
  });
});

describe('tracing', () => {
  it('can be switched off', async () => {
    const { app, tasks } = await testApp({ providers: [Work] }, { tracing: false });
    await tasks.work('child');
    expect(spans()).toEqual([]);
    expect(app.get(AsynqServer).events.measuresWaits).toBe(false);
  });

  it('refuses a wrong option', async () => {
    await expect(testApp({ providers: [Work] }, { tracing: 'yes' as never })).rejects.toThrow(
      'AsynqModule option tracing must be true or false, not "yes"',
    );
  });

  it('ends the span of a timed-out attempt once, with that error', async () => {
    let release = (): void => undefined;
    class Slow {
      @TaskHandler('slow')
      async slow(_: unknown, { signal }: TaskContext): Promise<void> {
        await new Promise<void>((resolve) => (release = resolve));
        signal.throwIfAborted();
      }
    }
    const { tasks } = await made([Slow]);
    const working = tasks.work('slow', undefined, { timeout: '1s', maxRetry: 0 });
    await new Promise(setImmediate);
    tasks.clock.advance(1_000);
    release();
    await working;
    expect(spans().filter(({ name }) => name === 'process default')).toMatchObject([
      { attributes: { 'asynq.task.outcome': 'archived', 'error.type': 'ASYNQ_DEADLINE_EXCEEDED' } },
    ]);
  });

  it('ends the span of a failure with any error', async () => {
    class Odd {
      @TaskHandler('odd')
      odd(): void {
        const error = new Error('hidden');
        for (const name of ['stack', 'name', 'message']) {
          Object.defineProperty(error, name, {
            get: () => {
              throw new Error('not to be read');
            },
          });
        }
        throw error;
      }
    }
    const { tasks } = await made([Odd]);
    expect((await tasks.work('odd', undefined, { maxRetry: 0 })).outcome).toBe('archived');
    expect(named('process default').status.code).toBe(SpanStatusCode.ERROR);
  });

  it('turns values of a propagator into text', async () => {
    propagation.disable();
    propagation.setGlobalPropagator({
      inject: (_, carrier, setter) => {
        setter.set(carrier, 'x-sampling', 1 as unknown as string);
        setter.set(carrier, 'x-id', 'a');
      },
      extract: (around) => around,
      fields: () => ['x-sampling', 'x-id'],
    });
    onTestFinished(() => {
      propagation.disable();
      trace.disable();
      provider.register();
    });
    const { client, tasks } = await made();
    await client.enqueue('child');
    expect(tasks.enqueued('child')[0]!.headers).toEqual({ 'x-sampling': '1', 'x-id': 'a' });
  });

  it('contains only the kind of an error that a rule hides', async () => {
    class Users {
      @TaskHandler('user:new')
      create(): void {
        throw new TypeError('hunter2');
      }
      @TaskAggregator()
      collect(): AggregatedTask {
        throw new RangeError('hunter2');
      }
    }
    const { app, tasks } = await testApp(
      { providers: [Users] },
      { server: { groupGracePeriod: '10s' }, redact: [{ type: 'user:', fields: ['password'] }] },
    );
    await app.get(AsynqClient).enqueue('user:new', {}, { maxRetry: 0 });
    await app.get(AsynqClient).enqueue('user:new', {}, { group: 'g' });
    await tasks.advance('10s');
    const failed = spans().filter(({ name }) => name === 'process default');
    expect(failed.map(({ status, attributes, events }) => [status, attributes['error.type'], events])).toEqual([
      [{ code: SpanStatusCode.ERROR }, 'TypeError', []],
      [{ code: SpanStatusCode.ERROR }, 'RangeError', []],
    ]);
  });

  it('does not affect tasks when a processor of the application throws', async () => {
    const bad = new NodeTracerProvider({
      spanProcessors: [
        {
          onStart: () => {
            throw new Error('broken at the start');
          },
          onEnd: () => {},
          forceFlush: () => Promise.resolve(),
          shutdown: () => Promise.resolve(),
        },
      ],
    });
    trace.disable();
    bad.register();
    const { client, tasks } = await made();
    await client.enqueue('parent');
    expect(await tasks.drain()).toMatchObject({ done: 2 });
    trace.disable();
    provider.register();
  });
});

describe('a step of a handler', () => {
  let fails = 0;
  let inside: unknown;
  let hidden = 'no parcel';
  class Stepwise {
    @TaskHandler('stepwise')
    async handle(@Steps() steps: TaskSteps): Promise<void> {
      await steps.run('capture', () => {
        inside = trace.getActiveSpan();
      });
      await steps.sleep('nap', '1h');
      for (const n of [1, 2])
        await tracer.startActiveSpan(`mine ${n}`, (span) => this.row(steps).finally(() => span.end()));
    }

    private async row(steps: TaskSteps): Promise<void> {
      await steps.run('row', () => {
        if (fails-- > 0) throw new TypeError(hidden);
      });
    }
  }
  beforeEach(() => {
    fails = 0;
  });

  const steps = (): ReadableSpan[] => spans().filter(({ name }) => name.startsWith('step'));

  it('has a span in that of the attempt which has done it, and in no other', async () => {
    const { tasks } = await testApp({ providers: [Stepwise] });
    await tasks.work('stepwise');
    const [capture] = steps();
    expect(capture).toMatchObject({
      name: 'step capture',
      kind: SpanKind.INTERNAL,
      status: { code: SpanStatusCode.UNSET },
    });
    expect(capture!.attributes).toEqual({
      'asynq.step.name': 'capture',
      'asynq.step.kind': 'run',
      'asynq.step.outcome': 'done',
    });
    expect(capture!.parentSpanContext?.spanId).toBe(idOf(named('process default')));
    expect((inside as ReadableSpan).name).toBe('step capture');
    exporter.reset();
    await tasks.advance('1h');
    const [first, second] = steps();
    expect(steps()).toHaveLength(2);
    expect([first!.name, second!.name, second!.attributes['asynq.step.name']]).toEqual([
      'step row',
      'step row',
      'row#2',
    ]);
    expect(second!.parentSpanContext?.spanId).toBe(idOf(named('mine 2')));
    expect(first!.spanContext().traceId).toBe(capture!.spanContext().traceId);
  });

  it('is an error when it has failed, whose text may be hidden', async () => {
    for (const redact of [[], [{ type: 'stepwise' }]]) {
      exporter.reset();
      hidden = `no parcel for ${redact.length}`;
      fails = 1;
      const { tasks } = await testApp({ providers: [Stepwise] }, { redact });
      await tasks.work('stepwise');
      await tasks.advance('1h');
      const failed = steps().find(({ name }) => name === 'step row')!;
      expect(failed.attributes).toMatchObject({ 'asynq.step.outcome': 'failed', 'error.type': 'TypeError' });
      expect(failed.status).toEqual({
        code: SpanStatusCode.ERROR,
        ...(redact.length === 0 && { message: 'no parcel for 0' }),
      });
      expect(failed.events).toHaveLength(redact.length === 0 ? 1 : 0);
    }
  });
});

describe('linked tasks', () => {
  const Step = defineTask<number>('step');
  class Steps {
    @TaskHandler(Step)
    async step(@Payload() n: number, @TaskCtx() task: TaskContext) {
      if (n === 1 && task.isStep) await task.workflow.add('added', Step, 3, { after: 'a' });
    }
  }
  const traceOf = (span: ReadableSpan): string => span.spanContext().traceId;

  it('of a run are in the trace of its start, those that were added later too', async () => {
    const { app, tasks } = await testApp({ providers: [Steps] });
    const flow = workflow('traced').add('a', Step, 1).add('b', Step, 2, { after: 'a' });
    const request = await within(() => app.get(AsynqClient).start(flow, { id: '1' }));
    expect((await tasks.drain()).done).toBe(3);
    const processed = spans().filter(({ kind }) => kind === SpanKind.CONSUMER);
    expect(processed.map(traceOf)).toEqual(Array.from({ length: 3 }, () => traceOf(request)));
  });

  it('of a run are in one trace, that of its start, also without a request, in other queues, and after a retry', async () => {
    let failing = true;
    class Flaky {
      @TaskHandler('flaky')
      flaky() {
        if (failing) throw new SkipRetry('not yet');
      }
    }
    const server = { queues: { default: 1, other: 1 } };
    const { app, tasks } = await testApp({ providers: [Steps, Flaky] }, { server });
    const flow = workflow('traced')
      .add('a', 'flaky', undefined, { options: { queue: 'other' } })
      .add('b', Step, 2, { after: 'a' });
    const run = await app.get(AsynqClient).start(flow);
    await tasks.drain();
    failing = false;
    await run.retry();
    expect((await tasks.drain()).done).toBe(2);
    const [started] = spans().filter(({ kind }) => kind === SpanKind.PRODUCER);
    const processed = spans().filter(({ kind }) => kind === SpanKind.CONSUMER);
    expect(processed.map(traceOf)).toEqual(Array.from({ length: 3 }, () => traceOf(started!)));
  });

  it('of a batch are in the trace of their add, and its callback in that of its opening', async () => {
    const { app, tasks } = await testApp({ providers: [Steps] });
    const client = app.get(AsynqClient);
    const request = await within(async () => {
      const batch = await client.openBatch({ name: 'traced', onComplete: [Step, 9] });
      await batch.add(Step, [4, 5]);
      await batch.close();
    });
    expect((await tasks.drain()).done).toBe(3);
    const processed = spans().filter(({ kind }) => kind === SpanKind.CONSUMER);
    expect(processed.map(traceOf)).toEqual(Array.from({ length: 3 }, () => traceOf(request)));
  });
});
