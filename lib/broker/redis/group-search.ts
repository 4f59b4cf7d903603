import { WrongKeyTypeError } from '../../errors.js';
import type { RedisConnections } from './connection/connections.js';

/** Names that one step of a search reads, about. */
export const GROUP_SCAN_COUNT = 100;

/**
 * The listed groups of a queue, in pages. A page may be empty, and a name may come twice. A search
 * may stop anywhere and go on later: `names` are those it has read and not passed on.
 */
export class GroupSearch {
  private names: readonly string[] = [];
  /** `undefined`: the last page has been read. */
  private cursor: string | undefined = '0';
  /** How many groups its user has looked at, in all calls. */
  seen = 0;

  /** @param groups the key of the list */
  constructor(
    private readonly connections: RedisConnections,
    private readonly groups: string,
  ) {}

  /** Whether there is no further page. */
  get ended(): boolean {
    return this.names.length === 0 && this.cursor === undefined;
  }

  /** The next names, or `undefined` at the end. */
  async page(): Promise<readonly string[] | undefined> {
    const { names, cursor: at, groups } = this;
    if (names.length > 0) {
      this.names = [];
      return names;
    }
    if (at === undefined) return undefined;
    const scan = this.connections
      .run('consume', 'SSCAN', (client) => client.sscan(groups, at, 'COUNT', GROUP_SCAN_COUNT))
      .catch((error: unknown) => {
        throw isWrongType(error) ? notASet(groups, error) : error;
      });
    const [next, found] = await scan;
    this.cursor = next === '0' ? undefined : next;
    return [...new Set(found)];
  }

  /** Puts back what of a page was not looked at: the next page begins with it. */
  putBack(names: readonly string[]): void {
    this.names = names;
  }

  async *pages(): AsyncGenerator<readonly string[]> {
    for (let page = await this.page(); page; page = await this.page()) yield page;
  }
}

const isWrongType = (error: unknown): boolean =>
  error instanceof Error && error.cause instanceof Error && error.cause.message.startsWith('WRONGTYPE');

const notASet = (key: string, cause: unknown): WrongKeyTypeError =>
  new WrongKeyTypeError(
    `"${key}" is a key of another type and must be a set; nothing was written. ` +
      'Find out what else writes to it, or set another keyPrefix',
    { cause },
  );
