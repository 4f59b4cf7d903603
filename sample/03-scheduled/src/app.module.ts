import { Module } from '@nestjs/common';
import { AsynqModule } from 'nestjs-asynq';
import { Digests } from './digests.js';
import { Forum } from './forum.js';
import { Reports } from './reports.js';
import { FORUM_QUEUE } from './tasks.js';

@Module({
  imports: [
    AsynqModule.forRoot({
      connection: process.env.REDIS_URL ?? 'memory',
      server: {
        queues: [FORUM_QUEUE],
        groupGracePeriod: '2s', // a digest is sent when its reader was not mentioned for 2 s (minutes in real life)
        groupMaxDelay: '6s', // … or when the first mention has waited for 6 s
        groupMaxSize: 5, // … or when there are 5 mentions
      },
    }),
  ],
  providers: [Digests, Forum, Reports],
})
export class AppModule {}
