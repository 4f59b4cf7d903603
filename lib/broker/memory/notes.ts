import type { Lease } from '../consumer.js';
import type { TaskPlace } from '../task-place.js';
import type { NoteKind, Notes, NotesRole } from '../notes.js';
import type { MemoryState } from './memory-state.js';
import { NoteList } from './note-list.js';
import { type TaskRecord, wellFormed } from './queue-store.js';

export class MemoryNotes implements NotesRole {
  constructor(private readonly state: MemoryState) {}

  async write(lease: Lease, { progress, fresh, pieces }: Notes): Promise<boolean> {
    return this.state.change(lease.queue, (store) => {
      const record = store.leased(lease);
      if (!record) return false;
      const notes = (record.notes ??= {
        progress: undefined,
        log: new NoteList('log'),
        chunk: new NoteList('chunk'),
        changes: 0,
      });
      notes.changes += 1;
      if (fresh) notes.chunk.clear();
      for (const piece of pieces) notes[piece.kind].add({ ...piece, text: wellFormed(piece.text) });
      notes.progress = progress === undefined ? notes.progress : wellFormed(progress);
      return true;
    });
  }

  async pieces(task: TaskPlace, kind: NoteKind, numbers: readonly number[]): Promise<(string | undefined)[]> {
    const notes = this.recordOf(task)?.notes;
    return numbers.map((n) => notes?.[kind].textAt(n));
  }

  private recordOf({ queue, id }: TaskPlace): TaskRecord | undefined {
    this.state.assertOpen();
    return this.state.stores.get(wellFormed(queue))?.tasks.get(wellFormed(id));
  }
}
