import { Injectable } from '@nestjs/common';
import { type AggregatedTask, type GroupedTask, Payload, TaskAggregator, TaskHandler } from 'nestjs-asynq';
import { UpdateIndex } from './tasks.js';

@Injectable()
export class Search {
  /** One update for all changes of a shelf within a few seconds. */
  @TaskAggregator('shelf:')
  collect(group: string, changes: readonly GroupedTask<{ sku: string }>[]): AggregatedTask {
    const skus = [...new Set(changes.map(({ payload }) => payload.sku))];
    return { task: UpdateIndex, payload: { shelf: group.slice('shelf:'.length), skus } };
  }

  @TaskHandler(UpdateIndex)
  update(@Payload(UpdateIndex, 'skus') skus: string[]): { updated: number } {
    return { updated: skus.length };
  }
}
