import { Controller, Get, Header, HttpCode, Post } from '@nestjs/common';
import { Traffic } from './traffic.js';

const LINKS = [
  ['asynq/', 'the console: queues, tasks, servers, schedules'],
  ['metrics', 'for Prometheus'],
  ['traces', 'the newest traces'],
  ['incidents', 'tasks that were given up, by @OnTaskEvent'],
  ['failures', 'failed attempts of all processes as they happen, by AsynqTaskEvents (a stream)'],
  ['health/live', 'the probe for liveness'],
  ['health/ready', 'the probe for readiness'],
] as const;

@Controller()
export class HomeController {
  constructor(private readonly traffic: Traffic) {}

  @Get()
  @Header('content-type', 'text/html; charset=utf-8')
  home(): string {
    const items = LINKS.map(([path, what]) => `<li><a href="${path}">${path}</a> ${what}</li>`).join('');
    return `<!doctype html><html lang="en"><title>A shop on asynq</title><h1>A shop on asynq</h1><ul>${items}</ul></html>`;
  }

  /** One more order: `curl -X POST http://…/orders`. */
  @Post('orders')
  @HttpCode(202)
  async order(): Promise<{ id: string }> {
    const { id } = await this.traffic.placeOrder();
    return { id };
  }
}
