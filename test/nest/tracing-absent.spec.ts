import { propagation, trace } from '@opentelemetry/api';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AsynqServer, TaskHandler } from 'nestjs-asynq';
import { testApp } from './support.js';

class Work {
  @TaskHandler('work')
  work(): string {
    return trace.getActiveSpan() ? 'traced' : 'alone';
  }
}
const built = (tracing?: boolean) => testApp({ providers: [Work] }, { tracing });

describe('without an SDK', () => {
  it('nothing is traced, propagated or measured', async () => {
    const start = vi.spyOn(trace, 'getTracer');
    const { app, tasks } = await built(true);
    expect(await tasks.work('work')).toMatchObject({ result: 'alone' });
    expect(app.get(AsynqServer).events.measuresWaits).toBe(false);
    expect(start).not.toHaveBeenCalled();
    start.mockRestore();
  });

  it('a propagator alone passes headers on, also when it is registered late', async () => {
    const { app, tasks } = await built();
    expect(app.get(AsynqServer).events.measuresWaits).toBe(false);
    const seen: unknown[] = [];
    propagation.setGlobalPropagator({
      fields: () => ['x-trace'],
      inject: (_, carrier) => Object.assign(carrier as object, { 'x-trace': 'mine' }),
      extract: (context, carrier) => (seen.push(carrier), context),
    });
    expect(await tasks.work('work')).toMatchObject({ result: 'alone' });
    expect(seen).toEqual([{ 'x-trace': 'mine' }]);
    expect(app.get(AsynqServer).events.measuresWaits).toBe(true);
    propagation.disable();
  });
});

describe('without the API', () => {
  beforeAll(() => {
    vi.doMock('@opentelemetry/api', () => {
      throw Object.assign(new Error("Cannot find package '@opentelemetry/api'"), { code: 'ERR_MODULE_NOT_FOUND' });
    });
  });
  afterAll(() => vi.doUnmock('@opentelemetry/api'));

  it('an application boots and works', async () => {
    const { tasks } = await built();
    expect(await tasks.work('work')).toMatchObject({ result: 'alone' });
  });

  it('one that requires it fails with the missing package', async () => {
    await expect(built(true)).rejects.toThrow(
      'AsynqModule option tracing is true, but @opentelemetry/api cannot be loaded; install it, or leave the option out',
    );
  });
});
