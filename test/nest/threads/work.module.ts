import { isMainThread, threadId } from 'node:worker_threads';
import {
  CanActivate,
  ForbiddenException,
  Inject,
  Injectable,
  Module,
  type NestInterceptor,
  Optional,
  ParseIntPipe,
  UseGuards,
  UseInterceptors,
  type CallHandler,
  type ExecutionContext,
} from '@nestjs/common';
import { map } from 'rxjs';
import {
  AsynqClient,
  AsynqModule,
  Payload,
  PostponeTask,
  RevokeTask,
  SkipRetry,
  TaskCtx,
  TaskHandler,
  type TaskContext,
} from '../../../lib/index.js';

@Injectable()
class Greeter {
  greet(name: string): string {
    return `hello ${name}`;
  }
}

@Injectable()
class NotBob implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    if ((context.getArgByIndex(0) as { name?: string }).name === 'bob') throw new ForbiddenException('not bob');
    return true;
  }
}

@Injectable()
class Loud implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(map((value: unknown) => String(value).toUpperCase()));
  }
}

class OwnError extends Error {
  readonly code = 'E_OWN';
  readonly attempt = 7;
}

const block = (milliseconds: number): void => {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
};

@Injectable()
export class WorkTasks {
  constructor(
    @Inject(Greeter) private readonly greeter: Greeter,
    @Optional() @Inject(AsynqClient) private readonly client?: AsynqClient,
  ) {}

  @TaskHandler('client', { thread: true })
  async enqueue() {
    return (await this.client?.enqueue('another'))?.type;
  }

  @TaskHandler('greet', { thread: true })
  @UseGuards(NotBob)
  @UseInterceptors(Loud)
  greet(@Payload() { name }: { name: string }) {
    return this.greeter.greet(name);
  }

  @TaskHandler('where', { thread: true })
  where() {
    return { isMainThread, threadId };
  }

  @TaskHandler('number', { thread: true })
  number(@Payload(new ParseIntPipe()) n: number) {
    return n + 1;
  }

  @TaskHandler('bytes', { thread: true })
  bytes(@TaskCtx() task: TaskContext) {
    return Buffer.from(task.payload).reverse();
  }

  @TaskHandler('context', { thread: true })
  async context(@TaskCtx() task: TaskContext) {
    await task.writeResult({ half: true });
    return { ...task, headers: task.headers, deadline: task.deadline, retried: task.retried };
  }

  @TaskHandler('fail', { thread: true })
  fail(@Payload() kind: string) {
    if (kind === 'skip') throw new SkipRetry('no more', { cause: new OwnError('inner') });
    if (kind === 'revoke') throw new RevokeTask();
    if (kind === 'postpone') throw new PostponeTask('5m');
    if (kind === 'type') throw new TypeError('wrong');
    if (kind === 'text') throw 'a text' as unknown;
    throw new OwnError('own');
  }

  @TaskHandler('wait', { thread: true })
  wait(@TaskCtx() { signal }: TaskContext) {
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  }

  @TaskHandler('block', { thread: true })
  block(@Payload() milliseconds: number) {
    block(milliseconds);
    return threadId;
  }

  @TaskHandler('die', { thread: true })
  async die(@Payload() how: string) {
    if (how === 'exit') process.exit(3);
    if (how === 'throw')
      setImmediate(() => {
        throw new Error('uncaught');
      });
    if (how === 'memory') for (const all: unknown[] = []; ;) all.push(new Array(10_000).fill(all.length));
    return new Promise(() => undefined);
  }

  @TaskHandler('notes', { thread: true })
  notes(@Payload() bad: boolean, @TaskCtx() task: TaskContext) {
    for (let line = 1; line <= 5_000; line++) task.log(`line ${line}`);
    task.progress(0.25);
    task.progress(0.5, 'half');
    task.emit({ token: 'a' });
    if (bad) task.log(7 as never);
    return 'said';
  }

  @TaskHandler('flood', { thread: true })
  flood() {
    for (let line = 0; line < 200_000; line++) process.stdout.write('');
    return 'done';
  }
}

@Module({ providers: [WorkTasks, Greeter] })
export class WorkModule {}

/** What threads load where their handlers enqueue. */
@Module({ imports: [AsynqModule.forRoot({ connection: 'memory', isGlobal: true }), WorkModule] })
export class ThreadRoot {}
