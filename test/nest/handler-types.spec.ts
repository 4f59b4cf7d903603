import { applyDecorators, createParamDecorator, UseGuards, ValidationPipe } from '@nestjs/common';
import {
  type AsynqClient,
  bytesCodec,
  type CallOptions,
  defineTask,
  Payload,
  type PayloadOf,
  TaskCtx,
  TaskHandler,
  type TaskContext,
  type TaskDefinition,
  type TaskInfo,
  type TasksOf,
} from 'nestjs-asynq';
import { type Observable, of } from 'rxjs';
import { describe, expect, expectTypeOf, it } from 'vitest';

interface Welcome {
  userId: number;
  name?: string;
}
interface Visit {
  at: Date;
}

const WelcomeEmail = defineTask<Welcome, string>('email:welcome');
const Visited = defineTask<Visit, void>('visited');
const Parsed = defineTask<Visit, void, Visit>('parsed');
const Image = defineTask<Buffer, number>('image', { codec: bytesCodec });
const Warm = defineTask<void>('cache:warm');
const Loose = defineTask('loose');
const Tenant = createParamDecorator(() => 'acme');

class VisitDto {
  at!: Date;
}

describe('a method with a definition', () => {
  it('is not complained of where only an option of its definition is wrong', () => {
    // @ts-expect-error: a number
    const define = () => defineTask<Welcome, string>('email:welcome', { maxRetry: '5' });
    expectTypeOf(define).returns.toEqualTypeOf<typeof WelcomeEmail>();
    // @ts-expect-error: an option of BullMQ
    const renamed = () => defineTask<Welcome>('email:welcome', { attempts: 5 });
    expectTypeOf(renamed).returns.toEqualTypeOf<TaskDefinition<Welcome, unknown, Welcome>>();
    expect(define).toThrow('maxRetry');
    expect(renamed).toThrow('maxRetry');
  });

  it('compiles when it takes the payload and returns the result', () => {
    class Right {
      @TaskHandler(WelcomeEmail)
      plain(_payload: Welcome): string {
        return 'sent';
      }
      @TaskHandler(WelcomeEmail)
      async promised(@Payload() _payload: PayloadOf<typeof WelcomeEmail>, @TaskCtx() _task: TaskContext) {
        return 'sent';
      }
      @TaskHandler(WelcomeEmail)
      observed(@TaskCtx() _task: TaskContext, @Payload() _payload: { userId: number }): Observable<string> {
        return of('sent');
      }
      @TaskHandler(WelcomeEmail)
      fields(@Payload('userId') _id: number, @Payload('name') _name: string | undefined) {
        return 'sent';
      }
      @TaskHandler(WelcomeEmail)
      tenant(@Tenant() _tenant: string, @Payload() _payload: Welcome) {
        return 'sent';
      }
      @TaskHandler(WelcomeEmail)
      context(@TaskCtx() task: TaskContext) {
        return task.id;
      }
      @TaskHandler(WelcomeEmail)
      bytes(payload: Buffer) {
        return payload.toString();
      }
      @TaskHandler(WelcomeEmail)
      anything(payload: ReturnType<typeof JSON.parse>): ReturnType<typeof JSON.parse> {
        return payload;
      }
      @TaskHandler(WelcomeEmail)
      generic<T extends Welcome>(payload: T): string {
        return String(payload.userId);
      }
      @TaskHandler(Visited)
      text(visit: { at: string }) {
        void visit;
      }
      @TaskHandler(Parsed)
      piped(@Payload(new ValidationPipe({ transform: true })) _visit: VisitDto) {}
      @TaskHandler(Image)
      image(image: Uint8Array) {
        return image.length;
      }
      @TaskHandler(Warm)
      nothing() {}
      @TaskHandler(Loose)
      loose(_payload: { whatever: Date }) {
        return 1;
      }
      @TaskHandler(WelcomeEmail as TaskDefinition)
      untyped(_payload: number) {}
    }
    expect(Right).toBeDefined();
  });

  it('can be decorated by a decorator of the application', () => {
    const Logged = (task: string | TaskDefinition) => applyDecorators(TaskHandler(task, { concurrency: 1 }));
    class Right {
      @Logged(WelcomeEmail)
      @Logged('any')
      welcome(_payload: number) {}
    }
    expect(Right).toBeDefined();
  });

  it('can be decorated by applyDecorators', () => {
    const Guarded = () => applyDecorators(TaskHandler(WelcomeEmail), UseGuards());
    class Right {
      @Guarded()
      welcome(_payload: Welcome) {
        return 'sent';
      }
    }
    expect(Right).toBeDefined();
  });

  it('does not compile when it returns another result', () => {
    class Wrong {
      // @ts-expect-error a number is no string
      @TaskHandler(WelcomeEmail)
      number(_payload: Welcome) {
        return 1;
      }
      // @ts-expect-error nor is nothing
      @TaskHandler(WelcomeEmail)
      async nothing(_payload: Welcome) {}
      // @ts-expect-error nor is an observable number
      @TaskHandler(WelcomeEmail)
      observed(_payload: Welcome) {
        return of(1);
      }
      // @ts-expect-error sometimes a string
      @TaskHandler(WelcomeEmail)
      sometimes({ name }: Welcome) {
        return name;
      }
      // @ts-expect-error it has no result
      @TaskHandler(Visited)
      something(_visit: { at: string }) {
        return 1;
      }
    }
    expect(Wrong).toBeDefined();
  });

  it('does not compile when it takes another payload', () => {
    class Wrong {
      // @ts-expect-error another payload
      @TaskHandler(WelcomeEmail)
      other(_payload: { to: string }) {
        return 'sent';
      }
      // @ts-expect-error a field that may be missing
      @TaskHandler(WelcomeEmail)
      missing(@TaskCtx() _task: TaskContext, _payload: { userId: number; name: string }) {
        return 'sent';
      }
      // @ts-expect-error JSON makes text of a Date
      @TaskHandler(Visited)
      date(_visit: Visit) {}
      // @ts-expect-error a class does not help
      @TaskHandler(Visited)
      dto(@Payload() _visit: VisitDto) {}
      // @ts-expect-error no field has this type
      @TaskHandler(WelcomeEmail)
      field(@Payload('userId') _id: boolean) {
        return 'sent';
      }
    }
    expect(Wrong).toBeDefined();
  });
});

describe('a field with its definition', () => {
  const Moved = defineTask<{ kind: 'truck'; wheels: number } | { kind: 'ship'; crew?: string[] }, void>('moved');
  const toText = { transform: String };

  it('compiles when the payload has it and the parameter takes it', () => {
    class Right {
      @TaskHandler(WelcomeEmail)
      fields(@Payload(WelcomeEmail, 'userId') _id: number, @Payload(WelcomeEmail, 'name') _name?: string) {
        return 'sent';
      }
      @TaskHandler(Visited)
      text(@TaskCtx() _task: TaskContext, @Payload(Visited, 'at') _at: string) {}
      @TaskHandler(WelcomeEmail)
      wider(@Payload(WelcomeEmail, 'userId') _id: number | string, @Payload(WelcomeEmail, 'name') _name: unknown) {
        return 'sent';
      }
      @TaskHandler(Parsed)
      piped(@Payload(Parsed, 'at', toText) _at: string, @Payload() _all: Visit) {}
      @TaskHandler(WelcomeEmail, { batch: { size: 10 } })
      batch(@Payload(WelcomeEmail, 'userId') ids: number[]) {
        return ids.map(() => 'sent');
      }
      @TaskHandler(Moved)
      union(@Payload(Moved, 'kind') _kind: 'truck' | 'ship', @Payload(Moved, 'wheels') _wheels: number | undefined) {}
      @TaskHandler(Loose)
      loose(@Payload(Loose, 'anything') _field: Date) {}
      @TaskHandler(WelcomeEmail)
      any(@Payload(WelcomeEmail, 'userId') id: ReturnType<typeof JSON.parse>): string {
        return String(id);
      }
    }
    expect(Right).toBeDefined();
  });

  it('does not compile when the payload has no such field, or the parameter does not take it', () => {
    class Wrong {
      @TaskHandler(WelcomeEmail)
      // @ts-expect-error misspelt
      misspelt(@Payload(WelcomeEmail, 'usrId') _id: number) {
        return 'sent';
      }
      @TaskHandler(Parsed)
      // @ts-expect-error misspelt, with a pipe
      piped(@Payload(Parsed, 'on', toText) _at: string, @Payload() _all: Visit) {}
      @TaskHandler(WelcomeEmail)
      // @ts-expect-error another type, though another field has it
      other(@Payload(WelcomeEmail, 'userId') _id: string, @Payload() _all: Welcome) {
        return 'sent';
      }
      @TaskHandler(WelcomeEmail)
      // @ts-expect-error it may be missing
      missing(@Payload(WelcomeEmail, 'name') _name: string, @Payload() _all: Welcome) {
        return 'sent';
      }
      @TaskHandler(Visited)
      // @ts-expect-error JSON makes text of a Date
      date(@Payload(Visited, 'at') _at: Date, @Payload() _all: { at: string }) {}
      @TaskHandler(Moved)
      // @ts-expect-error a ship has no wheels
      union(@Payload(Moved, 'wheels') _wheels: number) {}
      // @ts-expect-error it has no payload
      none(@Payload(Warm, 'userId') _id: number) {}
    }
    expect(Wrong).toBeDefined();
  });
});

describe('what JSON changes', () => {
  class Money {
    constructor(readonly cents: number) {}
    add(other: Money): Money {
      return new Money(this.cents + other.cents);
    }
  }
  const Paid = defineTask<{ price: Money; rates: Map<string, number>; at: Date[] }, void>('paid' as never);
  const Counted = defineTask<{ count: bigint }, void>('counted' as never);

  it('is in the types of the handler', () => {
    class Right {
      @TaskHandler(Paid)
      paid(_payload: { price: { cents: number }; rates: Record<string, never>; at: string[] }) {}
    }
    class Wrong {
      // @ts-expect-error a class instance has lost its methods
      @TaskHandler(Paid)
      instance(_payload: { price: Money }) {}
      // @ts-expect-error a Map is an empty object
      @TaskHandler(Paid)
      map(_payload: { rates: Map<string, number> }) {}
      // @ts-expect-error also in an array
      @TaskHandler(Paid)
      dates(_payload: { at: Date[] }) {}
      // @ts-expect-error JSON has no bigint
      @TaskHandler(Counted)
      bigint(_payload: { count: bigint }) {}
      // @ts-expect-error nor does it make a number of it
      @TaskHandler(Counted)
      number(_payload: { count: number }) {}
    }
    expect([Right, Wrong]).toHaveLength(2);
  });

  it('is not in the types of a call, nor of a handler with a codec of its own', () => {
    class Right {
      @TaskHandler(defineTask<{ price: Money }, void>('coded', { codec: { encode: String, decode: String } as never }))
      coded(_payload: { price: Money }) {}
    }
    const call = (client: AsynqClient) => client.enqueue(Paid, { price: new Money(1), rates: new Map(), at: [] });
    expectTypeOf(call).returns.toEqualTypeOf<Promise<TaskInfo<void>>>();
    expect(Right).toBeDefined();
  });
});

describe('a definition with a version', () => {
  it('upgrades to what its handlers receive', () => {
    const define = () => [
      defineTask<Welcome>('w', { version: 2, upgrade: (_old: unknown, from: number) => ({ userId: from }) }),
      defineTask<Visit>('v', { version: 2, upgrade: () => ({ at: 'an hour ago' }) }),
      // @ts-expect-error another payload
      defineTask<Welcome>('w', { version: 2, upgrade: () => ({ user: 1 }) }),
      // @ts-expect-error handlers receive text, so an upgrade makes text
      defineTask<Visit>('v', { version: 2, upgrade: () => ({ at: new Date(0) }) }),
      // @ts-expect-error not asynchronous
      defineTask<Welcome>('w', { version: 2, upgrade: async () => ({ userId: 1 }) }),
    ];
    expect(define).toBeDefined();
  });
});

describe('the options of a call', () => {
  it('are those of the same task twice, and false', () => {
    const calls = (tasks: TasksOf<Tasks>) => [
      tasks.with({ key: 'k', once: '14d' }).with({ unique: { for: '1h', by: 'key', onDuplicate: 'replace' } }),
      tasks.with({ acknowledge: { replicas: 1 }, fairnessKey: 'tenant-7' }),
      tasks.with({ unique: false, debounce: false, latest: false, expiresIn: false, acknowledge: false }),
      // @ts-expect-error how long?
      tasks.with({ once: true }),
      // @ts-expect-error there is no such policy
      tasks.with({ unique: { for: '1h', onDuplicate: 'ignore' } }),
      // @ts-expect-error a debounce needs a wait
      tasks.with({ debounce: { maxWait: '1m' } }),
      // @ts-expect-error an option of a handler
      tasks.with({ concurrency: 1 }),
    ];
    expect(calls).toBeDefined();
  });
});

class Tasks {
  private readonly secret = 1;
  readonly field = 'no method';
  @TaskHandler(WelcomeEmail)
  async welcome(@Payload() _payload: Welcome, @TaskCtx() _task: TaskContext): Promise<string> {
    return `sent ${this.secret}`;
  }
  @TaskHandler('observed')
  observed(@TaskCtx() _task: TaskContext, @Payload() payload: number): Observable<number> {
    return of(payload);
  }
  @TaskHandler('optional')
  optional(_payload?: string, _task?: TaskContext) {}
  @TaskHandler('nothing')
  nothing() {}
  @TaskHandler('context')
  context(_task: TaskContext) {}
  @TaskHandler('dto')
  dto(_payload: { at: Date; shout(): string }) {}
  onModuleInit() {}
}

describe('TasksOf', () => {
  it('has each method with its payload and its result', () => {
    type Calls = TasksOf<Tasks>;
    expectTypeOf<keyof Calls>().toEqualTypeOf<
      'welcome' | 'observed' | 'optional' | 'nothing' | 'context' | 'dto' | 'with' | 'call'
    >();
    expectTypeOf<Calls['welcome']>().toEqualTypeOf<(payload: Welcome) => Promise<TaskInfo<string>>>();
    expectTypeOf<Calls['observed']>().toEqualTypeOf<(payload: number) => Promise<TaskInfo<number>>>();
    expectTypeOf<Calls['optional']>().toEqualTypeOf<(payload?: string) => Promise<TaskInfo<void>>>();
    expectTypeOf<Calls['nothing']>().toEqualTypeOf<() => Promise<TaskInfo<void>>>();
    expectTypeOf<Calls['context']>().toEqualTypeOf<() => Promise<TaskInfo<void>>>();
    expectTypeOf<Calls['dto']>().toEqualTypeOf<(payload: { at: Date }) => Promise<TaskInfo<void>>>();
    expectTypeOf<Calls['with']>().toEqualTypeOf<(options: CallOptions) => TasksOf<Tasks>>();
    type Results = ReturnType<Calls['call']>;
    expectTypeOf<keyof Results>().toEqualTypeOf<Exclude<keyof Calls, 'with' | 'call'>>();
    expectTypeOf<Results['welcome']>().toEqualTypeOf<(payload: Welcome) => Promise<string>>();
    expectTypeOf<Results['observed']>().toEqualTypeOf<(payload: number) => Promise<number>>();
  });

  it('refuses a wrong payload, a missing one, and a wrong option', () => {
    const calls = (tasks: TasksOf<Tasks>) => [
      // @ts-expect-error another payload
      tasks.welcome({ to: 'you' }),
      // @ts-expect-error no payload
      tasks.welcome(),
      // @ts-expect-error options are given by with()
      tasks.welcome({ userId: 1 }, { queue: 'low' }),
      // @ts-expect-error it takes none
      tasks.nothing(1),
      // @ts-expect-error no such option
      tasks.with({ delay: 5 }).welcome({ userId: 1 }),
      // @ts-expect-error no method
      tasks.field,
      // @ts-expect-error a hook of Nest
      tasks.onModuleInit(),
    ];
    expect(calls).toBeDefined();
  });

  it('waits for results as JSON leaves them', () => {
    const Visit = defineTask<{ id: string }, { at: Date; seen?: number }>('visit');
    const calls = (client: AsynqClient, info: TaskInfo<{ at: Date }>) => ({
      called: client.call(Visit, { id: '1' }, { timeout: '5s', queue: 'low' }),
      named: client.call<number>('visit', { id: '1' }),
      waited: client.result(info),
      enqueued: client.enqueue(Visit, { id: '1' }).then((one) => client.result(one)),
      unknown: client.result({ queue: 'q', id: '1' }),
      // @ts-expect-error it becomes a part of another task
      group: client.call(Visit, { id: '1' }, { group: 'g' }),
      // @ts-expect-error another payload
      other: client.call(Visit, { id: 1 }),
    });
    type Found = Awaited<ReturnType<typeof calls>>;
    expectTypeOf<Found['called']>().resolves.toEqualTypeOf<{ at: string; seen?: number }>();
    expectTypeOf<Found['named']>().resolves.toEqualTypeOf<number>();
    expectTypeOf<Found['waited']>().resolves.toEqualTypeOf<{ at: string }>();
    expectTypeOf<Found['enqueued']>().resolves.toEqualTypeOf<{ at: string; seen?: number }>();
    expectTypeOf<Found['unknown']>().resolves.toEqualTypeOf<unknown>();
  });

  it('agrees with enqueue by the definition', () => {
    const enqueue = (client: AsynqClient) => client.enqueue(WelcomeEmail, { userId: 1 });
    expectTypeOf(enqueue).returns.toEqualTypeOf<ReturnType<TasksOf<Tasks>['welcome']>>();
  });
});

describe('a batch handler with a definition', () => {
  const batch = { size: 10 };

  it('compiles when it takes an array of payloads and returns an array of results', () => {
    class Right {
      @TaskHandler(WelcomeEmail, { batch })
      async plain(payloads: Welcome[], _tasks: TaskContext[]) {
        return payloads.map(() => 'sent');
      }
      @TaskHandler(WelcomeEmail, { batch })
      some(payloads: readonly Welcome[]) {
        return payloads.map(({ userId }) => (userId > 0 ? 'sent' : new Error('no user')));
      }
      @TaskHandler(WelcomeEmail, { batch })
      promises(@Payload('userId') ids: number[]) {
        return ids.map(async () => 'sent');
      }
      @TaskHandler(WelcomeEmail, { batch })
      settled(@TaskCtx() _tasks: TaskContext[], @Payload() payloads: Welcome[]) {
        return Promise.allSettled(payloads.map(async () => 'sent'));
      }
      @TaskHandler(WelcomeEmail, { batch })
      observed(_payloads: Welcome[]): Observable<string[]> {
        return of(['sent']);
      }
      @TaskHandler(Visited, { batch })
      nothing(_visits: { at: string }[]): void {}
      @TaskHandler(Loose, { batch })
      loose(_payloads: unknown[]) {}
      @applyDecorators(TaskHandler(WelcomeEmail, { batch }), UseGuards())
      applied(payloads: Welcome[]) {
        return payloads.map(() => 'sent');
      }
    }
    expect(Right).toBeDefined();
  });

  it('does not compile when it takes one payload, returns one result, or results of another type', () => {
    class Wrong {
      // @ts-expect-error: the method gets an array of payloads
      @TaskHandler(WelcomeEmail, { batch })
      single(_payload: Welcome) {
        return ['sent'];
      }
      // @ts-expect-error: an array of something else
      @TaskHandler(WelcomeEmail, { batch })
      others(_payloads: { name: Date }[]) {
        return ['sent'];
      }
      // @ts-expect-error: one result for all
      @TaskHandler(WelcomeEmail, { batch })
      one(_payloads: Welcome[]) {
        return 'sent';
      }
      // @ts-expect-error: results of another type
      @TaskHandler(WelcomeEmail, { batch })
      numbers(payloads: Welcome[]) {
        return payloads.map(() => 1);
      }
      // @ts-expect-error: no results
      @TaskHandler(WelcomeEmail, { batch })
      none(_payloads: Welcome[]): void {}
      // @ts-expect-error: not a batch handler
      @TaskHandler(WelcomeEmail)
      noBatch(payloads: Welcome[]) {
        return payloads.map(() => 'sent');
      }
    }
    expect(Wrong).toBeDefined();
  });
});

describe('the cost of a rate', () => {
  it('gets what the handlers of the definition get', () => {
    const rateLimit = { max: 9, per: '1s' } as const;
    const Timed = defineTask<Visit>('timed', { rateLimit: { ...rateLimit, cost: ({ at }) => at.length } });
    expectTypeOf(Timed).toEqualTypeOf<TaskDefinition<Visit, unknown, { at: string }>>();
    class Costs {
      @TaskHandler(WelcomeEmail, { rateLimit: { ...rateLimit, cost: (payload) => payload.userId } })
      typed(_payload: Welcome) {
        return '';
      }
      // @ts-expect-error: the payload has no tokens
      @TaskHandler(WelcomeEmail, { rateLimit: { ...rateLimit, cost: (payload) => payload.tokens } })
      wrong(_payload: Welcome) {
        return '';
      }
      @TaskHandler('by name', { rateLimit: { ...rateLimit, cost: (payload: { tokens: number }) => payload.tokens } })
      named(_payload: { tokens: number }) {}
    }
    expect(Costs).toBeDefined();
  });
});
