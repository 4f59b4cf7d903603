import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Values = [seconds: number, value: string][];

/**
 * A Prometheus that has watched two processes of an application with these queues; it responds to
 * query_range as the real one does.
 */
export class FakePrometheus {
  /** The queries received. */
  readonly asked: URLSearchParams[] = [];
  /** Replaces the response to some queries. */
  refuse: ((query: string) => { status: number; body: string } | undefined) | undefined;

  private constructor(
    private readonly server: Server,
    private readonly queues: readonly string[],
  ) {}

  static async start(queues: readonly string[]): Promise<FakePrometheus> {
    const server = createServer();
    const made = new FakePrometheus(server, queues);
    server.on('request', ({ url = '' }, response) => made.respond(new URL(url, 'http://x').searchParams, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return made;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private respond(params: URLSearchParams, response: ServerResponse): void {
    this.asked.push(params);
    const query = params.get('query') ?? '';
    const refusal = this.refuse?.(query);
    if (refusal) return void response.writeHead(refusal.status).end(refusal.body);
    const filter = /queue=~"([^"]*)"/.exec(query)?.[1]?.replaceAll('\\\\', '\\');
    const wanted = this.queues.filter((queue) => filter === undefined || new RegExp(`^(?:${filter})$`).test(queue));
    const result = wanted.flatMap((queue) =>
      ['app-1:3000', 'app-2:3000'].map((instance) => ({
        metric: { queue, instance, job: 'app' },
        values: this.valuesOf(query, this.queues.indexOf(queue), params),
      })),
    );
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ status: 'success', data: { resultType: 'matrix', result } }));
  }

  /** Days and nights, with a gap in the middle of the range. */
  private valuesOf(query: string, queue: number, params: URLSearchParams): Values {
    const [start, end, step] = ['start', 'end', 'step'].map((name) => Number(params.get(name))) as [
      number,
      number,
      number,
    ];
    const values: Values = [];
    for (let time = start; time <= end; time += step) {
      const passed = (time - start) / (end - start);
      if (passed > 0.45 && passed < 0.5) continue;
      const wave = 1.2 + Math.sin((time / 86_400) * 2 * Math.PI + queue) + 0.2 * Math.sin(time / 977 + 3 * queue);
      values.push([time, valueOf(query, wave / (queue + 1))]);
    }
    return values;
  }
}

function valueOf(query: string, wave: number): string {
  if (query.includes(' / ')) return wave < 0.1 ? 'NaN' : String(0.04 / (1 + wave));
  if (query.includes('failed')) return String(wave * 0.7);
  if (query.includes('processed')) return String(wave * 42);
  if (query.includes('latency')) return String(wave * 3.7);
  if (query.includes('memory')) return String(Math.round(wave * 31_000_000));
  return String(Math.round(wave * 1_700));
}
