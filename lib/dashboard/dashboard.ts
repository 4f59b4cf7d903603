import type { OnModuleInit } from '@nestjs/common';
import type { Broker } from '../broker/broker.js';
import type { AsynqClient } from '../client/client.js';
import { QueueNotFoundError, WrongKeyTypeError } from '../errors.js';
import { AsynqInspector } from '../inspector/inspector.js';
import type { RunningServer } from '../inspector/views.js';
import type { Connection, ConnectionRegistry } from '../nest/connection/connection.registry.js';
import { DEFAULT_REDACTION } from '../redaction/default-rule.js';
import { Redactor } from '../redaction/redactor.js';
import type { ResolvedSettings } from './dashboard.options.js';
import { Recorder } from './audit/recorder.js';
import { AuditTrail } from '../event-streams/audit-trail.js';
import { Presenter } from './payload/presenter.js';
import { QueueOverview } from './queue-overview.js';
import type { Content } from './rest/responder.js';
import { type CacheLimits, ReplyCache } from './reply-cache.js';
import { Sampler } from './sampler.js';
import type { PayloadCodec } from '../task/codec.js';

/** More would only be many different pages of lists, each asked for once. The size is that of the bodies, in characters. */
const REPLIES: CacheLimits<Content> = { maxEntries: 200, maxSize: 32_000_000, sizeOf: ({ body }) => body?.length ?? 0 };
/** As many as there are queues: requests for other things must not push out what all replies are made from. */
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

/** One console of one connection: what its routes work with. */
export class Dashboard implements OnModuleInit {
  private found: Connection | undefined;
  private made: Made | undefined;

  constructor(
    private readonly registry: ConnectionRegistry,
    readonly connectionName: string,
    readonly settings: ResolvedSettings,
    private readonly path: string,
    /** Whether everybody may do everything, as nobody said who may. */
    readonly isOpen: boolean,
  ) {}

  /** Not before: modules are made in no particular order. @throws InvalidOptionError when there is no such connection */
  onModuleInit(): void {
    this.found = this.registry.get(this.connectionName, `the dashboard at "${this.path}"`);
    const { broker, events } = this.found;
    const replies = new ReplyCache(broker.clock, this.settings.refresh, REPLIES);
    const reads = new ReplyCache(broker.clock, this.settings.refresh, SHARED_READS);
    const overview = new QueueOverview(broker, reads);
    const sampler = new Sampler(overview, broker.clock, this.settings.refresh);
    const inspector = new AsynqInspector(broker);
    const trail = new AuditTrail(broker.events, this.settings.auditLength);
    const recorder = new Recorder({ trail, events, clock: broker.clock, actor: this.settings.actor });
    const presenter = this.makePresenter();
    this.made = { inspector, replies, reads, overview, sampler, presenter, trail, recorder };
  }

  /** What is hidden in logs and spans of the connection is hidden here, too. */
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

  get presenter(): Presenter {
    return this.made!.presenter;
  }

  get inspector(): AsynqInspector {
    return this.made!.inspector;
  }

  /** Replies as they are sent, by what was asked. */
  get replies(): ReplyCache<Content> {
    return this.made!.replies;
  }

  /** Something was changed through this console. */
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

  /** What was changed through the consoles of this connection. */
  get trail(): AuditTrail {
    return this.made!.trail;
  }

  get recorder(): Recorder {
    return this.made!.recorder;
  }

  /** How the application encodes payloads, where a definition does not say. */
  get codec(): PayloadCodec | undefined {
    return this.found!.options.codec;
  }

  /** Whether tasks are enqueued with a lock where nobody says anything. */
  get uniqueByDefault(): boolean {
    return this.found!.options.defaults?.unique !== undefined;
  }

  get now(): number {
    return this.broker.clock.now();
  }

  servers(): Promise<RunningServer[]> {
    return this.made!.reads.get('servers', () => this.inspector.servers());
  }

  /** None where they cannot be read: what they work on is shown without them. */
  knownServers(): Promise<RunningServer[]> {
    return this.servers().catch((error: unknown) => {
      if (error instanceof WrongKeyTypeError) return [];
      throw error;
    });
  }

  /** @throws QueueNotFoundError */
  async requireQueue(queue: string): Promise<void> {
    if (!(await this.broker.inspection.hasQueue(queue))) throw new QueueNotFoundError(queue);
  }
}
