import {
  Controller,
  Inject,
  Injectable,
  Scope,
  UseFilters,
  UseGuards,
  type ArgumentsHost,
  type CanActivate,
  type ExceptionFilter,
  type ExecutionContext,
} from '@nestjs/common';
import {
  APP_GUARD,
  ContextIdFactory,
  ModuleRef,
  REQUEST,
  type ContextId,
  type ContextIdStrategy,
  type HostComponentInfo,
} from '@nestjs/core';
import { getTaskContext, Payload, TaskCtx, TaskHandler, type TaskContext } from 'nestjs-asynq';
import { afterEach, describe, expect, test } from 'vitest';
import { testApp } from './support.js';

let made = 0;

@Injectable({ scope: Scope.REQUEST })
class PerTask {
  readonly number = ++made;
  constructor(@Inject(REQUEST) readonly task: TaskContext) {}
}

@Injectable()
class Tasks {
  constructor(
    readonly own: PerTask,
    private readonly moduleRef: ModuleRef,
  ) {}

  @TaskHandler('scoped')
  run(@Payload() payload: unknown, @TaskCtx() task: TaskContext) {
    return { payload, number: this.own.number, same: this.own.task === task, id: this.own.task.id };
  }

  @TaskHandler('undecorated')
  undecorated(_payload: unknown, task: TaskContext) {
    return this.own.task === task;
  }

  @TaskHandler('resolves')
  async resolves(@TaskCtx() task: TaskContext) {
    const again = await this.moduleRef.resolve(
      PerTask,
      ContextIdFactory.getByRequest(task as object as Record<string, string>),
    );
    return again === this.own;
  }
}

describe('a request-scoped handler', () => {
  test("has an instance per task, and REQUEST is the task's context", async () => {
    made = 0;
    const { tasks } = await testApp({ providers: [Tasks, PerTask] });
    const results = [];
    for (const payload of ['a', 'b']) results.push((await tasks.work('scoped', payload, { taskId: payload })).result);
    expect(results).toEqual([
      { payload: 'a', number: 1, same: true, id: 'a' },
      { payload: 'b', number: 2, same: true, id: 'b' },
    ]);
    expect(await tasks.work('undecorated')).toMatchObject({ result: true });
  });

  test('is not shared by tasks that run at the same time', async () => {
    const { app, tasks } = await testApp({ providers: [Tasks, PerTask] });
    const { AsynqClient } = await import('nestjs-asynq');
    await app.get(AsynqClient).enqueueMany('scoped', [1, 2, 3, 4]);
    const { outcomes } = await tasks.drain();
    const results = outcomes.map(({ result }) => result as { number: number; same: boolean });
    expect(new Set(results.map(({ number }) => number)).size).toBe(4);
    expect(results.every(({ same }) => same)).toBe(true);
  });

  test('shares its context with what it resolves later', async () => {
    const { tasks } = await testApp({ providers: [Tasks, PerTask] });
    expect(await tasks.work('resolves')).toMatchObject({ outcome: 'done', result: true });
  });

  test('gets its guards and filters in the same context', async () => {
    const seen: unknown[] = [];
    @Injectable({ scope: Scope.REQUEST })
    class ScopedGuard implements CanActivate {
      constructor(private readonly own: PerTask) {}
      canActivate = (context: ExecutionContext) => seen.push(this.own.task === getTaskContext(context)) > 0;
    }
    @Injectable({ scope: Scope.REQUEST })
    class ScopedFilter implements ExceptionFilter {
      constructor(private readonly own: PerTask) {}
      catch = (_: unknown, host: ArgumentsHost) => void seen.push(this.own.task === getTaskContext(host));
    }
    @UseGuards(ScopedGuard)
    @UseFilters(ScopedFilter)
    @Injectable()
    class Guarded {
      @TaskHandler('guarded')
      run() {
        throw new Error('boom');
      }
    }
    made = 0;
    const { tasks } = await testApp({ providers: [Guarded, PerTask] });
    expect(await tasks.work('guarded')).toMatchObject({ outcome: 'retry', error: { message: 'boom' } });
    expect(seen).toEqual([true, true]);
    expect(made).toBe(1);
  });

  test('that cannot be created fails its task', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Broken {
      constructor() {
        throw new Error('no database');
      }
      @TaskHandler('broken')
      run() {}
    }
    const { tasks } = await testApp({ providers: [Broken] });
    expect(await tasks.work('broken')).toMatchObject({ outcome: 'retry', error: { message: 'no database' } });
  });
});

test('a request-scoped guard of the application runs for every task', async () => {
  const seen: string[] = [];
  @Injectable({ scope: Scope.REQUEST })
  class AppGuard implements CanActivate {
    constructor(@Inject(REQUEST) private readonly task: TaskContext) {}
    canActivate = () => seen.push(this.task.id) > 0;
  }
  @Injectable()
  class Plain {
    @TaskHandler('plain')
    run() {
      return 'ran';
    }
  }
  const { tasks } = await testApp({
    providers: [Plain, { provide: APP_GUARD, useClass: AppGuard, scope: Scope.REQUEST }],
  });
  expect(await tasks.work('plain', 0, { taskId: 'x' })).toMatchObject({ result: 'ran' });
  expect(seen).toEqual(['x']);
});

test('a transient handler has an instance per task', async () => {
  let instances = 0;
  @Injectable({ scope: Scope.TRANSIENT })
  class Transient {
    readonly number = ++instances;
    @TaskHandler('transient')
    run() {
      return this.number;
    }
  }
  const { tasks } = await testApp({ providers: [Transient] });
  const first = (await tasks.work('transient')).result;
  const second = (await tasks.work('transient')).result;
  expect([first, second]).toEqual([expect.any(Number), expect.any(Number)]);
  expect(first).not.toBe(second);
});

describe('a durable handler', () => {
  class PerTenant implements ContextIdStrategy {
    private readonly tenants = new Map<string, ContextId>();
    attach(contextId: ContextId, request: TaskContext) {
      const tenantId = request.headers['tenant'] ?? 'none';
      const parent = this.tenants.get(tenantId) ?? ContextIdFactory.create();
      this.tenants.set(tenantId, parent);
      return {
        resolve: (info: HostComponentInfo) => (info.isTreeDurable ? parent : contextId),
        payload: { tenantId },
      };
    }
  }

  @Injectable({ scope: Scope.REQUEST, durable: true })
  class Tenant {
    readonly number = ++made;
    constructor(@Inject(REQUEST) readonly context: { tenantId: string }) {}
    @TaskHandler('tenant')
    run() {
      return { number: this.number, tenantId: this.context.tenantId };
    }
  }

  afterEach(() => ContextIdFactory.apply(undefined as unknown as ContextIdStrategy));

  test('has an instance per tenant', async () => {
    made = 0;
    ContextIdFactory.apply(new PerTenant());
    const { tasks } = await testApp({ providers: [Tenant] });
    const results = [];
    for (const tenant of ['a', 'b', 'a']) results.push((await tasks.work('tenant', 0, { headers: { tenant } })).result);
    expect(results).toEqual([
      { number: 1, tenantId: 'a' },
      { number: 2, tenantId: 'b' },
      { number: 1, tenantId: 'a' },
    ]);
  });
});

describe('a controller', () => {
  @Controller()
  @UseGuards(PerTaskGuard())
  class Web {
    constructor(private readonly own: PerTask) {}
    @TaskHandler('web')
    run(@TaskCtx() task: TaskContext) {
      return this.own.task === task;
    }
  }
  function PerTaskGuard() {
    @Injectable({ scope: Scope.REQUEST })
    class Guard implements CanActivate {
      constructor(private readonly own: PerTask) {}
      canActivate = (context: ExecutionContext) => this.own.task === getTaskContext(context);
    }
    return Guard;
  }

  test('that depends on the request has an instance per task, with its guards', async () => {
    made = 0;
    const { tasks } = await testApp({ controllers: [Web], providers: [PerTask] });
    expect(await tasks.work('web')).toMatchObject({ outcome: 'done', result: true });
    expect(await tasks.work('web')).toMatchObject({ outcome: 'done', result: true });
    expect(made).toBe(2);
  });

  test('runs behind a request-scoped guard of the application', async () => {
    const seen: string[] = [];
    @Injectable({ scope: Scope.REQUEST })
    class AppGuard implements CanActivate {
      constructor(@Inject(REQUEST) private readonly task: TaskContext) {}
      canActivate = () => seen.push(this.task.id) > 0;
    }
    @Controller()
    class Plain {
      @TaskHandler('plain')
      run() {
        return 'ran';
      }
    }
    const { tasks } = await testApp({
      controllers: [Plain],
      providers: [{ provide: APP_GUARD, useClass: AppGuard, scope: Scope.REQUEST }],
    });
    expect(await tasks.work('plain', 0, { taskId: 'x' })).toMatchObject({ result: 'ran' });
    expect(seen).toEqual(['x']);
  });
});
