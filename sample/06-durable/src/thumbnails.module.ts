import { Injectable, Module } from '@nestjs/common';
import { Payload, TaskCtx, TaskHandler, type TaskContext } from 'nestjs-asynq';
import { MakeThumbnail, type Thumbnail } from './tasks.js';

@Injectable()
export class Thumbnails {
  /** Computes for some seconds; in a thread, so that nobody else waits for it. */
  @TaskHandler(MakeThumbnail, { thread: true })
  make(@Payload() { size }: Thumbnail, @TaskCtx() task: TaskContext): { brightness: number } {
    let sum = 0;
    for (let row = 0; row < size; row++) {
      for (let column = 0; column < size; column++) sum += Math.sin(row * column) ** 2;
      if (row % 100 === 0) task.progress(row / size, `row ${row} of ${size}`);
    }
    return { brightness: Math.round((100 * sum) / size ** 2) };
  }
}

@Module({ providers: [Thumbnails], exports: [Thumbnails] })
export class ThumbnailsModule {}
