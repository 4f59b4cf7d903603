import { Module } from '@nestjs/common';
import { AsynqModule } from 'nestjs-asynq';
import { AsynqDashboardModule } from 'nestjs-asynq/dashboard';
import { OrderHandlers } from './order.handlers.js';
import { ThumbnailsModule } from './thumbnails.module.js';

@Module({
  imports: [
    AsynqModule.forRoot({
      connection: process.env.REDIS_URL ?? 'memory',
      server: { threads: { module: new URL('./thumbnails.module.js', import.meta.url), count: 2 } },
    }),
    // Everyone who reaches this page may do everything, because it listens on this machine only.
    AsynqDashboardModule.forRoot({ path: '/asynq', title: 'Durable orders', access: 'destroy' }),
    ThumbnailsModule,
  ],
  providers: [OrderHandlers],
})
export class AppModule {}
