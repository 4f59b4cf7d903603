import type { Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';

/** Nest orders hooks by a module's distance from the root: the farthest starts first and stops last. */
const DISTANCES = {
  /** Less than the root module, whose distance is 1 or 0. */
  'starts last, stops first': -1,
  /** More than global modules, to which Nest gives the largest number. */
  'starts first, stops last': Infinity,
} as const;

/**
 * Sets a module's place in the order of Nest's lifecycle hooks. By default `onModuleDestroy` runs from the root module inwards:
 * handlers would drain after the modules above have closed their pools, and their last enqueues would fail with a closed client.
 */
export function moveInHookOrder(modules: ModulesContainer, metatype: Type, place: keyof typeof DISTANCES): void {
  for (const module of modules.values()) if (module.metatype === metatype) module.distance = DISTANCES[place];
}
