import type { OnModuleInit } from '@nestjs/common';
import type { Broker } from '../broker/broker.js';
import type { AsynqClient } from '../client/client.js';
import { QueueNotFoundError, WrongKeyTypeError } from '../errors.js';
import { AuditTrail } from '../event-streams/audit-trail.js';
import { type BulkResult, type Move, moveThese } from '../inspector/bulk.js';
import { AsynqInspector } from '../inspector/inspector.js';
import type { RunningServer } from '../inspector/views.js';
import type { Connection, ConnectionRegistry } from '../nest/connection/connection.registry.js';
import { DEFAULT_REDACTION } from '../redaction/default-rule.js';
import { Redactor } from '../redaction/redactor.js';
import type { PayloadCodec } from '../task/codec.js';
import type { OutboxWriter } from '../transactions/enqueue-transactions.js';
import { Recorder } from './audit/recorder.js';
import type { ResolvedSettings } from './resolve-options.js';
import { Presenter } from './payload/presenter.js';
import { QueueOverview } from './queue-overview.js';
import { type CacheLimits, ReplyCache } from './reply-cache.js';
import type { Content } from './rest/responder.js';
import { Sampler } from './sampler.js';

/** The replies of GET requests. `maxSize` is in characters. */
const REPLIES: CacheLimits<Content> = { maxEntries: 200, maxSize: 32_000_000, sizeOf: ({ body }) => body?.length ?? 0 };
/**
 * What several replies share, such as the state of a queue. There is room for every queue, so other
 * reads do not push it out.
 */
const SHARED_READS: CacheLimits<unknown> = { maxEntries: 10_000, maxSize: Infinity, sizeOf: () => 0 };

interface Made {
  readonly inspector: AsynqInspector;
  readonly replies: ReplyCache<Content>;
  readonly reads: ReplyCache<unknown>;
  readonly overview: QueueOverview;
  readonly sampler: Sampler;
  readonly presenter: Presenter;
  readonly trail: AuditTrail;
  readonly recorder: Recorder;
}

/** The console of one connection: everything its routes need. */
export class Dashboard implements OnModuleInit {
  private found: Connection | undefined;
  private made: Made | undefined;

  constructor(
    private readonly registry: ConnectionRegistry,
    readonly connectionName: string,
    readonly settings: ResolvedSettings,
    private readonly path: string,
    /** Whether everyone may do everything, because no option restricts it. */
    readonly isOpen: boolean,
  ) {}

  /**
   * Gets the connection here because modules are created in no particular order.
   *
   * @throws InvalidOptionError when there is no such connection
   */
  onModuleInit(): void {
    this.found = this.registry.get(this.connectionName, `the dashboard at "${this.path}"`);
    const { broker, relay, events } = this.found;
    const replies = new ReplyCache(broker.clock, this.settings.refresh, REPLIES);
    const reads = new ReplyCache(broker.clock, this.settings.refresh, SHARED_READS);
    const overview = new QueueOverview(broker, reads);
    const sampler = new Sampler(overview, broker.clock, this.settings.refresh);
    const inspector = new AsynqInspector(broker, relay);
    const trail = new AuditTrail(broker.events, this.settings.auditLength);
    const recorder = new Recorder({ trail, events, clock: broker.clock, actor: this.settings.actor });
    const presenter = this.makePresenter();
    this.made = { inspector, replies, reads, overview, sampler, presenter, trail, recorder };
  }

  /** Hides what logs and spans of the connection hide, too. */
  private makePresenter(): Presenter {
    const { redact, defaultRedaction, decoders } = this.settings;
    const sources = [this.found!.options.redact ?? [], redact];
    const redactor = new Redactor(sources, defaultRedaction ? DEFAULT_REDACTION : undefined);
    return new Presenter({ redactor, decoders });
  }

  get broker(): Broker {
    return this.found!.broker;
  }

  get client(): AsynqClient {
    return this.found!.client;
  }

  /** The outbox of this process, if it has one. */
  get outbox(): OutboxWriter | undefined {
    return this.found!.transactions.outbox;
  }

  get presenter(): Presenter {
    return this.made!.presenter;
  }

  get inspector(): AsynqInspector {
    return this.made!.inspector;
  }

  /** Replies by request. */
  get replies(): ReplyCache<Content> {
    return this.made!.replies;
  }

  /** Clears the caches after a change through this console. */
  forget(): void {
    this.made!.replies.clear();
    this.made!.reads.clear();
  }

  get overview(): QueueOverview {
    return this.made!.overview;
  }

  get sampler(): Sampler {
    return this.made!.sampler;
  }

  /** The audit trail of all consoles of this connection. */
  get trail(): AuditTrail {
    return this.made!.trail;
  }

  get recorder(): Recorder {
    return this.made!.recorder;
  }

  /** The application's codec for payloads, where a definition has none. */
  get codec(): PayloadCodec | undefined {
    return this.found!.options.codec;
  }

  /** Whether the application's defaults ask for a unique lock. */
  get uniqueByDefault(): boolean {
    return this.found!.options.defaults?.unique !== undefined;
  }

  get now(): number {
    return this.broker.clock.now();
  }

  servers(): Promise<RunningServer[]> {
    return this.made!.reads.get('servers', () => this.inspector.servers());
  }

  /** No servers if they cannot be read: tasks are then shown without them. */
  knownServers(): Promise<RunningServer[]> {
    return this.servers().catch((error: unknown) => {
      if (error instanceof WrongKeyTypeError) return [];
      throw error;
    });
  }

  /** Moves tasks that were found before, where they still are in the place. @throws ArchiveFullError */
  move(move: Move, ids: readonly string[]): Promise<BulkResult> {
    return moveThese(this.found!, move, ids);
  }

  /** @throws QueueNotFoundError */
  async requireQueue(queue: string): Promise<void> {
    if (!(await this.broker.inspection.hasQueue(queue))) throw new QueueNotFoundError(queue);
  }
}
