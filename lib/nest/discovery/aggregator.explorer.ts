import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { InvalidHandlerError } from '../../errors.js';
import type { TaskAggregatorMetadata } from '../decorators/task-aggregator.decorator.js';
import { TASK_AGGREGATOR_METADATA } from '../names/nest.constants.js';
import { batchAggregator, decoratedParameters, enhancedAggregator, twoAggregators } from '../names/nest.messages.js';
import { rejectEnhancers } from './plain-method.js';
import { type Discovered, HandlerExplorer } from './handler.explorer.js';
import { HandlerMetadataAccessor } from './handler.metadata-accessor.js';

/** One `@TaskAggregator`. */
export type DiscoveredAggregator = Discovered<TaskAggregatorMetadata>;

/** Finds the aggregators of an application, in the same places as handlers. */
@Injectable()
export class AggregatorExplorer {
  constructor(
    private readonly methods: HandlerExplorer,
    private readonly accessor: HandlerMetadataAccessor,
  ) {}

  /** @throws InvalidHandlerError for two with one pattern and connection, and for enhancers that would not apply */
  explore(): DiscoveredAggregator[] {
    const aggregators = this.methods.search(metadataOf);
    for (const one of aggregators) {
      rejectEnhancers(one, { enhanced: enhancedAggregator, decorated: decoratedParameters });
      this.rejectBatchHandler(one);
    }
    rejectDuplicates(aggregators);
    return aggregators;
  }

  private rejectBatchHandler({ method, label }: DiscoveredAggregator): void {
    if (!this.accessor.handlersOf(method).some(({ batch }) => batch)) return;
    throw new InvalidHandlerError(batchAggregator(label));
  }
}

const metadataOf = (method: object): TaskAggregatorMetadata[] =>
  (Reflect.getOwnMetadata(TASK_AGGREGATOR_METADATA, method) ?? []) as TaskAggregatorMetadata[];

function rejectDuplicates(aggregators: readonly DiscoveredAggregator[]): void {
  const first = new Map<string, DiscoveredAggregator>();
  for (const aggregator of aggregators) {
    const { pattern, connection } = aggregator.metadata;
    const key = `${connection}\n${pattern}`;
    const twin = first.get(key);
    if (twin) throw new InvalidHandlerError(twoAggregators(pattern, connection, twin.label, aggregator.label));
    first.set(key, aggregator);
  }
}
