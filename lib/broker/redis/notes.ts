import type { Keyspace } from '../../wire/keys.js';
import type { Lease } from '../consumer.js';
import type { TaskPlace } from '../task-place.js';
import { NOTE_LIMITS, type NoteKind, type Notes, type NotesRole } from '../notes.js';
import type { RedisConnections } from './connection/connections.js';
import type { LeaseScores } from './lease-scores.js';
import { pieceField, pieceText } from './scripts/note-fields.js';
import type { Scripts } from './scripts/scripts.js';

const LIMITS = `${NOTE_LIMITS.log.entries} ${NOTE_LIMITS.log.bytes} ${NOTE_LIMITS.chunk.entries} ${NOTE_LIMITS.chunk.bytes}`;

export class RedisNotes implements NotesRole {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly scores: LeaseScores,
  ) {}

  async write(lease: Lease, { progress = '', fresh, pieces }: Notes): Promise<boolean> {
    const keys = this.keyspace.queue(lease.queue);
    const argv = [lease.id, progress, fresh ? '1' : '0', LIMITS, ...this.scores.fences([lease])];
    for (const { kind, count, text, leftOut } of pieces) argv.push(kind, String(count), text, String(leftOut));
    return (await this.scripts.run('consume', 'writeNotes', [keys.lease, keys.task(lease.id)], argv)) === 1;
  }

  async pieces(task: TaskPlace, kind: NoteKind, numbers: readonly number[]): Promise<(string | undefined)[]> {
    if (numbers.length === 0) return [];
    const key = this.keyspace.queue(task.queue).task(task.id);
    const fields = numbers.map((n) => pieceField(kind, n));
    const found = await this.connections.run('monitor', 'HMGET', (client) => client.hmgetBuffer(key, ...fields));
    return found.map(pieceText);
  }
}
