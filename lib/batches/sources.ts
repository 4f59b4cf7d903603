import { ClosedError } from '../errors.js';

/**
 * The async sources that calls of `add` read. One may not yield for ever: when the client closes, nothing more is read of any, so that none
 * keeps an application from its end.
 */
export class Sources {
  private readonly interrupts = new Set<(error: Error) => void>();
  private closed: Error | undefined;

  /** The same payloads. After `close` the next one is a ClosedError, also where one is waited for. */
  async *read<T>(payloads: AsyncIterable<T>): AsyncGenerator<T, void, void> {
    const source = payloads[Symbol.asyncIterator]();
    let ended = false;
    try {
      for (;;) {
        const { done, value } = await this.next(source);
        ended = done === true;
        if (ended) return;
        yield value as T;
      }
    } catch (error) {
      ended = !this.closed;
      throw error;
    } finally {
      if (!ended) await this.leave(source);
    }
  }

  close(): void {
    this.closed ??= new ClosedError('the client was closed while payloads were read; nothing more is read of them');
    for (const interrupt of this.interrupts) interrupt(this.closed);
  }

  private next<T>(source: AsyncIterator<T>): Promise<IteratorResult<T>> {
    return new Promise<IteratorResult<T>>((resolve, reject) => {
      if (this.closed) throw this.closed;
      this.interrupts.add(reject);
      Promise.resolve(source.next())
        .then(resolve, reject)
        .finally(() => this.interrupts.delete(reject));
    });
  }

  /** Lets the source clean up. One that is waited for may never do so. */
  private async leave(source: AsyncIterator<unknown>): Promise<void> {
    const left = Promise.resolve(source.return?.());
    if (this.closed) left.catch(() => undefined);
    else await left;
  }
}
