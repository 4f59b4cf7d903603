import { InjectTasks, Payload, TaskHandler, defineTask, type TasksOf } from 'nestjs-asynq';
import { LetterTasks } from './tasks.js';

const WeighLetter = defineTask<{ grams: number; posted: Date }, string>('letter:weigh');

/** Compiles only because the lines behind the comments would not. */
export class Scales {
  constructor(@InjectTasks(LetterTasks) private readonly letters: TasksOf<LetterTasks>) {}

  @TaskHandler(WeighLetter)
  weigh({ grams, posted }: { grams: number; posted: string }): string {
    return `${grams} g on ${posted.slice(0, 10)}`;
  }

  // @ts-expect-error JSON makes text of a Date
  @TaskHandler(WeighLetter)
  date(letter: { posted: Date }): string {
    return letter.posted.toISOString();
  }

  // @ts-expect-error the result is text
  @TaskHandler(WeighLetter)
  grams({ grams }: { grams: number }): number {
    return grams;
  }

  @TaskHandler(WeighLetter)
  fields(@Payload(WeighLetter, 'grams') grams: number, @Payload(WeighLetter, 'posted') posted: string): string {
    return `${grams} g on ${posted.slice(0, 10)}`;
  }

  @TaskHandler(WeighLetter)
  // @ts-expect-error a letter has no weight
  misspelt(@Payload(WeighLetter, 'weight') grams: number): string {
    return `${grams} g`;
  }

  @TaskHandler(WeighLetter)
  // @ts-expect-error the weight is a number
  text(@Payload(WeighLetter, 'grams') grams: string): string {
    return grams;
  }

  post(): unknown[] {
    return [
      this.letters.send({ to: 'you' }),
      // @ts-expect-error a letter has no sender
      this.letters.send({ from: 'me' }),
    ];
  }
}
