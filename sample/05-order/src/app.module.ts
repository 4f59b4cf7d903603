import { Module } from '@nestjs/common';
import { AsynqModule } from 'nestjs-asynq';
import { AsynqDashboardModule } from 'nestjs-asynq/dashboard';
import { Import } from './import.js';
import { OrderHandlers } from './order.handlers.js';
import { QUEUES } from './tasks.js';

@Module({
  imports: [
    AsynqModule.forRoot({
      connection: process.env.REDIS_URL ?? 'memory',
      server: { concurrency: 20, queues: { [QUEUES.orders]: 3, [QUEUES.imports]: 1 } },
    }),
    // Everyone who reaches this page may do everything, because it listens on this machine only.
    AsynqDashboardModule.forRoot({ path: '/asynq', title: 'Orders', access: 'destroy' }),
  ],
  providers: [OrderHandlers, Import],
})
export class AppModule {}
