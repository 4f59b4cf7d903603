import type { WorkflowsRole } from '../../workflows.js';
import type { LinkEngine } from './engine.js';

export class MemoryWorkflows implements WorkflowsRole {
  constructor(readonly engine: LinkEngine) {}
  start(): never {
    throw new Error('not built yet');
  }
  grow(): never {
    throw new Error('not built yet');
  }
  run(): never {
    throw new Error('not built yet');
  }
  summary(): never {
    throw new Error('not built yet');
  }
  runs(): never {
    throw new Error('not built yet');
  }
  results(): never {
    throw new Error('not built yet');
  }
  cancel(): never {
    throw new Error('not built yet');
  }
  retry(): never {
    throw new Error('not built yet');
  }
  delete(): never {
    throw new Error('not built yet');
  }
}
