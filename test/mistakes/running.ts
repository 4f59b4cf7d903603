import {
  BadRequestException,
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  type PipeTransform,
} from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import {
  defineTask,
  Payload,
  type ServerOptions,
  SkipRetry,
  type TaskContext,
  TaskCtx,
  TaskHandler,
} from 'nestjs-asynq';
import { declaredClasses } from '../../lib/nest/decorators/handler-method.js';
import { failure, logged, mistake, type Mistake } from './mistake.js';

@Injectable()
class Mails {
  @TaskHandler('mail:welcome')
  send(@Payload() _payload: unknown): void {}
}

class JwtGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return context.switchToHttp().getRequest<{ user?: object }>()?.user !== undefined;
  }
}
class HeaderGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return context.switchToHttp().getRequest<{ headers: { auth: string } }>().headers.auth !== '';
  }
}
class UrlInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler) {
    const { url } = context.switchToHttp().getRequest<{ raw: { url: string } }>().raw;
    return url === '' ? next.handle() : next.handle();
  }
}
class StrictPipe implements PipeTransform {
  transform(): never {
    throw new BadRequestException(['property userId should not exist']);
  }
}

const global = (provide: string, useClass: new () => object, name: string): Mistake =>
  mistake(`\`{ provide: ${name}, useClass: ${useClass.name} }\``, () =>
    failure('mail:welcome', { userId: 1 }, { providers: [Mails, { provide, useClass }] }),
  );

function throwing(thrown: unknown): new () => object {
  @Injectable()
  class Throws {
    @TaskHandler('mail:welcome')
    send(): void {
      throw thrown as Error;
    }
  }
  return Throws;
}

/** What a task fails with. */
export const FAILURES: readonly Mistake[] = [
  mistake("`enqueue('mail:wellcome', data)`", () => failure('mail:wellcome', {}, { providers: [Mails] })),
  global(APP_GUARD, JwtGuard, 'APP_GUARD'),
  global(APP_GUARD, HeaderGuard, 'APP_GUARD'),
  global(APP_INTERCEPTOR, UrlInterceptor, 'APP_INTERCEPTOR'),
  global(APP_PIPE, StrictPipe, 'APP_PIPE'),
  mistake('a payload that another program wrote, and that is no JSON', () =>
    failure('mail:welcome', Buffer.from('{ to'), { providers: [Mails] }),
  ),
  mistake('`throw SkipRetry`', () => failure('mail:welcome', {}, { providers: [throwing(SkipRetry)] })),
  mistake('`throw undefined`', () => failure('mail:welcome', {}, { providers: [throwing(undefined)] })),
  mistake('`throw { status: 500 }`', () => failure('mail:welcome', {}, { providers: [throwing({ status: 500 })] })),
  mistake('`task.progress(25)`', () => {
    @Injectable()
    class Percent {
      @TaskHandler('count')
      count(@TaskCtx() task: TaskContext): void {
        task.progress(25);
      }
    }
    return failure('count', {}, { providers: [Percent] });
  }),
  mistake('a batch handler that returns too few results', () => {
    @Injectable()
    class Many {
      @TaskHandler('index', { batch: { size: 10, wait: 0 } })
      index(): string[] {
        return [];
      }
    }
    return failure('index', {}, { providers: [Many] });
  }),
];

/** Served by no server. */
const Typo = defineTask('mail:typo', { queue: 'emials' });

@Injectable()
class Typos {
  @TaskHandler(Typo)
  send(): void {}
}

async function withoutSignalHandlers(says: () => Promise<string>): Promise<string> {
  const listeners = process.listeners('SIGTERM');
  process.removeAllListeners('SIGTERM');
  try {
    return await says();
  } finally {
    for (const listener of listeners) process.on('SIGTERM', listener);
  }
}

const asyncHook = (hook: object): Promise<string> =>
  logged('hookFailed', { providers: [throwing(new Error())] }, { server: hook as ServerOptions }, ({ client }) =>
    client.enqueue('mail:welcome', {}),
  );

/** What is in the log, right after the start or a few seconds later. */
export const LOG: readonly Mistake[] = [
  mistake('a server without handlers', () => logged('handlersMissing', {}, { server: { concurrency: 5 } })),
  mistake('handlers where `server: false`', () => logged('handlersIdle', { providers: [Mails] }, { server: false })),
  mistake('a class with handlers that no module provides', () => {
    declaredClasses().clear(); // those of other mistakes
    class Forgotten {
      @TaskHandler('forgotten')
      run(): void {}
    }
    void Forgotten;
    return logged('handlersNotProvided', { providers: [Mails] });
  }),
  mistake("`enqueue('mail', data, { queue: 'emials' })`", () =>
    logged('queueNotServed', { providers: [Mails] }, { server: { queues: ['emails'] } }, ({ client }) =>
      client.enqueue('mail:welcome', {}, { queue: 'emials' }),
    ),
  ),
  mistake('`enqueue` where no server runs', () =>
    logged('queueNotServed', {}, { server: false }, ({ client }) => client.enqueue('mail:welcome', {})),
  ),
  mistake("a handler of `defineTask('mail', { queue: 'emials' })`", () =>
    logged('queueNotServed', { providers: [Typos] }, { server: { queues: ['emails'] } }),
  ),
  mistake('two applications with one prefix and queue', () =>
    logged('queueShared', { providers: [Mails] }, {}, async ({ broker }) => {
      const other = { host: 'shop-2', pid: 77, serverId: 'other', queues: { default: 1 } };
      const info = {
        ...other,
        concurrency: 1,
        strictPriority: false,
        status: 'active',
        startTime: 0,
        activeWorkerCount: 0,
      };
      await broker.monitoring.writeServerState(info, [], 60);
      await broker.monitoring.writeServerProfile(
        info,
        { handlers: [{ pattern: 'invoice:' }], queues: {}, aggregates: false },
        60,
      );
    }),
  ),
  mistake("`@Payload('usrId')`, without the definition", () => {
    @Injectable()
    class Misspelt {
      @TaskHandler('mail:bye')
      send(@Payload('usrId') _id: number): void {}
    }
    return logged('payloadFieldMissing', { providers: [Misspelt] }, {}, ({ client }) =>
      client.enqueue('mail:bye', { userId: 7 }),
    );
  }),
  mistake('`isFailure: async (error) => …`', () => asyncHook({ isFailure: async () => false })),
  mistake('`retryDelay: async () => 1000`', () => asyncHook({ retryDelay: async () => 1000 })),
  mistake('no `app.enableShutdownHooks()`', () =>
    withoutSignalHandlers(() => logged('shutdownHooksMissing', { providers: [Mails] })),
  ),
  ...[
    ['{ rates: new Map() }', { rates: new Map() }],
    ['{ at: new Date() }', { at: new Date(0) }],
    ['{ total: NaN }', { total: NaN }],
    ['JSON.stringify(data)', '{ "userId": 7 }'],
    ['{ error }', { error: new Error() }],
    ['{ photo: new Uint8Array(9) }', { photo: new Uint8Array(9) }],
    ['{ done: () => {} }', { done: () => undefined }],
  ].map(([text, payload]) =>
    mistake(`\`enqueue('mail', ${text as string})\``, () =>
      logged('payloadChanged', {}, { server: false }, ({ client }) => client.enqueue('mail', payload)),
    ),
  ),
];
