import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { trace } from '@opentelemetry/api';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { AsynqClient, AsynqModule, Payload, TaskCtx, type TaskContext, TaskHandler } from 'nestjs-asynq';

import { describeWithGo } from '../support/go.js';
import { useInterop } from './fixture.js';

const exporter = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
beforeAll(() => provider.register());
afterAll(() => provider.shutdown());

@Injectable()
class Orders {
  readonly arrived: { order: unknown; headers: Readonly<Record<string, string>>; span: unknown }[] = [];

  @TaskHandler('order')
  handle(@Payload() order: unknown, @TaskCtx() { headers }: TaskContext): void {
    this.arrived.push({ order, headers, span: trace.getActiveSpan() });
  }
}

describeWithGo('a trace from Nest through Go to Nest', () => {
  const interop = useInterop();

  it('is one, each part the child of the one before', async () => {
    const [toGo, back] = [interop.queue(), interop.queue()];
    const { host, port } = interop.redis;
    const app = await Test.createTestingModule({
      imports: [AsynqModule.forRoot({ connection: { host, port }, server: { queues: [back] } })],
      providers: [Orders],
    }).compile();
    app.useLogger(false);
    await app.init();
    onTestFinished(() => app.close());
    await interop.serve(interop.go, toGo, { behaviours: { order: [{ do: 'forward', to: back }] } });

    const request = await trace.getTracer('test').startActiveSpan('POST /orders', async (span) => {
      await app.get(AsynqClient).enqueue('order', { id: 42 }, { queue: toGo });
      span.end();
      return span.spanContext();
    });
    const spanNamed = (name: string): ReadableSpan => exporter.getFinishedSpans().find((span) => span.name === name)!;
    await interop.until(async () => expect(spanNamed(`process ${back}`)).toBeDefined());

    const send = spanNamed(`send ${toGo}`);
    expect(send.parentSpanContext?.spanId).toBe(request.spanId);
    const [atGo] = interop.go.seen('start', { queue: toGo });
    expect(atGo!.headers).toEqual({ traceparent: `00-${request.traceId}-${send.spanContext().spanId}-01` });
    const [wait, process] = [spanNamed(`wait ${back}`), spanNamed(`process ${back}`)];
    for (const span of [wait, process]) {
      expect(span.spanContext().traceId).toBe(request.traceId);
      expect(span.parentSpanContext).toMatchObject({ spanId: '00f067aa0ba902b7', isRemote: true }); // Go's own
    }
    expect(process.attributes).toMatchObject({ 'asynq.task.outcome': 'done', 'messaging.destination.name': back });
    const [arrival] = app.get(Orders).arrived;
    expect(arrival).toMatchObject({ order: { id: 42 }, span: { name: `process ${back}` } });
    expect(arrival!.headers).toEqual({ traceparent: `00-${request.traceId}-00f067aa0ba902b7-01` });
  });
});
