import { Module } from '@nestjs/common';
import { AsynqModule } from 'nestjs-asynq';
import { FileHandlers } from './file.handlers.js';
import { Survey } from './survey.js';

@Module({
  imports: [
    AsynqModule.forRoot({
      connection: process.env.REDIS_URL ?? 'memory',
      server: { concurrency: 8 },
    }),
  ],
  providers: [FileHandlers, Survey],
})
export class AppModule {}
