import type { Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';

/** Nest sorts its hooks by a module's distance from the root: the farthest starts first and stops last. */
const DISTANCES = {
  /** Before the root module, whose distance is 1 or 0. */
  'starts last, stops first': -1,
  /** Beyond global modules, which Nest gives the largest number. */
  'starts first, stops last': Infinity,
} as const;

/**
 * Gives a module its place in the order of Nest's lifecycle hooks. Without it `onModuleDestroy` would run from the root module
 * inwards: handlers would drain when the pools of the modules above are already closed, and their last enqueues would
 * meet a closed client.
 */
export function moveInHookOrder(modules: ModulesContainer, metatype: Type, place: keyof typeof DISTANCES): void {
  for (const module of modules.values()) if (module.metatype === metatype) module.distance = DISTANCES[place];
}
