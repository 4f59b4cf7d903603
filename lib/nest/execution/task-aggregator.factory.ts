import { Injectable } from '@nestjs/common';
import { ContextIdFactory, ModuleRef } from '@nestjs/core';
import type { Broker } from '../../broker/broker.js';
import { readItem } from '../../client/item.js';
import { refuseRepeat } from '../../enqueue/repeats.js';
import type { PreparedTask } from '../../enqueue/prepared-task.js';
import { Preparer } from '../../enqueue/preparer.js';
import { InvalidTaskError } from '../../errors.js';
import type { GroupedTask, TaskAggregatorEntry } from '../../server/index.js';
import { refuseCallLinks } from '../../task/link-settings.js';
import { jsonCodec, type PayloadCodec } from '../../task/codec.js';
import type { TaskOptions } from '../../task/options.js';
import type { TaskMessage } from '../../wire/message.js';
import { describe } from '../../validation.js';
import { noAggregatedTask } from '../names/nest.messages.js';
import type { DiscoveredAggregator } from '../discovery/aggregator.explorer.js';
import { undecodable } from './invalid-payload.js';

type Aggregate = (group: string, tasks: readonly GroupedTask[]) => unknown;

/** Creates the aggregators of the server from discovered methods. */
@Injectable()
export class TaskAggregatorFactory {
  create(
    aggregator: DiscoveredAggregator,
    { clock, keyPrefix, maxPayloadSize }: Broker,
    options: { readonly codec?: PayloadCodec; readonly defaults?: TaskOptions },
  ): TaskAggregatorEntry {
    const { pattern, codec = options.codec ?? jsonCodec } = aggregator.metadata;
    const preparer = new Preparer(keyPrefix, options.codec, options.defaults, maxPayloadSize);
    const aggregate = aggregator.scoped ? scoped(aggregator) : plain(aggregator);
    return {
      pattern,
      read: (message) => groupedTask(message, codec),
      aggregate: async (queue, group, tasks) => {
        const made = await aggregate(queue, group, tasks);
        if (typeof made !== 'object' || made === null) {
          throw new InvalidTaskError(noAggregatedTask(aggregator.label, group, describe(made)));
        }
        return prepare(preparer, made, queue, clock.now());
      },
    };
  }
}

function groupedTask({ id, type, payload, headers = {} }: TaskMessage, codec: PayloadCodec): GroupedTask {
  try {
    return { id, type, payload: codec.decode(payload), headers };
  } catch (error) {
    throw undecodable(type, error);
  }
}

/** Builds the task like the client does, but for the queue of the group. */
function prepare(preparer: Preparer, made: object, queue: string, now: number): PreparedTask {
  const { task, payload, options } = readItem(made, 'an aggregated task');
  if (options !== undefined) refuseCallLinks(options, 'an aggregated task');
  const prepared = preparer.prepare(preparer.kindOf(task, { ...options, queue }), payload, now);
  refuseRepeat(prepared, 'an aggregated task');
  return prepared;
}

type Invoke = (queue: string, ...args: Parameters<Aggregate>) => unknown;

/** Calls the method of the instance, read at each call: a spy may have replaced it. */
const methodOf = (instance: object, name: string): Aggregate => {
  const method = (instance as Record<string, Aggregate>)[name]!;
  return method.bind(instance);
};

function plain({ wrapper, methodName }: DiscoveredAggregator): Invoke {
  return (_, ...args) => methodOf(wrapper.instance as object, methodName)(...args);
}

/** One instance per aggregation set; injecting REQUEST gives `{ queue, group, tasks }`. */
function scoped({ wrapper, methodName }: DiscoveredAggregator): Invoke {
  const moduleRef = wrapper.host!.getProviderByKey<ModuleRef>(ModuleRef).instance;
  return async (queue, group, tasks) => {
    const contextId = ContextIdFactory.create();
    moduleRef.registerRequestByContextId({ queue, group, tasks }, contextId);
    const instance = await moduleRef.resolve<object>(wrapper.token as string, contextId, { strict: true });
    return methodOf(instance, methodName)(group, tasks);
  };
}
