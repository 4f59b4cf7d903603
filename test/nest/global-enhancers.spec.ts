import {
  type CallHandler,
  Catch,
  type CanActivate,
  type ExceptionFilter,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  Scope,
  UnauthorizedException,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { type AsynqError, Payload, SkipRetry, TaskHandler } from 'nestjs-asynq';
import { describe, expect, test } from 'vitest';
import { testApp } from './support.js';

@Injectable()
class Tasks {
  @TaskHandler('mail')
  send(@Payload() payload: unknown) {
    return payload;
  }
  @TaskHandler('index', { batch: { size: 9, wait: 0 } })
  index(payloads: unknown[]) {
    return payloads;
  }
}

const guard = (canActivate: CanActivate['canActivate']) => {
  class HttpGuard implements CanActivate {
    canActivate = canActivate;
  }
  return { provide: APP_GUARD, useClass: HttpGuard };
};
const fails = (error: unknown) => () => {
  throw error;
};
const workWith = async (type: string, ...providers: NonNullable<Parameters<typeof testApp>[0]['providers']>) => {
  const { tasks } = await testApp({ providers: [Tasks, ...providers] });
  return (await tasks.work(type, { a: 1 })) as { outcome: string; error: AsynqError & { cause: unknown } };
};

describe('a global guard for HTTP', () => {
  test.each(['mail', 'index'])('is named when it finds no request (%s)', async (type) => {
    const cause = new TypeError('no headers');
    const { outcome, error } = await workWith(type, guard(fails(cause)));
    expect(outcome).toBe('retry');
    expect(error).toMatchObject({ code: 'ASYNQ_GLOBAL_ENHANCER', cause });
    expect(error.message).toMatch(
      new RegExp(
        `^the global guard HttpGuard failed for task "${type}": no headers; if it is for HTTP, begin it with `,
      ),
    );
  });

  test('is named when it is asynchronous, and finds no token', async () => {
    const cause = new UnauthorizedException();
    const { error } = await workWith(
      'mail',
      guard(async () => fails(cause)()),
    );
    expect(error).toMatchObject({ code: 'ASYNQ_GLOBAL_ENHANCER', cause });
  });

  test('is named when it has an instance per task', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Scoped implements CanActivate {
      canActivate(): boolean {
        throw new TypeError('no headers');
      }
    }
    const { error } = await workWith('mail', { provide: APP_GUARD, useClass: Scoped });
    expect(error.message).toMatch(/^the global guard Scoped failed/);
  });

  test.each([new Error('the database is away'), new SkipRetry('not this one'), 'text'])(
    'has its own error where that is not about HTTP: %s',
    async (error) => {
      expect(await workWith('mail', guard(fails(error)))).toMatchObject({ error });
    },
  );

  test('does not keep a filter from seeing its error', async () => {
    const seen: unknown[] = [];
    @Catch(UnauthorizedException)
    class Filter implements ExceptionFilter {
      catch(error: unknown) {
        seen.push(error);
      }
    }
    const error = new UnauthorizedException();
    await workWith('mail', guard(fails(error)), { provide: APP_FILTER, useClass: Filter });
    expect(seen).toEqual([error]);
  });
});

test('a guard of the method keeps its own error', async () => {
  const error = new UnauthorizedException();
  @Injectable()
  class Guarded {
    @TaskHandler('guarded')
    @UseGuards({ canActivate: fails(error) })
    run() {}
  }
  expect(await workWith('guarded', Guarded)).toMatchObject({ error });
});

test('a global interceptor is named when it fails before the handler, and not when the handler does', async () => {
  const intercept = (before: () => void) => {
    class HttpInterceptor implements NestInterceptor {
      intercept(_context: ExecutionContext, next: { handle(): never }) {
        before();
        return next.handle();
      }
    }
    return { provide: APP_INTERCEPTOR, useClass: HttpInterceptor };
  };
  const { error } = await workWith('mail', intercept(fails(new TypeError('no url'))));
  expect(error.message).toMatch(/^the global interceptor HttpInterceptor failed for task "mail": no url/);
  const own = new TypeError('a bug');
  @Injectable()
  class Buggy {
    @TaskHandler('buggy')
    run() {
      throw own;
    }
  }
  expect(
    await workWith(
      'buggy',
      Buggy,
      intercept(() => undefined),
    ),
  ).toMatchObject({ error: own });
});

test('a global pipe is named when it fails', async () => {
  class HttpPipe {
    transform = fails(new TypeError('no user'));
  }
  const { error } = await workWith('mail', { provide: APP_PIPE, useClass: HttpPipe });
  expect(error.message).toMatch(/^the global pipe HttpPipe failed for task "mail": no user; if it is for HTTP, leave/);
});

describe('globalEnhancers: false', () => {
  const called: string[] = [];
  const everything = (scope: Scope) => {
    const all = {
      canActivate: () => (called.push('guard'), false),
      intercept: () => (called.push('interceptor'), undefined),
      transform: () => (called.push('pipe'), undefined),
      catch: () => void called.push('filter'),
    };
    @Catch()
    @Injectable({ scope })
    class All {
      canActivate = all.canActivate;
      intercept = all.intercept;
      transform = all.transform;
      catch = all.catch;
    }
    return [APP_GUARD, APP_INTERCEPTOR, APP_PIPE, APP_FILTER].map((provide) => ({ provide, useClass: All }));
  };

  test.each([Scope.DEFAULT, Scope.REQUEST])('leaves out those of the application (scope %i)', async (scope) => {
    called.splice(0);
    const error = new Error('no');
    @Injectable()
    class Own {
      @TaskHandler('own')
      @UseGuards({ canActivate: () => (called.push('own guard'), true) })
      @UseInterceptors({
        intercept: (_: unknown, next: CallHandler) => (called.push('own interceptor'), next.handle()),
      })
      run() {
        throw error;
      }
    }
    const { tasks } = await testApp({ providers: [Tasks, Own, ...everything(scope)] }, { globalEnhancers: false });
    expect(await tasks.work('mail', { a: 1 })).toMatchObject({ outcome: 'done', result: { a: 1 } });
    expect(await tasks.work('own')).toMatchObject({ error });
    expect(called).toEqual(['own guard', 'own interceptor']);
  });

  test('leaves them to other connections', async () => {
    called.splice(0);
    const { tasks } = await testApp({ providers: [Tasks, ...everything(Scope.DEFAULT)] });
    expect(await tasks.work('mail')).toMatchObject({ outcome: 'retry' });
    expect(called).toEqual(['guard', 'filter']);
  });

  test('must be true or false', async () => {
    await expect(testApp({}, { globalEnhancers: 'no' as never })).rejects.toThrow(
      'AsynqModule option globalEnhancers must be true or false, not "no"',
    );
  });
});
