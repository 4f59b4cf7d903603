import { expect, it } from 'vitest';
import type { Server } from '../../../lib/dashboard/web/api/fleet-types.js';
import { isServed } from '../../../lib/dashboard/web/pages/served.js';

const server = (status: string, ...queues: string[]): Server => ({
  id: 'id',
  host: 'host',
  pid: 1,
  concurrency: 1,
  queue_priorities: Object.fromEntries(queues.map((queue) => [queue, 1])),
  strict_priority_enabled: false,
  start_time: '2026-01-01T00:00:00Z',
  status,
  active_workers: null,
});

it.each<[string, boolean, string, Server[]]>([
  ['by a server that has it', true, 'mail', [server('active', 'low'), server('active', 'mail', 'low')]],
  ['not where none runs', false, 'mail', []],
  ['not by servers of other queues', false, 'mail', [server('active', 'low', 'mails')]],
  ['not by one that stops', false, 'mail', [server('stopped', 'mail')]],
  ['not because every object has its name', false, 'toString', [server('active', 'low')]],
])('a queue is served %s', (_, served, queue, servers) => {
  expect(isServed(queue, servers)).toBe(served);
});
