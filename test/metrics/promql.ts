/** What an expression reads: metrics with the labels it names for them, and labels it groups by. */
export interface Reads {
  readonly metrics: { readonly name: string; readonly labels: readonly string[] }[];
  readonly groupedBy: string[];
}

const TOKEN =
  /\s*(?:(\d+(?:\.\d+)?)|("(?:[^"\\]|\\.)*")|([a-zA-Z_:][\w:]*)|(\[[0-9]+[smhd]\])|(=~|!~|!=|==|<=|>=|[-+*/%^<>=(){},]))/y;
const AGGREGATIONS = ['sum', 'max', 'min', 'avg', 'count', 'topk'];
const FUNCTIONS = ['rate', 'increase', 'histogram_quantile'];
const OPERATORS = ['+', '-', '*', '/', '%', '^', '==', '!=', '<', '>', '<=', '>=', 'and', 'or', 'unless'];
const MATCHERS = ['=', '!=', '=~', '!~'];

/** A parser of the part of PromQL that our board and alerts use. @throws Error where they leave it, or are no PromQL */
export class PromQl {
  private readonly tokens: string[] = [];
  private at = 0;
  private readonly reads: Reads = { metrics: [], groupedBy: [] };

  static parse(text: string): Reads {
    const parser = new PromQl(text.replaceAll('$__rate_interval', '5m'));
    parser.expression();
    if (parser.at < parser.tokens.length) throw parser.unexpected('the end');
    return parser.reads;
  }

  private constructor(private readonly text: string) {
    TOKEN.lastIndex = 0;
    for (let end = 0; text.slice(end).trim() !== ''; end = TOKEN.lastIndex) {
      const match = TOKEN.exec(text);
      if (!match) throw new Error(`no PromQL at character ${end}: ${text}`);
      this.tokens.push(match[0].trim());
    }
  }

  private expression(): void {
    this.operand();
    while (OPERATORS.includes(this.peek())) {
      this.at += 1;
      if (['on', 'ignoring'].includes(this.peek())) {
        this.at += 1;
        this.labels();
      }
      this.operand();
    }
  }

  private operand(): void {
    const token = this.take();
    if (/^\d/.test(token)) return;
    if (token === '(') {
      this.expression();
      return this.expect(')');
    }
    if (AGGREGATIONS.includes(token)) return this.aggregation();
    if (FUNCTIONS.includes(token)) return this.call();
    if (!/^[a-zA-Z_:]/.test(token)) throw this.unexpected('a metric');
    this.selector(token);
  }

  private aggregation(): void {
    if (this.peek() === 'by') {
      this.at += 1;
      this.labels();
    }
    this.call();
  }

  private call(): void {
    this.expect('(');
    this.expression();
    while (this.peek() === ',') {
      this.at += 1;
      this.expression();
    }
    this.expect(')');
  }

  private selector(name: string): void {
    const labels: string[] = [];
    if (this.peek() === '{') {
      do {
        this.at += 1;
        labels.push(this.take());
        if (!MATCHERS.includes(this.take())) throw this.unexpected('a matcher');
        if (!this.take().startsWith('"')) throw this.unexpected('a text');
      } while (this.peek() === ',');
      this.expect('}');
    }
    if (this.peek().startsWith('[')) this.at += 1;
    this.reads.metrics.push({ name, labels });
  }

  private labels(): void {
    this.expect('(');
    this.reads.groupedBy.push(this.take());
    while (this.peek() === ',') {
      this.at += 1;
      this.reads.groupedBy.push(this.take());
    }
    this.expect(')');
  }

  private peek(): string {
    return this.tokens[this.at] ?? '';
  }

  private take(): string {
    this.at += 1;
    return this.tokens[this.at - 1] ?? '';
  }

  private expect(token: string): void {
    if (this.take() !== token) throw this.unexpected(token);
  }

  private unexpected(wanted: string): Error {
    return new Error(`expected ${wanted} after "${this.tokens.slice(0, this.at - 1).join(' ')}" in: ${this.text}`);
  }
}
