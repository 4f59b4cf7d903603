/** The kinds of keys that links have in a place. */
const LINK_KEY =
  /^(?:links|outbox|timers|links_lease|links_progress|runs|running|batches)$|^(?:early|mark|waiters|watchers|run|batch|part|offer):/;

/** The keys of links in one place, all ours: a queue, or the marks of a task type. They share the hash tag `{place}`. */
export class PlaceKeys {
  /** `asynq:{place}:` */
  readonly base: string;
  /** Who is notified of the end of which task, but for most steps of runs. While it exists the queue has links. */
  readonly links: string;
  /** Parcels to other places that have not been delivered. */
  readonly outbox: string;
  /** What is due when in this place. */
  readonly timers: string;
  /** The runs of workflows that live here, by the time of their start. */
  readonly runs: string;
  readonly runPrefix: string;
  /** Those of them whose steps may have tasks, by what the ids of these tasks begin with. While it exists the queue has links. */
  readonly running: string;
  /** The right to keep the links of this place. */
  readonly linksLease: string;
  /** How far the keeper of this place has come. */
  readonly linksProgress: string;
  /** The batches that live here, by the time they were opened. */
  readonly batches: string;

  constructor(prefix: string, place: string) {
    this.base = `${prefix}:{${place}}:`;
    this.links = `${this.base}links`;
    this.outbox = `${this.base}outbox`;
    this.timers = `${this.base}timers`;
    this.runs = `${this.base}runs`;
    this.runPrefix = `${this.base}run:`;
    this.running = `${this.base}running`;
    this.linksLease = `${this.base}links_lease`;
    this.linksProgress = `${this.base}links_progress`;
    this.batches = `${this.base}batches`;
  }

  /**
   * Whether a key is about links. It outlives the queue, until all who wait for what was in it have been notified: the keeper
   * finds that the tasks are gone.
   */
  isAboutLinks(key: string): boolean {
    return LINK_KEY.test(key.slice(this.base.length));
  }

  /** The graph of a run, and how far it has come. */
  run(id: string): string {
    return this.runPrefix + id;
  }

  /** Ends of prerequisites of a task that is not stored yet. */
  early(id: string): string {
    return `${this.base}early:${id}`;
  }

  /** Where marks are kept: the remembered end of a task. */
  mark(key: string): string {
    return `${this.base}mark:${key}`;
  }

  /** Where marks are kept: the tasks that wait for this key. */
  waiters(key: string): string {
    return `${this.base}waiters:${key}`;
  }

  /** A batch that lives here. */
  batch(id: string): string {
    return `${this.base}batch:${id}`;
  }

  /** What a batch has in this queue. */
  part(batch: string): string {
    return `${this.base}part:${batch}`;
  }

  /** Its members in this queue, a bit for each. */
  partMade(batch: string): string {
    return `${this.part(batch)}:made`;
  }
}
