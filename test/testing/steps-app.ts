import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  ASYNQ_BROKER,
  AsynqClient,
  AsynqInspector,
  AsynqModule,
  defineTask,
  Payload,
  Steps,
  TaskCtx,
  TaskHandler,
  type TaskContext,
  type TaskInfo,
  type TaskSteps,
} from 'nestjs-asynq';
import { AsynqTester, InMemoryBroker } from 'nestjs-asynq/testing';
import { compile } from '../nest/support.js';
import { recordingLogger, type RecordedLine } from './recording-logger.js';

export const Work = defineTask<string>('work', { retryDelay: () => 60_000, maxRetry: 3 });
export const Pack = defineTask<number, number>('pack');

export type Body = (steps: TaskSteps, task: TaskContext) => Promise<unknown>;

@Injectable()
export class Workers {
  readonly log: string[] = [];
  /** What the handler of `work` does, by its payload. */
  readonly work: Record<string, Body> = {};
  pack = (weight: number): number => weight * 2;

  @TaskHandler(Work)
  async run(@Payload() name: string, @Steps() steps: TaskSteps, @TaskCtx() task: TaskContext): Promise<unknown> {
    return this.work[name]!(steps, task);
  }

  @TaskHandler(Pack)
  async packs(@Payload() weight: number): Promise<number> {
    this.log.push(`pack ${weight}`);
    return this.pack(weight);
  }

  /** Work of a step, which leaves a line in the log. */
  note(what: string): () => void {
    return () => void this.log.push(what);
  }
}

export interface StepsApp {
  readonly tester: AsynqTester;
  readonly asynq: AsynqClient;
  readonly inspector: AsynqInspector;
  readonly broker: InMemoryBroker;
  readonly workers: Workers;
  readonly lines: readonly RecordedLine[];
  lastErr(task: Pick<TaskInfo, 'queue' | 'id'>): Promise<string | undefined>;
  /** Name and state of each step. */
  states(task: Pick<TaskInfo, 'queue' | 'id'>): Promise<string[]>;
}

/** An application in memory, whose handler of `work` each test gives its body. */
export async function startStepsApp(): Promise<StepsApp> {
  const { logger, lines } = recordingLogger();
  const builder = Test.createTestingModule({
    imports: [AsynqModule.forRoot({ connection: 'memory' })],
    providers: [Workers],
  });
  const module = await compile(builder, logger);
  await module.init();
  const inspector = module.get(AsynqInspector);
  return {
    tester: AsynqTester.from(module),
    asynq: module.get(AsynqClient),
    inspector,
    broker: module.get<InMemoryBroker>(ASYNQ_BROKER),
    workers: module.get(Workers),
    lines,
    lastErr: async ({ queue, id }) => (await inspector.getTaskInfo(queue, id))?.lastErr,
    states: async ({ queue, id }) =>
      (await inspector.steps(queue, id))?.steps.map(({ name, state }) => `${name} ${state}`) ?? [],
  };
}

/** Gives the event loop so many turns. */
export async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await new Promise((resolve) => setImmediate(resolve));
}

export function fail(message: string): never {
  throw new Error(message);
}
