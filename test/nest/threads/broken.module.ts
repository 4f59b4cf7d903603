import { Injectable, Module } from '@nestjs/common';
import { isMainThread } from 'node:worker_threads';
import { TaskHandler } from '../../../lib/index.js';

@Injectable()
export class BrokenTasks {
  constructor() {
    if (!isMainThread) throw new RangeError('cannot be made here');
  }

  @TaskHandler('broken', { thread: true })
  run() {
    return undefined;
  }
}

@Module({ providers: [BrokenTasks] })
export class BrokenModule {}
