import { inspect } from 'node:util';
import {
  createParamDecorator,
  Injectable,
  ParseIntPipe,
  type ExecutionContext,
  type PipeTransform,
} from '@nestjs/common';
import {
  bytesCodec,
  defineTask,
  getTaskContext,
  getTaskPayload,
  jsonCodec,
  Payload,
  PeriodicTask,
  TaskCtx,
  TaskHandler,
  type TaskContext,
} from 'nestjs-asynq';
import { describe, expect, test } from 'vitest';
import { ConnectionRegistry } from '../../lib/nest/connection/connection.registry.js';
import { testApp } from './support.js';

const TaskId = createParamDecorator((prefix: string, context: ExecutionContext) => {
  return `${prefix}${getTaskContext(context).id}:${getTaskPayload<{ n: number }>(context).n}`;
});

const doubling: PipeTransform<number, number> = { transform: (value) => value * 2 };

const Image = defineTask<Uint8Array>('image:resize', { codec: bytesCodec });
const Reversed = defineTask<string>('text:reversed', {
  codec: {
    encode: (value) => jsonCodec.encode([...(value as string)].reverse().join('')),
    decode: (bytes) => [...(jsonCodec.decode(bytes) as string)].reverse().join(''),
  },
});

@Injectable()
class Tasks {
  @TaskHandler('both')
  both(@TaskCtx() task: TaskContext, @Payload() payload: unknown) {
    return [payload, task.id, task.type, task.queue, task.retried, task.maxRetry, task.headers];
  }

  @TaskHandler('undecorated')
  undecorated(payload: unknown, task: TaskContext) {
    return [payload, task.id];
  }

  @TaskHandler('fields')
  fields(@Payload('user', ParseIntPipe) user: number, @Payload('user') raw: string, @Payload('none') none?: string) {
    return [user, raw, none];
  }

  @TaskHandler('piped')
  piped(@Payload('n', doubling, doubling) n: number) {
    return n;
  }

  @TaskHandler('bytes:decorated')
  decoratedBytes(@Payload() bytes: Buffer, @TaskCtx() _task: TaskContext) {
    return bytes;
  }

  @TaskHandler('bytes:array')
  byteArray(@Payload() bytes: Uint8Array) {
    return bytes;
  }

  @TaskHandler('bytes:undecorated')
  undecoratedBytes(bytes: Buffer, task: TaskContext) {
    return [bytes, task.id];
  }

  @TaskHandler('both-forms')
  bothForms(@Payload() bytes: Buffer, @Payload('n') n: number) {
    return [bytes.toString(), n];
  }

  @TaskHandler('context-only')
  contextOnly(@TaskCtx() task: TaskContext) {
    return task.payload;
  }

  @TaskHandler('custom')
  custom(@TaskId('id-') id: string, @Payload('n') n: number) {
    return [id, n];
  }

  @TaskHandler(Image)
  resize(image: unknown) {
    return image;
  }

  @TaskHandler(Reversed)
  reversed(@Payload() text: string) {
    return text;
  }

  @TaskHandler('own-codec', { codec: { encode: () => undefined, decode: (bytes) => `<${bytes}>` } })
  ownCodec(@Payload() text: string) {
    return text;
  }
}

const run = async (type: string, payload?: unknown, options = {}) => {
  const { tasks } = await testApp({ providers: [Tasks] });
  const { outcome, result, error } = await tasks.work(type, payload, options);
  expect(error).toBeUndefined();
  expect(outcome).toBe('done');
  return result;
};

describe('parameters', () => {
  test('@Payload() and @TaskCtx() at any position', async () => {
    const options = { taskId: 'a1', queue: 'critical', maxRetry: 7, headers: { trace: 'x' } };
    expect(await run('both', { user: 1 }, options)).toEqual([
      { user: 1 },
      'a1',
      'both',
      'critical',
      0,
      7,
      { trace: 'x' },
    ]);
  });

  test('without decorators a handler gets (payload, context)', async () => {
    expect(await run('undecorated', [1, 2], { taskId: 'b2' })).toEqual([[1, 2], 'b2']);
  });

  test('no payload is undefined', async () => {
    expect(await run('undecorated', undefined, { taskId: 'b3' })).toEqual([undefined, 'b3']);
    expect(await run('fields', { user: '7' })).toEqual([7, '7', undefined]);
  });

  test('a field, with pipes of its own', async () => {
    expect(await run('piped', { n: 5 })).toBe(20);
  });

  test('a parameter typed as bytes gets the stored bytes', async () => {
    const bytes = Buffer.from([0xff, 0, 0x7b]);
    expect(await run('bytes:decorated', bytes)).toEqual(bytes);
    expect(await run('bytes:array', bytes)).toEqual(bytes);
    expect(await run('bytes:undecorated', bytes, { taskId: 'b4' })).toEqual([bytes, 'b4']);
    expect(await run('both-forms', { n: 3 })).toEqual(['{"n":3}', 3]);
  });

  test('a handler without a payload parameter does not decode', async () => {
    expect(await run('context-only', Buffer.from('{not json'))).toEqual(Buffer.from('{not json'));
  });

  test("an application's own parameter decorators work beside ours", async () => {
    expect(await run('custom', { n: 4 }, { taskId: 'c5' })).toEqual(['id-c5:4', 4]);
  });

  test('the codec of the definition, or of the handler', async () => {
    const { tasks } = await testApp({ providers: [Tasks] });
    expect(await tasks.work(Image, Buffer.from([1, 0xfe]))).toMatchObject({ result: Buffer.from([1, 0xfe]) });
    expect(await tasks.work(Reversed, 'abc')).toMatchObject({ result: 'abc' });
    expect(await tasks.work('own-codec', 'x')).toMatchObject({ result: '<"x">' });
  });

  test('the codec of the module', async () => {
    const codec = {
      encode: (value: unknown) => Buffer.from(`!${String(value)}`),
      decode: (bytes: Buffer) => `${bytes}?`,
    };
    const { tasks } = await testApp({ providers: [Tasks] }, { codec });
    expect(await tasks.work('undecorated', 'x', { taskId: 'd' })).toMatchObject({ result: ['!x?', 'd'] });
  });

  test('@Payload() on a constructor is refused', () => {
    const decorate = () => {
      class Wrong {}
      (Payload() as (target: object, key: undefined, index: number) => void)(Wrong, undefined, 0);
    };
    expect(decorate).toThrow(
      /@Payload\(\) belongs on a parameter of a handler method, not on the constructor of Wrong/,
    );
  });
});

describe('a field', () => {
  const Mail = defineTask<{ userId: number; name?: string }>('mail');
  const Bill = defineTask<{ userId: number }>('bill');

  test('with its definition is the same value, with pipes or without', async () => {
    const seen: unknown[] = [];
    @Injectable()
    class Mails {
      @TaskHandler(Mail)
      mail(@Payload(Mail, 'userId') id: number, @Payload(Mail, 'name') name?: string) {
        seen.push([id, name]);
      }
      @TaskHandler(Bill)
      bill(@Payload(Bill, 'userId', doubling) id: number) {
        seen.push(id);
      }
    }
    const { tasks } = await testApp({ providers: [Mails] });
    await tasks.work(Mail, { userId: 1, name: 'Ann' });
    await tasks.work(Bill, { userId: 2 });
    expect(seen).toEqual([[1, 'Ann'], 4]);
  });

  const onMethod = (decorator: unknown, handles: (target: object, key: string, method: PropertyDescriptor) => void) => {
    class Mails {
      send() {}
    }
    const { prototype } = Mails;
    (decorator as ParameterDecorator)(prototype, 'send', 0);
    handles(prototype, 'send', Object.getOwnPropertyDescriptor(prototype, 'send')!);
  };
  const wrong = Payload as (...given: unknown[]) => ParameterDecorator;

  test.each<[string, unknown, RegExp]>([
    ['of another task', wrong(Bill, 'userId'), /handles "mail", and @Payload\(…, 'userId'\) takes a field of "bill"/],
    ['without a name', wrong(Mail), /Mails\.send: @Payload with the definition of "mail" needs the name of a field/],
    ['of a class that is not there yet', wrong(undefined, 'userId'), /not undefined; if it is imported, its file and/],
  ])('%s is refused', (_, decorator, says) => {
    expect(() => onMethod(decorator, TaskHandler(Mail) as MethodDecorator)).toThrow(says);
  });

  test('of another task is refused above a periodic task, too', () => {
    expect(() => onMethod(Payload(Bill, 'userId'), PeriodicTask('@daily'))).toThrow(/takes a field of "bill"/);
  });

  test('that is misspelt is told with the first payload, once', async () => {
    @Injectable()
    class Mails {
      @TaskHandler('misspelt')
      misspelt(@Payload('usrId') _id: number, @Payload('email') _email: string) {}
      @TaskHandler('piped')
      piped(@Payload('usrId', doubling) _id: number) {}
      @TaskHandler('batch', { batch: { size: 5, wait: 0 } })
      batch(@Payload('usrId') _ids: number[]) {}
      @TaskHandler('optional')
      optional(@Payload('name') _name?: string, @Payload('names') _names?: string[]) {}
    }
    const { app, tasks } = await testApp({ providers: [Mails] });
    const heard: string[] = [];
    const { events } = app.get(ConnectionRegistry, { strict: false }).all()[0]!;
    events.on('payloadFieldMissing', ({ type, handler, field, near }) =>
      heard.push(`${type} ${handler} ${field} ${near}`),
    );
    for (const type of ['misspelt', 'piped', 'batch', 'misspelt'])
      await tasks.work(type, { userId: 1, email: 'a@b.c' });
    await tasks.work('optional', { names: [] });
    expect(heard).toEqual([
      'misspelt Mails.misspelt usrId userId',
      'piped Mails.piped usrId userId',
      'batch Mails.batch usrId userId',
    ]);
  });
});

describe('results', () => {
  test('are what the handler returns, stored when the task is retained', async () => {
    const { tasks } = await testApp({ providers: [Tasks] });
    await tasks.work('piped', { n: 1 }, { retention: '1h' });
    expect(tasks.completed()[0]?.result?.toString()).toBe('4');
  });
});

test('a TaskContext that is logged shows the task, and not what it is made with', async () => {
  @Injectable()
  class Logs {
    @TaskHandler('logs')
    run(_payload: unknown, task: TaskContext) {
      return inspect(task);
    }
  }
  const { tasks } = await testApp({ providers: [Logs] });
  const { result, task } = await tasks.work('logs');
  expect(result).toMatch(/^TaskContext \{\s+id: '/);
  expect(result).toContain(task.id);
  expect(result).not.toContain('services');
});
