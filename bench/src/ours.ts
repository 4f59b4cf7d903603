import 'reflect-metadata';
import {
  Injectable,
  Module,
  UseInterceptors,
  ValidationPipe,
  type CallHandler,
  type NestInterceptor,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { IsInt, IsString } from 'class-validator';
import { Redis } from 'ioredis';
import { concatMap, type Observable } from 'rxjs';
import {
  type AcknowledgeOptions,
  AsynqClient,
  AsynqModule,
  Payload as TaskPayload,
  TaskHandler,
} from '../../dist/index.js';
import type { Handle, Payload, System } from './system.js';

/** The function that the handlers call. It is set before the application starts. */
let current: Handle = () => undefined;

@Injectable()
class PlainTasks {
  @TaskHandler('bench')
  run(payload: Payload): Promise<void> | void {
    return current(payload);
  }
}

class BenchDto {
  @IsInt() n!: number;
  @IsString() text!: string;
}

@Injectable()
class PassThrough implements NestInterceptor {
  intercept(_: unknown, next: CallHandler): Observable<unknown> {
    return next.handle();
  }
}

@Injectable()
class InterceptedTasks {
  @TaskHandler('bench')
  @UseInterceptors(PassThrough)
  run(payload: Payload): Promise<void> | void {
    return current(payload);
  }
}

@Injectable()
class EnhancedTasks {
  @TaskHandler('bench')
  @UseInterceptors(PassThrough)
  run(@TaskPayload(new ValidationPipe({ transform: true })) payload: BenchDto): Promise<void> | void {
    return current(payload);
  }
}

@Injectable()
class AsyncPassThrough implements NestInterceptor {
  intercept(_: unknown, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(concatMap(async (result: unknown) => result));
  }
}

@Injectable()
class SingleTasks {
  @TaskHandler('bench')
  @UseInterceptors(AsyncPassThrough)
  async run(payload: Payload): Promise<void> {
    await current(payload);
  }
}

@Injectable()
class BatchTasks {
  @TaskHandler('bench', { batch: { size: 100, wait: '10ms' } })
  @UseInterceptors(AsyncPassThrough)
  async run(payloads: readonly Payload[]): Promise<void> {
    for (const payload of payloads) await current(payload);
  }
}

/** With which handlers nestjs-asynq is measured. */
const PROVIDERS = {
  plain: PlainTasks,
  intercepted: InterceptedTasks,
  enhanced: EnhancedTasks,
  single: SingleTasks,
  batch: BatchTasks,
};

/** nestjs-asynq through the full Nest path: a decorated provider method, discovered and started by Nest. */
export async function ours(
  port: number,
  handlers: keyof typeof PROVIDERS = 'plain',
  acknowledge: AcknowledgeOptions | false = false,
): Promise<System> {
  const redis = new Redis(port);
  const connection = { host: '127.0.0.1', port };
  const open: { close(): Promise<void> }[] = [];
  const start = async (server: false | { concurrency: number }) => {
    @Module({
      imports: [AsynqModule.forRoot({ connection, server, acknowledge })],
      providers: [PROVIDERS[handlers]],
    })
    class BenchModule {}
    const app = await NestFactory.createApplicationContext(BenchModule, { logger: ['warn', 'error'] });
    open.push(app);
    return app;
  };
  let client: AsynqClient | undefined;
  const producer = async (): Promise<AsynqClient> => (client ??= (await start(false)).get<AsynqClient>(AsynqClient));
  await producer();
  return {
    enqueue: async (payload) => client!.enqueue('bench', payload),
    enqueueMany: (payloads) => client!.enqueueMany(payloads.map((payload) => ({ type: 'bench', payload }))),
    work: async (concurrency, handle) => {
      current = handle;
      await start({ concurrency });
    },
    unfinished: async () =>
      (await redis.llen('asynq:{default}:pending')) + (await redis.llen('asynq:{default}:active')),
    close: async () => {
      for (const app of open) await app.close();
      redis.disconnect();
    },
  };
}
