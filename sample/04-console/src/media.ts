import { setTimeout as wait } from 'node:timers/promises';
import { decode } from '@msgpack/msgpack';
import { Injectable } from '@nestjs/common';
import { TaskCtx, type TaskContext, TaskHandler } from 'nestjs-asynq';
import { below } from './chance.js';
import { ResizeImage } from './tasks.js';

@Injectable()
export class Media {
  @TaskHandler(ResizeImage, { concurrency: 2 })
  async resize(@TaskCtx() { payload, signal }: TaskContext): Promise<{ width: number; bytes: number }> {
    const { width } = decode(payload) as { width: number };
    await wait(300 + below(900), undefined, { signal });
    return { width, bytes: width * 120 };
  }
}
