import { Controller, Get, Module, Post } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { AsynqClient, AsynqInspector, AsynqModule } from 'nestjs-asynq';
import { describe, expect, onTestFinished, test } from 'vitest';
import { quiet } from './support.js';

@Controller('mails')
class Mails {
  constructor(
    private readonly asynq: AsynqClient,
    private readonly inspector: AsynqInspector,
  ) {}

  @Post()
  send() {
    return this.asynq.enqueue(
      'mail:send',
      { to: 'ann' },
      { taskId: 'mail-1', processIn: '1h', headers: { auth: 'x' } },
    );
  }

  @Post('many')
  sendMany() {
    return this.asynq.enqueueMany('mail:send', [{ to: 'ben' }]);
  }

  @Get()
  async waiting() {
    const { tasks } = await this.inspector.listTasks('default', 'scheduled');
    return { tasks, first: await this.inspector.getTaskInfo('default', 'mail-1') };
  }
}

@Module({ imports: [AsynqModule.forRoot({ connection: 'memory' })], controllers: [Mails] })
class AppModule {}

describe.each([
  ['Express', undefined],
  ['Fastify', () => new FastifyAdapter()],
])('what a controller on %s returns of a task', (_, adapter) => {
  test('is fit for a client', async () => {
    const moduleRef = await Test.createTestingModule({ imports: [AppModule] })
      .setLogger(quiet)
      .compile();
    const app = adapter ? moduleRef.createNestApplication(adapter()) : moduleRef.createNestApplication();
    onTestFinished(() => app.close());
    await app.listen(0, '127.0.0.1');
    const url = `${await app.getUrl()}/mails`;
    const ask = async (path = '', method = 'GET') => (await fetch(url + path, { method })).json();
    const mail = { id: 'mail-1', type: 'mail:send', payload: { to: 'ann' }, payloadEncoding: 'json' };
    const sent = (await ask('', 'POST')) as object;
    expect(sent).toMatchObject({ ...mail, state: 'scheduled', nextProcessAt: expect.stringMatching(/^\d{4}-.*Z$/) });
    expect(sent).not.toHaveProperty('headers');
    expect(await ask('/many', 'POST')).toMatchObject([{ ok: true, info: { payload: { to: 'ben' } } }]);
    expect(await ask()).toMatchObject({ tasks: [mail], first: mail });
  });
});
