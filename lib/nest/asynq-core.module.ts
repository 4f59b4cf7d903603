import { Module } from '@nestjs/common';
import { DiscoveryModule, ModulesContainer } from '@nestjs/core';
import { TaskCalls } from './calls/task-calls.js';
import { ConnectionRegistry } from './connection/connection.registry.js';
import { Enhancers } from './execution/enhancers.js';
import { TaskAggregatorFactory } from './execution/task-aggregator.factory.js';
import { TaskHandlerFactory } from './execution/task-handler.factory.js';
import { HealthFactory } from './health/health.factory.js';
import { moveInHookOrder } from './lifecycle/hook-order.js';
import { SchedulerOrchestrator } from './lifecycle/scheduler.orchestrator.js';
import { SetupChecks } from './lifecycle/setup-checks.js';
import { ServerOrchestrator } from './lifecycle/server.orchestrator.js';
import { AggregatorExplorer } from './discovery/aggregator.explorer.js';
import { EventListeners } from './lifecycle/event.listeners.js';
import { HandlerExplorer } from './discovery/handler.explorer.js';
import { HandlerMetadataAccessor } from './discovery/handler.metadata-accessor.js';

/** What all connections of an application share. Every AsynqModule imports it; Nest creates it once. */
@Module({
  imports: [DiscoveryModule],
  providers: [
    ConnectionRegistry,
    Enhancers,
    HandlerMetadataAccessor,
    HandlerExplorer,
    TaskHandlerFactory,
    SchedulerOrchestrator,
    SetupChecks,
    AggregatorExplorer,
    TaskAggregatorFactory,
    EventListeners,
    ServerOrchestrator,
    HealthFactory,
    TaskCalls,
  ],
  exports: [ConnectionRegistry, TaskCalls, ServerOrchestrator, EventListeners, HealthFactory],
})
export class AsynqCoreModule {
  constructor(modules: ModulesContainer) {
    moveInHookOrder(modules, AsynqCoreModule, 'starts last, stops first');
  }
}
