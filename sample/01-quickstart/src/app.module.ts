import { Module } from '@nestjs/common';
import { AsynqModule } from 'nestjs-asynq';
import { FileHandlers } from './file.handlers.js';
import { Survey } from './survey.js';
import { SURVEY_QUEUE } from './tasks.js';

@Module({
  imports: [
    AsynqModule.forRoot({
      connection: process.env.REDIS_URL ?? 'memory',
      server: { concurrency: Number(process.env.CONCURRENCY ?? 8), queues: [SURVEY_QUEUE] },
    }),
  ],
  providers: [FileHandlers, Survey],
})
export class AppModule {}
