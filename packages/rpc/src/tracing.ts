import { Fault, faults } from './fault.js'

/** Facts about a span, by the names of OpenTelemetry. Never ids of entities, secrets or values of statements. */
export type Attributes = Readonly<Record<string, string | number | boolean>>

/** One piece of work in a trace. */
export interface SpanFacts {
  readonly name: string
  readonly kind: 'server' | 'client' | 'internal'
  readonly attributes: Attributes
}

/** How work has failed. */
export interface Failure {
  readonly code: string
  /** The product has failed, not its client. */
  readonly isError: boolean
}

/** The span of a request from outside of the product. */
export interface RequestSpan {
  /** W3C trace context of the calls that serve the request. */
  readonly traceparent: string
  /** Runs `work`, whose spans are below this one. */
  run<T>(work: () => T): T
  end(outcome: Omit<SpanFacts, 'kind'>, failure?: Failure): void
}

/** A span that is recorded now. */
export interface ActiveSpan {
  readonly isActiveSpan: true
}

/** Records spans. */
export interface Tracing {
  /**
   * Begins the span of a request from outside. The sampler decides whether its trace is recorded.
   * @param traceparent of the client; absent: the trace begins here
   */
  request(name: string, traceparent?: string): RequestSpan
  /** Runs `work` as a span below that of another process, if its trace is recorded. */
  below<T>(traceparent: string, facts: SpanFacts, work: () => Promise<T>): Promise<T>
  /** Runs `work` as a span below the active one, if there is one. `work` gets the trace context for its calls. */
  within<T>(facts: SpanFacts, work: (traceparent?: string) => Promise<T>): Promise<T>
  active(): ActiveSpan | undefined
  /**
   * Runs `work` for all who wait for it: below the span of a single one, otherwise as a span below the first one, which
   * is linked with the others.
   */
  shared<T>(
    facts: SpanFacts,
    waiting: readonly (ActiveSpan | undefined)[],
    work: () => Promise<T>,
  ): Promise<T>
}

/**
 * Undefined: this process records no traces. What is traced reads it once, when it is opened, so that it costs nothing
 * while it is undefined.
 */
export let tracing: Tracing | undefined

/** To be called before anything that is traced is opened. */
export function useTracing(used: Tracing | undefined): void {
  tracing = used
}

/** What a span tells about an error. Its text stays in the log. */
export function failureOf(err: unknown): Failure {
  if (err instanceof Fault) return { code: err.code, isError: faults[err.code][0] >= 500 }
  return { code: err instanceof Error ? err.name : 'unknown', isError: true }
}

/** The span of a call, at both of its ends. */
export const callFacts = (kind: 'server' | 'client', path: string): SpanFacts => ({
  name: path.slice(1),
  kind,
  attributes: { 'rpc.system.name': 'grpc', 'rpc.method': path.slice(1) },
})
