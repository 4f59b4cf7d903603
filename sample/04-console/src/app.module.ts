import { decode } from '@msgpack/msgpack';
import { Module } from '@nestjs/common';
import { AsynqModule, AsynqOperationsModule } from 'nestjs-asynq';
import { AsynqDashboardModule } from 'nestjs-asynq/dashboard';
import { AsynqMetricsModule } from 'nestjs-asynq/metrics';
import { HomeController } from './home.controller.js';
import { Imports } from './imports.js';
import { Incidents, IncidentsController } from './incidents.js';
import { Media } from './media.js';
import { Payments } from './payments.js';
import { Post } from './post.js';
import { Search } from './search.js';
import { Charge, QUEUES, ResizeImage } from './tasks.js';
import { TracesController } from './traces.controller.js';
import { Traffic } from './traffic.js';

@Module({
  imports: [
    AsynqModule.forRoot({
      connection: process.env.REDIS_URL ?? 'memory',
      server: {
        concurrency: 20,
        queues: {
          [QUEUES.payments]: 6,
          [QUEUES.mail]: 3,
          [QUEUES.search]: 2,
          [QUEUES.media]: { priority: 1, concurrency: 4 },
          [QUEUES.imports]: { priority: 1, globalConcurrency: 3 },
        },
        groupGracePeriod: '5s',
        groupMaxDelay: '15s',
        groupMaxSize: 20,
        shutdownTimeout: '1s', // on Redis, unfinished tasks run again at the next start
      },
      eventStream: { events: ['failed'] }, // so that each process can follow the failures of all processes
    }),
    AsynqDashboardModule.forRoot({
      path: '/asynq',
      title: 'A shop on asynq',
      // Everyone who reaches this page may do everything, because it listens on this machine only.
      // A real application has `guards`.
      access: 'destroy',
      redact: [{ type: Charge.type, fields: ['card'] }], // fields named `authorization` are hidden by default
      decoders: [
        { name: 'msgpack', decode: (bytes, { type }) => (type === ResizeImage.type ? decode(bytes) : undefined) },
      ],
    }),
    AsynqMetricsModule.forRoot({ path: 'metrics' }),
    // No proxy on this machine forwards to this application, so programs of this machine may drain it.
    AsynqOperationsModule.forRoot({ path: 'health', drainAccess: 'loopback', drainTimeout: '30s' }),
  ],
  controllers: [HomeController, IncidentsController, TracesController],
  providers: [Traffic, Payments, Post, Media, Imports, Search, Incidents],
})
export class AppModule {}
