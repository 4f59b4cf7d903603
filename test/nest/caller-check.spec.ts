import { BadRequestException, Injectable, type PipeTransform, UsePipes, ValidationPipe } from '@nestjs/common';
import { APP_PIPE } from '@nestjs/core';
import { IsDateString, IsInt, IsOptional } from 'class-validator';
import {
  AsynqClient,
  bytesCodec,
  defineTask,
  InjectTasks,
  InvalidHandlerError,
  InvalidPayloadError,
  InvalidTaskError,
  Payload,
  TaskCtx,
  TaskHandler,
  type TaskContext,
  type TaskHandlerOptions,
  type TasksOf,
} from 'nestjs-asynq';
import { describe, expect, it } from 'vitest';
import { rejection, testApp } from './support.js';

class WelcomeDto {
  @IsInt()
  userId!: number;
  @IsOptional()
  @IsDateString()
  at?: string;
}

const Welcome = defineTask<WelcomeDto>('welcome');

class EmailTasks {
  @TaskHandler(Welcome, { validate: 'both' })
  welcome(@TaskCtx() _task: TaskContext, @Payload(ValidationPipe) { userId }: WelcomeDto) {
    return `sent to ${userId}`;
  }

  @TaskHandler('unchecked')
  unchecked(@Payload(ValidationPipe) _dto: WelcomeDto) {}
}

@Injectable()
class Signup {
  constructor(@InjectTasks(EmailTasks) readonly emails: TasksOf<EmailTasks>) {}
}

const wrong = { userId: 'one' } as never;

/** An application that only produces, with the calls of one class. */
async function callsOf<C extends object>(tasks: new (...args: never[]) => C, providers: object[] = []) {
  @Injectable()
  class Caller {
    constructor(@InjectTasks(tasks) readonly calls: TasksOf<C>) {}
  }
  const { app, tasks: tester } = await testApp({ providers: [Caller, ...(providers as never[])] }, { server: false });
  return { app, tester, calls: app.get(Caller).calls };
}

describe("validate: 'both'", () => {
  it('refuses a wrong payload where it is made, with the messages of the pipe', async () => {
    const { app, tasks } = await testApp({ providers: [Signup] }, { server: false });
    const { emails } = app.get(Signup);
    const error = await rejection(emails.welcome(wrong));
    expect(error).toBeInstanceOf(InvalidPayloadError);
    expect(error.message).toBe('invalid payload of task "welcome": userId must be an integer number');
    expect(error.cause).toBeInstanceOf(BadRequestException);
    expect(await rejection(emails.with({ queue: 'low' }).welcome(wrong))).toBeInstanceOf(InvalidPayloadError);
    expect(tasks.all()).toEqual([]);
    await emails.with({ queue: 'low' }).welcome({ userId: 1 });
    expect(tasks.all()).toMatchObject([{ queue: 'low', payload: { userId: 1 } }]);
  });

  it('checks what the handler will get', async () => {
    const { app, tasks } = await testApp({ providers: [Signup, EmailTasks] });
    await app.get(Signup).emails.welcome({ userId: 1, at: new Date(0) as never }); // text in JSON
    expect((await tasks.drain()).outcomes).toMatchObject([{ outcome: 'done', result: 'sent to 1' }]);
  });

  it('is not the default, and not for enqueue by the definition', async () => {
    const { app, tasks } = await testApp({ providers: [Signup] }, { server: false });
    await app.get(Signup).emails.unchecked(wrong);
    await app.get(AsynqClient).enqueue(Welcome, wrong);
    expect(tasks.all()).toHaveLength(2);
  });

  it('runs the pipes of class, method and payload in their order, and those of the application not at all', async () => {
    const trace: unknown[] = [];
    const pipe = (who: string): PipeTransform => ({
      transform(value: unknown, { type, metatype, data }) {
        trace.push([who, value, type, metatype?.name, data]);
        return `${String(value)}${who[0]}`;
      },
    });
    @UsePipes(pipe('class'))
    class Tasks {
      @TaskHandler('traced', { validate: 'both' })
      @UsePipes(pipe('method'))
      run(@Payload(pipe('payload')) _text: string, @Payload('length', pipe('field')) _length: number) {}
    }
    const { calls, tester } = await callsOf(Tasks, [{ provide: APP_PIPE, useValue: pipe('application') }]);
    await calls.run('x');
    expect(trace).toEqual([
      ['class', 'x', 'body', 'String', undefined],
      ['method', 'xc', 'body', 'String', undefined],
      ['payload', 'xcm', 'body', 'String', undefined],
      ['class', 1, 'body', 'Number', 'length'],
      ['method', '1c', 'body', 'Number', 'length'],
      ['field', '1cm', 'body', 'Number', 'length'],
    ]);
    expect(tester.all()).toMatchObject([{ payload: 'x' }]); // not what the pipes made of it
  });

  it('injects pipes, and says at boot which cannot be made', async () => {
    class Known {
      has(user: unknown) {
        return user === 1;
      }
    }
    @Injectable()
    class KnownUser implements PipeTransform {
      constructor(private readonly known: Known) {}
      transform(value: unknown) {
        if (this.known.has(value)) return value;
        throw new BadRequestException('no such user');
      }
    }
    class Tasks {
      @TaskHandler('known', { validate: 'both' })
      run(@Payload(KnownUser) _user: number) {}
    }
    const { calls } = await callsOf(Tasks, [KnownUser, Known]);
    expect((await rejection(calls.run(2))).message).toBe('invalid payload of task "known": no such user');
    await calls.run(1);

    const { app, calls: without } = await callsOf(Tasks);
    for (const error of [await rejection(without.run(1)), await rejection(app.init())]) {
      expect(error).toBeInstanceOf(InvalidHandlerError);
      expect(error.message).toContain(
        "Tasks.run: the pipe KnownUser cannot be made where the task is called (validate: 'both')",
      );
      expect(error.message).toContain('give an instance (new KnownUser(…)), or make KnownUser a provider here');
    }
  });

  it('passes on other errors of a pipe, and leaves what cannot be encoded to enqueue', async () => {
    const broken = {
      transform: () => {
        throw new Error('database away');
      },
    };
    class Tasks {
      @TaskHandler('broken', { validate: 'both' })
      broken(@Payload(broken) _payload: number) {}
      @TaskHandler('bytes', { validate: 'both', codec: bytesCodec })
      bytes(@Payload(ValidationPipe) _payload: Buffer) {}
    }
    const { calls, tester } = await callsOf(Tasks);
    expect((await rejection(calls.broken(1))).message).toBe('database away');
    expect(await rejection(calls.bytes('text' as never))).toBeInstanceOf(InvalidTaskError);
    await calls.bytes(Buffer.from('hi'));
    expect(tester.all()).toMatchObject([{ rawPayload: Buffer.from('hi') }]);
  });

  it('is refused without a pipe on the handler', async () => {
    class Tasks {
      @TaskHandler('bare', { validate: 'both' })
      run(@Payload() _payload: WelcomeDto) {}
    }
    const { app, calls } = await callsOf(Tasks, [{ provide: APP_PIPE, useClass: ValidationPipe }]);
    for (const error of [await rejection(calls.run({ userId: 1 })), await rejection(app.init())]) {
      expect(error).toBeInstanceOf(InvalidHandlerError);
      expect(error.message).toContain(
        "Tasks.run has validate: 'both', and no pipe on its payload, its method or its class",
      );
    }
  });

  it('is one of two policies', () => {
    const decorate = () => {
      class Tasks {
        @TaskHandler('x', { validate: 'caller' } as unknown as TaskHandlerOptions)
        run() {}
      }
      return Tasks;
    };
    expect(decorate).toThrow('Tasks.run: validate must be "handler" or "both", not "caller"');
  });
});
