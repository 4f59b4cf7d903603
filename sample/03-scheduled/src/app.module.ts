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
        groupGracePeriod: '2s', // a digest goes out when its reader was not mentioned for so long; minutes in real life
        groupMaxDelay: '6s', // … or the first mention has waited for so long
        groupMaxSize: 5, // … or there are so many
      },
    }),
  ],
  providers: [Digests, Forum, Reports],
})
export class AppModule {}
