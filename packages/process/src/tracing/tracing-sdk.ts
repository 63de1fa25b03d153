import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type AttributeValue,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
// This file is a program of its own, which a process loads if it records traces. What it imports exists twice then:
// of the project it imports only types.
import type { ActiveSpan, Attributes, Failure, SpanFacts, Tracing } from '@overlay/rpc'
import type { SamplerName } from '../tracing-settings.js'

export interface TracingOptions {
  readonly url: string
  /** Of one batch of spans, with its repetitions. */
  readonly timeoutMs: number
  readonly sampler: SamplerName
  /** Of the samplers by trace id. */
  readonly ratio: number
  readonly resource: Readonly<Record<string, string>>
  readonly failureOf: (err: unknown) => Failure
  /** Spans have left the queue, or have not got into it. */
  readonly onSpans: (result: 'sent' | 'failed' | 'dropped', count: number, err?: Error) => void
  readonly warn: (reason: string) => void
}

/** Of spans that have ended and are not sent yet. Further ones are dropped. */
const MAX_WAITING = 4096
const MAX_TEXT_LENGTH = 4096
/** The exporter observes its limit by itself, except while a collector sends its answer too slowly. */
const GRACE_MS = 2000

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL }

/** Sends spans to a collector by OTLP over HTTP, in batches. Disposing sends those that wait. */
export function startTracing(options: TracingOptions): Tracing & AsyncDisposable {
  const { failureOf } = options
  diag.setLogger(
    { ...quiet, warn: options.warn, error: options.warn },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
  const processor = boundedProcessor(options)
  const shared = {
    spanProcessors: [processor],
    resource: resourceFromAttributes({ ...options.resource }),
    spanLimits: { attributeValueLengthLimit: MAX_TEXT_LENGTH },
  }
  // only where a trace enters the product, the sampler decides
  const [entrance, inner] = [samplerOf(options), new AlwaysOnSampler()].map((sampler) =>
    new TracerProvider({ ...shared, sampler }).getTracer('overlay'),
  ) as [ReturnType<TracerProvider['getTracer']>, ReturnType<TracerProvider['getTracer']>]
  const current = new AsyncLocalStorage<Span | undefined>()

  const start = (facts: SpanFacts, parent: Span, links: readonly Span[] = []): Span => {
    const { name, kind, attributes } = facts
    const linked = links.map((span) => ({ context: span.spanContext() }))
    return inner.startSpan(
      name,
      { kind: kinds[kind], attributes: { ...attributes }, links: linked },
      below(parent),
    )
  }

  async function record<T>(span: Span, work: () => Promise<T>): Promise<T> {
    try {
      return await current.run(span, work)
    } catch (err) {
      note(span, failureOf(err))
      throw err
    } finally {
      span.end()
    }
  }

  /** Work behind an answer is no part of its trace. */
  function recorded(): Span | undefined {
    const span = current.getStore()
    return span?.isRecording() ? span : undefined
  }

  return {
    request(name, traceparent) {
      const parent = traceparent === undefined ? ROOT_CONTEXT : below(remote(traceparent))
      const span = entrance.startSpan(name, { kind: SpanKind.SERVER }, parent)
      return {
        traceparent: traceparentOf(span.spanContext()),
        run: (work) => current.run(span, work),
        end({ name, attributes }, failure) {
          span.updateName(name).setAttributes(attributes as Record<string, AttributeValue>)
          if (failure) note(span, failure)
          span.end()
        },
      }
    },

    below(traceparent, facts, work) {
      const parent = remote(traceparent)
      if (!isSampled(parent.spanContext())) return current.run(undefined, work)
      return record(start(facts, parent), work)
    },

    within(facts, work) {
      const parent = recorded()
      if (!parent) return work()
      const span = start(facts, parent)
      return record(span, () => work(traceparentOf(span.spanContext())))
    },

    active: () => recorded() as (ActiveSpan & Span) | undefined,

    shared(facts, waiting, work) {
      const spans = waiting.filter((one) => one !== undefined) as unknown as readonly Span[]
      const [first, ...others] = new Set(spans)
      if (!first || waiting.length === 1) return current.run(first, work)
      const span = start(withSize(facts, waiting.length), first, others)
      for (const other of others) other.addLink({ context: span.spanContext() })
      return record(span, work)
    },

    [Symbol.asyncDispose]: () => processor.shutdown(),
  }
}

const withSize = ({ attributes, ...facts }: SpanFacts, size: number): SpanFacts => ({
  ...facts,
  attributes: { ...attributes, 'overlay.batch.size': size } satisfies Attributes,
})

function note(span: Span, { code, isError }: Failure): void {
  span.setAttribute('overlay.code', code)
  if (!isError) return
  span.setAttribute('error.type', code)
  span.setStatus({ code: SpanStatusCode.ERROR })
}

const below = (parent: Span) => trace.setSpan(ROOT_CONTEXT, parent)

const isSampled = ({ traceFlags }: SpanContext): boolean => (traceFlags & TraceFlags.SAMPLED) !== 0

/** Of a valid header. */
const remote = (traceparent: string): Span =>
  trace.wrapSpanContext({
    traceId: traceparent.slice(3, 35),
    spanId: traceparent.slice(36, 52),
    traceFlags: Number.parseInt(traceparent.slice(53, 55), 16),
    isRemote: true,
  })

const traceparentOf = (span: SpanContext): string =>
  `00-${span.traceId}-${span.spanId}-${isSampled(span) ? '01' : '00'}`

function samplerOf({ sampler, ratio }: TracingOptions): Sampler {
  const isParentBased = sampler.startsWith('parentbased_')
  const root = roots[sampler.replace('parentbased_', '') as keyof typeof roots](ratio)
  return isParentBased ? new ParentBasedSampler({ root }) : root
}

const roots = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (ratio: number) => new TraceIdRatioBasedSampler(ratio),
}

/** Batches of the library behind a queue whose losses are counted. */
function boundedProcessor({ url, timeoutMs, onSpans }: TracingOptions): SpanProcessor {
  let waiting = 0
  const sender = new OTLPTraceExporter({ url, timeoutMillis: timeoutMs })
  const exporter: SpanExporter = {
    export(spans, done) {
      sender.export(spans, ({ code, error }) => {
        waiting -= spans.length
        if (code === SUCCESS) onSpans('sent', spans.length)
        else onSpans('failed', spans.length, error)
        done({ code: SUCCESS }) // the failure is reported already
      })
    },
    shutdown: () => sender.shutdown(),
  }
  const batches = new BatchSpanProcessor({
    exporter,
    maxQueueSize: MAX_WAITING,
    exportTimeoutMillis: timeoutMs + GRACE_MS,
  })
  return {
    onStart: (span, context) => batches.onStart(span, context),
    onEnd(span: ReadableSpan) {
      if (waiting >= MAX_WAITING) return onSpans('dropped', 1)
      waiting++
      batches.onEnd(span)
    },
    forceFlush: () => batches.forceFlush(),
    shutdown: () => batches.shutdown(),
  }
}

/** Of the library's ExportResultCode. */
const SUCCESS = 0

const ignore = (): void => undefined
const quiet = { error: ignore, warn: ignore, info: ignore, debug: ignore, verbose: ignore }
