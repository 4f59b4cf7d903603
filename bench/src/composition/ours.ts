import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  AsynqClient,
  AsynqModule,
  defineTask,
  type TaskContext,
  TaskHandler,
  workflow,
  type Workflow,
} from '../../../dist/index.js';
import type { Composer, Shape } from './shapes.js';

interface Data {
  readonly n: number;
  /** The step, or the number of steps, whose results the task reads. */
  readonly reads?: string | number;
  readonly last?: boolean;
}

const Step = defineTask<Data, { n: number }>('step');
/** Tasks whose runs start in one tick. */
const AT_ONCE = 1000;

let taskRan: () => void = () => undefined;
let lastRan: () => void = () => undefined;

@Injectable()
class Steps {
  @TaskHandler(Step)
  async run({ n, reads, last }: Data, task: TaskContext): Promise<{ n: number }> {
    if (typeof reads === 'string') await task.workflow!.result(reads, Step);
    if (typeof reads === 'number') {
      const results = Object.keys(await task.workflow!.results());
      if (results.length !== reads) throw new Error(`${results.length} results`);
    }
    taskRan();
    if (last) lastRan();
    return { n };
  }
}

/** Workflows through the full Nest path: handlers are methods of a provider, discovered and started by Nest. */
export async function ourWorkflows(port: number): Promise<Composer> {
  const connection = { host: '127.0.0.1', port };
  const open: { close(): Promise<void> }[] = [];
  const start = async (server: false | { concurrency: number }) => {
    @Module({ imports: [AsynqModule.forRoot({ connection, server })], providers: [Steps] })
    class BenchModule {}
    const app = await NestFactory.createApplicationContext(BenchModule, { logger: ['warn', 'error'] });
    open.push(app);
    return app;
  };
  const client = (await start(false)).get<AsynqClient>(AsynqClient);
  return {
    async add(shape) {
      const perCall = Math.max(1, Math.floor(AT_ONCE / shape.size));
      for (let from = 0; from < shape.count; from += perCall) {
        const some = Math.min(perCall, shape.count - from);
        await Promise.all(Array.from({ length: some }, () => client.start(graph(shape))));
      }
    },
    async work(concurrency, onTask, onEnd) {
      taskRan = onTask;
      lastRan = onEnd;
      await start({ concurrency });
    },
    async close() {
      for (const app of open) await app.close();
    },
  };
}

/** Built anew for each run, as an application does whose payloads differ. */
function graph({ kind, size }: Shape): Workflow {
  let flow = workflow(kind) as unknown as Workflow;
  const names: string[] = [];
  for (let n = 0; n < size; n++) {
    const previous = names.at(-1);
    const name = `step${n}`;
    if (kind === 'flow' || previous === undefined) flow = flow.add(name, Step, { n });
    else flow = flow.add(name, Step, { n, reads: previous, last: n === size - 1 }, { after: previous });
    names.push(name);
  }
  if (kind === 'chain') return flow;
  return flow.add('last', Step, { n: size, reads: size, last: true }, { after: names });
}
