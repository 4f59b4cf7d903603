import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished, describe } from 'vitest';
import { filterOf, stepOf } from '../../../lib/dashboard/rest/prometheus.js';
import { startConsole } from '../console.js';

describe('the history from Prometheus', () => {
  interface Asked {
    readonly url: URL;
    readonly authorization: string | undefined;
  }

  async function prometheus(body: string): Promise<{ address: string; asked: Asked[] }> {
    const asked: Asked[] = [];
    const server = createServer(({ url, headers }, response) => {
      asked.push({ url: new URL(url!, 'http://x'), authorization: headers.authorization });
      response.end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
  }

  it('sends nine queries for queues and range, and passes on the responses', async () => {
    const { address, asked } = await prometheus('{"status":"success","data":{"result":[]}}');
    const web = await startConsole({ access: 'view', prometheus: `http://me:pass%20word@${address}/prom/` });
    onTestFinished(() => web.close());
    expect(await web.get('config')).toMatchObject({ prometheus: true });
    const reply = await web.get<Record<string, object>>('metrics?duration=7200&endtime=1700000000&queues=a.b,c%22%5C');
    expect(Object.keys(reply)).toEqual([
      'queue_size',
      'queue_latency_seconds',
      'queue_memory_usage_approx_bytes',
      'tasks_processed_per_second',
      'tasks_failed_per_second',
      'error_rate',
      'pending_tasks_by_queue',
      'retry_tasks_by_queue',
      'archived_tasks_by_queue',
    ]);
    expect(reply['queue_size']).toEqual({ status: 'success', data: { result: [] } });
    const [first] = asked;
    expect(first!.url.pathname).toBe('/prom/api/v1/query_range');
    expect(Object.fromEntries(first!.url.searchParams)).toEqual({
      query: String.raw`asynq_queue_size{queue=~"a\\.b|c\"\\\\"}`,
      start: '1699992800',
      end: '1700000000',
      step: '10',
    });
    expect(first!.authorization).toBe(`Basic ${Buffer.from('me:pass word').toString('base64')}`);
    const queries = asked.map(({ url }) => url.searchParams.get('query')!);
    expect(queries.find((query) => query.includes('state="retry"'))).toContain('asynq_tasks_enqueued_total{queue=~');
    for (const wrong of ['duration=x', 'duration=0', 'endtime=-1'])
      expect((await web.api('GET', `metrics?${wrong}`)).status).toBe(400);
  });

  it('takes one queue of any name, and requests no more values than needed', async () => {
    const { address, asked } = await prometheus('{"status":"success","data":{"result":[]}}');
    const web = await startConsole({ access: 'view', prometheus: `http://${address}` });
    onTestFinished(() => web.close());
    await web.get('metrics?duration=604800&points=280&queue=a,b');
    const { step, query } = Object.fromEntries(asked[0]!.url.searchParams);
    expect([step, query]).toEqual(['2160', 'asynq_queue_size{queue=~"a,b"}']);
    const queries = asked.map(({ url }) => url.searchParams.get('query')!);
    expect(queries.find((query) => query.includes('processed'))).toContain('[2160s]');
    await web.get('metrics?duration=3600&points=280');
    expect(asked.at(-1)!.url.searchParams.get('step')).toBe('13');
    for (const points of ['0', 'x', '11001'])
      expect((await web.api('GET', `metrics?points=${points}`)).status).toBe(400);
  });

  it('reports a Prometheus that is away, sends no JSON, or is not configured', async () => {
    const { address } = await prometheus('<html>');
    const html = await startConsole({ access: 'view', prometheus: `http://${address}` });
    const away = await startConsole({ access: 'view', prometheus: 'http://127.0.0.1:1' });
    const none = await startConsole({ access: 'view' });
    onTestFinished(async () => void (await Promise.all([html.close(), away.close(), none.close()])));
    for (const [web, why] of [
      [html, 'responded with 200 OK and no JSON'],
      [away, 'did not respond (bad port)'],
    ] as const) {
      const { status, text } = await web.api('GET', 'metrics');
      expect([status, text]).toEqual([502, expect.stringMatching(/^Prometheus at http:\S+ (responded|did not)/)]);
      expect(text).toContain(why);
    }
    expect(await none.api('GET', 'metrics')).toMatchObject({
      status: 404,
      text: expect.stringContaining('option prometheus'),
    });
  });

  it.each([
    [3600, 10],
    [6 * 3600, 10],
    [24 * 3600, 60],
    [8 * 86_400, 180],
    [30 * 86_400, 600],
    [60 * 86_400, 1728],
  ])('covers %i seconds in steps of %i', (duration, step) => expect(stepOf(duration)).toBe(step));

  it('escapes names of queues', () => {
    expect(filterOf([])).toBe('');
    expect(filterOf(['"} or up{x="'])).toBe(String.raw`queue=~"\"\\} or up\\{x=\""`);
  });
});
