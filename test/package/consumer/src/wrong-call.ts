import {
  type AsynqClient,
  InjectAsynqClient,
  InjectTasks,
  type Jsonify,
  TaskHandler,
  defineTask,
  type TaskInfo,
  type TasksOf,
} from 'nestjs-asynq';
import { LetterTasks } from './tasks.js';

interface Parcel {
  grams: number;
  sent: Date;
}

const WeighParcel = defineTask<Parcel, { price: number }>('parcel:weigh', {
  version: 2,
  upgrade: (payload) => payload as Jsonify<Parcel>,
});

// @ts-expect-error a version is a number
export const versioned = defineTask<Parcel>('parcel:text', { version: 'two' });

// What JSON makes of the payload is what a handler reads.
export const received: Jsonify<Parcel> = { grams: 1, sent: '2030-01-31T12:00:00.000Z' };

// @ts-expect-error a Date has become text
export const notReceived: Jsonify<Parcel> = { grams: 1, sent: new Date() };

/** Compiles only because the lines behind the comments would not. */
export class Counter {
  constructor(
    @InjectAsynqClient('parcels') private readonly client: AsynqClient,
    @InjectTasks(LetterTasks) private readonly letters: TasksOf<LetterTasks>,
  ) {}

  @TaskHandler(WeighParcel, { connection: 'parcels' })
  weigh({ grams }: { grams: number }): { price: number } {
    return { price: grams * 2 };
  }

  // @ts-expect-error the result has a price
  @TaskHandler(WeighParcel, { connection: 'parcels' })
  forget(): void {}

  async send(parcel: Parcel): Promise<number> {
    const info: TaskInfo<{ price: number }> = await this.client.enqueue(WeighParcel, parcel, { processIn: '10m' });
    await this.letters.with({ processIn: '10m', unique: '1h' }).send({ to: 'you' });
    // @ts-expect-error there is no such option
    await this.letters.with({ processInn: '10m' }).send({ to: 'you' });
    // @ts-expect-error a duration is no truth
    await this.letters.with({ unique: true }).send({ to: 'you' });
    // @ts-expect-error a letter needs an address
    await this.letters.with({}).send();
    // @ts-expect-error there is no such handler
    await this.letters.burn({ to: 'you' });
    // @ts-expect-error a parcel has a weight
    await this.client.enqueue(WeighParcel, { sent: new Date() });
    // @ts-expect-error the result has a price, and no weight
    const other: TaskInfo<{ grams: number }> = await this.client.enqueue(WeighParcel, parcel);
    return info.maxRetry + other.maxRetry;
  }
}
