import { deserialize, serialize } from 'node:v8';
import {
  type AsynqClient,
  AsynqModule,
  type AsynqModuleOptions,
  type AsynqScheduler,
  type Decoded,
  defineTask,
  duration,
  type Duration,
  type PayloadCodec,
  type TaskInfo,
  type TaskTypeFor,
  workflow,
} from 'nestjs-asynq';

const Welcome = defineTask<{ userId: number }, string>('welcome');
const Warm = defineTask<void, number>('warm');
const richCodec: PayloadCodec<Date | Map<unknown, unknown>> = {
  encode: (value) => serialize(value),
  decode: (bytes) => deserialize(bytes) as unknown,
};

class Money {
  constructor(private readonly cents: number) {}
  get total() {
    return this.cents;
  }
}

class Settings implements AsynqModuleOptions {
  readonly connection = 'memory';
  isReady(): boolean {
    return true;
  }
}

interface Tree {
  at: Date;
  children: Tree[];
}

export const durations: Duration[] = [0, '90s', '1.5h', '500ms', '1h30m', '1d2h3m4s', duration('5m')];
export const ofAnApplication = <P>(type: TaskTypeFor<P>) => defineTask<P>(type);
export const defined = () => [
  defineTask<Tree>('tree'),
  defineTask<{ rates: Map<string, number> }>('rates', { codec: richCodec }),
  ofAnApplication<Tree>('tree'),
];
export const kept: Decoded<{ at: Date; rates: Map<string, number> }, typeof richCodec> = {
  at: new Date(),
  rates: new Map(),
};

export const configured = () => [
  AsynqModule.forRootAsync({ useFactory: () => new Settings() }),
  // @ts-expect-error no option
  AsynqModule.forRootAsync({ useFactory: () => ({ connection: 'memory', prefix: 'x' }) }),
];

/** Compiles only because the lines behind the comments would not. */
export function wrong(client: AsynqClient, scheduler: AsynqScheduler): unknown[] {
  const welcome: Promise<TaskInfo<string>> = client.enqueue(Welcome, { userId: 1 }, { processIn: '10m' });
  return [
    welcome,
    client.enqueue(Warm),
    client.enqueue('any', 1),
    client.enqueueMany(Welcome, [{ userId: 1 }]),
    // @ts-expect-error no payload
    client.enqueue(Welcome),
    // @ts-expect-error no payload in a schedule
    scheduler.register('@daily', Welcome),
    // @ts-expect-error no payload in a step
    workflow('w').add('welcome', Welcome),
    // @ts-expect-error a text is no number
    client.enqueue(Welcome, { userId: '1' }),
    // @ts-expect-error words are no duration
    defineTask('t', { timeout: '5 minutes' }),
    // @ts-expect-error nor is a number as text
    defineTask('t', { timeout: '10' }),
    // @ts-expect-error JSON has no Map
    defineTask<{ rates: Map<string, number> }>('t'),
    // @ts-expect-error nor a function
    defineTask<{ done: () => void }>('t'),
    // @ts-expect-error nor a class with private fields
    defineTask<{ price: Money }>('t', { queue: 'low' }),
  ];
}
