import { Module } from '@nestjs/common';
import { DiscoveryModule, ModulesContainer } from '@nestjs/core';
import { ConnectionRegistry } from './connection.registry.js';
import { Enhancers } from './execution/enhancers.js';
import { TaskAggregatorFactory } from './execution/task-aggregator.factory.js';
import { TaskHandlerFactory } from './execution/task-handler.factory.js';
import { HealthFactory } from './health/health.factory.js';
import { moveInHookOrder } from './hook-order.js';
import { SchedulerOrchestrator } from './scheduler.orchestrator.js';
import { ServerOrchestrator } from './server.orchestrator.js';
import { TaskAggregatorExplorer } from './task-aggregator.explorer.js';
import { TaskEventListeners } from './task-event.listeners.js';
import { TaskHandlerExplorer } from './task-handler.explorer.js';
import { TaskHandlerMetadataAccessor } from './task-handler.metadata-accessor.js';

/** What all connections of an application share. Imported by every AsynqModule; Nest makes it once. */
@Module({
  imports: [DiscoveryModule],
  providers: [
    ConnectionRegistry,
    Enhancers,
    TaskHandlerMetadataAccessor,
    TaskHandlerExplorer,
    TaskHandlerFactory,
    SchedulerOrchestrator,
    TaskAggregatorExplorer,
    TaskAggregatorFactory,
    TaskEventListeners,
    ServerOrchestrator,
    HealthFactory,
  ],
  exports: [ConnectionRegistry, ServerOrchestrator, TaskEventListeners, HealthFactory],
})
export class AsynqCoreModule {
  constructor(modules: ModulesContainer) {
    moveInHookOrder(modules, AsynqCoreModule, 'starts last, stops first');
  }
}
