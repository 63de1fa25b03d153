import { randomUUID } from 'node:crypto'
import { failureOf, useTracing } from '@overlay/rpc'
import type { Logger } from 'pino'
import { openOutage } from '../async/outage.js'
import { build } from '../build.js'
import { metrics } from '../metrics.js'
import type { Values } from '../settings.js'
import type { tracingSettings } from '../tracing-settings.js'
import type { TracingOptions } from './tracing-sdk.js'

type TracingSettings = Values<typeof tracingSettings>

export interface TracingSetup {
  /** Of the service in traces, if the settings have none. */
  readonly name: string
  readonly settings: TracingSettings
  readonly log: Logger
}

/**
 * Records traces if the settings name a collector; otherwise nothing is loaded. To be called before anything that is
 * traced is opened, while the files of the program can be read. Disposing sends the last spans.
 */
export async function openTracing({ name, settings, log }: TracingSetup): Promise<AsyncDisposable> {
  const url = urlOf(settings)
  if (url === undefined) return { [Symbol.asyncDispose]: async () => undefined }
  const { startTracing } = await import('./tracing-sdk.js') // takes some MiB
  const warn = (reason: string): void => log.warn({ reason }, 'traces not sent')
  const report = (err: unknown): void => warn(err instanceof Error && err.message ? err.message : 'no answer')
  const outage = openOutage(report, { lastsMs: 0 }) // the library has repeated it
  const onSpans: TracingOptions['onSpans'] = (result, count, err) => {
    metrics.traceSpans.inc({ result }, count)
    if (result === 'failed') outage.failed(err)
    if (result === 'sent') outage.works()
  }
  const tracing = startTracing({
    url,
    timeoutMs: settings.otlpTimeoutMs,
    sampler: settings.otelSampler,
    ratio: settings.otelSamplerRatio,
    resource: resourceOf(name, settings),
    failureOf,
    onSpans,
    warn,
  })
  useTracing(tracing)
  return {
    async [Symbol.asyncDispose]() {
      try {
        await tracing[Symbol.asyncDispose]()
      } catch (err) {
        report(err)
      }
      useTracing(undefined)
      outage[Symbol.dispose]()
    },
  }
}

function urlOf({ otelDisabled, otlpEndpoint, otlpTracesEndpoint }: TracingSettings): string | undefined {
  if (otelDisabled) return undefined
  return otlpTracesEndpoint ?? (otlpEndpoint && `${otlpEndpoint.replace(/\/$/, '')}/v1/traces`)
}

const resourceOf = (
  name: string,
  { otelServiceName, otelResource }: TracingSettings,
): TracingOptions['resource'] => ({
  'service.name': name,
  'service.version': build.version,
  'service.instance.id': randomUUID(),
  ...otelResource,
  ...(otelServiceName && { 'service.name': otelServiceName }),
})
