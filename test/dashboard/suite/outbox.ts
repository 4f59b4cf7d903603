import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { InMemoryBroker } from 'nestjs-asynq/testing';
import type { DashboardRequest } from 'nestjs-asynq/dashboard';
import { OutboxFile } from '../../support/outbox-file.js';
import { startConsole, type TestConsole } from '../console.js';

describe('the outbox in the REST API', () => {
  let outbox: OutboxFile;
  let web: TestConsole;
  const access = ({ headers }: DashboardRequest) => {
    const role = headers['x-role'] as 'view' | 'act' | 'destroy';
    return headers['x-queue'] ? { queues: { [String(headers['x-queue'])]: role } } : role;
  };
  beforeAll(async () => {
    outbox = await OutboxFile.create();
    web = await startConsole({ access }, { metadata: { imports: [outbox.module] } });
  });
  afterAll(async () => {
    await web.close();
    outbox.close();
  });
  beforeEach(() => {
    outbox.poison(7, 'mail', 'bad card 4111');
    (web.broker as InMemoryBroker).clock.advance(60_000); // cached replies expire
  });
  const as = (role: string, method: string, path: string, headers: Record<string, string> = {}) =>
    web.api(method, path, undefined, { 'x-role': role, ...headers });

  it('shows what waits, the relays and the poisoned rows', async () => {
    outbox.add(8, 'mail', 'new');
    outbox.exec("INSERT INTO asynq_outbox_senders VALUES ('s1', 1, 'relay', 9e15), ('s2', 1, 'gone', 1)");
    expect(await web.get('config', { 'x-role': 'view' })).toMatchObject({ outbox: true });
    expect(await web.get('outbox', { 'x-role': 'view' })).toEqual({
      fresh: 1,
      taken: 0,
      poisoned: 1,
      oldest_ms: expect.any(Number),
      senders: [
        { id: 's1', owner: 'relay', lease_ms: expect.any(Number), taken: 0 },
        { id: 's2', owner: null, lease_ms: 0, taken: 0 },
      ],
    });
    const row = { row: 7, queue: 'mail', task_id: 'task', type: 'mail', error: 'bad card 4111' };
    expect(await web.get('outbox/poisoned', { 'x-role': 'view' })).toEqual({
      rows: [{ ...row, age_ms: expect.any(Number) }],
      next: null,
    });
    outbox.add(9, 'mail', 'poisoned', 'second');
    expect(await web.get('outbox/poisoned?size=1', { 'x-role': 'view' })).toMatchObject({ rows: [row], next: 7 });
    expect(await web.get('outbox/poisoned?size=1&after=7', { 'x-role': 'view' })).toMatchObject({
      rows: [{ row: 9 }],
      next: 9,
    });
  });

  it('has a row tried again or deleted, by those who may in its queue', async () => {
    expect(await as('view', 'POST', 'outbox/poisoned/7:retry')).toMatchObject({ status: 403 });
    expect(await as('act', 'DELETE', 'outbox/poisoned/7')).toMatchObject({ status: 403 });
    expect(await as('destroy', 'DELETE', 'outbox/poisoned/7', { 'x-queue': 'other' })).toMatchObject({ status: 404 });
    expect(await web.get('outbox/poisoned', { 'x-role': 'destroy', 'x-queue': 'other' })).toMatchObject({ rows: [] });
    expect(await as('view', 'GET', 'outbox', { 'x-queue': 'mail' })).toMatchObject({ status: 403 });
    for (const row of ['8', 'x', '-1', '1e0']) {
      expect(await as('act', 'POST', `outbox/poisoned/${row}:retry`)).toMatchObject({ status: 404 });
    }
    expect(outbox.states).toEqual(['poisoned']);
    expect(await as('act', 'POST', 'outbox/poisoned/7:retry', { 'x-queue': 'mail' })).toMatchObject({ status: 204 });
    expect(outbox.states).toEqual(['new']);
    outbox.poison(7, 'mail');
    expect(await as('destroy', 'DELETE', 'outbox/poisoned/7')).toMatchObject({ status: 204 });
    expect(outbox.states).toEqual([]);
  });

  it('says what is wrong with the database, and which process has no outbox', async () => {
    outbox.exec('ALTER TABLE asynq_outbox RENAME TO away');
    expect(await as('view', 'GET', 'outbox')).toMatchObject({
      status: 502,
      text: expect.stringContaining('the database of the outbox: no such table') as string,
    });
    outbox.exec('ALTER TABLE away RENAME TO asynq_outbox');
    const other = await startConsole();
    expect(await other.get('config')).toMatchObject({ outbox: false });
    expect(await other.api('GET', 'outbox')).toMatchObject({
      status: 404,
      text: expect.stringContaining('has no outbox') as string,
    });
    await other.close();
  });
});
